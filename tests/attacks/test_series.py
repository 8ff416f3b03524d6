"""A table that is published again and again: who has all publications knows no more than they promise (13.14).

The attacker knows who is who and has every publication. What all of them say of one person is computed from the
published channels alone, as a product over the publications, with code of its own.
"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.errors import DeniableError
from deniable.mechanisms import FineGrain
from deniable.mechanisms.base import Mechanism

VALUES = list("abcdefgh")
MECHANISMS = ["uniform", "small-domain", "fine-grain", "designed", "lineup", "pram"]
FULL = 2**32


def people(rows: int, changed: tuple[int, ...] = (), drop: int = 0) -> pa.Table:
    rng = np.random.default_rng(11)
    ill = rng.choice(VALUES, 6_000, p=np.arange(8, 0, -1) / 36)
    for person in changed:
        ill[person] = "h" if ill[person] != "h" else "g"
    ids = np.arange(6_000)
    return pa.table({"id": ids[drop:rows], "age": ids[drop:rows] % 90, "ill": ill[drop:rows]})


def publish(table: pa.Table, home: Path, mechanism: str | Mechanism, **options: Any) -> dn.Release:
    return dn.publish(
        table,
        **{
            "sensitive": "ill",
            "privacy": dn.Privacy(rho2="1/2"),
            "mechanism": mechanism,
            "series": home / "people.series",
            "row_id": "id",
            "shuffle": False,
            **options,
        },
    )


def shown(release: dn.Release) -> list[Any]:
    columns = [name for name in release.table.column_names if name != "age"]
    return [tuple(map(str, row.values())) for row in release.table.select(columns).to_pylist()]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_ten_publications_of_a_growing_table_say_of_a_person_what_one_says(tmp_path: Path, mechanism: str) -> None:
    sizes = range(3_000, 6_000, 300)
    releases = [publish(people(rows), tmp_path, mechanism) for rows in sizes]
    first = shown(releases[0])
    for release in releases[1:]:
        assert shown(release)[: len(first)] == first  # nothing is drawn a second time
        plans = [one.manifest.to_dict()["parts"][0] for one in (release, releases[0])]
        assert plans[0]["cells"] == plans[1]["cells"]
        assert plans[0].get("lineups") == plans[1].get("lineups")
    assert "This is publication 10 of a series" in releases[-1].manifest.guarantee["also"][-1]


def posterior(parts: list[dict[str, Any]], seen: list[str], prior: np.ndarray) -> list[Fraction]:
    """What publications that were drawn independently say of one person's value, all of them together."""
    beliefs = [Fraction(int(count)) for count in prior]
    for part, value in zip(parts, seen, strict=True):
        (cell,) = part["cells"]
        domain = [entry[0] for entry in part["domain"]]
        y = domain.index(value)
        for x, keep in enumerate(cell["keep"]):
            beliefs[x] *= (FULL - keep) * cell["replace"][y] + (keep * FULL if x == y else 0)
    return [belief / sum(beliefs) for belief in beliefs]


def test_what_changed_values_tell_stays_within_the_stated_total(tmp_path: Path) -> None:
    """Whoever changed twice is published with three draws: the odds of any belief grow by gamma^3 at most."""
    changes = [(), (5,), ()]
    releases = [publish(people(4_000, changed), tmp_path, "uniform") for changed in changes]
    parts = [release.manifest.to_dict()["parts"][0] for release in releases]
    stated = Fraction(releases[-1].manifest.guarantee["gamma"])
    assert f"up to {float(stated**3):.4g}" in releases[-1].manifest.guarantee["also"][-1]
    prior = np.unique(people(4_000)["ill"].to_numpy(zero_copy_only=False), return_counts=True)[1]
    for person in range(300):
        drawn = list(dict.fromkeys(release.table["ill"][person].as_py() for release in releases))
        beliefs = posterior(parts[: len(drawn)], drawn, prior)
        for count, belief in zip(prior.tolist(), beliefs, strict=True):
            before = Fraction(count, int(prior.sum()))
            assert belief / (1 - belief) <= stated**3 * before / (1 - before)
    again = shown(releases[2])
    assert again == shown(releases[0])  # back to the first value, back to its draw: no new look


