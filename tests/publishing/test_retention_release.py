"""Many perturbed columns from table to verified release."""

import datetime
import inspect
import json
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.core.channels import Replace
from deniable.core.manifest import Manifest
from deniable.mechanisms.retention import Retention
from deniable.publishing.parts import prepared
from deniable.publishing.request import Publication, Request
from deniable.tables.sampler import Kernel
from deniable.tables.worker import respond

KEY = bytes(range(32))
N = 4000
FIRST, LAST = datetime.date(1990, 1, 1), datetime.date(2000, 12, 31)
COLUMNS = {
    "age": Replace(coin=0.5, low=17, high=90),
    "job": Replace(coin=0.6),
    "ill": Replace(coin=0.7, replacing="identity"),
    "sex": Replace(coin=0.8, replacing="swapping"),
    "weight": Replace(coin=0.4, low=40, high=120),
    "born": Replace(privacy=(68, 0.1, 0.95), low=FIRST, high=LAST),
}


def table(n=N):
    rng = np.random.default_rng(0)
    days = rng.integers(FIRST.toordinal(), LAST.toordinal() + 1, n) - datetime.date(1970, 1, 1).toordinal()
    return pa.table(
        {
            "id": np.arange(n),
            "zip": rng.choice(list("xyz"), n),
            "age": rng.integers(17, 91, n),
            "job": rng.choice(list("abcd"), n, p=[0.4, 0.3, 0.2, 0.1]),
            "ill": rng.choice(["no", "yes", "rare"], n, p=[0.8, 0.18, 0.02]),
            "sex": rng.choice(["f", "m"], n, p=[0.7, 0.3]),
            "weight": np.round(rng.uniform(40, 120, n), 1),
            "born": pa.array(days.astype(np.int32)).cast(pa.date32()),
        }
    )


def publish(data=None, columns=COLUMNS, **options):
    return dn.publish(
        table() if data is None else data, mechanism=Retention(columns), **{"key": KEY, "drop": "id", **options}
    )


def test_every_column_keeps_its_type_and_its_share_of_values():
    data = table()
    published = publish(data, shuffle=False).table
    assert published["zip"].equals(data["zip"])
    expected = {
        "age": 0.5 + 0.5 / 74,
        "job": 0.6 + 0.4 / 4,
        "weight": 0.4 + 0.6 / 801,
        "born": 0.2 + 0.8 / 4018,
        "ill": 0.7 + 0.3 * (0.8**2 + 0.18**2 + 0.02**2),
        "sex": 0.8 + 0.2 * (0.7**2 + 0.3**2),
    }
    for name, share in expected.items():
        assert published[name].type == data[name].type
        kept = np.mean([a == b for a, b in zip(published[name].to_pylist(), data[name].to_pylist(), strict=True)])
        assert abs(kept - share) < 5 * math.sqrt(share * (1 - share) / N) + 0.01, name


def test_columns_and_rows_are_perturbed_independently():
    data = table(20_000)
    published = publish(data, shuffle=False).table
    kept = {
        name: np.array([a == b for a, b in zip(published[name].to_pylist(), data[name].to_pylist(), strict=True)])
        for name in ("age", "weight", "born")
    }
    for one, other in (("age", "weight"), ("age", "born"), ("weight", "born")):
        assert abs(np.corrcoef(kept[one], kept[other])[0, 1]) < 5 / math.sqrt(20_000)
    assert abs(np.corrcoef(kept["age"][1:], kept["age"][:-1])[0, 1]) < 5 / math.sqrt(20_000)


def test_replacements_are_uniform_over_the_range():
    data = pa.table({"age": np.full(100_000, 20), "zip": np.zeros(100_000, int)})
    published = publish(data, {"age": Replace(coin=0.5, low=17, high=90)}, drop=()).table["age"].to_numpy()
    seen = np.bincount(published - 17, minlength=74)
    expected = np.full(74, 50_000 / 74)
    expected[3] += 50_000
    chi = ((np.delete(seen, 3) - np.delete(expected, 3)) ** 2 / np.delete(expected, 3)).sum()
    assert chi < 73 + 5.5 * math.sqrt(2 * 73)
    assert abs(seen[3] - expected[3]) < 5 * math.sqrt(25_000)


