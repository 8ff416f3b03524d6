"""From a table to a release: what is published, what is not, and that nothing depends on how the work was cut up."""

import json
import os
import signal
import subprocess
import sys
import textwrap

import jsonschema
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.core.manifest import schema
from deniable.mechanisms import Retention

KEY = bytes(range(32))
PRIVACY = dn.Privacy(rho1="1/4", rho2="1/2")


def table(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "name": [f"person-{i:06d}" for i in range(n)],
            "age": rng.integers(18, 90, n),
            "city": rng.choice(["Ulm", "Köln", "Bonn"], n),
            "disease": rng.choice(list("abcdefgh"), n, p=np.arange(8, 0, -1) / 36),
        }
    )


def publish(data, **options):
    return dn.publish(
        data, **{"sensitive": "disease", "privacy": PRIVACY, "mechanism": "uniform", "drop": ["name"], **options}
    )


def test_public_columns_survive_and_the_sensitive_one_changes():
    data = table()
    release = publish(data, key=KEY, shuffle=False)
    assert release.table.column_names == ["age", "city", "disease"]
    assert release.table["age"].equals(data["age"])
    kept = np.mean(release.table["disease"].to_numpy() == data["disease"].to_numpy())
    diagonal = release.manifest.parts[0].channels[0].diagonal[0]
    assert abs(kept - diagonal) < 5 * np.sqrt(diagonal * (1 - diagonal) / 3000)


def test_row_labels_in_files_of_pandas_are_left_out_and_it_is_said(tmp_path):
    """They tell where each row stood in the original; a filtered frame has them in Parquet, any frame in CSV."""
    frame = table().to_pandas()
    some = frame[frame.index.to_series().mod(7).isin([1, 2, 5])]
    some.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "once.csv")
    pd.read_csv(tmp_path / "once.csv").to_csv(tmp_path / "twice.csv")
    labelled = {
        "t.parquet": ["__index_level_0__"],
        "once.csv": [""],
        "twice.csv": ["", "Unnamed: 0"],
    }
    for file, labels in labelled.items():
        for options in ({}, {"mechanism": "designed", "privacy": dn.Privacy(rho2="1/2")}):
            release = publish(tmp_path / file, **options)
            assert not set(labels) & set(release.table.column_names)
            left_out = [words for words in release.warnings if "left out" in words]
            assert [label for label, words in zip(labels, left_out, strict=True) if repr(label) in words] == labels
        quiet = publish(tmp_path / file, drop=["name", *labels])
        assert not [words for words in quiet.warnings if "left out" in words]
    in_memory = publish(pa.Table.from_pandas(some), key=KEY)
    assert "__index_level_0__" not in in_memory.table.column_names
    assert publish(tmp_path / "t.parquet", row_id="__index_level_0__").table.num_rows == len(some)
    redrawn = publish(tmp_path / "once.csv", sensitive="", drop=(), mechanism="redraw", privacy=None)
    assert "" in redrawn.table.column_names


def test_shuffling_keeps_rows_together_and_changes_their_order():
    """A coin of 1 keeps every value, so that rows can be compared; names are in the order of the table."""
    data = table()
    options = {"privacy": None, "mechanism": Retention({"disease": dn.Replace(coin=1)}), "drop": (), "key": KEY}
    plain, mixed = publish(data, **options, shuffle=False).table, publish(data, **options).table
    assert plain.equals(data)
    assert mixed.sort_by("name").equals(data)
    assert not mixed.equals(data)
    position = pc.index_in(mixed["name"], data["name"]).to_numpy()
    assert abs(np.corrcoef(position, np.arange(len(position)))[0, 1]) < 0.1


def test_shuffling_keeps_perturbed_values_in_their_rows():
    data = table()
    release = publish(data, drop=(), key=KEY)
    found = release.table.sort_by("name")
    assert found.drop_columns("disease").equals(data.drop_columns("disease"))
    kept = np.mean(found["disease"].to_numpy() == data["disease"].to_numpy())
    diagonal = release.manifest.parts[0].channels[0].diagonal[0]
    assert abs(kept - diagonal) < 5 * np.sqrt(diagonal * (1 - diagonal) / 3000)


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_release_made_again_with_the_same_key_is_the_same_byte_for_byte(tmp_path, form):
    source = tmp_path / "t.parquet"
    pq.write_table(table(), source)
    contents = []
    for number, (threads, batch) in enumerate([(1, 2**17), (4, 2**17), (4, 97), (2, 1000)]):
        out = tmp_path / f"r{number}"
        publish(str(source), key=KEY, out=out, threads=threads, batch_rows=batch, format=form)
        contents.append([(p.name, p.read_bytes()) for p in sorted(out.iterdir())])
    assert all(content == contents[0] for content in contents)


