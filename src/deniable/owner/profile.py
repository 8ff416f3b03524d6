"""The questions that an owner cares about, made into a profile that planning can optimise for."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from deniable.core.bins import BinsLike, require_fixed
from deniable.core.errors import OptionError
from deniable.core.profile import QuestionProfile
from deniable.engines.local.binning import BinnedSource
from deniable.engines.local.sources import open_source
from deniable.evaluation.pools import QuestionPool, pools_named
from deniable.evaluation.tables import CodedTable

BATCH_ROWS = 2**17


def question_profile(
    table: Any,
    *,
    sensitive: str,
    questions: str | os.PathLike[str] = "sdr",
    drop: Sequence[str] = (),
    bins: Mapping[str, BinsLike] | None = None,
    missing: str = "value",
    seed: int = 1,
) -> QuestionProfile:
    """Questions about a table as counts, for ``Designed(profile=...)``. It is for the table's owner.

    Args:
        table: as for ``publish``; it is read into memory.
        sensitive: the column that will be perturbed.
        questions: a file with one ``SELECT COUNT(*) FROM release WHERE ..`` in each line, or ``"sdr"``: 200 random
            conditions, each with every value.
        drop: columns that will not be published, and cannot be asked about.
        bins, missing: as for ``publish``; of rows that are exempt no question has to be answered.
        seed: of random questions.
    """
    require_fixed(bins or {}, "a profile")
    return one_pool(asked_table(table, sensitive, drop=drop, bins=bins, missing=missing), questions, seed).profile


def asked_table(
    table: Any,
    sensitive: str,
    *,
    drop: Sequence[str] = (),
    bins: Mapping[str, BinsLike] | None = None,
    missing: str = "value",
) -> CodedTable:
    """The rows that will be perturbed, as codes: all in memory, and without those that are exempt."""
    whole = read_whole(table, bins)
    if missing == "exempt" and sensitive in whole.column_names:
        whole = whole.filter(whole[sensitive].is_valid())
    return CodedTable.of(whole, sensitive, drop=tuple(drop))


def one_pool(table: CodedTable, questions: str | os.PathLike[str], seed: int = 1) -> QuestionPool:
    """A pool by its name or file, where only one will do."""
    made = pools_named(table, os.fspath(questions), seed)
    if len(made) > 1:
        raise OptionError(f"questions = {str(questions)!r} is {len(made)} pools; planning takes one: 'sdr' or a file.")
    if not (made[0].truth > 0).any():
        raise OptionError(
            f"questions = {str(questions)!r}: no row of the table satisfies any of them, so there is no relative error "
            "to predict. Fix: ask about rows that there are."
        )
    return made[0]


def read_whole(table: Any, bins: Mapping[str, BinsLike] | None = None) -> pa.Table:
    """All rows in memory; numbers that are published as intervals as their intervals."""
    given = open_source(str(table) if isinstance(table, Path) else table)
    source = BinnedSource(given, bins) if bins else given
    return pa.Table.from_batches(source.batches(list(source.names), BATCH_ROWS), schema=source.schema)
