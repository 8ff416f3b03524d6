"""Releases of lists from table to answer: files, folders, SQL, audit, tampering, people with several rows."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.core.manifest import Manifest
from deniable.mechanisms import Items
from deniable.tables.dataset import LocalDataset
from deniable_verify import verify_tables

KEY = bytes(range(32))
ITEMS = ["E11", "I10", "I50", "J45", "N18"]
N = 4_000


@pytest.fixture(scope="module")
def patients():
    rng = np.random.default_rng(5)
    sex = rng.choice(["F", "M"], N)
    lists = []
    for one in sex:
        held = [item for item, share in zip(ITEMS, [0.3, 0.4, 0.1, 0.2, 0.05], strict=True) if rng.random() < share]
        if "I50" in held and "N18" not in held and one == "F":
            held.append("N18")
        lists.append(held[:3])
    return pa.table({"sex": sex, "diagnoses": lists})


@pytest.fixture(scope="module")
def release(patients):
    return dn.publish(patients, sensitive="diagnoses", mechanism=Items(budget=8, most=3), key=KEY)


def test_the_manifest_says_it_all_and_comes_back(release):
    again = Manifest.from_json(release.manifest.to_json())
    assert again.parts[0].item == release.manifest.parts[0].item
    assert [part.item.item for part in again.parts] == ITEMS
    assert again.guarantee["epsilon"] == pytest.approx(8, rel=1e-6)
    assert release.verify().holds
    assert repr(release) == "<Release of 4,000 rows, diagnoses (5 items) by items>"


def test_lists_in_files_give_the_same_release(patients, release, tmp_path):
    pq.write_table(patients, tmp_path / "lists.parquet")
    texts = pa.array([";".join(items) for items in patients["diagnoses"].to_pylist()])
    pa.csv.write_csv(patients.set_column(1, "diagnoses", texts), tmp_path / "texts.csv")
    arrays = pa.array([json.dumps(items) for items in patients["diagnoses"].to_pylist()])
    pa.csv.write_csv(patients.set_column(1, "diagnoses", arrays), tmp_path / "json.csv")
    options = {"sensitive": "diagnoses", "key": KEY}
    from_parquet = dn.publish(tmp_path / "lists.parquet", mechanism=Items(budget=8, most=3), **options)
    assert from_parquet.table.equals(release.table)
    from_json = dn.publish(tmp_path / "json.csv", mechanism=Items(budget=8, most=3), **options)
    assert from_json.table.select(["diagnoses=E11"]).equals(release.table.select(["diagnoses=E11"]))
    out = tmp_path / "out"
    dn.publish(tmp_path / "texts.csv", mechanism="items:budget=8,most=3,separator=;", out=out, format="csv", **options)
    assert dn.verify(out).holds
    opened = dn.open_release(out)
    assert opened.items()["item"].to_pylist() == ITEMS
    assert "list_contains(diagnoses, 'E11')" in (out / "README.md").read_text(encoding="utf-8")


def test_python_and_sql_agree(release):
    both = release.count({"sex": "F", "diagnoses": dn.contains("I50", "N18")}).value
    asked_in_sql = release.sql(
        "SELECT COUNT(*) AS n FROM release WHERE sex = 'F' AND list_contains(diagnoses, 'I50') "
        "AND list_contains(diagnoses, 'N18')"
    )
    assert asked_in_sql["n"][0].as_py() == pytest.approx(both)
    for condition in ("list_has_all(diagnoses, ['I50', 'N18'])", "diagnoses @> ['I50', 'N18']"):
        answer = release.sql(f"SELECT COUNT(*) AS n FROM release AS r WHERE sex = 'F' AND {condition}")
        assert answer["n"][0].as_py() == pytest.approx(both)
    either = release.sql("SELECT COUNT(*) AS n FROM release WHERE list_has_any(diagnoses, ['I50', 'N18'])")["n"][
        0
    ].as_py()
    one, other = (release.count({"diagnoses": dn.contains(item)}).value for item in ("I50", "N18"))
    everyone = release.count({"diagnoses": dn.contains("I50", "N18")}).value
    assert either == pytest.approx(one + other - everyone)
    without = release.count({"diagnoses": dn.not_(dn.contains("I50", "N18"))}).value
    assert without == pytest.approx(N - everyone)
    pairs = release.items(pairs=True)
    assert pairs.num_rows == 10
    assert pairs.to_pylist()[-2]["item"] == "I50"
    by_sex = release.sql(
        "SELECT sex, list_contains(diagnoses, 'E11') AS has, COUNT(*) AS n FROM release GROUP BY sex, has"
    )
    assert sum(by_sex["n"].to_pylist()) == pytest.approx(N)
    assert release.weights("list_contains(diagnoses, 'I50')").sum() == pytest.approx(one)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("SELECT COUNT(*) AS n FROM release WHERE len(diagnoses) > 1", "item by item"),
        ("SELECT diagnoses, COUNT(*) AS n FROM release GROUP BY diagnoses", "item by item"),
        ("SELECT COUNT(*) AS n FROM release WHERE list_contains(diagnoses, 'E12')", "no item"),
        ("SELECT COUNT(*) AS n FROM release WHERE list_contains(diagnoses, sex)", "write the items out"),
        ("SELECT COUNT(*) AS n FROM release WHERE list_contains(sex, 'F')", "not understood|computed"),
    ],
)
def test_what_lists_cannot_be_asked_is_refused(release, question, words):
    with pytest.raises(dn.DeniableError, match=words):
        release.sql(question)


def test_no_lists_no_items(patients):
    plain = dn.publish(patients.select(["sex"]), sensitive="sex", privacy="3/4", mechanism="uniform")
    with pytest.raises(dn.DeniableError, match="no column of lists"):
        plain.items()
    with pytest.raises(dn.DeniableError, match="one item or several"):
        dn.contains()


def test_a_larger_coin_or_a_shorter_list_fails_to_verify(release):
    raw = release.manifest.to_dict()

    def checks(change):
        forged = json.loads(json.dumps(raw))
        change(forged)
        Manifest.from_json(json.dumps(forged))  # it is well formed
        return verify_tables(forged, {})

    def more(forged):
        for part in forged["parts"]:
            part["cells"][0]["keep"] = [int(1.05 * keep) for keep in part["cells"][0]["keep"]]

    def one_more(forged):
        cell = forged["parts"][2]["cells"][0]
        cell["keep"] = [int(1.05 * keep) for keep in cell["keep"]]

    def longer(forged):
        for part in forged["parts"]:
            part["item"]["most"] = 4  # the promise is of lists of three

    def named_amplification(forged):
        for part in forged["parts"]:
            part["promise"] = {"kind": "amplification", "gamma": "4", "rho1": None, "rho2": None, "above": []}

    assert not checks(lambda forged: None).failures
    for change in (more, one_more, longer, named_amplification):
        assert checks(change).failures

    def another_name(forged):
        forged["parts"][0]["item"]["item"] = "E12"

    with pytest.raises(dn.DeniableError, match="column of its name"):
        checks(another_name)


def test_an_audit_knows_that_items_go_together(patients):
    """Every N18 comes with I50: a row says more of it than its own answer does, and never more than is allowed."""
    rng = np.random.default_rng(2)
    lists = [["I50", "N18"] if draw < 0.1 else ["E11"] if draw < 0.5 else [] for draw in rng.random(N)]
    table = pa.table({"diagnoses": lists})
    release = dn.publish(
        table, sensitive="diagnoses", mechanism=Items(most=2), privacy=dn.Privacy("1/5", "1/2"), key=KEY
    )
    report = dn.audit(table, release, attacks=True)
    belief = next(one for one in report.lists.beliefs if one.item == "N18")
    assert belief.together > belief.alone + 0.01
    assert belief.together <= 0.5
    assert report.epsilon == pytest.approx(np.log(4), rel=1e-3)
    assert not report.serious
    assert "none was played" in str(report)
    assert json.dumps(report.to_dict())


def test_rows_of_a_person_with_one_list_are_alike_and_others_share_nothing():
    """Two rows of a person that differ in one item must not agree in the answers about all others."""
    rng = np.random.default_rng(3)
    items = [f"x{i}" for i in range(12)]
    first = [sorted(rng.choice(items, 3, replace=False).tolist()) for _ in range(400)]
    lists = [*first, *first, *([*held[:2], next(i for i in items if i not in held)] for held in first)]
    table = pa.table({"who": [f"p{i}" for i in range(400)] * 3, "d": lists})
    release = dn.publish(
        table, sensitive="d", mechanism=Items(budget=3, most=3), person="who", key=KEY, shuffle=False, drop=[]
    )
    shown = np.column_stack([release.table[name].to_numpy() for name in release.table.column_names]).astype(bool)
    once, again, changed = shown[:400], shown[400:800], shown[800:]
    assert (once == again).all()
    agree = (once == changed).mean()
    expected = np.mean(once.mean(0) ** 2 + (1 - once.mean(0)) ** 2)
    assert abs(agree - expected) < 6 * np.sqrt(0.25 / once.size) + 0.05
    assert "one look" in release.manifest.guarantee["not_protected"][-1]


def test_declared_items_hold_against_any_prior(patients):
    release = dn.publish(
        patients,
        sensitive="diagnoses",
        mechanism=Items(most=3),
        privacy=dn.Privacy("1/10", "1/2", adversary="any-prior"),
        domain=[*ITEMS, "Z99"],
        key=bytes(32),
    )
    assert release.manifest.guarantee["adversary"] == "any-prior"
    assert release.verify().holds
    low, high = (getattr(release.count({"diagnoses": dn.contains("Z99")}), name) for name in ("low", "high"))
    assert low <= 0 <= high


def test_pools_and_joins(release, patients):
    other = dn.publish(patients, sensitive="diagnoses", mechanism=Items(budget=8, most=3))
    assert dn.pool([release, other]).manifest.rows == 2 * N
    capped = dn.publish(
        patients, sensitive="diagnoses", mechanism=Items(budget=8, most=3, beyond="first"), domain=ITEMS
    )
    with pytest.raises(dn.DeniableError, match="read in another way"):
        dn.pool([release, capped])
    with pytest.raises(dn.DeniableError, match="item by item"):
        dn.respond({"diagnoses=E11": True}, release)


def test_an_engine_that_cannot_read_lists_is_refused(patients, monkeypatch):
    """As Spark's: it has no such method."""
    monkeypatch.delattr(LocalDataset, "unfolded")
    with pytest.raises(dn.DeniableError, match="cannot read the lists of 'diagnoses'"):
        dn.publish(patients, sensitive="diagnoses", mechanism="items:budget=2,most=3")
