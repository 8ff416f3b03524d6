"""Tables that nobody wrote so: damaged bytes, strange types and strange texts, to be published and asked."""

from __future__ import annotations

import datetime
import decimal
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import deniable as dn
from fuzz.case import Case, Step
from fuzz.releases import people

Column = Callable[[Random, int], pa.Array]
NAMES = (
    "a",
    "cell",
    "rows",
    "sort key",
    "group a",
    "a.b",
    "x[0]",
    "",
    " ",
    "n",
    "n_low",
    "é",
    "\x1b[31m",
    "SELECT",
    "A",
)


def _picked(values: list[Any], kind: pa.DataType) -> Column:
    return lambda draw, rows: pa.array([draw.choice(values) for _ in range(rows)], kind)


COLUMNS: tuple[Column, ...] = (
    _picked(["a", "b", "c", None], pa.string()),
    _picked(["a", "", "=1+1", "\x1b[2J", "é\u202e", "x" * 5000], pa.large_string()),
    _picked(["a", "b", None], pa.string_view()),
    _picked([0, 1, 2**63, 2**64 - 1], pa.uint64()),
    _picked([-(2**63), 0, 2**63 - 1], pa.int64()),
    _picked([0.0, -0.0, 1.5, float("inf"), float("-inf"), float("nan"), 1e308, 5e-324, None], pa.float64()),
    _picked([0.5, 1.5], pa.float16()),
    _picked([True, False, None], pa.bool_()),
    _picked([datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None], pa.date32()),
    lambda draw, rows: pa.array([draw.choice([-(2**31), 0, 2**31 - 1]) for _ in range(rows)], pa.int32()).view(
        "date32[day]"
    ),
    lambda draw, rows: pa.array([draw.choice([-(2**62), 0, 2**62]) for _ in range(rows)], pa.int64()).view(
        "timestamp[us]"
    ),
    lambda draw, rows: pa.array([draw.choice([0, 1, 10**9]) for _ in range(rows)], pa.int64()).view("timestamp[ns]"),
    _picked([datetime.timedelta(1), datetime.timedelta(0, 3), None], pa.duration("us")),
    _picked([datetime.time(1), datetime.time(23, 59)], pa.time64("us")),
    _picked([decimal.Decimal("1.50"), decimal.Decimal("-9.99")], pa.decimal128(5, 2)),
    _picked([decimal.Decimal(10) ** 60], pa.decimal256(70, 2)),
    _picked([b"a", b"\xff\x00"], pa.binary()),
    _picked([b"ab", b"cd"], pa.binary(2)),
    _picked([["a"], [], None], pa.list_(pa.string())),
    _picked([{"x": 1}, {"x": None}], pa.struct([("x", pa.int64())])),
    _picked([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
    lambda draw, rows: pa.nulls(rows),
    lambda draw, rows: pa.array([draw.choice("ab") for _ in range(rows)]).dictionary_encode(),
    lambda draw, rows: pa.ExtensionArray.from_storage(
        pa.uuid(), pa.array([uuid.UUID(int=draw.getrandbits(128)).bytes for _ in range(rows)], pa.binary(16))
    ),
    lambda draw, rows: pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}'] * rows, pa.string())),
    lambda draw, rows: pa.ExtensionArray.from_storage(
        pa.bool8(), pa.array([draw.choice([0, 1, None]) for _ in range(rows)], pa.int8())
    ),
)


def parquet(draw: Random, home: Path) -> Iterator[Case]:
    """Tables of strange columns, and Parquet files with damaged bytes."""
    home.mkdir(parents=True, exist_ok=True)
    sound = home / "sound.parquet"
    pq.write_table(people(400), sound)
    text, path = sound.read_bytes(), home / "table.parquet"
    while True:
        if draw.random() < 0.4:
            path.write_bytes(damaged(text, draw))
            yield Case("damaged bytes", published(path, "disease", home, draw))
            continue
        table = strange_table(draw)
        pq.write_table(table, path)
        yield Case(described(table), published(path, draw.choice(table.column_names), home, draw))


def strange_table(draw: Random, sizes: tuple[int, ...] = (0, 1, 3, 60)) -> pa.Table:
    """Up to four columns of any type, as far as Arrow can write them: what it cannot, nobody can hand us."""
    while True:
        columns = {draw.choice(NAMES): draw.choice(COLUMNS) for _ in range(draw.randint(1, 4))}
        rows = draw.choice(sizes)
        try:
            table = pa.table({name: make(draw, rows) for name, make in columns.items()})
            pq.write_table(table, pa.BufferOutputStream())
        except (pa.ArrowException, OverflowError):
            continue
        return table


def described(table: pa.Table) -> str:
    """Enough of a table to make it again."""
    return f"{table.num_rows} rows of {', '.join(f'{field.name!r} {field.type}' for field in table.schema)}"


def csv(draw: Random, home: Path) -> Iterator[Case]:
    """CSV files with damaged bytes and strange fields."""
    home.mkdir(parents=True, exist_ok=True)
    path = home / "table.csv"
    fields = [
        "a",
        "b",
        "",
        '"',
        '""',
        '"a\nb"',
        "1",
        "1e400",
        "nan",
        "2024-01-01",
        "=1",
        "\x00",
        "\x1b[0m",
        "é",
        "x" * 3000,
    ]
    while True:
        width = draw.randint(1, 4)
        header = [draw.choice(NAMES) for _ in range(width)]
        lines = [",".join(draw.choice(fields) for _ in range(width)) for _ in range(draw.choice((0, 1, 5, 200)))]
        ending = draw.choice(("\n", "\r\n", "\r"))
        text = (ending.join([",".join(header), *lines]) + draw.choice(("", ending))).encode()
        if draw.random() < 0.3:
            text = damaged(text, draw)
        path.write_bytes(draw.choice((b"", b"", b"\xef\xbb\xbf", b"\xff\xfe")) + text)
        yield Case(f"{text[:80]!r} .. {len(text)} bytes", published(path, draw.choice(header), home, draw))


def damaged(text: bytes, draw: Random) -> bytes:
    """Bytes with some flipped, cut out, repeated or put in."""
    spoilt = bytearray(text)
    for _ in range(draw.choice((1, 1, 2, 8))):
        if not spoilt:
            break
        place = draw.randrange(len(spoilt))
        kind = draw.choice(("flip", "cut", "end", "repeat", "fill"))
        if kind == "flip":
            spoilt[place] ^= 1 << draw.randrange(8)
        elif kind == "cut":
            del spoilt[place : place + draw.randint(1, 64)]
        elif kind == "end":
            del spoilt[place:]
        elif kind == "repeat":
            spoilt[place:place] = spoilt[place : place + draw.randint(1, 64)]
        else:
            spoilt[place : place + 8] = draw.choice((b"\xff" * 8, b"\x00" * 8, b"\x7f" + b"\xff" * 7))
    return bytes(spoilt)


def published(path: Path, sensitive: str, home: Path, draw: Random) -> tuple[Step, ...]:
    """Publish a file, and ask what was published about every column."""
    mechanism = draw.choice(("uniform", "uniform", "small-domain", "fine-grain", "designed", "lineup", "redraw"))
    privacy = None if mechanism == "redraw" else dn.Privacy(rho2="9/10")
    form = draw.choice(("parquet", "parquet", "csv"))
    options = {"sensitive": sensitive, "mechanism": mechanism, "privacy": privacy, "format": form}
    return published_by(str(path), home / "release", options)


def published_by(
    table: Any, out: Path, options: dict[str, Any], mechanism: Callable[[], Any] | None = None
) -> tuple[Step, ...]:
    """Publish a table in some way, ask, verify and audit: what was there before is not asked instead."""

    def publish() -> None:
        shutil.rmtree(out, ignore_errors=True)
        made = {} if mechanism is None else {"mechanism": mechanism()}
        dn.publish(table, out=out, overwrite=True, **options, **made)

    return (publish, lambda: ask_everything(out), lambda: dn.verify(out), lambda: dn.audit(table, out))


def ask_everything(out: Path) -> None:
    """Ask a release about every column; a refusal of one question is no reason not to ask the next."""
    release = dn.open_release(out)
    for column in release.manifest.columns:
        name = column.name.replace('"', '""')
        refused_or_answered(lambda n=name: release.sql(f'SELECT "{n}", COUNT(*) AS n FROM release GROUP BY "{n}"'))
        refused_or_answered(lambda n=name: release.sql(f"SELECT COUNT(*) AS n FROM release WHERE \"{n}\" = 'a'"))
        refused_or_answered(lambda n=name: release.sql(f'SELECT AVG("{n}") AS n FROM release WHERE "{n}" IS NULL'))


def refused_or_answered(step: Step) -> None:
    """A refusal of one question is no reason not to ask the next."""
    try:
        step()
    except dn.DeniableError:
        return