def test_files_and_memory_and_the_out_of_core_shuffle_give_the_same_rows(tmp_path, monkeypatch):
    from deniable.tables import shuffling

    source = tmp_path / "t.parquet"
    pq.write_table(table(), source)
    in_memory = publish(table(), key=KEY).table
    one_bucket = publish(source, key=KEY, out=tmp_path / "one").table
    monkeypatch.setattr(shuffling, "BUCKET_BYTES", 5000)
    many_buckets = publish(source, key=KEY, out=tmp_path / "many").table
    assert in_memory.equals(one_bucket)
    assert in_memory.equals(many_buckets)
    assert sorted(p.name for p in (tmp_path / "many").iterdir()) == [
        "README.md",
        "data.parquet",
        "manifest.json",
        "weights.parquet",
    ]


def test_every_kind_of_table_gives_the_same_release(tmp_path):
    data = table()
    pq.write_table(data.slice(0, 1000), tmp_path / "part-1.parquet")
    pq.write_table(data.slice(1000), tmp_path / "part-2.parquet")
    (tmp_path / "t.csv").write_text(data.to_pandas().to_csv(index=False))
    expected = publish(data, key=KEY).table
    for given in (data.to_pandas(), pl.from_arrow(data), tmp_path / "t.csv", str(tmp_path / "part-*.parquet")):
        assert publish(given, key=KEY).table.to_pydict() == expected.to_pydict()


def test_two_keys_give_two_releases_and_none_is_fresh_every_time():
    data = table()
    first, second = publish(data).table, publish(data).table
    assert not first.equals(second)
    assert not publish(data, key=KEY).table.equals(publish(data, key=KEY, name="other").table)


def test_a_row_id_decides_the_draw_wherever_the_row_stands():
    data = table()
    turned = data.take(pa.array(np.arange(len(data))[::-1]))
    options = {"key": KEY, "row_id": "name", "drop": (), "shuffle": False}
    one, two = publish(data, **options).table, publish(turned, **options).table
    assert one["disease"].to_pylist() == two["disease"].to_pylist()[::-1]
    assert "name" not in one.column_names


def test_row_ids_must_differ():
    data = table().append_column("id", pa.array([1] * 3000))
    with pytest.raises(dn.DeniableError, match=r"row_id = 'id'.*occurs more than once"):
        publish(data, row_id="id")


def test_the_manifest_meets_its_schema_and_the_schema_is_sound():
    jsonschema.Draft202012Validator.check_schema(schema())
    manifest = json.loads(publish(table()).manifest.to_json())
    jsonschema.validate(manifest, schema())


def test_a_manifest_survives_writing_and_reading():
    manifest = publish(table(), key=KEY).manifest
    again = type(manifest).from_json(manifest.to_json())
    assert again.to_dict() == manifest.to_dict()


def test_no_byte_of_a_release_holds_a_dropped_column_the_key_or_an_exact_count(tmp_path):
    data = table()
    out = tmp_path / "r"
    publish(data, key=KEY, out=out)
    content = b"".join(p.read_bytes() for p in out.iterdir())
    rows = pq.read_table(out / "data.parquet")
    assert b"person-" not in content
    assert b"person-" not in str(rows.to_pydict()).encode()
    for secret in (KEY, KEY.hex().encode(), str(int.from_bytes(KEY, "big")).encode()):
        assert secret not in content
    manifest = json.loads((out / "manifest.json").read_text())
    counts = dict(zip(*np.unique(data["disease"].to_numpy(zero_copy_only=False), return_counts=True), strict=True))
    assert manifest["parts"][0]["marginal"].pop("counts") != [
        int(counts[entry[0]]) for entry in manifest["parts"][0]["domain"]
    ]
    numbers = set(json.dumps(manifest).replace(",", " ").replace("]", " ").replace("[", " ").split())
    assert not numbers & {str(count) for count in counts.values()}
    assert manifest["randomness"] == {
        "source": "key", "seed": None, "shuffled": True, "row_identity": "row number",
    }  # fmt: skip


