"""Releases of a table whose names and values try to break out of every format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn

COLUMN = 'dis<ease> & "more"'
VALUES = (
    "<script>alert(1)</script>",
    "</script><script>document.title='gone'</script>",
    "<cell>",
    "a|b`c`*d*",
    '"> <img src=x onerror=alert(1)>',
    "\u202eturned round",
    "two\nlines",
    None,
)


@dataclass(frozen=True)
class Made:
    """A release in a folder and the table it was made from."""

    folder: Path
    original: Path


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Made]:
    """Publish the table by any mechanism; each way once."""
    home = tmp_path_factory.mktemp("reports")
    original = home / "original.parquet"
    rows = 3000
    weights = [8, 7, 6, 5, 4, 3, 2, 1]
    column = [value for value, weight in zip(VALUES, weights, strict=True) for _ in range(weight)]
    table = pa.table(
        {
            "<b>sex</b>": ["F" if i % 2 else "M" for i in range(rows)],
            "age": [18 + (i * 7) % 70 for i in range(rows)],
            COLUMN: [column[(i * 11) % len(column)] for i in range(rows)],
        }
    )
    pq.write_table(table, original)
    made: dict[str, Made] = {}

    def publish(name: str = "uniform", **options: Any) -> Made:
        if name not in made:
            options = {"sensitive": COLUMN, "privacy": dn.Privacy("1/4", "1/2"), "mechanism": "uniform", **options}
            dn.publish(str(original), out=home / name, name="<i>mine</i>", key=bytes(range(32)), **options)
            made[name] = Made(home / name, original)
        return made[name]

    return publish
