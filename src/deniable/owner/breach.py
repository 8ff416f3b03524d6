"""What a release lets others believe about the values or ranges that one asks about (mathematics 2; OLAP Thm 4, 5,
Lemma 1).

For S = S_1 x..x S_k over perturbed columns with coins p_i and replacing masses m_i, a belief b in S becomes at most

    U b / (U b + L (1 - b)),    U = prod ((1-p_i) m_i + p_i),    L = prod (1-p_i) m_i

however the columns are correlated, to whoever is told that a row shows one of S. Whoever sees which one may be surer,
where the belief lies on that one alone: then m_i is its own mass. Nothing of the rows is looked at: the manifest says
it all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from deniable.core.arrays import Floats
from deniable.core.breach import joint_limit, joint_posterior
from deniable.core.errors import ColumnError, OptionError, QuestionError, did_you_mean, listing, shortened
from deniable.core.manifest import Manifest
from deniable.core.probability import Probability, percent, probability
from deniable.core.swapping import swapping_coin
from deniable.estimation.model.columns import PerturbedColumn
from deniable.estimation.model.conditions import perturbed_column
from deniable.estimation.predicates import Leaf, conjunction
from deniable.release.release import Release


@dataclass(frozen=True)
class SetGuarantee:
    """What is promised about a set of values, one condition for each column.

    Attributes:
        columns: the perturbed columns that are asked about.
        coins: their p; of swapped columns what swapping among their rows comes to (mathematics 6).
        masses: the share of each column's replacements that falls into its set.
        singles: the share of the rarest value of each set.
        rho1, rho2: the belief before, and the one that must not be reached afterwards.
        swapped: columns that are swapped among rows.
    """

    columns: tuple[str, ...]
    coins: tuple[float, ...]
    masses: tuple[float, ...]
    singles: tuple[float, ...]
    rho1: Fraction
    rho2: Fraction
    swapped: tuple[str, ...] = ()

    @property
    def posterior(self) -> float:
        """What a belief of rho1 becomes at most, on average over the values of the set that rows may show."""
        return float(joint_posterior(float(self.rho1), self.coins, self.masses))

    @property
    def seen(self) -> float:
        """What it becomes at most to whoever sees which of the values a row shows, wherever in the set it lay."""
        return float(joint_posterior(float(self.rho1), self.coins, self.singles))

    @property
    def holds(self) -> bool:
        """Whether rho2 is not reached from rho1, whichever of the values a row shows."""
        return self.seen < self.rho2

    @property
    def limit(self) -> float:
        """No (s, rho1, rho2)-breach for s below this: by so much the set may be likelier than its replacements (on
        average over the set, as OLAP Def. 5 has it)."""
        return float(joint_limit(self.coins, self.masses, float(self.rho1), float(self.rho2)))

    @property
    def covered(self) -> float:
        """Beliefs below this stay below rho2, whichever value is seen: rho2 L / (rho2 L + (1 - rho2) U)."""
        # The posterior's odds are U / L times the prior's, so those of the belief are rho2's times L / U.
        high = float(joint_posterior(0.5, self.coins, self.singles))
        rho2 = float(self.rho2)
        return rho2 * (1 - high) / (rho2 * (1 - high) + (1 - rho2) * high)

    def __str__(self) -> str:
        sets = " and ".join(
            f"{name!r} (coin {percent(coin)}, {percent(mass)} of the replacements)"
            for name, coin, mass in zip(self.columns, self.coins, self.masses, strict=True)
        )
        several = f", and {percent(self.posterior)} on average over them" if self.singles != self.masses else ""
        correlated = ", however these columns are correlated" if len(self.columns) > 1 else ""
        swapped = f" {listing(list(self.swapped))} is swapped: the coin is that of its rows." if self.swapped else ""
        return (
            f"Believed at {percent(self.rho1)} before, the values asked about of {sets} are believed at "
            f"{percent(self.seen)} at most afterwards, whichever of them is shown{several}{correlated}; beliefs below "
            f"{percent(self.covered)} stay below {percent(self.rho2)}. No (s, {float(self.rho1):g}, "
            f"{float(self.rho2):g})-breach for s below {self.limit:.4g} (OLAP Theorem 5).{swapped}"
        )


def breach(
    release: Release | Manifest,
    where: Mapping[str, Any],
    *,
    rho1: Probability = "1/10",
    rho2: Probability = "95/100",
) -> SetGuarantee:
    """What someone who believed the values of ``where`` at rho1 believes them at, at most, after seeing a row.

    Someone who takes a range for likely may mean one number of it, and sees it: ``seen`` covers them, ``posterior`` is
    what the paper bounds, on average over what a row may show of the range.

    Args:
        release: a release whose columns are perturbed one by one, or its manifest.
        where: perturbed column -> value, list of values, ``between`` or ``not_``, as for ``release.count``.
        rho1, rho2: the belief before, and the one that must not be reached.

    >>> import pyarrow as pa
    >>> import deniable as dn
    >>> table = pa.table({"job": ["cook", "nurse", "judge", "cook"] * 50})
    >>> release = dn.publish(table, mechanism=dn.mechanisms.Retention({"job": dn.Replace(coin=0.5)}))
    >>> about = dn.breach(release, {"job": "judge"}, rho1=0.1, rho2=0.5)
    >>> about.holds, round(about.posterior, 3)
    (True, 0.308)
    """
    manifest = release.manifest if isinstance(release, Release) else release
    if not isinstance(manifest, Manifest):
        raise OptionError(f"breach needs a release or its manifest; got {type(manifest).__name__}.")
    first, second = probability(rho1, "rho1"), probability(rho2, "rho2")
    if first >= second:
        raise OptionError(f"rho1 = {rho1} is not below rho2 = {rho2}. Fix: exchange them: a belief may grow.")
    leaves = [leaf for leaf in conjunction(where).parts if isinstance(leaf, Leaf)]
    if not leaves:
        raise QuestionError("where names no column. Fix: where={'job': 'nurse'}.")
    named = {leaf.column: (column := _column(manifest, leaf), _masses(column, leaf)) for leaf in leaves}
    swapped = {
        part.columns[0]: float(swapping_coin(int(part.channels[0].keep[0]), part.swapped))
        for part in manifest.parts
        if part.swapped is not None and part.columns[0] in named
    }
    coins = tuple(swapped.get(name, column.coin) for name, (column, _) in named.items())
    masses = tuple(float(inside.sum()) for _, inside in named.values())
    singles = tuple(float(inside.min()) for _, inside in named.values())
    return SetGuarantee(tuple(named), coins, masses, singles, first, second, tuple(swapped))


def _column(manifest: Manifest, leaf: Leaf) -> PerturbedColumn:
    name = leaf.column
    if name not in manifest.types:
        raise ColumnError(
            f"There is no column {shortened(name)}.{did_you_mean(name, manifest.types)} "
            f"Fix: one of {listing(manifest.sensitive_columns)}."
        )
    if name not in manifest.sensitive_columns:
        raise ColumnError(f"{name!r} is public: it is published as it is. Fix: leave it out.")
    column = perturbed_column(manifest, name)
    if column.hidden:
        raise ColumnError(f"{name!r} has no coin. Fix: read the guarantee, or `deniable audit` for its posteriors.")
    if column.exempt and leaf.missing:
        raise QuestionError(f"Missing values of {name!r} are exempt: they are published as they are.")
    column.require(leaf)
    return column


def _masses(column: PerturbedColumn, leaf: Leaf) -> Floats:
    inside = column.mask(leaf)
    if not inside.any() or inside.all():
        every = "every value" if inside.all() else "no value"
        raise QuestionError(f"The condition on {column.name!r} holds for {every}. Fix: ask about some of its values.")
    return column.masses[inside]