def test_a_person_who_changes_too_often_is_refused(tmp_path: Path) -> None:
    for changed in ((), (7,)):
        publish(people(3_000, changed), tmp_path, "designed", changes=1)
    third = people(3_000).to_pydict()
    third["ill"][7] = "f" if third["ill"][7] not in ("f", "h") else "e"
    with pytest.raises(DeniableError, match=r"At least one person has changed their value more than 1 times"):
        publish(pa.table(third), tmp_path, "designed")


def test_deletions_new_people_and_values_that_are_new(tmp_path: Path) -> None:
    publish(people(3_000), tmp_path, "designed")
    publish(people(3_500, drop=500), tmp_path, "designed")
    ledger = json.loads((tmp_path / "people.series").read_text())["publications"]
    assert [(entry["new"], entry["gone"]) for entry in ledger] == [(3_000, 0), (500, 500)]
    strange = people(3_000).to_pydict()
    strange["ill"][0] = "z"
    with pytest.raises(DeniableError, match="declared"):
        publish(pa.table(strange), tmp_path, "designed")
    assert len(json.loads((tmp_path / "people.series").read_text())["publications"]) == 2  # nothing was noted


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"mechanism": "uniform"}, "second look, 2 looks together"),
        ({"privacy": dn.Privacy(rho2="2/3")}, "second look"),
        ({"missing": "exempt"}, "second look"),
        ({"changes": 5}, "was begun with 2"),
        ({"row_id": None}, "who is who"),
        ({"seed": 3}, "key of its own"),
    ],
)
def test_another_plan_in_a_series_is_a_second_look_and_refused(
    tmp_path: Path, other: dict[str, Any], said: str
) -> None:
    publish(people(3_000), tmp_path, "designed")
    with pytest.raises(DeniableError, match=said):
        publish(people(3_000), tmp_path, **{"mechanism": "designed", **other})


def test_a_table_that_breaks_the_promise_is_refused(tmp_path: Path) -> None:
    publish(people(3_000), tmp_path, "designed")
    heavy = people(3_000).to_pydict()
    heavy["ill"][:1_200] = ["a"] * 1_200
    with pytest.raises(DeniableError, match="does not keep its promise any more"):
        publish(pa.table(heavy), tmp_path, "designed")


def test_quantiles_which_each_publication_would_draw_anew_are_refused_at_first(tmp_path: Path) -> None:
    """The second publication had other edges, and ended in an error of ours."""
    ages = {"sensitive": "age", "bins": {"age": dn.Quantiles(4)}, "drop": "ill"}
    with pytest.raises(DeniableError, match="next publication of a series needs to know them"):
        publish(people(3_000), tmp_path, "uniform", **ages)
    assert not (tmp_path / "people.series").exists()
    edges = {**ages, "bins": {"age": [0, 25, 50, 90]}}
    assert shown(publish(people(3_000), tmp_path, "uniform", **edges)) == shown(
        publish(people(3_000), tmp_path, "uniform", **edges)
    )


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("bins", [dn.Bins((0, 9, 30, 50, 90), open_ends=True), [0, 5, 10, 50, 90]])
def test_intervals_keep_their_order_in_a_series(tmp_path: Path, mechanism: str, bins: Any) -> None:
    """Their labels sort otherwise than they do: the second publication ended in an error of ours."""
    ages = {"sensitive": "age", "bins": {"age": bins}, "drop": "ill", "privacy": dn.Privacy(rho2="3/4")}
    first = publish(people(3_000), tmp_path, mechanism, **ages)
    again = publish(people(3_000), tmp_path, mechanism, **ages)
    assert list(first.manifest.parts[0].domain) == list(again.manifest.parts[0].domain)
    assert first.table.equals(again.table)