def test_a_seed_is_loud_and_recorded():
    with pytest.warns(UserWarning, match="seed"):
        release = publish(table(), seed=7)
    assert release.manifest.randomness.seed == 7
    assert release.manifest.randomness.source == "seed"


def test_against_any_prior_a_marginal_leaves_only_where_it_is_asked_for():
    privacy = dn.Privacy("1/4", "1/2", adversary="any-prior")
    declared = sorted(set(table()["disease"].to_pylist()))
    assert publish(table(), privacy=privacy, domain=declared).manifest.parts[0].marginal is None
    with pytest.raises(dn.DeniableError, match="The values of 'disease' are not declared"):
        publish(table(), privacy=privacy)
    assert publish(table()).manifest.parts[0].marginal is not None
    assert publish(table(), marginals=False).manifest.parts[0].marginal is None
    paid = publish(table(), privacy=privacy, domain=declared, mechanism="uniform", marginals=True)
    assert paid.manifest.parts[0].marginal.epsilon < 0.06  # half of a tenth of ln 3


def test_what_the_noisy_histogram_adds_is_said():
    with_it, without = publish(table()), publish(table(), marginals=False)
    assert any("noisy histogram" in line for line in with_it.manifest.guarantee["not_protected"])
    assert any("which is not published" in line for line in without.manifest.guarantee["not_protected"])


def test_several_sensitive_columns_are_compounded_into_one():
    data = table()
    release = publish(
        data, sensitive=["disease", "city"], privacy=dn.Privacy("1/10", "1/2"), key=KEY, mechanism="uniform"
    )
    assert len(release.manifest.parts[0].domain) == 24
    assert release.table.column_names == ["age", "disease", "city"]
    assert set(release.table["city"].to_pylist()) <= {"Ulm", "Köln", "Bonn"}


def test_missing_values_are_a_policy():
    rng = np.random.default_rng(3)
    data = pd.DataFrame({"x": range(2000), "d": rng.choice(["a", "b", "", None], 2000)})
    privacy = dn.Privacy("1/3", "1/2")
    as_value = dn.publish(data, sensitive="d", privacy=privacy, key=KEY, mechanism="uniform")
    assert as_value.manifest.parts[0].domain == ("", "a", "b", None)
    exempt = dn.publish(
        data, sensitive="d", privacy=privacy, key=KEY, missing="exempt", shuffle=False, mechanism="uniform"
    )
    assert exempt.manifest.parts[0].domain == ("", "a", "b")
    nulls = pa.array(data["d"], from_pandas=True).is_null()
    assert exempt.table["d"].combine_chunks().is_null().equals(nulls)
    with pytest.raises(dn.DeniableError, match="missing"):
        dn.publish(data, sensitive="d", privacy=privacy, missing="refuse", mechanism="uniform")


def test_strange_values_come_through(tmp_path):
    strange = ["<cell>", "a\nb", 'quo"te', "ä,ö", "", " ", "x" * 30_000, "NULL"]
    data = pa.table({"n": list(range(80)), "v": strange * 10})
    for form in ("parquet", "csv"):
        out = tmp_path / form
        release = dn.publish(
            data, sensitive="v", privacy=dn.Privacy("1/8", "1/4"), key=KEY, out=out, format=form, mechanism="uniform"
        )
        assert set(release.table["v"].to_pylist()) <= set(strange)
        assert set(release.manifest.parts[0].domain) == set(strange)
        dn.verify(out)