def test_swapping_keeps_the_exact_histogram_and_moves_only_what_no_coin_kept():
    data = table()
    published = publish(data, shuffle=False).table["sex"]
    assert sorted(published.to_pylist()) == sorted(data["sex"].to_pylist())


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_release_does_not_depend_on_how_the_work_is_cut_up(tmp_path, form):
    source = tmp_path / "t.parquet"
    pq.write_table(table(), source)
    contents = []
    for number, (threads, rows) in enumerate([(1, 2**17), (3, 501)]):
        out = tmp_path / f"r{number}"
        publish(source, out=out, threads=threads, batch_rows=rows, format=form)
        contents.append([(path.name, path.read_bytes()) for path in sorted(out.iterdir())])
    assert contents[0] == contents[1]
    assert publish().table.num_rows == N


def test_a_row_id_decides_a_rows_draws_wherever_it_stands():
    data = table()
    mixed = data.take(np.random.default_rng(1).permutation(N))
    columns = {name: COLUMNS[name] for name in ("age", "job", "weight")}
    one, other = (publish(each, columns, row_id="id", drop=(), shuffle=False).table for each in (data, mixed))
    order = np.argsort(mixed["id"].to_numpy())
    assert one.equals(other.take(order).combine_chunks()) or all(
        one[name].to_pylist() == other[name].take(order).to_pylist() for name in one.column_names
    )


def test_the_certificate_recomputes_every_column(tmp_path):
    release = publish(out=tmp_path / "r")
    words = str(release.verify())
    assert "74 points" in words
    assert "no breach in 'born'" in words
    assert Manifest.from_json(release.manifest.to_json()).to_json() == release.manifest.to_json()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: m["parts"][0]["range"].__setitem__("keep", int(0.55 * 2**32)), "amplification"),
        (lambda m: m["parts"][0]["range"].__setitem__("high", 95), "amplification"),
        (lambda m: m["parts"][1]["range"].__setitem__("keep", int(0.21 * 2**32)), "no breach in 'born'"),
        (lambda m: m["parts"][3]["promise"].__setitem__("s", "1/3"), "replacements of 'ill'"),
        (lambda m: m["parts"][3]["cells"][0].__setitem__("keep", [int(0.4 * 2**32)] * 3), "no breach in 'ill'"),
    ],
)
def test_a_tampered_range_or_channel_does_not_verify(tmp_path, change, words):
    like_the_column = Replace(privacy=dn.Privacy("1/4", "1/2"), replacing="identity")  # coin 1/3
    columns = {name: COLUMNS[name] for name in ("age", "born", "job")} | {"ill": like_the_column}
    publish(columns=columns, out=tmp_path / "r")
    path = tmp_path / "r" / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))
    with pytest.raises(dn.VerificationError, match=words):
        dn.verify(tmp_path / "r")


def test_no_exact_count_is_in_the_manifest():
    data = table()
    text = json.dumps(publish(data, {name: r for name, r in COLUMNS.items() if name != "sex"}).manifest.to_dict())
    for name in ("job", "ill"):
        values, counts = np.unique(data[name].to_numpy(zero_copy_only=False), return_counts=True)
        for value, count in zip(values, counts, strict=True):
            assert f" {count}," not in text or count < 1000, (name, value)


def test_the_sensitive_columns_may_be_named_and_must_then_agree():
    assert publish(sensitive=list(COLUMNS)).manifest.sensitive_columns == tuple(COLUMNS)
    with pytest.raises(dn.DeniableError, match="leave sensitive out"):
        publish(sensitive="zip")
    with pytest.raises(dn.DeniableError, match="own requirement"):
        publish(privacy=dn.Privacy("1/4", "1/2"))
    with pytest.raises(dn.DeniableError, match="'height', which the table does not have"):
        publish(columns={"height": Replace(coin=0.5)})


def test_one_requirement_for_all_columns():
    release = dn.publish(
        table(), sensitive=["job", "sex"], privacy=dn.Privacy("1/4", "1/2"), mechanism=Retention(), key=KEY, drop="id"
    )
    assert len(release.manifest.parts) == 2
    assert math.isclose(release.manifest.guarantee["epsilon"], 2 * math.log(3), rel_tol=1e-6)
    assert "requirement of 'job': rho1 = 1/4, rho2 = 1/2" in str(release.verify())


def test_a_declared_domain_is_drawn_from():
    columns = {"job": Replace(coin=0.2)}
    release = publish(columns=columns, domain={"job": list("abcdefgh")})
    assert set(release.table["job"].to_pylist()) == set("abcdefgh")
    with pytest.raises(dn.DeniableError, match="declared domain"):
        publish(columns=columns, domain={"job": ["a", "b"]})
    with pytest.raises(dn.DeniableError, match="no sensitive column"):
        publish(columns=columns, domain={"jobs": ["a", "b"]})


