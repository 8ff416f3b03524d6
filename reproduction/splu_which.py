"""SPLU 2, open: which mechanisms besides decoy groups keep small sums uncertain and large ones accurate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
from scipy.stats import norm

from deniable.core.errors import RequirementError
from deniable.core.histogram import Histogram
from deniable.core.part import COUNT_EPSILON
from deniable.core.privacy import LargeSums, Privacy, SmallSums
from deniable.estimation.asking import Options
from deniable.estimation.many import value_sets_of
from deniable.lab.draws import draw_plan, stream_of
from deniable.mechanisms import Designed, FineGrain, Identity, Lineup, Mechanism, Pram, SmallDomain, Uniform
from deniable.planning.pools import CodedTable
from reproduction.items import Item, yes
from reproduction.zipf import table_of

SMALL = SmallSums(error="0.3", below=3, at_least="0.5")
LARGE = LargeSums(error="0.1", above=2000, at_most="0.05")
MECHANISMS: tuple[Mechanism, ...] = (
    *(Uniform(), SmallDomain(), FineGrain(), Identity(), Designed(), Pram(), Lineup(), Lineup(truth=1)),
)


@dataclass(frozen=True)
class Sums:
    """How often small sums are off, at the least, and a large one at the threshold."""

    name: str
    small: float
    large: float
    how: str
    accurate_from: float = math.nan  # rows, where the deviation does not depend on them

    @property
    def row(self) -> tuple[str, ...]:
        kept = self.small >= float(SMALL.at_least), self.large <= float(LARGE.at_most)
        return (
            self.name,
            f"{self.small:.3f}",
            f"{self.large:.2g}",
            *("yes" if one else "no" for one in kept),
            self.how,
        )

    @property
    def meets_both(self) -> bool:
        return self.small >= float(SMALL.at_least) and self.large <= float(LARGE.at_most)


def which_mechanisms(census: pa.Table) -> Item:
    """Every mechanism on OCC-100k, in which three values of 1, 2 and 3 rows and one of 2,000 are put."""
    histogram = with_planted(CodedTable.of(census, "occupation").histogram)
    measured = [
        *(decoys(c) for c in (2, 5, 10)),
        noisy("noisy histogram of a release", COUNT_EPSILON),
        *(noisy(f"Laplace, epsilon = ln {base}, one question", math.log(base)) for base in (2, 3)),
        noisy("Laplace, epsilon = ln 2, 100 questions", math.log(2) / 100),
    ]
    refused = []
    for mechanism in MECHANISMS:
        label = mechanism.name if mechanism != Lineup(truth=1) else "lineup, truth 1"
        try:
            measured.append(perturbed(label, mechanism, histogram))
        except RequirementError:
            refused.append(label)
    both = [one.name for one in measured if one.meets_both]
    laplace = any("ln 2, one" in name for name in both)
    return Item(
        "Small sums and large sums, mechanism by mechanism (SPLU 2)",
        f"Pr[|f' - f| > {float(SMALL.error):g} f], the least over f = 1 to {SMALL.below}, and Pr[|f' - f| >= "
        f"{float(LARGE.error):g} f] at f = {LARGE.above:,}, of the count of a value in the whole table. Wanted: at "
        f"least {float(SMALL.at_least):g}, and at most {float(LARGE.at_most):g}. OCC-100k with planted values, (1/13, "
        "1/6); rows alone answer, not the noisy histogram that a release may publish beside them: it has its own line.",
        ("mechanism", "small sums off", "large sum off", "small kept", "large kept", "how"),
        tuple(one.row for one in measured),
        None,
        f"SPLU leaves open who else meets both. Here: {', '.join(both) or 'nobody'}. Discrete Laplace noise with "
        f"epsilon = ln 2 for a single question is among them: {yes(laplace)}. Channels and line-ups keep small sums "
        "uncertain, since the noise of all rows is in every count, and for the same reason their sums are accurate "
        f"only from some size on: {_from(measured)}. They take no such requirement: the variance of a count depends "
        "on all others, and a tail that is normal only nearly is no promise. Decoy groups do, by an exact binomial "
        "tail, and so does Laplace, whose epsilon then covers all questions together; no histogram may be published "
        "beside either." + (f" Refused: {', '.join(refused)}." if refused else ""),
    )


def with_planted(histogram: Histogram) -> Histogram:
    """The histogram with values of 1, 2 and 3 rows and of as many as a large sum has."""
    counts = np.append(histogram.counts, [1, 2, 3, LARGE.above])
    return Histogram((*range(len(counts)),), counts)


def decoys(c: int) -> Sums:
    """Decoy groups: f' is binomial, exactly."""
    return Sums(f"decoys, c = {c}", float(SMALL.reached(c)), float(LARGE.reached(c)), "exact binomial")


def noisy(name: str, epsilon: float) -> Sums:
    """Discrete Laplace noise: Pr[|Z| >= k] = 2 a^k / (1 + a), a = e^-epsilon, k >= 1."""
    small = min(_tail(math.floor(SMALL.error * f) + 1, epsilon) for f in range(1, SMALL.below + 1))
    return Sums(name, small, _tail(math.ceil(LARGE.error * LARGE.above), epsilon), "exact noise")


def _tail(k: int, epsilon: float) -> float:
    a = math.exp(-epsilon)
    return 1.0 if k <= 0 else 2 * a**k / (1 + a)


def perturbed(label: str, mechanism: Mechanism, histogram: Histogram) -> Sums:
    """Reconstructed counts: normal, with the variance that a draw shows."""
    plan = mechanism.plan(histogram, Privacy(Fraction(1, 13), Fraction(1, 6)))
    draw = draw_plan(table_of(histogram), plan, stream_of(1, 0, label), None)
    single = np.eye(histogram.m, dtype=bool)
    counted = value_sets_of(draw.asking, draw.asking.total[None, :], single, Options("inverse", calibrate=False))
    deviation = np.sqrt(np.maximum(np.broadcast_to(counted.variance, (1, histogram.m))[0], 1e-12))
    planted = {f: float(deviation[-4 + f - 1]) for f in range(1, 4)}
    small = min(_off(float(SMALL.error) * f, own) for f, own in planted.items())
    large = _off(float(LARGE.error) * LARGE.above, float(deviation[-1]))
    enough = float(norm.isf(float(LARGE.at_most) / 2) * deviation[-1] / float(LARGE.error))
    return Sums(label, small, large, "normal", enough)


def _from(measured: Sequence[Sums]) -> str:
    """From how many rows on each mechanism would be accurate, if its deviation stayed what it is."""
    sizes = {one.name: one.accurate_from for one in measured if not math.isnan(one.accurate_from)}
    return ", ".join(f"{name} from about {round(rows, -2):,.0f} rows" for name, rows in sizes.items())


def _off(distance: float, deviation: float) -> float:
    return float(2 * norm.sf(distance / deviation))