def test_dates_numbers_and_booleans_keep_their_types(tmp_path):
    import datetime

    days = [datetime.date(2026, 1, day) for day in range(1, 5)]
    data = pa.table({"x": list(range(400)), "day": days * 100, "n": [1, 2, 3, 4] * 100, "b": [True, False] * 200})
    for column in ("day", "n", "b"):
        privacy = dn.Privacy("1/2", "3/4")
        release = dn.publish(
            data, sensitive=column, privacy=privacy, out=tmp_path / column, format="csv", mechanism="uniform"
        )
        assert release.table.schema.field(column).type == data.schema.field(column).type
        assert set(dn.open_release(tmp_path / column).manifest.parts[0].domain) == set(data[column].to_pylist())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sensitive": "diseas"}, "Did you mean 'disease'"),
        ({"drop": ["nam"]}, "drop names the column 'nam'.*Did you mean 'name'"),
        ({"sensitive": "city", "drop": ["city"]}, "a column has one role"),
        (
            {"privacy": dn.Privacy(rho2="1/20")},
            "rho2 = 1/20 cannot be met: 'a' alone is .* the smallest feasible rho2 is",
        ),
        ({"mechanism": "unifrom"}, "Did you mean 'uniform'"),
        ({"missing": "drop"}, "missing = 'drop' is not known"),
        ({"format": "xlsx"}, "format = 'xlsx'"),
        ({"key": b"short"}, "32 bytes"),
        ({"key": KEY, "seed": 1}, "exclude each other"),
        ({"privacy": dn.Privacy(rho2="1/2", adversary="any-prior")}, "'any-prior' needs rho1"),
        ({"privacy": None}, "needs a requirement"),
        ({"sensitive": []}, "names no column"),
    ],
)
def test_bad_options_are_refused_in_words(tmp_path, options, words):
    with pytest.raises(dn.DeniableError, match=f"(?s){words}"):
        publish(table(), out=tmp_path / "r", **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (pa.table({"disease": pa.array([], pa.string()), "name": pa.array([], pa.string())}), "no rows"),
        (pa.table({"disease": ["a"] * 9, "name": ["b"] * 9}), "one single value"),
        (pa.table({"disease": list("ab"), "name": list("ab"), "cell": [1, 2]}), "'cell' is reserved"),
    ],
)
def test_tables_that_cannot_be_published_are_refused_in_words(data, words):
    with pytest.raises(dn.DeniableError, match=words):
        publish(data)


def test_an_existing_folder_is_kept_unless_told(tmp_path):
    out = tmp_path / "r"
    publish(table(), out=out)
    before = (out / "manifest.json").read_bytes()
    with pytest.raises(dn.DeniableError, match="exists already"):
        publish(table(), out=out)
    assert (out / "manifest.json").read_bytes() == before
    publish(table(), out=out, overwrite=True)
    assert (out / "manifest.json").read_bytes() != before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.doc").write_text("years of work")
    with pytest.raises(dn.DeniableError, match="not a release"):
        publish(table(), out=tmp_path / "mine", overwrite=True)
    assert (tmp_path / "mine" / "thesis.doc").exists()


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    from deniable.tables import dataset

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(dataset, "write_table", full)
    with pytest.raises(dn.DeniableError, match="disk is full"):
        publish(table(), out=tmp_path / "r")
    assert list(tmp_path.iterdir()) == []


def test_a_kill_during_publish_leaves_no_release(tmp_path):
    pq.write_table(table(20_000), tmp_path / "t.parquet")
    script = textwrap.dedent(f"""
        import deniable as dn
        def slow(done, total, what):
            import time
            if what == "perturbing":
                print("busy", flush=True)
                time.sleep(0.2)
        dn.publish({str(tmp_path / "t.parquet")!r}, sensitive="disease", privacy=dn.Privacy("1/4", "1/2"), drop="name",
                   out={str(tmp_path / "r")!r}, batch_rows=1000, progress=slow)
    """)
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert process.stdout.readline().strip() == b"busy"
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=30)
    process.stdout.close()
    assert not (tmp_path / "r").exists()
    left = [p for p in tmp_path.iterdir() if p.name.startswith(".r.partial")]
    assert all(p.stat().st_mode & 0o077 == 0 for p in left)
    publish(str(tmp_path / "t.parquet"), out=tmp_path / "r")  # and the next run clears the remains away
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r", "t.parquet"]


def test_identifiers_are_pointed_out():
    release = publish(table(), drop=())
    assert any("'name'" in warning for warning in release.warnings)


def test_a_telling_row_order_is_pointed_out_when_rows_are_not_shuffled():
    data = table().sort_by("disease")
    assert any("order" in warning for warning in publish(data, shuffle=False).warnings)
    assert not any("order" in warning for warning in publish(data).warnings)
    assert not any("order" in warning for warning in publish(table(), shuffle=False).warnings)


def test_one_row_and_two_values():
    data = pa.table({"d": ["a"]})
    privacy = dn.Privacy("1/2", "3/4", adversary="any-prior")
    release = dn.publish(data, sensitive="d", privacy=privacy, domain=["a", "b"], mechanism="uniform")
    assert release.table.num_rows == 1
    assert release.manifest.parts[0].domain == ("a", "b")