TIMES = pa.array([datetime.datetime(2020, 1, 1)] * 4, pa.timestamp("us", "Europe/Berlin"))


@pytest.mark.parametrize(
    ("values", "replace", "words"),
    [
        ([1, 2, 3, 200], Replace(coin=0.5, low=0, high=100), "outside the declared range 0 to 100"),
        ([1.0, 2.0, math.inf, 3.0], Replace(coin=0.5, low=0, high=100), "infinite"),
        (["a", "b", "c", "d"], Replace(coin=0.5, low=0, high=100), "has no range"),
        (TIMES, Replace(coin=0.5, low=FIRST, high=LAST), "time zone Europe/Berlin"),
        ([1, 2, 3, 4], Replace(coin=0.5, low=FIRST, high=LAST), "must be numbers"),
        ([FIRST] * 4, Replace(coin=0.5, low=0, high=9), "must be dates"),
        ([1, 2, 3, 4], Replace(coin=0.5, low=0.5, high=9), r"low = 0.5 is not whole.*'x' holds integers.*low=0"),
        ([1, 2, 3, 4], Replace(coin=0.5, low=0, high=9, step=0.5), "step = 0.5 is not whole.*step=1"),
        ([1, 1, 1, 1], Replace(coin=0.5), "'x'.*one single value.*domain="),
        ([4], Replace(coin=0.5), "'x'.*one single value"),
        (pa.array([1, 2], pa.int8()), Replace(coin=0.5, low=0, high=900), "high = 900 does not fit.*int8.*int64"),
        (pa.array([1, 2], pa.uint8()), Replace(coin=0.5, low=-5, high=9), "low = -5 does not fit.*uint8"),
        ([True, False], Replace(coin=0.5, low=0, high=1), "type bool, which has no range"),
        ([], Replace(coin=0.5, low=0, high=9), "no rows"),
    ],
)
def test_bad_columns_are_refused_in_words(values, replace, words):
    kind = pa.int64() if len(values) == 0 else None
    with pytest.raises(dn.DeniableError, match=words):
        publish(pa.table({"x": pa.array(values, kind) if kind else values}), {"x": replace}, drop=())


def test_one_row_and_one_value_are_published_where_a_range_or_domain_makes_them_deniable():
    one = publish(pa.table({"x": [4], "y": ["a"]}), {"x": Replace(0.5, 0, 9)}, drop=())
    assert one.table.num_rows == 1
    columns = {"x": Replace(0.2, 0, 9), "y": Replace(0.2), "z": Replace(0.2, replacing="identity")}
    same = pa.table({"x": [4] * 900, "y": ["a"] * 900, "z": ["a"] * 900})
    release = publish(same, columns, drop=(), domain={"y": list("ab"), "z": list("ab")})
    assert set(release.table["x"].to_pylist()) == set(range(10))
    assert set(release.table["y"].to_pylist()) == {"a", "b"}
    found = release.count({"x": 4, "y": "a"})
    assert abs(found.value - 900) < 5 * found.stderr


def test_bins_of_a_perturbed_number_must_not_overlap():
    data = pa.table({"x": [1.0, 2.0, 7.0] * 50})
    with pytest.raises(dn.DeniableError, match=r"bins overlap: edge 3 follows 5.*rising order"):
        publish(data, {"x": Replace(0.5)}, drop=(), bins={"x": [0, 5, 3, 9]})
    binned = publish(data, {"x": Replace(0.5)}, drop=(), bins={"x": [0, 1.5, 5, 9]})
    assert set(binned.table["x"].to_pylist()) == {"[0, 1.5)", "[1.5, 5)", "[5, 9]"}


def test_a_mapping_of_columns_is_needed():
    with pytest.raises(dn.DeniableError, match=r"mapping.*got list.*Retention\({'job'"):
        Retention(["x"])
    with pytest.raises(dn.DeniableError, match=r"'x' is given 0.5"):
        Retention({"x": 0.5})