@pytest.mark.parametrize("mechanism", ["uniform", "small-domain"])
def test_intervals_beside_another_column_keep_their_order_in_a_series(tmp_path: Path, mechanism: str) -> None:
    """Two columns that are perturbed together have a value for each pair."""
    both = {"sensitive": ["ill", "age"], "bins": {"age": [0, 5, 10, 50, 90]}}
    first = publish(people(3_000), tmp_path, mechanism, **both)
    assert first.table.equals(publish(people(3_000), tmp_path, mechanism, **both).table)


def test_options_that_name_dates_are_kept_by_a_series(tmp_path: Path) -> None:
    """Dates are no keys of a JSON object: the first publication ended in an error of Python's."""
    table = people(3_000)
    days = [datetime.date(2020, 1, 1 + VALUES.index(value)) for value in table["ill"].to_pylist()]
    weighed = FineGrain(weights={day: 1.0 + day.day for day in days})
    releases = [publish(table.set_column(2, "ill", pa.array(days)), tmp_path, weighed) for _ in range(2)]
    assert releases[0].manifest.to_dict()["mechanism"] == releases[1].manifest.to_dict()["mechanism"]


@pytest.mark.parametrize("kind", [pa.string(), pa.float64(), pa.decimal128(20, 0)])
def test_people_under_ids_of_another_type_are_not_drawn_a_second_time(tmp_path: Path, kind: pa.DataType) -> None:
    """A CSV file with one id like '12b' makes texts of numbers: nobody would be known, and all drawn afresh."""
    table = people(3_000)
    publish(table, tmp_path, "uniform")
    before = (tmp_path / "people.series").read_bytes()
    with pytest.raises(DeniableError, match=r"one of its ids, written otherwise.* another type or spelling"):
        publish(table.set_column(0, "id", table["id"].cast(kind)), tmp_path, "uniform")
    assert (tmp_path / "people.series").read_bytes() == before  # nothing was noted


SPELLINGS: dict[str, Any] = {
    "capitals": str.lower,
    "a blank behind": lambda name: name + " ",
    "a blank inside": lambda name: name[:1] + "\u00a0" + name[1:],
    "no padding": lambda name: f"Q{int(name[1:])}",
    "more padding": lambda name: f"Q00{name[1:]}",
    "wide letters": lambda name: "\uff31" + name[1:],
    "a point": lambda name: name + ".0",
    "bytes": str.encode,
}


@pytest.mark.parametrize("how", SPELLINGS)
@pytest.mark.parametrize("rewritten", [1, 1_500, 2_999])
def test_people_under_respelt_ids_are_not_drawn_a_second_time(tmp_path: Path, how: str, rewritten: int) -> None:
    """One old id among respelt ones was enough to draw all the others afresh."""
    names = [f"Q{number:05d}" for number in range(3_000)]
    others = [SPELLINGS[how](name) if place < rewritten else name for place, name in enumerate(names)]
    if how == "bytes":
        others = [name if isinstance(name, bytes) else name.encode() for name in others]
    table = people(3_000)
    publish(table.set_column(0, "id", pa.array(names)), tmp_path, "uniform")
    before = (tmp_path / "people.series").read_bytes()
    with pytest.raises(DeniableError, match="one of its ids, written otherwise") as refused:
        publish(table.set_column(0, "id", pa.array(others)), tmp_path, "uniform")
    assert not any(str(name) in str(refused.value) for name in others[:rewritten])
    assert (tmp_path / "people.series").read_bytes() == before


