"""What columns that are perturbed one by one promise, each alone and all together (mathematics 2, 6; OLAP 5)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from deniable.core.breach import belief_limit, joint_limit, relative_prior_limit
from deniable.core.channel import Channel
from deniable.core.errors import listing
from deniable.core.exact import SCALE
from deniable.core.guarantee import Guarantee
from deniable.core.privacy import Privacy
from deniable.core.probability import LARGEST_FACTOR, percent
from deniable.core.promise import Amplification, Nothing, Promise, RelativePrior
from deniable.core.replace import Breach, NumberRange
from deniable.core.swapping import swapping_coin
from deniable.mechanisms.requirement import EVERY_RELEASE

USUAL_BREACH = (Fraction(1, 10), Fraction(95, 100))  # OLAP's example of rho1 and rho2


@dataclass(frozen=True)
class Perturbed:
    """One column as it was perturbed: what the guarantee is computed from.

    Attributes:
        gamma: its amplification; None when unbounded.
        noise: the epsilon that its noisy histogram costs; 0 where none is published.
        rounded: the step of the grid that its numbers were rounded to; None where values are as they were.
        relative: replacements like the column itself: how many times likelier a value is, at most, than to be drawn.
        required: the column's own requirement, if it has one.
        swapped: among how many rows its values were swapped; None where they were drawn.
        mass: the share of the replacements that a single value has at the most.
        declared: whether its values were declared, and are no evidence themselves.
    """

    column: str
    replacing: str
    keep: int
    gamma: Fraction | None
    noise: float = 0.0
    rounded: float | None = None
    relative: Fraction = Fraction(1)
    required: Breach | Privacy | None = None
    swapped: int | None = None
    declared: bool = False
    mass: Fraction = Fraction(1)

    @property
    def coin(self) -> Fraction:
        return Fraction(self.keep, SCALE)

    @property
    def reach(self) -> Fraction:
        """The coin that an attacker reckons with: swapped among few rows, a value comes back more often."""
        return self.coin if self.swapped is None else swapping_coin(self.keep, self.swapped)

    @property
    def epsilon(self) -> float:
        return math.inf if self.gamma is None else math.log(self.gamma) + self.noise


def heaviest(channel: Channel | NumberRange) -> Fraction:
    """The share of the replacements that a single value has at the most."""
    most = int(channel.replace.max()) if isinstance(channel, Channel) else -(-SCALE // channel.points)
    return Fraction(most, SCALE)


def promise_of(column: Perturbed) -> Promise:
    """What a column promises by itself: its requirement where it has one, else OLAP's example."""
    if column.reach == 1:
        return Nothing("published as it is")
    if column.replacing != "uniform":
        pair = _required_beliefs(column.required)
        if pair is None:
            least = belief_limit(column.reach, USUAL_BREACH[1], column.relative)
            if least <= Fraction(1, 1000):
                return Nothing(f"the coin leaves no belief below {percent(USUAL_BREACH[1])}")
            pair = Fraction(math.ceil(1000 * least) - 1, 1000), USUAL_BREACH[1]
        return RelativePrior(column.relative, *pair, like_column=True)
    if isinstance(column.required, tuple):
        return RelativePrior(*column.required)
    assert column.gamma is not None
    return Amplification(column.gamma, *(_required_beliefs(column.required) or (None, None)))


def _required_beliefs(required: Breach | Privacy | None) -> tuple[Fraction, Fraction] | None:
    if required is None:
        return None
    rho1, rho2 = (required.rho1, required.rho2) if isinstance(required, Privacy) else required[1:]
    assert rho1 is not None
    assert rho2 is not None
    return rho1, rho2


def guarantee(columns: Sequence[Perturbed]) -> Guarantee:
    """What columns that are perturbed independently promise together."""
    gammas = [column.gamma for column in columns]
    total = math.prod((gamma for gamma in gammas if gamma is not None), start=Fraction(1))
    bounded = all(gamma is not None for gamma in gammas)
    return Guarantee(
        promises=tuple(promise_of(column) for column in columns),
        adversary="any-prior"
        if bounded and all(c.declared and c.replacing == "uniform" for c in columns)
        else "frequency",
        rho1=None,
        rho2=None,
        worst=Fraction(1),  # without a rho1, a belief that was certain beforehand stays so
        gamma=total if bounded and total < LARGEST_FACTOR else None,
        also=(_epsilons(columns), *(_sentence(column) for column in columns), *_together(columns)),
        not_protected=(*EVERY_RELEASE, *_limits(columns)),
    )


