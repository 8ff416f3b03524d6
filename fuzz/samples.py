"""Line-ups, lists and samples: what rows that hold sets, items and weights can be made to hold."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import deniable as dn
from deniable.mechanisms import Items, Lineup
from fuzz.case import Case, changed_once
from fuzz.files import COLUMNS, Column, ask_everything, damaged, published_by, refused_or_answered, strange_table
from fuzz.releases import people

SIZES: tuple[Any, ...] = (None, None, None, 1, 2, 17, 20, 30, 39, 40, 10**9, 0, -1, True, 2.5, "3")
TRUTHS: tuple[Any, ...] = (
    *[None] * 9,
    "1/2",
    0.3,
    "1e-300",
    0,
    1,
    2,
    "nan",
    float("nan"),
    "1e999999999",
    "0.999999999999",
)


def lineups(draw: Random, home: Path) -> Iterator[Case]:
    """Sets of one to forty values, listed and coded, with their files damaged or put in each other's place."""
    home.mkdir(parents=True, exist_ok=True)
    out, other = home / "release", home / "other"
    while True:
        values = draw.choice((2, 3, 18, 40, 40, 100))
        rows = draw.choice((5, 100, 800))
        table = people(rows).set_column(
            3, "disease", pa.array([f"value {int(values * draw.random() ** 2)}" for _ in range(rows)])
        )
        size, truth = draw.choice(SIZES), draw.choice(TRUTHS)
        form, rho2 = draw.choice(("parquet", "csv")), draw.choice(("1/10", "1/2", "9/10"))

        options = {"sensitive": "disease", "privacy": dn.Privacy(rho2=rho2), "format": form}
        about = f"{rows} rows, {values} values, rho2 = {rho2}, size {size!r}, truth {truth!r}, {form}"
        yield Case(about, published_by(table, out, options, lambda s=size, t=truth: Lineup(size=s, truth=t)))
        if not out.exists():
            continue
        change = _spoilt(out, other, draw)
        yield Case(f"{about}; {change}", (lambda: ask_everything(out), lambda: dn.verify(out), lambda: _sets(out)))
        shutil.rmtree(other, ignore_errors=True)
        os.rename(out, other)


def _sets(out: Path) -> None:
    release = dn.open_release(out)
    assert release.table.num_rows == release.manifest.rows
    refused_or_answered(lambda: release.lineups)


def _spoilt(folder: Path, other: Path, draw: Random) -> str:
    """Damage a file of the release, or take it from another one."""
    file = draw.choice(sorted(path for path in folder.iterdir() if path.name not in ("manifest.json", "README.md")))
    kind = draw.choice(("damage", "another's", "gone", "strange"))
    if kind == "gone":
        file.unlink()
    elif kind == "another's" and (other / file.name).exists():
        shutil.copy(other / file.name, file)
    elif kind == "strange" and file.suffix == ".parquet":
        pq.write_table(strange_table(draw), file)
    else:
        file.write_bytes(damaged(file.read_bytes(), draw))
    return f"{kind} {file.name}"


ITEMS: tuple[Any, ...] = ("a", "b", "c", "d", "", " ", "é", "=1+1", "\x1b[2J", "a;b", "x" * 3000, None)
ODD: dict[str, tuple[Any, ...]] = {
    "budget": (None, 4, 0.001, 0, -1, 1e9, float("nan"), float("inf"), True, "2"),
    "most": (1, 3, 10**9, 0, -1, True, "2"),
    "beyond": ("refuse", "x", None),
    "separator": (None, ";", "", "ab", "\x00", 3),
}
CHOICES: dict[str, tuple[Any, ...]] = {
    "privacy": (dn.Privacy(rho1="1/10", rho2="1/2"), dn.Privacy(rho2="1/2")),
    "domain": (["a", "b"], list("abcd"), [], ["a", "a"], [None], [1, 2]),
    "missing": ("exempt", "refuse", "x"),
    "bins": ({"list": [1, 2, 3]},),
    "person": ("sex", "list"),
}


def lists(draw: Random, home: Path) -> Iterator[Case]:
    """Lists of items as lists, as texts and as JSON, with options of any kind."""
    home.mkdir(parents=True, exist_ok=True)
    out = home / "release"
    while True:
        table, kind = _lists(draw)
        separator = ";" if kind.endswith("texts") else None
        sound = {"budget": 2, "most": 2, "beyond": "first", "separator": separator}
        options = changed_once(sound, ODD, draw)
        chosen = changed_once({"sensitive": "list", "privacy": None, "domain": None}, CHOICES, draw)
        about = f"{kind}, {options}, {chosen}"
        item = draw.choice(("a", "", "nowhere", None, 1, ["a"]))
        steps = published_by(table, out, chosen, lambda o=options: Items(**o))
        yield Case(about, (*steps, lambda i=item: _about_items(out, i)))