@pytest.mark.parametrize("first", [1, 10**18, 2**63 - 3_000])
def test_long_numbers_are_known_as_texts(tmp_path: Path, first: int) -> None:
    """Ids of 19 digits are usual; floats do not hold them, so a program that reads them as such makes texts of them."""
    table, ids = people(3_000), [first + number for number in range(3_000)]
    publish(table.set_column(0, "id", pa.array([*map(str, ids)])), tmp_path, "uniform")
    for kind in (pa.int64(), pa.uint64()):
        some = pa.array([*ids[:-1], 0], kind)
        with pytest.raises(DeniableError, match="one of its ids, written otherwise"):
            publish(table.set_column(0, "id", some), tmp_path, "uniform")


def test_ids_that_are_alike_are_known_when_both_were_published(tmp_path: Path) -> None:
    """Ids such as aB and Ab name two people; the owner says so when the second of them comes."""
    names = [f"{number}x" for number in range(2_999)]
    publish(people(3_000).set_column(0, "id", pa.array([*names, "aB"])), tmp_path, "uniform")
    more = people(3_001).set_column(0, "id", pa.array([*names, "aB", "Ab"]))
    with pytest.raises(DeniableError, match="new_people=True"):
        publish(more, tmp_path, "uniform")
    publish(more, tmp_path, "uniform", new_people=True)
    publish(more, tmp_path, "uniform")  # both are known now


@pytest.mark.parametrize("who", ["row_id", "person"])
def test_one_person_under_two_spellings_in_a_table_is_refused(tmp_path: Path, who: str) -> None:
    """Rows of a person with one value are one look only where they have one id."""
    names = [f"{number}x" for number in range(2_998)]
    twice = people(3_000).set_column(0, "id", pa.array([*names, "Q7", "q07 "]))
    columns = {"row_id": None, who: "id"}
    with pytest.raises(DeniableError, match=r"one id, written in two ways.*new_people=True"):
        publish(twice, tmp_path, "uniform", **columns)
    assert not (tmp_path / "people.series").exists()
    publish(twice, tmp_path, "uniform", **columns, new_people=True)
    publish(twice, tmp_path, "uniform", **columns)


def test_a_table_of_strangers_needs_the_owners_word(tmp_path: Path) -> None:
    """Ids of another kind, such as other pseudonyms, cannot be compared; that hardly anyone is known can be seen."""
    first = publish(people(3_000), tmp_path, "uniform")
    for drop in (3_000, 2_999, 2_001):  # nobody, one, and fewer than half of 2,000 are known
        with pytest.raises(
            DeniableError, match=r"(few|none) of its people are in it, and most are new.*new_people=True"
        ):
            publish(people(drop + 2_000, drop=drop), tmp_path, "uniform")
    publish(people(4_000, drop=2_000), tmp_path, "uniform")  # half of them
    publish(people(6_000, drop=2_999), tmp_path, "uniform", new_people=True)
    last = publish(people(6_000), tmp_path, "uniform")  # known or new, nobody is gone
    assert shown(last)[:3_000] == shown(first)
    with pytest.raises(DeniableError, match="new_people goes with series"):
        publish(people(3_000), tmp_path, "uniform", series=None, new_people=True)


def test_a_series_without_spellings_goes_on_and_gets_them(tmp_path: Path) -> None:
    """Files that were written before spellings were kept, sealed or not, are read, and know the next ids."""
    publish(people(3_000), tmp_path, "uniform")
    path = tmp_path / "people.series"
    raw = json.loads(path.read_text())
    older = {name: entry for name, entry in raw.items() if name not in ("digest", "spellings")}
    path.write_text(json.dumps({**older, "format": 1}))
    publish(people(3_100), tmp_path, "uniform")
    spelt = people(3_100).to_pydict()
    spelt["id"] = [f"{number:08d}" for number in spelt["id"][:-1]] + ["last"]
    with pytest.raises(DeniableError, match="written otherwise"):
        publish(pa.table(spelt), tmp_path, "uniform")