@pytest.mark.parametrize("missing", ["value", "exempt"])
def test_every_type_survives_missing_values(missing):
    rng = np.random.default_rng(6)
    gone = rng.random(400) < 0.3

    def column(values, kind):
        return pa.array([None if lost else value for value, lost in zip(values, gone, strict=True)], kind)

    data = pa.table(
        {
            "i": column(rng.integers(0, 10, 400).tolist(), pa.int16()),
            "f": column(rng.integers(0, 10, 400) / 2, pa.float32()),
            "d": column([FIRST] * 400, pa.date32()),
            "e": column([FIRST] * 400, pa.date64()),
            "c": column(rng.choice(list("ab"), 400).tolist(), pa.string()),
        }
    )
    ends = {"i": (0, 9), "f": (0, 9), "d": (FIRST, LAST), "e": (FIRST, LAST), "c": (None, None)}
    columns = {name: Replace(0.5, *both) for name, both in ends.items()}
    published = publish(data, columns, drop=(), missing=missing, shuffle=False).table
    kinds = {**dict(zip(data.schema.names, data.schema.types, strict=True)), "f": pa.float64()}  # decimals, as below
    assert published.schema.types == list(kinds.values())
    for name in ends:
        same = published[name].is_null().to_numpy() == gone
        assert same.all() if missing == "exempt" else not same.all()
    with pytest.raises(dn.DeniableError, match="'i' has missing values"):
        publish(data, columns, drop=(), missing="refuse")


def test_missing_numbers_are_a_value_exempt_or_refused():
    rng = np.random.default_rng(2)
    data = pa.table({"x": pa.array(rng.normal(50, 9, 3000).round(), mask=rng.random(3000) < 0.3)})
    replace = {"x": Replace(coin=0.3, low=0, high=100)}
    gone = data["x"].null_count
    exempt = publish(data, replace, drop=(), missing="exempt", shuffle=False).table["x"]
    assert exempt.is_null().equals(data["x"].is_null())
    value = publish(data, replace, drop=(), shuffle=False)
    assert value.manifest.parts[0].range.missing
    assert abs(value.table["x"].null_count - (0.3 * gone + 0.7 * 3000 / 102)) < 5 * math.sqrt(3000 * 0.25)
    with pytest.raises(dn.DeniableError, match="missing"):
        publish(data, replace, drop=(), missing="refuse")


def test_numbers_without_common_decimals_are_rounded_to_a_fine_grid():
    data = pa.table({"x": np.random.default_rng(3).uniform(0, 1, 2000)})
    release = publish(data, {"x": Replace(coin=1, low=0, high=1)}, drop=(), shuffle=False)
    assert release.manifest.parts[0].range.step == 2**-16
    assert np.abs(release.table["x"].to_numpy() - data["x"].to_numpy()).max() <= 2**-17 + 1e-12
    assert any("grid of steps" in line for line in release.manifest.guarantee["not_protected"])


def test_a_step_puts_originals_and_replacements_on_one_grid():
    data = pa.table({"pay": np.random.default_rng(4).integers(0, 5001, 5000)})
    release = publish(data, {"pay": Replace(coin=0.5, low=0, high=5000, step=100)}, drop=())
    assert set(release.table["pay"].to_pylist()) <= set(range(0, 5001, 100))


# -- a client's own row ----------------------------------------------------------------------------------------------


def test_a_client_perturbs_its_row_with_the_engine_s_thresholds():
    parts = [p for p in publish().manifest.parts if p.columns[0] != "sex"]
    row = {"zip": "x", "age": 40, "job": "b", "ill": "rare", "weight": 70.5, "born": FIRST}
    kept = respond(row, parts, draw=lambda: 0)
    assert kept == row
    replaced = respond(row, parts, draw=lambda: 2**64 - 1)
    assert {**replaced, "ill": ""} == {"zip": "x", "age": 90, "job": "d", "ill": "", "weight": 120.0, "born": LAST}
    ill = next(part for part in parts if part.columns == ("ill",))
    words = np.random.default_rng(5).integers(0, 2**64, 300, dtype=np.uint64)
    by_engine = Kernel(ill.channels, ill.cell_positions).perturb(
        np.full(300, ill.domain.index("rare"), np.uint8), words
    )
    by_client = [respond({"ill": "rare"}, [ill], draw=lambda word=word: int(word))["ill"] for word in words]
    assert by_client == [ill.domain[code] for code in by_engine]
    draws = [respond(row, parts)["age"] == 40 for _ in range(2000)]
    share = 0.5 + 0.5 / 74
    assert abs(np.mean(draws) - share) < 5 * math.sqrt(share * (1 - share) / 2000)


