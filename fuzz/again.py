"""Series: tables that change between publications, options that do too, and books that somebody has edited."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

import deniable as dn
from fuzz.case import Case
from fuzz.files import COLUMNS, damaged
from fuzz.manifests import edited
from fuzz.releases import people

MECHANISMS = ("uniform", "designed", "designed", "small-domain", "fine-grain", "lineup", "pram", "decoys:c=3", "auto")


def cases(draw: Random, home: Path) -> Iterator[Case]:
    """Two to four publications of one series, with an edit of the table, the options or the book before each."""
    home.mkdir(parents=True, exist_ok=True)
    book = home / "book.series"
    while True:
        book.unlink(missing_ok=True)
        table = named(people(300))
        options: dict[str, Any] = {
            "sensitive": "disease",
            "privacy": dn.Privacy(rho2="3/4"),
            "mechanism": draw.choice(MECHANISMS),
            draw.choice(("row_id", "person")): "who",
        }
        for number in range(draw.randint(2, 4)):
            about = f"publication {number + 1}"
            kind = draw.choice(("table", "table", "options", "book")) if number else "new"
            if kind == "table":
                table, change = changed(table, draw)
            elif kind == "options":
                name, value = draw.choice(OTHERS)
                options, change = {**options, name: value}, f"{name}={value!r}"
            elif kind == "book" and book.exists():
                change = spoil(book, draw)
            else:
                change = "nothing changed"
            yield Case(f"{about}, {change}: {str(options)[:300]}", (lambda t=table, o=options: publish(t, o, home),))


OTHERS: tuple[tuple[str, Any], ...] = (
    *(("mechanism", name) for name in MECHANISMS),
    *(("changes", number) for number in (0, 1, -1, 2, 10**30, True, 1.5, "2", None)),
    *(("privacy", dn.Privacy(rho2=rho2)) for rho2 in ("1/3", "9/10", "99%")),
    *(("missing", word) for word in ("value", "exempt", "refuse")),
    *(("row_id", name) for name in (None, "nowhere", "sex", "disease")),
    *(("person", name) for name in (None, "nowhere", "sex", "who")),
    *(("domain", values) for values in ([], ["a"], list("abcdefghz"), [None, "a"])),
    *(
        ("key", bytes(32)),
        ("seed", 1),
        ("again", True),
        ("new_people", True),
        ("shuffle", False),
        ("drop", "sex"),
        ("suppress", 20),
    ),
)


def publish(table: pa.Table, options: dict[str, Any], home: Path) -> None:
    """Publish; where a release is made, the book knows it, and the release verifies."""
    book, out = home / "book.series", home / "release"
    dn.publish(table, series=book, out=out, overwrite=True, **options)
    assert json.loads(book.read_text())["publications"]
    certificate = dn.verify(out)
    assert certificate.holds, str(certificate)


def named(table: pa.Table) -> pa.Table:
    """The table with a column that says who is who."""
    return table.append_column("who", pa.array([f"person {number}" for number in range(table.num_rows)]))


def changed(table: pa.Table, draw: Random) -> tuple[pa.Table, str]:
    """The table a month later, and what happened to it."""
    kind = draw.choice(("gone", "twice", "values", "new value", "type", "names", "column", "empty", "missing"))
    rows = table.num_rows
    if kind == "gone" and rows:
        return table.slice(draw.randrange(rows)), kind
    if kind == "twice":
        return pa.concat_tables([table, table.slice(0, 5)]), kind
    if kind == "empty":
        return table.slice(0, 0), kind
    column = draw.choice(table.column_names) if kind in ("type", "column") else "disease"
    if column not in table.column_names or "who" not in table.column_names:
        return table, "nothing changed"
    place = table.column_names.index(column)
    if kind == "column":
        return table.drop_columns([column]), f"{kind} {column}"
    if kind == "names":
        return table.set_column(table.column_names.index("who"), "who", pa.array(["one"] * rows)), kind
    if kind == "type":
        return table.set_column(place, column, draw.choice(COLUMNS)(draw, rows)), f"{kind} of {column}"
    values = np.empty(rows, dtype=object)
    values[:] = [str(value) if value is not None else None for value in table["disease"].to_pylist()]
    some = np.random.default_rng(draw.getrandbits(32)).random(rows) < draw.choice((0.01, 0.5, 1.0))
    values[some] = {"values": "b", "new value": "new", "missing": None}.get(kind, "b")
    return table.set_column(place, "disease", pa.array(values.tolist())), kind


def spoil(book: Path, draw: Random) -> str:
    """Edit the file of a series, as JSON or as bytes."""
    text = book.read_bytes()
    if draw.random() < 0.3:
        book.write_bytes(damaged(text, draw))
        return "damaged bytes of the book"
    try:
        raw, about = edited(json.loads(text), draw)
    except ValueError:  # damaged before
        return "nothing changed"
    book.write_text(json.dumps(raw))
    return f"book: {about}"
