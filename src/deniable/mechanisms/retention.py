"""Retention replacement over any number of columns, each perturbed on its own (mathematics 6; OLAP 3, 5).

    P_r = p_r I + (1 - p_r) r_r 1^T,    P = P_1 (x) .. (x) P_k

Amplifications multiply over the columns, so epsilons add up; that holds however the columns are correlated.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np

from deniable.core.arrays import Counts
from deniable.core.breach import safe_threshold
from deniable.core.channel import Channel, largest_keep, uniform_weights, weights_of
from deniable.core.errors import OptionError, RequirementError, TableError, listing, option, worded
from deniable.core.exact import SCALE
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan, PlannedPart
from deniable.core.privacy import Privacy, amplification_limit
from deniable.core.replace import NumberRange, Replace
from deniable.core.swapping import swapping_threshold
from deniable.mechanisms.base import Mechanism, Need, Scanned
from deniable.mechanisms.requirement import check_histogram, refuse_sums
from deniable.mechanisms.retention_guarantee import Perturbed, guarantee, heaviest
from deniable.mechanisms.retention_spelling import replaces_in

MARGIN = 16  # rows; noise of epsilon 1/2 takes more from a count once in four thousand


@dataclass(frozen=True, init=False)
class Retention(Mechanism):
    """Columns, each with its own coin and replacement (mathematics 6; OLAP 3, 5).

        P_r = p_r I + (1 - p_r) r_r 1^T,    P = P_1 (x) .. (x) P_k

    Attributes:
        columns: column -> ``Replace``. Left out: the sensitive columns of ``publish``, each with its requirement.
        budget: one epsilon for a whole row, shared equally by its columns; these then have neither coin nor requirement
            of their own (``Replace()``, or ``Replace(low=, high=)`` for a range).

    >>> import pyarrow as pa
    >>> import deniable as dn
    >>> from deniable.mechanisms import Retention
    >>> staff = pa.table({"job": ["cook", "nurse"] * 100, "age": list(range(20, 70)) * 4})
    >>> how = Retention({"job": dn.Replace(coin=0.6), "age": dn.Replace(coin=0.5, low=17, high=90)})
    >>> dn.publish(staff, mechanism=how)
    <Release of 200 rows, job, age by retention>
    >>> shared = Retention({"job": dn.Replace(), "age": dn.Replace(low=17, high=90)}, budget=2)
    >>> round(dn.publish(staff, mechanism=shared).manifest.guarantee["epsilon"], 3)
    2.0
    """

    columns: Mapping[str, Replace]
    budget: float | None
    name: ClassVar[str] = "retention"
    reveals: ClassVar[str] = "nothing beyond the columns; swapped ones their exact histogram"

    def __init__(self, columns: Mapping[str, Replace] | None = None, *, budget: float | None = None) -> None:
        if columns is not None and not isinstance(columns, Mapping):
            raise OptionError(
                f"Retention needs a mapping from columns to how they are perturbed; got {type(columns).__name__}. "
                "Fix: Retention({'job': Replace(coin=0.5)})."
            )
        given = dict(columns or {})
        for column, replace in given.items():
            if not isinstance(replace, Replace):
                raise OptionError(
                    f"Retention: the column {column!r} is given {replace!r}. Fix: Replace(coin=0.5), with low= and "
                    "high= for a range of numbers or dates."
                )
        _check_budget(given, budget)
        object.__setattr__(self, "columns", MappingProxyType(given))
        object.__setattr__(self, "budget", None if budget is None else float(budget))

    def __reduce__(self) -> tuple[Callable[..., Retention], tuple[dict[str, Replace]]]:
        # A read-only view can be neither pickled nor copied.
        return partial(Retention, budget=self.budget), (dict(self.columns),)

    @classmethod
    def from_text(cls, text: str) -> Self:
        columns, budget = replaces_in(text)
        return cls(columns, budget=budget)

    def for_columns(self, names: tuple[str, ...], privacy: Privacy | None) -> Retention:
        """The mechanism for these columns: as declared, or each with the one requirement that was given."""
        if not self.columns:
            if privacy is None or not names:
                raise OptionError(
                    "mechanism 'retention' needs its columns and how each is perturbed. Fix: "
                    f"{option('sensitive', '')} and {option('privacy', '')}, or "
                    f"{worded('mechanism=Retention(..), as text', '--mechanism')} 'retention:age=0.5@17..90'."
                )
            return Retention({name: Replace(privacy=privacy) for name in names})
        if privacy is not None:
            alone = worded("Replace(privacy=..), no privacy=", "leave out --rho1 and --rho2")
            raise OptionError(f"Retention: each column has its own requirement. Fix: {alone}.")
        if names and set(names) != set(self.columns):
            raise OptionError(
                f"{option('sensitive')} names {listing(list(names))}, Retention perturbs "
                f"{listing(list(self.columns))}. Fix: leave {option('sensitive')} out."
            )
        return self

    def columns_of(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self.columns)

    @property
    def options(self) -> dict[str, Any]:
        """For the manifest."""
        columns = {name: replace.to_dict() for name, replace in self.columns.items()}
        return {"columns": columns} if self.budget is None else {"columns": columns, "budget": self.budget}

    def layout(self, columns: tuple[str, ...]) -> tuple[Need, ...]:
        """Every column a part of its own. Identity draws from the noisy histogram, so the manifest shows it anyway."""
        return tuple(
            Need(
                (column,),
                range=replace if replace.is_range else None,
                noisy="always" if replace.replacing == "identity" else "asked",
                any_prior=isinstance(replace.privacy, Privacy) and replace.privacy.adversary == "any-prior",
            )
            for column, replace in self.columns.items()
        )

    def plan_scanned(self, scans: Sequence[Scanned], privacy: Privacy | None, left_out: int = 0) -> Plan:
        """Every column with its own channel or range, and what they promise together."""
        parts, perturbed = zip(*(self._planned(scan) for scan in scans), strict=True)
        return Plan(self.name, parts, None, guarantee(perturbed), self.options)

    def _planned(self, scan: Scanned) -> tuple[PlannedPart, Perturbed]:
        (column,) = scan.columns
        if scan.grid is not None:
            grid = self.range_coin(column, scan.grid)
            part = PlannedPart(columns=scan.columns, grid=grid, requirement=self.columns[column].requirement)
            return part, dataclasses.replace(self.perturbed(column, grid), declared=True)
        plan = self.plan_column(column, scan.values, scan.public)
        relative = self.relative_prior(column, scan.values, scan.public)
        part = dataclasses.replace(plan.parts[0], columns=scan.columns)
        perturbed = self.perturbed(column, plan.cells[0].channel, scan.noise, relative, scan.values.rows)
        return part, dataclasses.replace(perturbed, declared=scan.declared)

    # -- one column ----------------------------------------------------------------------------------------------------

    def plan(self, histogram: Histogram, privacy: Privacy | None, *, public: Histogram | None = None) -> Plan:
        """The plan of a single column of categories."""
        only = self.for_columns(() if self.columns else ("value",), privacy)
        if len(only.columns) != 1:
            raise OptionError("A plan from one histogram is of one column; publish plans each of several by itself.")
        return only.plan_column(next(iter(only.columns)), histogram, public)

    def plan_column(self, column: str, histogram: Histogram, public: Histogram | None) -> Plan:
        """The plan of one column of categories.

        Args:
            column: its name.
            histogram: how many rows hold each of its values.
            public: its noisy histogram, which identity draws from.
        """
        replace = self.columns[column]
        try:
            check_histogram(histogram, replace.privacy if isinstance(replace.privacy, Privacy) else None)
        except (TableError, RequirementError) as wrong:
            raise type(wrong)(f"The column {column!r}: {wrong}") from None
        weights = self._weights(column, histogram, public)
        relative = self.relative_prior(column, histogram, public)
        keep = self._keep(column, int(weights.min()), relative, histogram.rows)
        channel = Channel(histogram.domain, np.full(histogram.m, keep, dtype=np.int64), weights)
        return Plan.of_channel(
            self.name,
            histogram,
            channel,
            guarantee([self.perturbed(column, channel, relative=relative, rows=histogram.rows)]),
            options=self.options,
            swapped=replace.replacing == "swapping",
            requirement=replace.requirement,
        )

    def _weights(self, column: str, histogram: Histogram, public: Histogram | None) -> Counts:
        if self.columns[column].replacing == "uniform":
            return uniform_weights(histogram.m)
        return weights_of(self._drawn(column, histogram, public).astype(np.float64))

    def _drawn(self, column: str, histogram: Histogram, public: Histogram | None) -> Counts:
        identity = self.columns[column].replacing == "identity"
        return covering(histogram, public) if identity and public is not None else histogram.counts

    def relative_prior(self, column: str, histogram: Histogram, public: Histogram | None) -> Fraction:
        """s = max over values of p_x / m_x, from counts that are published and never below the true ones.

        1 where replacements are uniform (s is then what the requirement says) and where values are swapped.

        Args:
            column, histogram, public: as for ``plan_column``.
        """
        if self.columns[column].replacing != "identity":
            return Fraction(1)
        drawn, weights = self._drawn(column, histogram, public), self._weights(column, histogram, public)
        return max(Fraction(int(most) * SCALE, histogram.rows * int(w)) for most, w in zip(drawn, weights, strict=True))

    def _keep(self, column: str, least: int, relative: Fraction = Fraction(1), rows: int | None = None) -> int:
        """The coin of a column out of 2^32; ``least`` is the weight of its rarest replacement."""
        if self.budget is None:
            return _threshold(column, self.columns[column], least, relative, rows)
        gamma = Fraction(math.exp(self.budget / len(self.columns)) * (1 - 1e-12))
        return largest_keep(gamma, least)

    def range_coin(self, column: str, grid: NumberRange) -> NumberRange:
        """The range ``grid`` of ``column`` with its coin."""
        keep = self._keep(column, SCALE // grid.points)
        return NumberRange(grid.kind, grid.low, grid.high, grid.step, keep, grid.missing)

    def perturbed(
        self,
        column: str,
        channel: Channel | NumberRange,
        noise: float = 0.0,
        relative: Fraction = Fraction(1),
        rows: int = 0,
    ) -> Perturbed:
        """What a column's channel promises.

        Args:
            column: its name.
            channel: its channel, or its range with a coin.
            noise: epsilon of its published histogram.
            relative: as ``relative_prior`` says.
            rows: that hold a value of the column, for swapping.
        """
        replace = self.columns[column]
        if isinstance(channel, NumberRange):
            gamma, keep, step = channel.exact_gamma, channel.keep, channel.rounds_to
        else:
            gamma, keep, step = channel.exact_gamma, int(channel.keep[0]), None
        swapped = rows if replace.replacing == "swapping" else None
        gamma = None if swapped is not None else gamma  # swapped rows are not independent
        own = (relative, replace.privacy, swapped)
        return Perturbed(column, replace.replacing, keep, gamma, noise, step, *own, mass=heaviest(channel))


def _check_budget(columns: Mapping[str, Replace], budget: float | None) -> None:
    """Refuse columns without a coin where no budget gives them one, and columns with one where it does."""
    if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int | float) or not 0 < budget <= 50):
        raise OptionError(f"Retention: budget = {budget!r} is not allowed: it is an epsilon above 0, 50 at most.")
    for column, replace in columns.items():
        has_own = replace.coin is not None or replace.privacy is not None
        if budget is None and not has_own:
            raise OptionError(
                f"Retention: the column {column!r} has neither a coin nor a requirement. Fix: Replace(coin=0.5), "
                "Replace(privacy=..), or one budget= for the row."
            )
        if budget is not None and (has_own or replace.replacing != "uniform"):
            raise OptionError(
                f"Retention: budget is shared by columns without a coin of their own, and {column!r} has one, or is "
                "not replaced uniformly. Fix: Replace(), or Replace(low=.., high=..) for a range."
            )


def covering(histogram: Histogram, public: Histogram) -> Counts:
    """The noisy histogram, raised by 16 rows (fewer in small tables), or by so many more that no true count is above.

    Replacements drawn from a count that noise made too small would not hide the value: with 1 instead of 5 rows it is
    five times likelier than its replacements, and Lemma 1, which needs p_S <= m_S, does not hold.
    """
    noisy = np.maximum(public.counts, 1)
    margin = min(MARGIN, max(histogram.rows // (16 * histogram.m), 1))
    while (noisy + margin < histogram.counts).any():
        margin *= 2
    return noisy + margin


def _threshold(
    column: str, replace: Replace, least: int, relative: Fraction = Fraction(1), rows: int | None = None
) -> int:
    """The coin out of 2^32: as given, or the largest that the column's requirement allows.

    Replacements like the column itself: Theorem 4 with s = the largest p_x / m_x, which at s = 1 is Lemma 1; swapped
    among ``rows``, with the coin that this comes to.
    """
    if replace.coin is not None:
        return math.floor(replace.coin * SCALE)
    if isinstance(replace.privacy, tuple):
        s, before, after = replace.privacy
        if replace.replacing == "swapping":
            return _swapping_threshold(before, after, rows)
        return safe_threshold(s if replace.replacing == "uniform" else relative, before, after)
    assert replace.privacy is not None
    refuse_sums(replace.privacy)
    if replace.is_range and replace.privacy.exempt:
        raise RequirementError(
            f"The column {column!r}: exempt names values, and a range has one coin for all. Fix: leave exempt out."
        )
    rho1, rho2 = replace.privacy.rho1, replace.privacy.rho2
    if rho1 is None or rho2 is None:
        raise RequirementError(
            f"The column {column!r} needs both rho1 and rho2. Fix: Replace(privacy=Privacy(rho1='1/13', rho2='1/6'))."
        )
    if replace.replacing != "uniform":
        if replace.privacy.adversary == "any-prior":
            raise RequirementError(
                f"The column {column!r}: replacing = {replace.replacing!r} protects against an attacker who knows the "
                f"frequencies only. Fix: replacing='uniform', or {option('adversary', 'frequency')}."
            )
        if replace.replacing == "swapping":
            return _swapping_threshold(rho1, rho2, rows)
        return safe_threshold(relative, rho1, rho2)
    return largest_keep(amplification_limit(rho1, rho2), least)


def _swapping_threshold(rho1: Fraction, rho2: Fraction, rows: int | None) -> int:
    assert rows is not None
    return swapping_threshold((rho2 - rho1) / (1 - rho1), rows)