def _epsilons(columns: Sequence[Perturbed]) -> str:
    epsilons = " + ".join(f"{column.epsilon:.4g} ({column.column})" for column in columns if column.gamma is not None)
    open_ended = [column.column for column in columns if column.gamma is None]
    if open_ended:
        known = f" Epsilon of the others: {epsilons}." if epsilons else ""
        return (
            f"No local differential privacy is claimed: the amplification of {listing(open_ended)} is unbounded.{known}"
        )
    return (
        f"Each row satisfies epsilon-local differential privacy with epsilon = {sum(c.epsilon for c in columns):.4g}"
        + (f": {epsilons}" if columns[1:] else "")
        + (", noisy histograms included" if any(column.noise for column in columns) else "")
        + ", whatever an attacker believed and however the columns are correlated"
        + ("." if all(column.declared for column in columns) else "; the list of values, read off the table, apart.")
    )


def _sentence(column: Perturbed) -> str:
    """The column's own requirement where it has one, else OLAP's example."""
    if column.reach == 1:
        why = "p = 1" if column.coin == 1 else "nobody to swap with"
        return f"{column.column!r} is published as it is ({why})."
    if column.replacing != "uniform":
        return _like_the_column(column)
    if isinstance(column.required, Privacy):
        rho1, rho2 = _required_beliefs(column.required) or USUAL_BREACH
        return (
            f"{column.column!r}: a value or set of values believed at up to {percent(rho1)} is "
            f"believed at {percent(rho2)} at most afterwards, as required."
        )
    if column.required is not None:
        s, rho1, rho2 = column.required
        source = "as required; OLAP Thm 4"
    else:
        rho1, rho2 = USUAL_BREACH
        s = Fraction(relative_prior_limit(column.coin, rho1, rho2))
        source = "OLAP Thm 4"
    return (
        f"{column.column!r}: a set of values believed at up to {percent(rho1)}, each of them less than {_times(s)} "
        f"times as likely as its share of the replacements, is believed below {percent(rho2)} afterwards ({source})."
    )


def _like_the_column(column: Perturbed) -> str:
    """Lemma 1, for replacements that are drawn like the column up to the factor ``relative``."""
    pair = _required_beliefs(column.required)
    if pair is not None:
        rho1, rho2 = pair
        before, source = f"at up to {percent(rho1)}", "as required; OLAP Lemma 1"
    else:
        rho2 = USUAL_BREACH[1]
        least = belief_limit(column.reach, rho2, column.relative)
        if least <= 0:
            return f"{column.column!r}: p = {float(column.coin):.4g} leaves no belief below {percent(rho2)}."
        rounded = math.floor(1000 * least) / 1000  # to the safe side
        before, source = f"below {percent(rounded)}", "OLAP Lemma 1"
    return (
        f"{column.column!r}: an attacker who knows the frequencies, and believed a set of values {before}, believes it "
        f"below {percent(rho2)} afterwards ({source})."
    )


def _together(columns: Sequence[Perturbed]) -> list[str]:
    """Theorem 5 for all columns at once, whichever value of each: the likeliest replacements leave the least room."""
    several = [column for column in columns if column.reach < 1]
    if len(several) < 2:
        return []
    rho1, rho2 = USUAL_BREACH
    s = Fraction(joint_limit([column.reach for column in several], [column.mass for column in several], rho1, rho2))
    number = "Both" if len(several) == 2 else f"All {len(several)}"
    return [
        f"{number} perturbed columns together: a combination of single values, one of each column, "
        f"believed at up to {percent(rho1)}, and less than {_times(s)} times as likely as its share of the "
        f"replacements, is believed below {percent(rho2)} afterwards, however the columns are correlated (OLAP Thm 5). "
        "deniable.breach tells it for any values or ranges."
    ]


def _times(s: Fraction) -> str:
    """A factor up to which something holds, in four digits, rounded down."""
    step = Fraction(10) ** (math.floor(math.log10(s)) - 3)
    return f"{float(s // step * step):.4g}"


def _limits(columns: Sequence[Perturbed]) -> list[str]:
    limits = []
    if len(columns) > 1:
        limits.append(
            "The sentences about one column are about that column alone. Columns that are correlated speak for each "
            "other: whoever combines a row's perturbed columns can become surer, up to the sum of their epsilons."
        )
    for column in columns:
        if column.replacing == "identity":
            limits.append(
                f"{column.column!r} is replaced by values of its own noisy distribution: someone who knows more than "
                "the frequencies, such as who holds the rarest value, can recognise it. By how many rows that "
                "distribution is raised above the noisy histogram can depend on the table, beyond epsilon."
            )
        if column.replacing == "swapping":
            limits.append(
                f"{column.column!r} is swapped among the rows: its exact histogram is published, and the rows are not "
                "independent of each other."
            )
        if column.rounded is not None:
            limits.append(
                f"{column.column!r} is published on a grid of steps of {column.rounded:g}, originals included."
            )
    return limits
