"""The informed attacker and plans: what someone who has learnt Pr[value | public columns] makes of each mechanism."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.audit.attacks.informed import Informed, InformedAttacker, from_population, in_classes
from deniable.audit.attacks.shown import ChannelRows, LineUpRows, Shown
from deniable.core.arrays import Floats, Ints
from deniable.core.plan import Plan, PlannedPart
from deniable.engines.batch.columns import Encoded
from deniable.planning.tables import CodedTable

SEED = 2010  # the same table gives the same figures
MOST_PEOPLE = 2**20  # that an attacker learns from, or attacks
MANY, CLASSES = 50, 20  # a public column of more values is learnt from in so many classes


def informed_attacker(table: CodedTable) -> InformedAttacker | None:
    """Someone who knows half of the people of a table, and attacks some others; None without public columns.

    Of a large table as many people are looked at as are needed, drawn by chance.
    """
    columns, codes = list(table.columns.values()), table.codes
    if table.rows > MOST_PEOPLE:
        some = spread_rows(table.rows, MOST_PEOPLE, SEED)
        columns, codes = [Encoded(one.values, one.codes[some]) for one in columns], codes[some]
    return attacker_of(columns, codes.astype(np.int64), table.m)


def spread_rows(rows: int, number: int, seed: int) -> Ints:
    """So many rows, one by chance from each of as many stretches of equal length."""
    edges = np.arange(number + 1) * rows // number
    return edges[:-1] + (np.random.default_rng(seed).random(number) * np.diff(edges)).astype(np.int64)


def attacker_of(columns: Sequence[Encoded], original: Ints, m: int) -> InformedAttacker | None:
    """The same from public columns and the code of each row's value."""
    known = [learnt_from(column) for column in columns]
    return from_population(known, original, m, np.random.default_rng(SEED))


def against(attacker: InformedAttacker, plan: Plan) -> Informed:
    """What the attacker makes of the rows that a plan publishes."""
    rho2 = None if plan.privacy is None or plan.privacy.rho2 is None else float(plan.privacy.rho2)
    return attacker.against(shown_by(plan), rho2, np.random.default_rng(SEED))


def shown_by(plan: Plan) -> Shown:
    """What a row of a plan's release shows."""
    return shown_by_part(plan.parts[0])


def shown_by_part(part: PlannedPart) -> Shown:
    """What a row of a release shows of one part, which has a list of values."""
    assert part.histogram is not None
    if part.lineups is not None:
        return LineUpRows(part.lineups)
    published = [cell for number, cell in enumerate(part.cells) if number != part.left_out]
    return ChannelRows.of(
        part.histogram.m,
        [cell.channel for cell in published],
        [part.positions(cell) for cell in published],
        [np.maximum(cell.rows.counts, 1e-9) for cell in published],
        cells_shown=part.cells_published,
    )


def learnt_from(column: Encoded) -> Ints:
    """A public column as attackers learn from it: numbers of many values in classes, rare values of others as one."""
    codes = column.codes.astype(np.int64)
    return codes if column.size <= MANY else in_classes(codes, _numbers(column, codes), MANY, CLASSES)


def classes_of(columns: Mapping[str, Encoded]) -> dict[str, Ints]:
    """Columns of many numbers or dates in classes of equal size: what single numbers are too rare to say."""
    classes = {}
    for name, column in columns.items():
        codes = column.codes.astype(np.int64)
        numbers = _numbers(column, codes) if column.size > CLASSES else None
        if numbers is not None and np.isfinite(numbers).any():
            classes[name] = in_classes(codes, np.where(np.isinf(numbers), np.nan, numbers), MANY, CLASSES)
    return classes


def _numbers(column: Encoded, codes: Ints) -> Floats | None:
    kind = column.values.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        column = Encoded(column.values.cast(pa.timestamp("s"), safe=False).cast(pa.int64()), column.codes)
        kind = pa.int64()
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return None
    known = pc.cast(column.values, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    numbers: Floats = np.append(known, np.nan)[codes]
    return numbers
