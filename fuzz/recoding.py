"""Columns made coarser in ways that nobody would choose, published and looked at by their owner."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import deniable as dn
from fuzz.case import Case, changed_once
from fuzz.files import damaged, described, published_by, strange_table
from fuzz.releases import people

NUMBERS = ("0", "1", "-1", "3", "0.1", "1e-300", "1e300", "nan", "inf", "-0.0", "10", "2024", "9" * 400, "", "x", "1/3")
WORDS = ("bands", "prefix", "top", "bottom", "snap", "year", "quarter", "month", "hierarchy", "rare", "")
ROWS: tuple[Any, ...] = (None, None, 0, 1, 2, 5, 20, 10**9, 10**30, -1, True, 2.5, float("nan"), "5", "", [], {})
FILE = """rare = 3
suppress = 2
[recode]
age = "top:80+bands:10"
born = ["year"]
sex = {map = {F = "f"}, other = "other"}
"""
SOUND = {"sex": "prefix:1", "age": "top:80+bands:10", "born": "year"}
HIERARCHY = "a,first,all\nb,first,all\nc,second,all\n1,one,all\n,none,all\n"


def recode(draw: Random, home: Path) -> Iterator[Case]:
    """Publish with recoded columns, rare values merged and values suppressed; then ask about every column."""
    for path, table, about, options in _made(draw, home):
        sensitive = draw.choice(table.column_names)
        mechanism = draw.choice(("uniform", "designed", "small-domain", "lineup", "redraw"))
        privacy = None if mechanism == "redraw" else dn.Privacy(rho2="9/10")
        chosen = {"sensitive": sensitive, "mechanism": mechanism, "privacy": privacy, **options}
        yield Case(f"{mechanism} of {sensitive!r}, {about}", published_by(str(path), home / "release", chosen))


def risk(draw: Random, home: Path) -> Iterator[Case]:
    """Who stands out in a table, before and after."""
    for path, table, about, options in _made(draw, home):
        names = table.column_names
        odd = {
            "columns": (names[:1], names, [*names, names[0]], ["nowhere"], [], names[-1]),
            "sensitive": (None, names[0], "nowhere", ""),
            "suppress_to_k": ROWS,
        }
        chosen = changed_once({"columns": names[:-1] or names, "sensitive": None, "suppress_to_k": None}, odd, draw)
        steps = (lambda p=path, t=table, o={**options, **chosen}: _look(p, t.num_rows, o),)
        yield Case(f"risk of {chosen!r}; {about}", steps)


def _look(path: Path, rows: int, options: dict[str, Any]) -> None:
    seen = dn.risk(str(path), **options)
    assert str(seen)
    assert repr(seen)
    assert seen.to_dict()
    assert seen.table().num_rows == rows


def _made(draw: Random, home: Path) -> Iterator[tuple[Path, pa.Table, str, dict[str, Any]]]:
    """A table in a file, and what is to be done to it: sound choices, and often a strange one among them."""
    home.mkdir(parents=True, exist_ok=True)
    path, levels = home / "table.parquet", home / "levels.csv"
    while True:
        table = people(300) if draw.random() < 0.6 else strange_table(draw)
        pq.write_table(table, path)
        levels.write_bytes(damaged(HIERARCHY.encode(), draw) if draw.random() < 0.5 else HIERARCHY.encode())
        names = table.column_names
        sound = {"recode": {name: SOUND[name] for name in names if name in SOUND}, "rare": None, "suppress": None}
        odd = {
            "recode": [_recodes(draw, names, home, levels) for _ in range(3)],
            "rare": [_rows(draw, names)],
            "suppress": [_rows(draw, names)],
        }
        options = changed_once(changed_once(sound, odd, draw), odd, draw)
        yield path, table, f"{described(table)}: {str(options)[:300]}", options


def _recodes(draw: Random, names: list[str], home: Path, levels: Path) -> Any:
    """A mapping of texts, one text, or a file that may be damaged."""
    kind = draw.random()
    if kind < 0.15:
        return None
    if kind < 0.3:
        file = home / "recode.toml"
        file.write_bytes(damaged(FILE.encode(), draw))
        return str(file)
    chosen = {draw.choice([*names, "nowhere"]): _steps(draw, levels) for _ in range(draw.choice((1, 1, 2)))}
    return draw.choice((chosen, chosen, chosen, *chosen.values()))


def _steps(draw: Random, levels: Path) -> Any:
    texts = [_step(draw, levels) for _ in range(draw.choice((1, 1, 2, 3)))]
    return draw.choice(("+".join(map(str, texts)), texts, texts[0]))


def _step(draw: Random, levels: Path) -> Any:
    if draw.random() < 0.1:
        return draw.choice((None, 3, [], dn.month, dn.top(5), dn.bands([1, 2, 3]), {"a": "b"}))
    word = draw.choice(WORDS)
    if word == "hierarchy":
        return f"hierarchy:{draw.choice((levels, levels, '/dev/null', 'nowhere'))}:{draw.choice((0, 1, 2, 3, 'x'))}"
    between = draw.choice((":", ":", ","))
    return ":".join([word, between.join(draw.choice(NUMBERS) for _ in range(draw.choice((0, 1, 1, 2))))]).rstrip(":")


def _rows(draw: Random, names: list[str]) -> Any:
    number = draw.choice(ROWS)
    return {draw.choice([*names, "nowhere"]): number} if draw.random() < 0.4 else number
