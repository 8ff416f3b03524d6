"""What a table's columns expose before it is published, and the questions that its owner cares about."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.errors import ColumnError, OptionError, TableError, counted, no_column, option, shortened
from deniable.core.histogram import QuestionProfile
from deniable.core.transforms import BinsLike, require_fixed
from deniable.core.values import Bools, Codes, Ints, percent
from deniable.mechanisms import Designed, Mechanism
from deniable.owner.assessment import FOR_OWNER
from deniable.owner.public import SEED, Dependence, Exposure, combined, dependence, functions_of
from deniable.planning.attackers import NothingShown
from deniable.planning.informed import classes_of
from deniable.planning.pools import CodedTable, QuestionPool, pools_named
from deniable.publishing.recoding import RecodeLike, Recoding, Rows
from deniable.publishing.request import as_names, public_columns
from deniable.tables import Engine, engine_named
from deniable.tables.base import Dataset, Progress, no_progress
from deniable.tables.encoding import Encoded, coded_columns, is_askable

# -- Local suppression: blank out single values so that every combination of some columns has k rows or more -----------
# Rows in combinations that are too small lose one value at a time: first the column whose loss lets most of them join
# enough others, and only for those rows. Rows that nothing helps lose the column with the most different values among
# them, and are looked at again. Missing is a value like any other, so blanked rows are alike.


def suppressed_to_k(columns: Mapping[str, tuple[Codes, int]], k: int) -> dict[str, Bools]:
    """Which values to blank out, for each column.

    Args:
        columns: for each column its codes, and the code that stands for missing.
        k: how many rows a combination must have.
    """
    names = list(columns)
    codes = [columns[name][0].astype(np.int64) for name in names]
    blanks = [columns[name][1] for name in names]
    rows = len(codes[0]) if codes else 0
    if k < 2 or rows < k:
        raise OptionError(
            f"{counted(rows, 'row')} cannot be made alike in groups of {k:,}. Fix: k from 2 to the number of rows."
        )
    while (risky := _risky(codes, k)).any():
        if not _one_value(codes, blanks, risky, k):
            _everyone(codes, blanks, risky, k)
    original = [columns[name][0] for name in names]
    return {name: now != before for name, now, before in zip(names, codes, original, strict=True)}


def _risky(codes: Sequence[Ints], k: int) -> Bools:
    group = combined(codes, len(codes[0]))
    small: Bools = (np.bincount(group) < k)[group]
    return small


def _one_value(codes: list[Ints], blanks: Sequence[int], risky: Bools, k: int) -> bool:
    """Blank the column that helps most rows, in those rows; False where none helps any."""
    helped, best = np.zeros(0, bool), -1
    for place, blank in enumerate(blanks):
        tried = [*codes[:place], np.where(risky, blank, codes[place]), *codes[place + 1 :]]
        now = risky & ~_risky(tried, k) & (codes[place] != blank)
        if now.sum() > helped.sum():
            helped, best = now, place
    if best < 0:
        return False
    codes[best] = np.where(helped, blanks[best], codes[best])
    return True


def _everyone(codes: list[Ints], blanks: Sequence[int], risky: Bools, k: int) -> None:
    """Blank the column with the most different values in all rows that are left; rows without any take others along."""
    different = [
        len(np.unique(one[risky])) if (one[risky] != blank).any() else 0
        for one, blank in zip(codes, blanks, strict=True)
    ]
    worst = int(np.argmax(different))
    if different[worst]:
        codes[worst] = np.where(risky, blanks[worst], codes[worst])
        return
    group = combined(codes, len(codes[0]))
    sizes = np.bincount(group)
    smallest = int(np.argmin(np.where(sizes < k, np.iinfo(np.int64).max, sizes)))
    for place, blank in enumerate(blanks):
        codes[place] = np.where(group == smallest, blank, codes[place])


# -- The questions that an owner cares about, made into a profile that planning can optimise for -----------------------


# The mechanisms that can be made for an owner's questions, by name.
MADE_FOR: Mapping[str, Callable[[QuestionProfile], Mechanism]] = {"designed": lambda profile: Designed(profile=profile)}


def question_profile(
    table: Any,
    *,
    sensitive: str,
    questions: str | os.PathLike[str] = "sdr",
    drop: Sequence[str] = (),
    bins: Mapping[str, BinsLike] | None = None,
    missing: str = "value",
    recode: RecodeLike | None = None,
    rare: Rows | None = None,
    suppress: Rows | None = None,
    seed: int = 1,
) -> QuestionProfile:
    """Questions about a table as counts, for ``Designed(profile=...)``. It is for the table's owner.

    Args:
        table: as for ``publish``; it is read into memory.
        sensitive: the column that will be perturbed.
        questions: a file with one ``SELECT COUNT(*) FROM release WHERE ..`` in each line, or ``"sdr"``: 200 random
            conditions, each with every value.
        drop: columns that will not be published, and cannot be asked about.
        bins, recode, rare, suppress, missing: as for ``publish``; of rows that are exempt no question has to be
            answered.
        seed: of random questions.

    >>> import pyarrow as pa
    >>> import deniable as dn
    >>> table = pa.table({"sex": ["F", "M"] * 500, "disease": ["flu", "flu", "cold", "hiv", "flu"] * 200})
    >>> profile = dn.question_profile(table, sensitive="disease")
    >>> profile
    QuestionProfile(600 questions)
    >>> designed = dn.mechanisms.Designed(profile=profile)
    >>> dn.publish(table, sensitive="disease", privacy=dn.Privacy(rho2="3/4"), mechanism=designed)
    <Release of 1,000 rows, disease by designed>
    """
    require_fixed(bins or {}, "a profile")
    recoding = Recoding.of(recode, rare, suppress)
    questioned = asked_table(table, sensitive, drop=drop, bins=bins, missing=missing, recoding=recoding)
    return one_pool(questioned, questions, seed).profile


def asked_table(
    table: Any,
    sensitive: str,
    *,
    drop: Sequence[str] = (),
    bins: Mapping[str, BinsLike] | None = None,
    missing: str = "value",
    recoding: Recoding | None = None,
) -> CodedTable:
    """The rows that will be perturbed, as codes: all in memory, and without those that are exempt."""
    dataset = as_read(table, sensitive, drop, bins, recoding)
    if missing != "exempt" or sensitive not in dataset.names:
        return CodedTable.read(dataset, sensitive, drop=tuple(drop))
    whole = pa.Table.from_batches(dataset.batches(list(dataset.names)), schema=dataset.schema)
    return CodedTable.of(whole.filter(whole[sensitive].is_valid()), sensitive, drop=tuple(drop))


def one_pool(table: CodedTable, questions: str | os.PathLike[str], seed: int = 1) -> QuestionPool:
    """A pool by its name or file, where only one will do."""
    pools = pools_named(table, os.fspath(questions), seed)
    if len(pools) > 1:
        raise OptionError(f"questions = {str(questions)!r} is {len(pools)} pools; planning takes one: 'sdr' or a file.")
    if not (pools[0].truth > 0).any():
        raise OptionError(
            f"questions = {str(questions)!r}: no row of the table satisfies any of them, so there is no relative error "
            "to predict. Fix: ask about rows that there are."
        )
    return pools[0]


def as_read(
    table: Any,
    sensitive: str,
    drop: Sequence[str] = (),
    bins: Mapping[str, BinsLike] | None = None,
    recoding: Recoding | None = None,
) -> Dataset:
    """A table as it will be published: recoded, and numbers as intervals where they have bins."""
    dataset = engine_named("local").open(table)
    if recoding:
        public = public_columns(dataset, (sensitive,), tuple(drop), None)
        dataset = dataset.recoded(recoding.steps(dataset.schema, public, [sensitive]))
    return dataset.binned(bins or {})


# -- What a table's columns expose before it is published, before and after they are made coarser: for its owner -------


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