def test_groups_cannot_be_a_series(tmp_path: Path) -> None:
    with pytest.raises(DeniableError, match=r"series|row_id|person"):
        publish(people(3_000), tmp_path, "decoys")
    assert not (tmp_path / "people.series").exists()


def test_the_file_of_a_series_is_private_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    publish(people(3_000), tmp_path, "designed")
    path = tmp_path / "people.series"
    assert path.stat().st_mode & 0o077 == 0
    os.chmod(path, 0o644)
    with pytest.raises(DeniableError, match="can be read by others"):
        publish(people(3_000), tmp_path, "designed")
    path.write_text("{}")
    os.chmod(path, 0o600)
    with pytest.raises(DeniableError, match="no file of a series"):
        publish(people(3_000), tmp_path, "designed")


def test_what_a_run_left_that_was_killed_while_it_wrote_is_removed_by_the_next(tmp_path: Path) -> None:
    """Half a series beside the whole one holds its key; what others keep there stays."""
    publish(people(3_000), tmp_path, "designed")
    half = tmp_path / ".people.series.0123456789abcdef"
    others = [tmp_path / name for name in (".people.series.old", ".other.series.0123456789abcdef", "people.series.txt")]
    half.mkdir(mode=0o700)
    for file in (half / "new", *others):
        file.write_text("half")
    publish(people(3_001), tmp_path, "designed")
    assert not half.exists()
    assert all(file.exists() for file in others)


def test_a_column_of_a_pair_that_becomes_too_frequent_is_refused(tmp_path: Path) -> None:
    """Every pair stays as rare as it was; one column alone does not."""
    rng = np.random.default_rng(3)
    ill, job = rng.choice(list("abcdefghij"), 6_000), rng.choice(list("uvwxyz"), 6_000)
    table = pa.table({"id": np.arange(6_000), "ill": ill, "job": job})
    pair = {"sensitive": ["ill", "job"], "privacy": dn.Privacy("1/7", "1/5")}
    publish(table, tmp_path, "designed", **pair)
    heavy = ill.copy()
    heavy[:1_500] = np.where(np.arange(1_500) % 2 == 0, "a", heavy[:1_500])
    with pytest.raises(DeniableError, match="does not keep its promise any more"):
        publish(pa.table({"id": np.arange(6_000), "ill": heavy, "job": job}), tmp_path, "designed", **pair)


def test_requirements_of_single_values_have_room_to_grow(tmp_path: Path) -> None:
    """Each value's own rho2 is stated, and is kept by a table in which its values are a little more frequent."""
    own = dn.Privacy(per_value=dict.fromkeys("abcde", ("1/4", "2/5")))
    first = publish(people(5_000), tmp_path, "designed", privacy=own)
    stated = {(rho1, rho2) for _, rho1, rho2 in first.manifest.parts[0].promise.per_value}
    assert stated == {(Fraction(1, 4), Fraction(2, 5))}
    again = publish(people(6_000), tmp_path, "designed", privacy=own)
    assert again.manifest.parts[0].promise == first.manifest.parts[0].promise


def test_two_publications_at_once_are_one_after_the_other(tmp_path: Path) -> None:
    """Whoever comes while another run holds the series is refused; a run that died holds nothing."""
    publish(people(3_000), tmp_path, "uniform")
    path = tmp_path / "people.series"
    assert path.exists()
    lock = path.with_name(f".{path.name}.lock")
    assert not lock.exists()
    code = (
        "import fcntl, os, sys, time\n"
        f"file = os.open({str(lock)!r}, os.O_RDWR | os.O_CREAT)\n"
        "fcntl.flock(file, fcntl.LOCK_EX)\n"
        "print('held', flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        before = path.read_bytes()
        with pytest.raises(DeniableError, match="Another run is writing"):
            publish(people(3_001), tmp_path, "uniform")
        assert path.read_bytes() == before
        other.kill()
    publish(people(3_001), tmp_path, "uniform")
    assert not lock.exists()
