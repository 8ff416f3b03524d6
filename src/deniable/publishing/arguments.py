"""What an owner asked for, checked before anything is read: columns and their roles, options, the key."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deniable.core.errors import ColumnError, OptionError, TableError, did_you_mean, no_column, option
from deniable.engines.base import CELL, Dataset, row_labels
from deniable.engines.batch.values import is_askable
from deniable.engines.randomness import Secret
from deniable.release.signing_key import Signer, signer_of

MISSING = ("value", "exempt", "refuse")


def files_of(table: Any) -> list[str]:
    """The files that a table is read from; none where it is in memory."""
    paths = table if isinstance(table, list | tuple) else [table]
    named = [os.fspath(path) for path in paths if isinstance(path, str | os.PathLike)]
    files = [path if os.path.exists(path) else re.sub(r"(?i)(\.xls[xm])#.*", r"\1", path) for path in named]
    return [file for path in files for file in (glob.glob(path, recursive=True) or [path])]


def require_once(table: Any) -> None:
    """Refuse a file that is named twice: everybody would be published twice, which is two looks at each of them."""
    several = table if isinstance(table, list | tuple) else [table]
    files = files_of([path for path in several if not (isinstance(path, str) and "#" in path)])  # book.xlsx#sheet
    places = [os.path.realpath(file) for file in files]
    for file, place in zip(files, places, strict=True):
        if places.count(place) > 1:
            raise TableError(f"The file {file!r} is named {places.count(place)} times. Fix: name it once.")


def as_names(names: str | Sequence[str]) -> tuple[str, ...]:
    """One name or several, as several."""
    return (names,) if isinstance(names, str) else tuple(names)


def one_name(row_id: str | None, person: str | None) -> str | None:
    """The column that decides draws: it names rows, or people."""
    if row_id is not None and person is not None:
        raise OptionError(
            f"{option('row_id', '')} and {option('person', '')} exclude each other: the one names a row, the other "
            f"whoever it is about. Fix: {option('person', '')} where people have several rows, otherwise "
            f"{option('row_id', '')}."
        )
    return row_id if person is None else person


def public_columns(
    source: Dataset,
    sensitive: tuple[str, ...],
    drop: tuple[str, ...] = (),
    row_id: str | None = None,
    person: str | None = None,
    *,
    named_by: str = "sensitive",
) -> tuple[str, ...]:
    """The columns that stay as they are; every problem with the roles of columns is said at once.

    ``named_by`` is the option that names the sensitive ones: a mechanism may, too.
    """
    problems = []
    if not sensitive:
        problems.append(f"{option('sensitive')} names no column: say which column must stay deniable.")
    roles = {named_by: sensitive, "drop": drop}
    roles |= {role: (name,) for role, name in (("row_id", row_id), ("person", person)) if name is not None}
    problems += [
        no_column(role, name, source.names, _joined(role, name, source.names))
        for role, names in roles.items()
        for name in names
        if name not in source.names
    ]
    for name in dict.fromkeys(sensitive):
        named = [option(role, "") for role, names in roles.items() for other in names if other == name]
        if len(named) > 1:
            problems.append(
                f"The column {name!r} is named by {' and by '.join(named)}: a column has one role. Fix: name it once."
            )
    left_out = {*row_labels(source.names, sensitive), *(name for names in roles.values() for name in names)}
    public = tuple(name for name in source.names if name not in left_out)
    if CELL in (*public, *sensitive):
        problems.append(
            f"The column name {CELL!r} is reserved: a release uses it for the cell a row fell into. "
            f"Fix: rename the column, or drop it."
        )
    for name in public:
        kind = source.schema.field(name).type
        if not is_askable(kind):
            problems.append(
                f"The column {name!r} has the type {kind}, by which a release could not be asked. Fix: drop it, or "
                "convert it to strings or numbers."
            )
    if problems:
        raise ColumnError("\n".join(problems))
    return public


def _joined(role: str, name: str, names: Sequence[str]) -> str:
    """The hint where a column that is not there is several that are, joined by commas."""
    joined = [part.strip() for part in name.split(",")]
    several = len(joined) > 1 and all(part in names for part in joined)
    return f" Fix: name columns one by one, {option(role, joined)}." if several else ""


def check_options(missing: str, form: str, name: str) -> None:
    """Refuse options of unknown values."""
    check_choice("missing", missing, MISSING)
    check_choice("format", form, ("parquet", "csv"))
    if not name:
        raise OptionError("name = '' is not allowed: give the release a name, or leave it out.")


def check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Refuse what is not among the choices."""
    if value not in allowed:
        raise OptionError(
            f"{name} = {value!r} is not known: choose one of {', '.join(allowed)}.{did_you_mean(value, allowed)}"
        )


def secret_of(key: bytes | None, key_file: str | os.PathLike[str] | None, seed: int | None) -> Secret:
    """Where the draws come from: one of the three that were given, or a fresh key."""
    if sum(given is not None for given in (key, key_file, seed)) > 1:
        raise OptionError(
            f"key, {option('key_file')} and seed exclude each other: give one of them, or none for a fresh key."
        )
    if key is not None:
        return Secret.from_key(key)
    if key_file is not None:
        return Secret.read(Path(key_file))
    if seed is not None:
        return Secret.from_seed(seed)
    return Secret.generate()


def signer_for(sign: Any | None, out: str | os.PathLike[str] | None) -> Signer | None:
    """Who signs the folder; refused without one, so that no private key waits in memory for a later ``save``."""
    if sign is None:
        return None
    if out is None:
        raise OptionError("sign signs the files of a release, and out names no folder. Fix: out=, or save(.., sign=).")
    return signer_of(sign)
