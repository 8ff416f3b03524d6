"""Retention replacement over any number of columns, each perturbed on its own (SPEC 6; OLAP 3, 5).

    P_r = p_r I + (1 - p_r) r_r 1^T,    P = P_1 (x) .. (x) P_k

Amplifications multiply over the columns, so epsilons add up; that holds however the columns are correlated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from deniable.core.breach import identity_limit, relative_prior_limit, safe_threshold
from deniable.core.channel import SCALE, Channel, uniform_weights, weights_of
from deniable.core.errors import OptionError, RequirementError, TableError, listing
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Histogram
from deniable.core.plan import Cell, Plan
from deniable.core.privacy import Privacy, amplification_limit
from deniable.core.probability import percent
from deniable.core.replace import NumberRange, Replace
from deniable.mechanisms.requirement import EVERY_RELEASE, check_histogram

USUAL_BREACH = (Fraction(1, 10), Fraction(95, 100))  # OLAP's example of rho1 and rho2


@dataclass(frozen=True)
class Perturbed:
    """One column as it was perturbed: what the guarantee is computed from.

    Attributes:
        gamma: its amplification; None when unbounded.
        noise: the epsilon that its noisy histogram costs; 0 where none is published.
        rounded: the step of the grid that its numbers were rounded to; None where values are as they were.
    """

    column: str
    replacing: str
    keep: int
    gamma: Fraction | None
    noise: float = 0.0
    rounded: float | None = None

    @property
    def coin(self) -> Fraction:
        return Fraction(self.keep, SCALE)

    @property
    def epsilon(self) -> float:
        return math.inf if self.gamma is None else math.log(self.gamma) + self.noise


@dataclass(frozen=True, init=False)
class Retention:
    """Columns, each with its own coin and replacement.

    >>> r = Retention({"job": Replace(coin=0.6)})
    >>> plan = r.plan(Histogram.of({"a": 5, "b": 3}), None)
    >>> plan.cells[0].channel.diagonal.round(3).tolist()
    [0.8, 0.8]
    """

    columns: Mapping[str, Replace]
    name: ClassVar[str] = "retention"

    def __init__(self, columns: Mapping[str, Replace] | None = None) -> None:
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
        object.__setattr__(self, "columns", MappingProxyType(given))

    def for_columns(self, names: Sequence[str], privacy: Privacy | None) -> Retention:
        """The mechanism for these columns: as declared, or each with the one requirement that was given."""
        if not self.columns:
            if privacy is None or not names:
                raise OptionError(
                    "mechanism 'retention' needs its columns and how each is perturbed. Fix: sensitive= and privacy=, "
                    "or mechanism=Retention({'age': Replace(coin=0.5, low=17, high=90)}), as text "
                    "'retention:age=0.5@17..90'."
                )
            return Retention({name: Replace(privacy=privacy) for name in names})
        if privacy is not None:
            raise OptionError("Retention: each column has its own requirement. Fix: Replace(privacy=..), no privacy=.")
        if names and set(names) != set(self.columns):
            raise OptionError(
                f"sensitive names {listing(list(names))}, Retention perturbs {listing(list(self.columns))}. "
                "Fix: leave sensitive out."
            )
        return self

    @property
    def options(self) -> dict[str, Any]:
        """For the manifest."""
        return {"columns": {name: replace.to_dict() for name, replace in self.columns.items()}}

    # -- one column ----------------------------------------------------------------------------------------------------

    def plan(self, histogram: Histogram, privacy: Privacy | None) -> Plan:
        """The plan of a single column of categories."""
        only = self.for_columns([] if self.columns else ["value"], privacy)
        if len(only.columns) != 1:
            raise OptionError("A plan from one histogram is of one column; publish plans each of several by itself.")
        return only.plan_column(next(iter(only.columns)), histogram, None)

    def plan_column(self, column: str, histogram: Histogram, public: Histogram | None) -> Plan:
        """The plan of one column of categories. ``public`` is its noisy histogram, which identity draws from."""
        replace = self.columns[column]
        try:
            check_histogram(histogram)
        except TableError as wrong:
            raise TableError(f"The column {column!r}: {wrong}") from None
        if replace.replacing == "uniform":
            weights = uniform_weights(histogram.m)
        else:
            shown = public if replace.replacing == "identity" and public is not None else histogram
            weights = weights_of(shown.counts.astype(np.float64))
        keep = _threshold(column, replace, int(weights.min()))
        channel = Channel(histogram.domain, np.full(histogram.m, keep, dtype=np.int64), weights)
        return Plan(
            mechanism=self.name,
            histogram=histogram,
            cells=(Cell(histogram, channel),),
            cells_published=False,
            privacy=None,
            guarantee=guarantee([self.perturbed(column, channel)]),
            options=self.options,
        )

    def range_coin(self, column: str, grid: NumberRange) -> NumberRange:
        """The range with its coin."""
        keep = _threshold(column, self.columns[column], SCALE // grid.points)
        return NumberRange(grid.kind, grid.low, grid.high, grid.step, keep, grid.missing)

    def perturbed(self, column: str, channel: Channel | NumberRange, noise: float = 0.0) -> Perturbed:
        """What a column's channel promises."""
        replacing = self.columns[column].replacing
        if isinstance(channel, NumberRange):
            step = channel.step if channel.kind == "number" or channel.step != 1 else None
            return Perturbed(column, replacing, channel.keep, channel.exact_gamma, noise, step)
        gamma = None if replacing == "swapping" else channel.exact_gamma  # swapped rows are not independent
        return Perturbed(column, replacing, int(channel.keep[0]), gamma, noise)


