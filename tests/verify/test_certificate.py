import copy
import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deniable as dn
from deniable.core.channels import Channel
from deniable_verify.numbers import cell_amplification


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(1)
    table = pa.table({"age": rng.integers(0, 9, 500), "disease": rng.choice(list("abcde"), 500)})
    dn.publish(table, sensitive="disease", privacy=dn.Privacy("1/4", "1/2"), out=tmp_path / "r", mechanism="uniform")
    return tmp_path / "r"


def _tamper(folder, change):
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def test_an_honest_release_verifies(folder):
    found = dn.verify(folder)
    assert found.holds
    assert "posterior" in str(found)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda m: m["parts"][0]["cells"][0]["keep"].__setitem__(0, m["parts"][0]["cells"][0]["keep"][0] + 1000),
            "amplification",
        ),
        (
            lambda m: m["parts"][0]["cells"][0].__setitem__(
                "keep", [int(1.05 * k) for k in m["parts"][0]["cells"][0]["keep"]]
            ),
            "posterior",
        ),
        (lambda m: m["guarantee"].__setitem__("rho2", "1/3"), "rho2 = 1/3 is stated, and 1/2 promised"),
        (lambda m: m["parts"][0]["promise"].__setitem__("rho2", "1/3"), "posterior"),
        (lambda m: m["parts"][0]["promise"].__setitem__("gamma", "2"), "part amplification"),
        (lambda m: m["guarantee"].__setitem__("rho1", "1/5"), "rho1"),
        (lambda m: m["guarantee"].__setitem__("gamma", "2"), "amplification"),
        (lambda m: m["data"].__setitem__("sha256", "0" * 64), "data"),
        *(
            (
                lambda m, factor=factor: m["parts"][0]["marginal"].update(
                    {"variance": factor * m["parts"][0]["marginal"]["variance"]}
                ),
                "noisy histogram",
            )
            for factor in (0.95, 1.05, 0)
        ),
    ],
)
def test_a_tampered_manifest_is_named_for_what_does_not_hold(folder, change, words):
    _tamper(folder, change)
    with pytest.raises(dn.VerificationError, match=words):
        dn.verify(folder)


def test_a_noisy_histogram_with_other_values_is_named(folder):
    _tamper(folder, lambda m: m["parts"][0]["marginal"].__setitem__("counts", [1, 2]))
    with pytest.raises(dn.VerificationError, match="noisy histogram"):
        dn.verify(folder)


def test_a_changed_data_file_is_noticed(folder):
    path = folder / "data.parquet"
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(dn.VerificationError, match="other SHA-256"):
        dn.verify(folder)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: m["parts"][0].pop("cells"), "lacks 'cells'"),
        (lambda m: m.__setitem__("format_version", 7), "format version 7; this verifier reads 2"),
        (lambda m: m.__setitem__("format_version", 1), "format version 1; this verifier reads 2"),
        (lambda m: m["parts"][0]["cells"][0]["values"].__setitem__(0, 99), "is not a channel"),
        (lambda m: m["parts"][0]["cells"][0]["replace"].__setitem__(0, 1), "do not add up"),
        (lambda m: m["data"].__setitem__("file", "../other.parquet"), "outside the release"),
        (lambda m: m["parts"][0].pop("promise"), "lacks 'promise'"),
        (lambda m: m["parts"][0]["promise"].__setitem__("kind", "trust"), "a promise of an unknown kind: 'trust'"),
        (lambda m: m["parts"][0]["promise"].pop("gamma"), r"'amplification' has other numbers \(gamma\)"),
    ],
)
def test_a_damaged_manifest_is_refused_in_words(folder, change, words):
    _tamper(folder, change)
    with pytest.raises(dn.DeniableError, match=words):
        dn.verify(folder)


@given(st.lists(st.tuples(st.floats(0, 0.99), st.floats(0.01, 1)), min_size=2, max_size=9))
def test_the_certificate_s_own_arithmetic_agrees_with_the_planner_s(pairs):
    channel = Channel.of(range(len(pairs)), [p for p, _ in pairs], [r for _, r in pairs])
    assert cell_amplification(channel.keep.tolist(), channel.replace.tolist()) == channel.exact_gamma


def test_verification_reads_nothing_but_the_manifest_and_the_data(folder):
    before = copy.deepcopy(sorted(path.name for path in folder.iterdir()))
    dn.verify(folder)
    assert (
        sorted(path.name for path in folder.iterdir())
        == before
        == ["README.md", "data.parquet", "manifest.json", "weights.parquet"]
    )


@pytest.mark.parametrize("mechanism", ["designed", "fine-grain", "identity"])
def test_a_value_just_above_rho1_does_not_raise_a_false_alarm(tmp_path, mechanism):
    counts = {"h": 105, "r": 30, "a": 300, "b": 295, "c": 270}
    table = pa.table({"d": [value for value, n in counts.items() for _ in range(n)]})
    privacy = dn.Privacy(rho1="1/10", rho2="1/5")
    for key in range(5):
        out = tmp_path / f"r{key}"
        dn.publish(table, sensitive="d", privacy=privacy, mechanism=mechanism, key=bytes([key] * 32), out=out)
        assert dn.verify(out).holds


def test_the_number_of_rows_is_what_the_manifest_says(folder):
    _tamper(folder, lambda m: m.__setitem__("rows", 499))
    with pytest.raises(dn.VerificationError, match="rows"):
        dn.verify(folder)


@pytest.mark.parametrize("times", [8, 20])
def test_tiny_tables_verify(tmp_path, times):
    table = pa.table({"d": list("xyzuv") * times})
    options = {"sensitive": "d", "privacy": dn.Privacy(rho2="9/10"), "mechanism": "designed"}
    for key in range(30):
        out = tmp_path / f"r{key}"
        dn.publish(table, **{"mechanism": "uniform", **options}, key=bytes([key] * 32), out=out)
        assert dn.verify(out).holds


def test_a_table_of_three_rows_leaves_no_room(tmp_path):
    table = pa.table({"d": list("xyz")})
    with pytest.raises(dn.DeniableError, match="rho2 is too close"):
        dn.publish(table, sensitive="d", privacy=dn.Privacy(rho2="2/3"), mechanism="designed", out=tmp_path / "r")
    assert not (tmp_path / "r").exists()