def _about_items(out: Path, item: Any) -> None:
    release = dn.open_release(out)
    refused_or_answered(lambda: release.count({"list": dn.contains(item)}))
    refused_or_answered(lambda: release.count({"list": dn.contains("a", "b", "c")}))
    refused_or_answered(lambda: release.items(pairs=True))
    for text in ("list_contains(list, 'a')", "list_has_any(list, ['a', 'b'])", "len(list) = 2", "list = ['a']"):
        refused_or_answered(lambda t=text: release.sql(f"SELECT COUNT(*) AS n FROM release WHERE {t}"))


def _lists(draw: Random) -> tuple[pa.Table, str]:
    rows, some = draw.choice((0, 1, 50, 400, 400)), draw.sample(ITEMS[: draw.choice((4, 12))], draw.randint(1, 4))
    made = [draw.choices(some, k=draw.choice((0, 1, 1, 2, 5))) if draw.random() < 0.95 else None for _ in range(rows)]
    numbers = [[draw.choice((0, 1, 2**62)) for _ in made_one or ()] for made_one in made]
    texts = [";".join(map(str, made_one or ())) for made_one in made]
    columns: dict[str, pa.Array] = {
        "list": pa.array(made, pa.list_(pa.string())),
        "large list": pa.array(made, pa.large_list(pa.string())),
        "numbers": pa.array(numbers, pa.list_(pa.int64())),
        "lists of lists": pa.array([[made_one] for made_one in made], pa.list_(pa.list_(pa.string()))),
        "texts": pa.array(texts, pa.string()),
        "JSON": pa.array(['["a", "b"]', "[]", '["a"', "3", '[["a"]]', "[null]", "[1e999]", "[" * 9] * rows)[:rows],
    }
    kind = draw.choice(list(columns))
    return pa.table({"sex": pa.array(["F"] * rows), "list": columns[kind]}), f"{rows} rows of {kind}"


def weights(draw: Random, home: Path) -> Iterator[Case]:
    """Samples whose weights, strata and clusters are columns of any type and content."""
    home.mkdir(parents=True, exist_ok=True)
    made = _mechanisms()
    while True:
        rows = draw.choice((3, 300, 300, 300))
        table = people(rows)
        odd = draw.choice(("weight", "stratum", "cluster", None))
        for name, sound in SAMPLE.items():
            table = table.append_column(name, (draw.choice(COLUMNS) if name == odd else sound)(draw, rows))
        kinds = ", ".join(str(kind) for kind in table.schema.types[-3:])
        mechanism, privacy = draw.choice(made)
        options = {"mechanism": mechanism, "privacy": privacy}
        names = (*table.column_names, "nowhere", "", None)
        design = changed_once({"strata": "stratum", "clusters": None}, {"strata": names, "clusters": names}, draw)
        where = draw.choice(({"disease": "a"}, {"sex": "F"}, {"weight": 1}, {"disease": "nowhere"}, {}, None))
        confidence = draw.choice((0.95, 0.95, 0.95, 0.5, 0, 1, float("nan"), 1 - 1e-16, "0.9"))
        yield Case(
            f"{rows} rows, {mechanism!r}, weights, strata, clusters: {kinds}; {design}; {where}, {confidence!r}",
            (lambda t=table, o=options, d=design, w=where, c=confidence: _weighted(t, o, d, w, c),),
        )


def _weighted(
    table: pa.Table, options: dict[str, Any], design: dict[str, Any], where: dict[str, Any] | None, confidence: Any
) -> None:
    survey = dn.publish(table, sensitive="disease", key=bytes(32), **options).survey("weight", **design)
    for question in (
        lambda: survey.count(where, confidence=confidence),
        lambda: survey.share({"disease": "a"}, where, confidence=confidence),
        lambda: survey.sum("age", where, confidence=confidence),
        lambda: survey.mean("age", where, confidence=confidence),
        lambda: survey.mean("weight", where),
        lambda: survey.sum("disease", where),
    ):
        refused_or_answered(lambda q=question: _numbers(q()))


def _numbers(answer: Any) -> None:
    """An estimate is a number between its ends, or said to be none."""
    if not math.isnan(answer.value):
        assert answer.low <= answer.value <= answer.high, f"{answer!r} is outside of its interval"


def _weights(draw: Random, rows: int) -> pa.Array:
    strange = draw.choice(((1.0, 2.5), (1.0, 2.5), (0.0, 1.0), (-1.0, 1.0), (1e308, 1e308), (5e-324, 1.0), (0, 2**53)))
    return pa.array([draw.choice(strange) for _ in range(rows)])


SAMPLE: dict[str, Column] = {
    "weight": _weights,
    "stratum": lambda draw, rows: pa.array([draw.choice("ns") for _ in range(rows)]),
    "cluster": lambda draw, rows: pa.array([draw.randrange(8) for _ in range(rows)]),
}


def _mechanisms() -> list[tuple[Any, dn.Privacy | None]]:
    privacy = dn.Privacy(rho2="9/10")
    return [
        *((name, privacy) for name in ("uniform", "uniform", "designed", "lineup", "small-domain")),
        ("decoys:c=3", None),
    ]