def _threshold(column: str, replace: Replace, least: int) -> int:
    """The coin out of 2^32: as given, or the largest that the column's requirement allows."""
    if replace.coin is not None:
        return math.floor(replace.coin * SCALE)
    if isinstance(replace.privacy, tuple):
        return safe_threshold(*replace.privacy, identity=replace.replacing != "uniform")
    assert replace.privacy is not None
    rho1, rho2 = replace.privacy.rho1, replace.privacy.rho2
    if rho1 is None or rho2 is None:
        raise RequirementError(
            f"The column {column!r} needs both rho1 and rho2. Fix: Replace(privacy=Privacy(rho1='1/13', rho2='1/6'))."
        )
    if replace.replacing != "uniform":
        if replace.privacy.adversary == "any-prior":
            raise RequirementError(
                f"The column {column!r}: replacing = {replace.replacing!r} protects against an attacker who knows the "
                "frequencies only. Fix: replacing='uniform', or adversary='frequency'."
            )
        return safe_threshold(1, rho1, rho2, identity=True)
    gamma = amplification_limit(rho1, rho2)
    return int((gamma - 1) * SCALE * least / (SCALE + (gamma - 1) * least))


def guarantee(columns: Sequence[Perturbed]) -> Guarantee:
    """What columns that are perturbed independently promise together."""
    gammas = [column.gamma for column in columns]
    total = math.prod((gamma for gamma in gammas if gamma is not None), start=Fraction(1))
    bounded = all(gamma is not None for gamma in gammas)
    kept = ", ".join(f"{column.column!r} {percent(column.coin)}" for column in columns)
    epsilon = sum(column.epsilon for column in columns)
    if bounded:
        also = [
            f"Each row satisfies epsilon-local differential privacy with epsilon = {epsilon:.4g}"
            + (
                ": " + " + ".join(f"{column.epsilon:.4g} ({column.column})" for column in columns)
                if columns[1:]
                else ""
            )
            + (", noisy histograms included" if any(column.noise for column in columns) else "")
            + ", whatever an attacker believed and however the columns are correlated."
        ]
    else:
        open_ended = [column.column for column in columns if column.gamma is None]
        also = [f"No local differential privacy is claimed: the amplification of {listing(open_ended)} is unbounded."]
    also += [_breach_sentence(column) for column in columns]
    return Guarantee(
        basis="other",
        adversary="any-prior" if bounded and all(c.replacing == "uniform" for c in columns) else "frequency",
        rho1=None,
        rho2=None,
        worst=Fraction(1),  # without a rho1, a belief that was certain beforehand stays so
        gamma=total if bounded else None,
        cell_gammas=tuple(gammas),
        also=tuple(also),
        not_protected=(*EVERY_RELEASE, *_limits(columns)),
        sentence=f"Every value is kept with the probability of its column ({kept}) and otherwise replaced at random, "
        "each column and row on its own.",
    )


def _breach_sentence(column: Perturbed) -> str:
    rho1, rho2 = USUAL_BREACH
    if column.coin == 1:
        return f"{column.column!r} is published as it is (p = 1)."
    if column.replacing == "uniform":
        s = relative_prior_limit(column.coin, rho1, rho2)
        return (
            f"{column.column!r}: a set of values believed at up to {percent(rho1)}, and less than {float(s):.4g} times "
            f"as likely as its share of the replacements, is believed below {percent(rho2)} afterwards (OLAP Thm 4)."
        )
    least = identity_limit(column.coin, rho2)
    if least <= 0:
        return f"{column.column!r}: p = {float(column.coin):.4g} leaves no belief below {percent(rho2)}."
    return (
        f"{column.column!r}: an attacker who knows the frequencies, and believed a set of values below "
        f"{percent(least)}, believes it below {percent(rho2)} afterwards (OLAP Lemma 1)."
    )


def _limits(columns: Sequence[Perturbed]) -> list[str]:
    found = []
    if len(columns) > 1:
        found.append(
            "The sentences about one column are about that column alone. Columns that are correlated speak for each "
            "other: whoever combines a row's perturbed columns can become surer, up to the sum of their epsilons."
        )
    for column in columns:
        if column.replacing == "identity":
            found.append(
                f"{column.column!r} is replaced by values of its own noisy distribution: someone who knows more than "
                "the frequencies, such as who holds the rarest value, can recognise it."
            )
        if column.replacing == "swapping":
            found.append(
                f"{column.column!r} is swapped among the rows: its exact histogram is published, and the rows are not "
                "independent of each other."
            )
        if column.rounded is not None:
            found.append(
                f"{column.column!r} is published on a grid of steps of {column.rounded:g}, originals included."
            )
    return found
