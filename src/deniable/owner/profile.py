"""The questions that an owner cares about, made into a profile that planning can optimise for."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from deniable.core.bins import BinsLike, require_fixed
from deniable.core.errors import OptionError
from deniable.core.profile import QuestionProfile
from deniable.engines import engine_named
from deniable.engines.base import Dataset
from deniable.mechanisms import Designed, Mechanism
from deniable.planning.pools import QuestionPool, pools_named
from deniable.planning.tables import CodedTable
from deniable.publishing.recoding import RecodeLike, Recoding, Rows
from deniable.publishing.request import public_columns

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
