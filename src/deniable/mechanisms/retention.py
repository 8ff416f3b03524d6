"""Retention replacement over any number of columns, each perturbed on its own (mathematics 6; OLAP 3, 5)."""

from __future__ import annotations

import dataclasses
import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np

from deniable.core.channels import (
    Breach,
    Channel,
    End,
    NumberRange,
    Replace,
    Replacing,
    largest_keep,
    uniform_weights,
    weights_of,
)
from deniable.core.errors import OptionError, RequirementError, TableError, listing, option, worded
from deniable.core.exact import (
    SCALE,
    belief_limit,
    joint_limit,
    relative_prior_limit,
    safe_threshold,
    swapping_coin,
    swapping_threshold,
)
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan, PlannedPart
from deniable.core.privacy import Privacy, amplification_limit
from deniable.core.promise import Amplification, Guarantee, Nothing, Promise, RelativePrior
from deniable.core.values import LARGEST_FACTOR, Counts, percent
from deniable.mechanisms.base import Mechanism, Need, Scanned
from deniable.mechanisms.requirement import EVERY_RELEASE, check_histogram, refuse_sums

# -- Retention in one line of text, as a command line has it: ``age=0.5@17..90,job=1/4:1/2,ill=0.7~identity`` ----------


EXAMPLE = "retention:age=0.5@17..90,born=0.5@1950-01-01..2010-12-31,job=0.6,ill=0.7~identity"
REQUIREMENTS = "a coin is a number such as 0.5; a requirement is rho1:rho2 such as 1/4:1/2, or s:rho1:rho2"


def replaces_in(text: str) -> tuple[dict[str, Replace], float | None]:
    """Columns, separated by commas: ``column=coin``, then ``@low..high`` and ``/step``, then ``~replacing``.

    Instead of a coin a requirement, from which the coin follows: ``rho1:rho2`` or ``s:rho1:rho2``. Or one budget for
    all columns, which are then named without a coin.

    >>> replaces_in("age=0.5@17..90,ill=0.7~identity")[0]["age"]
    Replace(coin=0.5, low=17, high=90)
    >>> replaces_in("budget=2,job=,age=@17..90")
    ({'job': Replace(), 'age': Replace(low=17, high=90)}, 2.0)
    """
    columns: dict[str, Replace] = {}
    budget = None
    for spelled in filter(None, (part.strip() for part in text.split(","))):
        column, equals, how = spelled.rpartition("=")
        if not equals or not column:
            raise OptionError(f"mechanism 'retention': {spelled!r} names no column and coin. Write {EXAMPLE}.")
        if column in columns or (column == "budget" and budget is not None):
            raise OptionError(f"mechanism 'retention' names the column {column!r} twice. Fix: once with one coin.")
        if column == "budget":
            budget = _budget(how)
        else:
            columns[column] = _replace(column, how)
    return columns, budget


def _budget(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise OptionError(f"mechanism 'retention': budget={text} is no number. Write budget=2,job=.") from None


def _replace(column: str, how: str) -> Replace:
    rest, _, replacing = how.partition("~")
    wanted, _, ends = rest.partition("@")
    scope, _, grid = ends.partition("/")
    low, dots, high = scope.partition("..")
    if ends and not dots:
        raise OptionError(f"mechanism 'retention': {column}={how} has no range low..high. Write {EXAMPLE}.")
    try:
        coin = None if not wanted or ":" in wanted else float(wanted)
        first, last = (_end(low), _end(high)) if ends else (None, None)
        step = float(grid) if grid else None
    except ValueError:
        raise OptionError(
            f"mechanism 'retention': {column}={how} is not understood: {REQUIREMENTS}; the ends of a range are numbers "
            f"or dates. Write {EXAMPLE}."
        ) from None
    kind: Replacing = replacing or "uniform"  # type: ignore[assignment]  # Replace refuses others
    try:
        required = None if coin is not None or not wanted else _requirement(wanted)
        return Replace(coin, first, last, kind, required, step=step)
    except (OptionError, RequirementError) as wrong:
        raise type(wrong)(f"mechanism 'retention', column {column!r}: {wrong}") from None


def _requirement(text: str) -> Privacy | tuple[float, str, str]:
    s, *beliefs = (part.strip() for part in text.split(":"))
    if len(beliefs) == 1:
        return Privacy(rho1=s, rho2=beliefs[0])
    try:
        if len(beliefs) == 2:
            return float(s), beliefs[0], beliefs[1]
    except ValueError:
        pass
    raise OptionError(f"{text!r} is not understood: {REQUIREMENTS}.")


def _end(text: str) -> End:
    text = text.strip()
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return datetime.date.fromisoformat(text)


# -- What columns that are perturbed one by one promise, each alone and all together (mathematics 2, 6; OLAP 5) --------


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


# -- Retention replacement over any number of columns, each perturbed on its own (mathematics 6; OLAP 3, 5) ------------
#     P_r = p_r I + (1 - p_r) r_r 1^T,    P = P_1 (x) .. (x) P_k
#
# Amplifications multiply over the columns, so epsilons add up; that holds however the columns are correlated.


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