def test_a_file_that_changes_under_way_is_noticed(tmp_path):
    pq.write_table(table(3000), tmp_path / "t.parquet")

    def swap(done, total, what):
        if what == "perturbing":
            return
        os.replace(tmp_path / "u.parquet", tmp_path / "t.parquet") if (tmp_path / "u.parquet").exists() else None

    pq.write_table(table(2500), tmp_path / "u.parquet")
    with pytest.raises(dn.DeniableError, match="changed while it was"):
        publish(str(tmp_path / "t.parquet"), out=tmp_path / "r", progress=swap)
    assert not (tmp_path / "r").exists()


def test_sensitive_numbers_are_published_as_bins():
    rng = np.random.default_rng(5)
    data = pa.table({"x": range(3000), "salary": rng.lognormal(10, 0.5, 3000)})
    edges = [0, 15_000, 25_000, 40_000, 1_000_000]
    release = dn.publish(
        data, sensitive="salary", privacy=dn.Privacy(rho2="3/4"), bins={"salary": edges}, key=KEY, mechanism="uniform"
    )
    assert set(release.manifest.parts[0].domain) == set(dn.Bins(tuple(edges)).labels)
    low = release.count(where={"salary": "[0, 15000)"})
    truth = int((data["salary"].to_numpy() < 15_000).sum())
    assert abs(low.value - truth) < 6 * low.stderr
    quantiles = dn.publish(
        data, sensitive="salary", privacy=dn.Privacy(rho2="3/4"), bins={"salary": dn.Quantiles(5)}, mechanism="uniform"
    )
    assert any("quantiles" in warning for warning in quantiles.warnings)
    assert any("edges of the bins of 'salary'" in said for said in quantiles.manifest.guarantee["not_protected"])
    with pytest.raises(dn.DeniableError, match="outside its bins"):
        dn.publish(data, sensitive="salary", privacy=PRIVACY, bins={"salary": [0, 10, 20]}, mechanism="uniform")
    with pytest.raises(dn.DeniableError, match="not a sensitive column"):
        dn.publish(data, sensitive="salary", privacy=PRIVACY, bins={"x": [0, 10, 20]}, mechanism="uniform")


def test_quantile_bins_do_not_publish_the_extremes():
    rng = np.random.default_rng(0)
    salaries = [*rng.integers(1000, 5000, 4000).tolist(), 123_456]
    data = pa.table({"x": range(4001), "salary": salaries})
    privacy = dn.Privacy(rho2="3/4")
    release = dn.publish(
        data, sensitive="salary", privacy=privacy, bins={"salary": dn.Quantiles(5)}, key=KEY, mechanism="uniform"
    )
    assert not any("123" in str(value) for value in release.manifest.parts[0].domain)
    assert any(str(value).endswith("and above") for value in release.manifest.parts[0].domain)
    again = dn.publish(
        data, sensitive="salary", privacy=privacy, bins={"salary": dn.Quantiles(5)}, key=KEY, mechanism="uniform"
    )
    assert again.manifest.parts[0].domain == release.manifest.parts[0].domain
    fresh = [
        dn.publish(
            data, sensitive="salary", mechanism=mechanism, bins={"salary": dn.Quantiles(5)}, key=bytes([number] * 32)
        ).manifest
        for number, mechanism in enumerate(("redraw", "redraw", "decoys:c=2,leftovers=drop"))
    ]
    assert len({manifest.parts[0].domain for manifest in fresh}) == 3, "another key draws other edges"
    for manifest in fresh:
        assert any("edges of the bins" in said for said in manifest.guarantee["not_protected"])


def test_csv_refuses_types_that_would_not_come_back(tmp_path):
    data = table(50).append_column("when", pa.array([0] * 50, pa.timestamp("us", tz="UTC")))
    with pytest.raises(dn.DeniableError, match="format = 'csv' cannot hold the column 'when'"):
        publish(data, format="csv", out=tmp_path / "r")
    assert list(tmp_path.iterdir()) == []


def test_intervals_are_in_the_order_of_their_numbers_not_of_their_text():
    table = pa.table({"pay": [5.0, 25.0, 105.0, 2000.0, None] * 20})
    bins = {"pay": [0, 10, 100, 1000, 3000]}
    release = dn.publish(
        table, sensitive="pay", bins=bins, privacy=dn.Privacy("1/4", "1/2"), key=bytes(32), mechanism="uniform"
    )
    assert release.manifest.parts[0].domain == ("[0, 10)", "[10, 100)", "[100, 1000)", "[1000, 3000]", None)
