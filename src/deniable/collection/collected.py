"""Collected responses as a release: the same questions, intervals and checks as for a table that was published."""

from __future__ import annotations

import datetime
import json
import math
import secrets
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.collection.sheet import Sheet, SheetColumn
from deniable.core.errors import TableError
from deniable.core.guarantee import Guarantee
from deniable.core.manifest import Column, Manifest, Randomness, guarantee_dict, software, with_sentence
from deniable.core.privacy import worst_posterior
from deniable.core.probability import percent
from deniable.engines.batch.lineups import list_type
from deniable.engines.batch.values import arrow_type
from deniable.mechanisms.requirement import EVERY_RELEASE
from deniable.release.release import Release

MECHANISM = "collected"
BELIEFS = (1, 10)  # percent, that the guarantee is told for


def release_of(sheet: Sheet, rows: Sequence[str]) -> Release:
    """A release of responses as they are stored (answers as JSON, in the order of the columns), in random order."""
    if not sheet.private:
        raise TableError(
            "The survey asks nothing in private: there is nothing to reconstruct. Fix: a private question."
        )
    if not rows:
        raise TableError("There are no responses yet.")
    table = _table(sheet, rows)
    table = table.take(np.random.default_rng(secrets.randbits(128)).permutation(table.num_rows))
    columns = [*sheet.public, *sheet.private]
    manifest = Manifest(
        name=sheet.survey.name,
        software=software(),
        mechanism=MECHANISM,
        options={"columns": {column.name: {"question": column.question.name} for column in sheet.private}},
        rows=table.num_rows,
        columns=tuple(
            Column(column.name, str(_kind(column)), "public" if column.part is None else "sensitive")
            for column in columns
        ),
        parts=tuple(column.part for column in sheet.private if column.part is not None),
        privacy=None,
        guarantee=guarantee_dict(guarantee(sheet)),
        randomness=Randomness("operating system", None, True, "row number"),
    )
    return Release(with_sentence(manifest), table=table)


def _kind(column: SheetColumn) -> pa.DataType:
    own = arrow_type(column.type)
    return list_type(own) if column.part is not None and column.part.lineups is not None else own


def _table(sheet: Sheet, rows: Sequence[str]) -> pa.Table:
    by_column: Sequence[Sequence[Any]] = list(zip(*map(json.loads, rows), strict=True))
    arrays = {}
    for column, values in zip(sheet.columns, by_column, strict=True):
        if column.question.range is not None and column.question.range.kind == "date":
            values = [None if day is None else datetime.date.fromisoformat(day) for day in values]
        arrays[column.name] = pa.array(values, _kind(column))
    return pa.table({column.name: arrays[column.name] for column in (*sheet.public, *sheet.private)})


def guarantee(sheet: Sheet) -> Guarantee:
    """What a sheet promises to whoever fills it in, whatever anyone believed before."""
    private = sheet.private
    gamma = sheet.gamma
    epsilons = " + ".join(f"{math.log(column.gamma):.4g} ({column.name})" for column in private)
    return Guarantee(
        promises=tuple(column.part.promise for column in private if column.part is not None),
        adversary="any-prior",
        rho1=None,
        rho2=None,
        worst=Fraction(1),  # without a rho1, a belief that was certain beforehand stays so
        gamma=gamma,
        also=(
            "Every private answer was changed at random by the respondent's own device before it was sent: nobody ever "
            "held the originals.",
            f"Each respondent's sheet satisfies epsilon-local differential privacy with epsilon = {sheet.epsilon:.4g}"
            + (f": {epsilons}" if private[1:] else "")
            + ", whatever anyone believed and however the answers are correlated.",
            *(believed(column) for column in private),
        ),
        not_protected=(
            *EVERY_RELEASE,
            *(
                (
                    "Answers that are correlated speak for each other: whoever combines all answers of a sheet can "
                    "become surer, up to the sum of their epsilons.",
                )
                if private[1:]
                else ()
            ),
            *((f"Sent as they are: {', '.join(column.name for column in sheet.public)}.",) if sheet.public else ()),
        ),
    )


def believed(column: SheetColumn) -> str:
    """What one answer can teach, for people."""
    grown = ", ".join(
        f"{share} % to {percent(worst_posterior(Fraction(share, 100), column.gamma))}" for share in BELIEFS
    )
    return f"{column.name!r}: a belief about the answer can grow from {grown} at most, and fall no further."
