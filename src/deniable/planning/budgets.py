"""Error and epsilon: what a count of some size costs against any attacker, by every mechanism that can promise it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.core.errors import DeniableError, OptionError, option
from deniable.core.histogram import Histogram
from deniable.core.part import COUNT_EPSILON
from deniable.core.privacy import Privacy, worst_posterior
from deniable.core.sentence import SHOWN_BELIEFS
from deniable.core.values import Probability, percent, probability
from deniable.mechanisms import Designed, FineGrain, Identity, Lineup, Mechanism, SmallDomain, Synthetic, Uniform
from deniable.planning.candidates import Chart, Point, Series, candidate, marginal_variance
from deniable.planning.outlook import COLUMNS
from deniable.planning.prediction import BySelectivity

SMALLEST, LARGEST = 0.01, 20.0  # epsilon that is looked at
STEPS = 14  # halvings between them, in proportion
POINTS = 9  # of a line


@dataclass(frozen=True)
class EpsilonNeeded:
    """The smallest epsilon at which a mechanism answers within an error; None, and why, where there is none.

    Attributes:
        mechanism: by name.
        epsilon: against any attacker.
        error: the predicted relative error there, or the least that can be had.
        refusal: why the mechanism does not apply.
    """

    mechanism: str
    epsilon: float | None
    error: float
    refusal: str = ""

    @property
    def beliefs(self) -> tuple[float, ...]:
        """What beliefs of 1, 10 and 50 % become at the most; nothing without an epsilon."""
        if self.epsilon is None:
            return ()
        gamma = Fraction(math.exp(self.epsilon))
        return tuple(float(worst_posterior(belief, gamma)) for belief in SHOWN_BELIEFS)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        becomes = {f"{float(before):g}": after for before, after in zip(SHOWN_BELIEFS, self.beliefs, strict=False)}
        return {
            "mechanism": self.mechanism,
            "epsilon": self.epsilon,
            "error": round(self.error, 6) if math.isfinite(self.error) else None,
            "beliefs": becomes,
            **({"refused": self.refusal} if self.refusal else {}),
        }


def epsilon_needed(
    rows: Mapping[Any, int] | Histogram,
    share: Probability,
    within: Probability,
    *,
    columns: int = COLUMNS,
) -> list[EpsilonNeeded]:
    """The epsilon against any attacker that counts of a ``share`` of the rows need to be ``within`` a relative error on
    average: of every mechanism that can promise one whatever is believed, the smallest first.

    Args:
        rows: how many rows hold each value: a mapping, or a ``Histogram``.
        share: the size of the counts, as a share of the rows: ``"1%"``.
        within: their relative error: ``"5%"``.
        columns: public columns that a model is learned from.

    >>> import deniable as dn
    >>> rows = {f"v{rank}": 200_000 // rank for rank in range(1, 41)}
    >>> learned, *others = dn.epsilon_needed(rows, "1%", "5%", columns=5)
    >>> learned.mechanism, learned.epsilon < 1 < min(other.epsilon for other in others)
    ('synthetic', True)
    """
    counts, size, most = Histogram.of(rows), float(probability(share, "share")), float(probability(within, "within"))
    largest = float(counts.relative.max(initial=0.0))
    if size > largest:
        raise OptionError(
            f"No single value is as much as {percent(size, 2)} of the rows, so no count of one is. "
            f"Fix: ask about {percent(largest, 2)} of the rows or less."
        )
    needed = []
    for mechanism in (Synthetic(), Uniform(), Lineup()):
        low, high = SMALLEST, LARGEST
        error, refusal = _error(mechanism, counts, size, high, columns)
        if not error <= most:
            needed.append(EpsilonNeeded(mechanism.name, None, error, refusal))
            continue
        for _ in range(STEPS):
            middle = math.sqrt(low * high)
            reached, _ = _error(mechanism, counts, size, middle, columns)
            low, high, error = (low, middle, reached) if reached <= most else (middle, high, error)
        needed.append(EpsilonNeeded(mechanism.name, math.ceil(high * 1000) / 1000, error))
    return sorted(needed, key=lambda one: (one.epsilon is None, one.epsilon or 0.0, one.error))


def _error(mechanism: Mechanism, counts: Histogram, share: float, epsilon: float, columns: int) -> tuple[float, str]:
    """The predicted error at an epsilon against any attacker; infinite, and why, where the mechanism does not apply."""
    required = Privacy(epsilon=f"{epsilon:.6g}")
    one = candidate(mechanism, counts, required, BySelectivity(counts, (share,)), columns=columns)
    known = one.plan is not None and not math.isnan(one.errors[0])
    return (one.errors[0], "") if known else (math.inf, one.refusal)


def error_curve(
    histogram: Histogram | Mapping[Any, int],
    share: float,
    privacy: Privacy | None = None,
    *,
    columns: int = COLUMNS,
    points: int = POINTS,
) -> list[dict[str, Any]]:
    """Predicted error of counts of a share of the rows against epsilon: rows (mechanism, epsilon, error) for a chart.

    Those that hold against any attacker at any epsilon are lines. So are, where a requirement is one about frequencies,
    ``designed`` and ``lineup`` with a floor; what has an epsilon of its own under it is a point. There are none where
    no single value is as frequent as ``share``, and none of what nothing bounds.
    """
    counts, profile = Histogram.of(histogram), BySelectivity(Histogram.of(histogram), (share,))
    grid = np.geomspace(0.1, 8.0, points)
    lines = [
        (mechanism.name, epsilon, _error(mechanism, counts, share, epsilon, columns)[0])
        for mechanism in (Synthetic(), Uniform(), Lineup())
        for epsilon in grid.tolist()
    ]
    if privacy is not None and privacy.adversary == "frequency" and not privacy.sums:
        beside = 0.0 if marginal_variance(privacy) is None else 2 * COUNT_EPSILON
        rows = [f"{epsilon - beside:.3g}" for epsilon in grid.tolist() if epsilon - beside > SMALLEST]
        floored = [kind(epsilon=epsilon) for kind in (Designed, Lineup) for epsilon in rows]
        for mechanism in (*floored, SmallDomain(), FineGrain(), Identity(), Designed(), Lineup()):
            one = candidate(mechanism, counts, privacy, profile)
            if one.plan is not None:
                name = f"{one.name}, floor" if mechanism.options.get("epsilon") else f"{one.name}, as required"
                lines.append((name, one.epsilon, one.errors[0]))
    known = [line for line in lines if math.isfinite(line[1]) and math.isfinite(line[2])]
    return [{"mechanism": name, "epsilon": float(epsilon), "error": error} for name, epsilon, error in known]


def error_chart(rows: Sequence[Mapping[str, Any]], share: float) -> Chart:
    """``error_curve`` as a chart."""
    lines: dict[str, list[Point]] = {}
    for row in sorted(rows, key=lambda row: (row["mechanism"], row["epsilon"])):
        lines.setdefault(row["mechanism"], []).append(Point(row["epsilon"], row["error"]))
    return Chart(
        title="What accuracy costs against any attacker",
        x="epsilon against any attacker",
        y=f"error of counts of {percent(share, 2)} of the rows",
        series=tuple(Series(name, tuple(points)) for name, points in lines.items()),
        log_x=True,
        log_y=True,
        percent=True,
    )


def read_error(text: str) -> tuple[float, float]:
    """The size of counts, and their error, of ``1% within 5%``.

    >>> read_error("1% within 5%")
    (0.01, 0.05)
    """
    share, sign, within = text.partition(" within ")
    try:
        if not sign:
            raise OptionError("without its error")
        return float(probability(share.strip(), "error")), float(probability(within.strip(), "error"))
    except DeniableError:
        raise OptionError(
            f"error = {text!r} is not understood: it is the size of counts, as a share of the rows, and how far off "
            f"they may be. Fix: {option('error', '1% within 5%')}."
        ) from None
