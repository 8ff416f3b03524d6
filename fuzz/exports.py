"""Releases written for SPSS, Stata and SAS: of every type of column, with labels, and of manifests that were edited."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

import deniable as dn
from fuzz.case import Case
from fuzz.files import damaged, described, strange_table
from fuzz.manifests import edited, place_release
from fuzz.releases import make

SUFFIXES = (".sav", ".zsav", ".dta", ".xpt", ".SAV", ".csv", "", ".sav.gz")


def cases(draw: Random, home: Path) -> Iterator[Case]:
    """Tables of strange columns, published and exported; their files published again, whole and damaged."""
    folders = make(home / "sound")
    sound = {name: json.loads((folder / "manifest.json").read_text()) for name, folder in folders.items()}
    out, table_file = home / "release", home / "table.parquet"
    while True:
        file = home / f"export{draw.choice(SUFFIXES)}"
        file.unlink(missing_ok=True)
        if draw.random() < 0.4:
            name = draw.choice(list(folders))
            manifest, about = edited(sound[name], draw) if draw.random() < 0.7 else (sound[name], "as it is")
            place_release(folders[name], out, json.dumps(manifest))
            about = f"{name}, {about}, to {file.name}"
            yield Case(about, (lambda f=file: _written(out, f),))
        else:
            table = _named(strange_table(draw), draw)
            pq.write_table(table, table_file)
            about = f"{described(table)}, to {file.name}"
            sensitive = draw.choice(table.column_names)
            yield Case(about, (lambda s=sensitive: _publish(table_file, s, out), lambda f=file: _written(out, f)))
        if file.exists() and file.suffix in SUFFIXES[:4]:
            text = file.read_bytes()
            file.write_bytes(text if draw.random() < 0.5 else damaged(text, draw))
            name = draw.choice(dn.open_release(out).table.column_names)
            yield Case(f"{about}, read again", (lambda f=file, n=name: _publish(f, n, home / "back"),))


def _publish(file: Path, sensitive: str, out: Path) -> None:
    shutil.rmtree(out, ignore_errors=True)
    privacy = dn.Privacy(rho2="9/10")
    dn.publish(str(file), sensitive=sensitive, privacy=privacy, mechanism="uniform", out=out, overwrite=True)


def _written(folder: Path, file: Path) -> None:
    """Export, and look whether a file is there when and only when none was refused."""
    try:
        dn.open_release(folder).export(file)
    except dn.DeniableError:
        assert not file.exists(), f"{file.name} was refused, and written"
        raise
    assert file.stat().st_size


def _named(table: pa.Table, draw: Random) -> pa.Table:
    """The table under names that other programs do not take."""
    if draw.random() < 0.6:
        return table
    strange = ("x" * 40, "x" * 39 + "y", "1st", "a b", "A", "a", "_", "ä" * 20, "\U0001f600", "byte", "ALL", "x-1")
    return table.rename_columns(draw.sample(strange, table.num_columns))