def keys_of_rows(data, columns, *, row_id, shuffle):
    """What publish derives the draws of rows from: the key, the table's content, all choices, and the plan."""
    mechanism = Retention(columns)
    defaults = {name: option.default for name, option in inspect.signature(dn.publish).parameters.items()}
    given = {"table": data, "mechanism": mechanism, "key": KEY, "row_id": row_id, "shuffle": shuffle}
    request = Request(**{**defaults, **given})
    publication = Publication.of(request, request.secret)
    jobs = prepared(mechanism, publication).jobs
    return publication.keys.subkey("plan", *(work.part.fingerprint() for work in jobs))


def test_a_client_and_publish_give_the_same_row_for_the_same_draws():
    """Row by row, all kinds of columns: the words that publish draws for a row id, given to the client's function."""
    data = table(300).drop_columns("sex")
    columns = {name: replace for name, replace in COLUMNS.items() if name != "sex"}
    release = publish(data, columns, row_id="id", drop=(), shuffle=False)
    keys = keys_of_rows(data, columns, row_id="id", shuffle=False)
    words = [keys.subkey("part", column, "draws").words_of(data["id"]) for column in columns]
    published = release.table.to_pylist()
    for number, row in enumerate(data.drop_columns("id").to_pylist()):
        draws = iter([int(each[number]) for each in words])
        assert dn.respond(row, release, draw=lambda draws=draws: next(draws)) == published[number]


def test_a_client_refuses_what_no_row_can_do_alone():
    row = {"job": "a", "sex": "f"}
    with pytest.raises(dn.DeniableError, match=r"'sex' is swapped among the rows of the whole table.*uniform"):
        dn.respond(row, publish())
    data = table().select(["zip", "job", "sex"])
    both = dn.publish(data, sensitive=["job", "sex"], privacy=dn.Privacy("1/4", "1/2"), key=KEY, mechanism="uniform")
    with pytest.raises(dn.DeniableError, match=r"'job', 'sex'.*together"):
        dn.respond(row, both)
    with pytest.raises(dn.DeniableError, match="got str"):
        dn.respond(row, "release")
    one = dn.publish(data, sensitive="job", privacy=dn.Privacy("1/4", "1/2"), key=KEY, mechanism="uniform")
    assert dn.respond(row, one.manifest, draw=lambda: 0) == row


@pytest.mark.parametrize(
    ("change", "words"),
    [({"age": 200}, "outside"), ({"job": "zz"}, "not in the domain"), ({"age": "old"}, "is no integer")],
)
def test_a_client_s_bad_row_is_refused(change, words):
    parts = publish().manifest.parts
    row = {"age": 40, "job": "b", "ill": "rare", "sex": "f", "weight": 70.5, "born": FIRST}
    with pytest.raises(dn.DeniableError, match=words):
        respond({**row, **change}, parts)
    with pytest.raises(dn.DeniableError, match="no value for 'age'"):
        respond({"job": "b"}, parts)


# -- decimals --------------------------------------------------------------------------------------------------------


def prices(n=3000):
    cents = np.random.default_rng(8).integers(0, 10_001, n)
    return pa.table({"price": pa.array([Decimal(int(c)) / 100 for c in cents], pa.decimal128(10, 2))}), cents


def test_decimals_stay_decimals_and_are_asked_about_exactly():
    data, cents = prices()
    release = publish(data, {"price": Replace(coin=1, low=0, high=100)}, drop=(), shuffle=False)
    assert release.table["price"].equals(data["price"])
    assert release.manifest.parts[0].range.step == 0.01
    for low, high in ((0, 19.99), (0.07, 0.29), (Decimal("57.85"), Decimal("99.99"))):
        true = ((cents >= round(100 * float(low))) & (cents <= round(100 * float(high)))).sum()
        assert release.count({"price": dn.between(low, high)}).value == true, (low, high)
    found = release.sql("SELECT COUNT(*) AS n FROM release WHERE price <= 19.99").column("n")[0].as_py()
    assert found == (cents <= 1999).sum()


