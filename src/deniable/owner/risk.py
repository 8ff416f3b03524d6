"""What a table's columns expose before it is published, before and after they are made coarser: for its owner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.audit.attacks.shown import NothingShown
from deniable.audit.audit import FOR_OWNER
from deniable.audit.dependence import SEED, Dependence, dependence
from deniable.audit.exposure import Exposure
from deniable.audit.functional import functions_of
from deniable.core.arrays import Bools, Codes
from deniable.core.errors import ColumnError, OptionError, TableError, no_column, option, shortened
from deniable.core.probability import percent
from deniable.engines import Engine, engine_named
from deniable.engines.base import Dataset, Progress, no_progress
from deniable.engines.batch.columns import Encoded, coded_columns
from deniable.engines.batch.values import is_askable
from deniable.owner.suppression import suppressed_to_k
from deniable.planning.informed import classes_of
from deniable.publishing.recoding import RecodeLike, Recoding, Rows
from deniable.publishing.request import as_names

LEARNT_FROM = 100_000  # rows, at the most


@dataclass(frozen=True)
class Suppression:
    """Values to blank out so that every combination has k rows.

    Attributes:
        k: how many rows a combination has then, at least.
        cells: column -> how many of its values.
        masks: column -> which of its rows.
    """

    k: int
    cells: Mapping[str, int]
    masks: Mapping[str, Bools]


@dataclass(frozen=True, repr=False)
class Risk:
    """What some columns expose; prints as a short report.

    Attributes:
        columns: that an attacker may know.
        before: as the table has them.
        after: recoded, and with values blanked out; None where neither was asked for.
        suppression: what is blanked out; None where it was not asked for.
        tells: what the columns say about the sensitive one, before and after; None where they say nothing, or nothing
            is sensitive.
    """

    columns: tuple[str, ...]
    before: Exposure
    after: Exposure | None
    suppression: Suppression | None
    tells: tuple[Dependence | None, Dependence | None]
    _dataset: Dataset

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        blanked = self.suppression
        return {
            "columns": list(self.columns),
            "before": self.before.to_dict(),
            "after": None if self.after is None else self.after.to_dict(),
            "suppression": None if blanked is None else {"k": blanked.k, "cells": dict(blanked.cells)},
            "tells": [None if one is None else one.to_dict() for one in self.tells],
        }

    def table(self) -> pa.Table:
        """The whole table in memory, recoded and with values blanked out as asked for: to be published from."""
        dataset, names = self._dataset, list(self._dataset.names)
        whole = pa.Table.from_batches(dataset.batches(names), schema=dataset.schema)
        for name, mask in ({} if self.suppression is None else self.suppression.masks).items():
            column = whole[name].combine_chunks()
            blank = pc.if_else(pa.array(mask), pa.scalar(None, column.type), column)
            whole = whole.set_column(names.index(name), whole.schema.field(name), blank)
        return whole

    def __str__(self) -> str:
        names = f"{', '.join(self.columns)} expose{'s'[: len(self.columns) == 1]}"
        lines = [f"What {names}. {FOR_OWNER}", *(f"  {line}" for line in self.before.lines())]
        lines += [f"  {line}" for line in _about_columns(self.tells[0])]
        if self.suppression is not None:
            cells = ", ".join(f"{name} {count:,}" for name, count in self.suppression.cells.items())
            total = sum(self.suppression.cells.values()) / max(self.before.rows * len(self.columns), 1)
            lines.append(
                f"Blanking out {percent(total)} of the values gives every combination {self.suppression.k} rows: "
                f"{cells}."
            )
        if self.after is not None:
            lines += ["Afterwards:", *(f"  {line}" for line in (*self.after.lines(), *_about_columns(self.tells[1])))]
        return "\n".join(lines)

    def __repr__(self) -> str:
        after = "" if self.after is None else f", {self.after.k:,} afterwards"
        return f"<Risk of {', '.join(self.columns)}: k = {self.before.k:,}{after}>"


def risk(
    table: Any,
    columns: str | Sequence[str],
    *,
    sensitive: str | None = None,
    recode: RecodeLike | None = None,
    rare: Rows | None = None,
    suppress: Rows | None = None,
    suppress_to_k: int | None = None,
    progress: Progress = no_progress,
    engine: str | Engine = "local",
) -> Risk:
    """How many rows share a combination of columns that an attacker may know: k-anonymity, uniqueness, l-diversity.

    Args:
        table: as for ``publish``. Of each of the columns four bytes a row are held in memory.
        columns: what an attacker may know of a person.
        sensitive: the column that will be perturbed, for l-diversity and for what the others say about it.
        recode, rare, suppress: as for ``publish``; the result then also says what is exposed afterwards.
        suppress_to_k: blank out values so that every combination has so many rows; ``Risk.table`` gives the result.
        progress: called with (rows done, rows in all, what).
        engine: what reads the table: a name, or an object.

    >>> import pyarrow as pa
    >>> import deniable as dn
    >>> people = pa.table({"age": [31, 34, 38, 62, 65, 90], "sex": ["F", "F", "F", "M", "M", "M"]})
    >>> dn.risk(people, ["age", "sex"], recode={"age": [dn.top(60), dn.bands(30)]})
    <Risk of age, sex: k = 1, 3 afterwards>
    """
    dataset = engine_named(engine).open(table)
    names = as_names(columns)
    _require(names, sensitive, dataset.schema)
    own = () if sensitive is None else (sensitive,)
    before = coded_columns(dataset, [*names, *own], progress)
    if not len(before[names[0]].codes):
        raise TableError(
            "The table has no rows: there is nobody who could stand out. Fix: a file with rows below its header."
        )
    recoding = Recoding.of(recode, rare, suppress)
    if sensitive is None:  # a file may speak of it, for publishing
        recoding = replace(recoding, suppress=None)
    public = [name for name in dataset.names if name not in own]
    coarse = dataset.recoded(recoding.steps(dataset.schema, public, own)) if recoding else dataset
    after = coded_columns(coarse, [*names, *own], progress) if recoding else before
    blanked = None if suppress_to_k is None else _suppression({name: after[name] for name in names}, suppress_to_k)
    return Risk(
        columns=names,
        before=_exposure(before, names, sensitive),
        after=_exposure(after, names, sensitive, blanked) if recoding or blanked else None,
        suppression=blanked,
        tells=(_tells(before, names, sensitive), _tells(after, names, sensitive, blanked)),
        _dataset=coarse,
    )


def _require(names: Sequence[str], sensitive: str | None, schema: pa.Schema) -> None:
    known = schema.names
    if not names:
        raise ColumnError(f"{option('columns')} names no column. Fix: those that an attacker may know of a person.")
    for role, name in (
        *(("columns", name) for name in names),
        *([] if sensitive is None else [("sensitive", sensitive)]),
    ):
        if name not in known:
            raise ColumnError(no_column(role, name, known))
        if not is_askable(kind := schema.field(name).type):
            raise ColumnError(
                f"The column {name!r} has the type {kind}, whose values cannot be compared. Fix: leave the column out, "
                "or convert it to strings first."
            )
    if sensitive in names or len(set(names)) != len(names):
        raise ColumnError("A column is named twice. Fix: columns that are known, and another one that is sensitive.")


def _codes(columns: Mapping[str, Encoded], names: Sequence[str], blanked: Suppression | None) -> dict[str, Codes]:
    codes = {name: columns[name].codes for name in names}
    if blanked is None:
        return codes
    return {name: np.where(blanked.masks[name], len(columns[name].values), codes[name]) for name in names}


def _exposure(
    columns: Mapping[str, Encoded], names: Sequence[str], sensitive: str | None, blanked: Suppression | None = None
) -> Exposure:
    own = None if sensitive is None else columns[sensitive].codes
    return Exposure.of(_codes(columns, names, blanked), own)


def _tells(
    columns: Mapping[str, Encoded], names: Sequence[str], sensitive: str | None, blanked: Suppression | None = None
) -> Dependence | None:
    """What the columns say about the sensitive one of others' rows, without any release."""
    if sensitive is None:
        return None
    original, size = columns[sensitive].codes.astype(np.int64), columns[sensitive].size
    codes, of = _codes(columns, names, blanked), len(original)
    exact = functions_of(codes, original)
    if of > LEARNT_FROM:
        some = np.sort(np.random.default_rng(SEED).choice(of, LEARNT_FROM, replace=False))
        codes, original = {name: column[some] for name, column in codes.items()}, original[some]
    classes = classes_of({name: Encoded(columns[name].values, codes[name]) for name in names})
    return dependence(
        sensitive, codes, original, size, NothingShown(size), None, functions=exact, classes=classes, of=of
    )


def _about_columns(of_columns: Dependence | None) -> list[str]:
    if of_columns is None:
        return []
    blind = percent(of_columns.frequencies.before.right)
    lines = [f"What they say about {of_columns.sensitive} (right by the frequencies: {blind} of other people):"]
    for one in of_columns.columns:
        before, why = one.informed.before, f"; {one.function}" if one.function else ""
        lines.append(
            f"  {one.column}: right {percent(before.right)}, surer than 90 % of {percent(before.above_nearly)}{why}"
        )
    return lines


def _suppression(columns: Mapping[str, Encoded], k: int) -> Suppression:
    if isinstance(k, bool) or not isinstance(k, int):
        raise OptionError(f"suppress_to_k = {shortened(k)} is no whole number of rows. Fix: suppress_to_k=5.")
    masks = suppressed_to_k({name: (one.codes, len(one.values)) for name, one in columns.items()}, k)
    return Suppression(k, {name: int(mask.sum()) for name, mask in masks.items()}, masks)