def test_floats_of_32_bits_are_asked_about_as_they_are_written():
    """0.3 in 32 bits is above 0.3: rows at the end of a range were lost, and sums refused."""
    tenths = np.random.default_rng(8).integers(0, 8, 3000)
    data = pa.table({"x": pa.array(tenths / 10, pa.float32())})
    release = publish(data, {"x": Replace(coin=1, low=0, high=0.7)}, drop=(), shuffle=False)
    assert release.table["x"].to_pylist() == (tenths / 10).tolist()
    assert release.count({"x": dn.between(0, 0.3)}).value == (tenths <= 3).sum()
    assert release.sum("x").value == pytest.approx(tenths.sum() / 10)
    perturbed = publish(data, {"x": Replace(coin=0.8, low=0, high=0.7)}, drop=())
    assert perturbed.count({"x": 0.3}).low < (tenths == 3).sum() < perturbed.count({"x": 0.3}).high
    assert perturbed.verify().holds


@pytest.mark.parametrize("kind", [pa.decimal32(6, 2), pa.decimal64(10, 2), pa.decimal256(60, 2)])
def test_decimals_of_any_width_have_ranges(kind):
    tenths = [Decimal(n % 11) / 10 for n in range(550)]
    release = publish(pa.table({"x": pa.array(tenths, kind)}), {"x": Replace(coin=1, low=0, high=1)}, drop=())
    assert release.count({"x": dn.between(0, Decimal("0.3"))}).value == 200
    assert release.sum("x").value == pytest.approx(275)
    assert release.verify().holds


def test_public_decimals_are_compared_as_decimals():
    """19.99 as a float is not 1999 / 100 as Arrow divides it: rows at the end of a range would be lost."""
    data, cents = prices()
    rows = data.append_column("ill", pa.array(["no", "yes"] * 1500))
    release = publish(rows, {"ill": Replace(coin=0.5)}, drop=())
    ends = [
        end for end in sorted(set(cents.tolist())) if pa.scalar(Decimal(end) / 100).cast("float64").as_py() > end / 100
    ]
    assert len(ends) > 50
    for end in ends[:50]:
        assert release.count({"price": dn.between(0, end / 100)}).value == (cents <= end).sum()


def test_decimals_are_replaced_on_their_grid(tmp_path):
    data, cents = prices()
    release = publish(
        data, {"price": Replace(coin=0.5, low=Decimal(0), high=Decimal(100))}, drop=(), out=tmp_path / "r"
    )
    assert release.table["price"].type == data["price"].type
    found = release.count({"price": dn.between(0, 49.99)})
    assert abs(found.value - (cents <= 4999).sum()) < 5 * found.stderr
    row = dn.respond({"price": Decimal("3.25")}, release, draw=lambda: 0)
    assert row == {"price": Decimal("3.25")}
    wide = pa.table({"price": pa.array([Decimal("1.25"), Decimal("9999999.75")] * 9, pa.decimal128(12, 2))})
    coarse = publish(wide, {"price": Replace(coin=1, low=0, high=10**7)}, drop=(), shuffle=False)
    assert coarse.manifest.parts[0].range.step == 10
    assert set(coarse.table["price"].to_pylist()) == {Decimal(0), Decimal(10**7)}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"low": 0, "high": 100.005}, "high = 100.005 does not fit.*2 decimals"),
        ({"low": 0, "high": 10**9}, "high = 1000000000 does not fit"),
        ({"low": 0, "high": 100, "step": 0.125}, "step = 0.125 does not fit"),
        ({"low": 0, "high": 50}, "outside the declared range"),
    ],
)
def test_ranges_that_a_type_of_decimals_does_not_hold_are_refused(options, words):
    with pytest.raises(dn.DeniableError, match=words):
        publish(prices()[0], {"price": Replace(coin=0.5, **options)}, drop=())


def test_numbers_of_other_kinds_are_numbers():
    as_numpy = Replace(np.float32(0.5), np.int64(0), np.float64(9.5), step=np.float32(0.5))
    assert as_numpy == Replace(0.5, 0, 9.5, step=0.5)
    assert Replace(Fraction(1, 2), Decimal("0.5"), Decimal(9)) == Replace(0.5, 0.5, 9)


def test_columns_that_together_hide_nothing_state_no_factor(tmp_path):
    """The odds of 80 columns that are nearly as they were are beyond all floating-point numbers: Python's error."""
    table = pa.table({f"c{number}": ["a", "b"] * 100 for number in range(80)})
    kept = Retention({name: dn.Replace(coin=0.9999) for name in table.column_names})
    dn.publish(table, mechanism=kept, out=tmp_path / "release")
    release = dn.open_release(tmp_path / "release")
    assert release.manifest.guarantee["gamma"] is None
    assert "epsilon unbounded" in release.manifest.guarantee["sentence"]
    assert dn.verify(tmp_path / "release").holds
