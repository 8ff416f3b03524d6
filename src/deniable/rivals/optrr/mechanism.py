"""OptRR (Huang and Du, ICDE 2008): a whole matrix for a column, found by an evolutionary search.

All other channels here are coins and a replacing distribution; a matrix has m (m-1) numbers to choose. It is executed
as cells that nobody sees: a row's value decides its cell, and the replacing distribution of the cell of x is the column
of x. So kernel, estimates and audit are those of every release, and the matrix is what the manifest publishes.

    Pr[x | y] = f_x M[y][x] / sum_k f_k M[y][k]  <=  rho2

is kept in whole numbers: for counts u that are never below the true ones and add up to n + s, the denominator is at
least sum_k u_k M[y][k] - s max_k M[y][k].
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar

import numpy as np

from deniable.core.arrays import Bools, Counts, Floats
from deniable.core.errors import OptionError, RequirementError, option
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.core.promise import Matrix
from deniable.mechanisms.base import Mechanism, Need
from deniable.mechanisms.one_cell import refuse_any_prior
from deniable.mechanisms.requirement import EVERY_RELEASE, check_histogram, exempt_positions, needs_rho2
from deniable.mechanisms.view import beyond_rho1, checks_tell, covered_values, too_close, upper_counts
from deniable.rivals.optrr.matrix import Exact, as_mixture, cells_of, in_whole_numbers, surest
from deniable.rivals.optrr.search import Problem, searched

LARGEST = 64  # values: the search is over their square
SLACKS = (0.0, 1e-6, 1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.2, 0.4)  # by which limits are lowered until whole numbers keep them
OPTIONS = {"population": (4, 500), "generations": (1, 5000)}


@dataclass(frozen=True)
class OptRR(Mechanism):
    """A matrix that an evolutionary search found for the histogram: privacy against squared error (ICDE 2008).

    Attributes:
        population: how many matrices a generation has.
        generations: how many there are. The search begins anew from the same random numbers, so that the same
            histogram gives the same matrix.

    >>> import deniable as dn
    >>> from deniable.mechanisms import OptRR
    >>> plan = dn.plan({"flu": 500, "cold": 300, "hiv": 200}, dn.Privacy(rho2="3/5"), OptRR(generations=20))
    >>> plan.guarantee.worst <= 0.6, plan.cells_published
    (True, False)
    """

    population: int = 30
    generations: int = 60
    name: ClassVar[str] = "optrr"
    reveals: ClassVar[str] = "rarer values speak louder to those who know more than frequencies"

    def __post_init__(self) -> None:
        for name, (least, most) in OPTIONS.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise OptionError(f"{name} = {value!r} is not allowed: choose {least} to {most:,}. Fix: {name}=50.")

    def layout(self, columns: tuple[str, ...]) -> tuple[Need, ...]:
        if len(columns) > 1:
            raise OptionError(
                "mechanism 'optrr' searches a matrix for one sensitive column. Fix: name one, or "
                f"{option('mechanism', 'designed')}."
            )
        return super().layout(columns)

    def plan(self, histogram: Histogram, privacy: Privacy | None, *, public: Histogram | None = None) -> Plan:
        """The plan; everything is a function of ``public``, the noisy histogram, where there is one."""
        refuse_any_prior(self.name, privacy)
        required = needs_rho2(privacy, self.name)
        check_histogram(histogram, required)
        if histogram.m > LARGEST:
            raise RequirementError(
                f"mechanism 'optrr' searches matrices of up to {LARGEST} values, and the sensitive column has "
                f"{histogram.m:,}. Fix: merge rare values, or {option('mechanism', 'designed')}."
            )
        assert required.rho2 is not None
        covered = covered_values(histogram, required, public)
        upper = upper_counts(histogram, public)
        matrix = self._matrix(histogram, upper, covered, required.rho2)
        sure = surest(matrix, histogram.counts, 0)
        above = beyond_rho1(histogram, required, public, sure, partial(_bound, matrix, public, histogram.rows))
        return Plan.of_cells(
            self.name,
            histogram,
            cells_of(matrix, histogram),
            self._guarantee(histogram, required, above, sure, public),
            privacy=required,
            options=self.options,
            mixture=as_mixture(matrix),
        )

    def _matrix(self, histogram: Histogram, upper: Counts, covered: Bools, rho2: Fraction) -> Exact:
        """The matrix of the search in whole numbers out of 2^32, with limits as low as these need to be kept."""
        counts = np.maximum(upper, 1)
        shares = counts / counts.sum()
        spare = int(upper.sum()) - histogram.rows
        limits = np.where(covered, float(rho2), np.inf)
        candidate: Floats | None = None
        for slack in SLACKS:
            problem = Problem(shares, limits * (1 - slack))
            if (shares >= problem.limits).any():
                break
            if candidate is None:
                candidate = searched(problem, _seeded(self, counts, covered, rho2), self.population, self.generations)
            matrix = in_whole_numbers(problem.returned(candidate[None])[0])
            worst = surest(matrix, upper, spare)
            if all(belief <= rho2 for belief, own in zip(worst, covered, strict=True) if own):
                return matrix
        raise too_close(histogram.domain[int(np.argmax(np.where(covered, upper, -1)))], rho2)

    def _guarantee(
        self,
        histogram: Histogram,
        required: Privacy,
        above: tuple[int, ...],
        sure: Sequence[Fraction],
        public: Histogram | None,
    ) -> Guarantee:
        assert required.rho2 is not None
        exempt = exempt_positions(histogram, required)
        covered = [belief for place, belief in enumerate(sure) if place not in {*above, *exempt}]
        return Guarantee(
            promises=(Matrix(required.rho1, required.rho2, exempt, (), above),),
            adversary="frequency",
            rho1=required.rho1,
            rho2=required.rho2,
            worst=max(covered, default=required.rho2) if public is None else required.rho2,
            gamma=None,
            not_protected=(*EVERY_RELEASE, *checks_tell(histogram, public)),
        )


def _bound(matrix: Exact, public: Histogram | None, rows: int, margin: int) -> list[Fraction]:
    """Posteriors at the most, by noisy counts that are raised by a margin."""
    assert public is not None
    raised = public.counts + margin
    return surest(matrix, raised, int(raised.sum()) - rows)


def _seeded(mechanism: OptRR, counts: Counts, covered: Bools, rho2: Fraction) -> np.random.Generator:
    """Random numbers that follow from what the search is about: the same histogram gives the same matrix."""
    about = hashlib.sha256(counts.astype(np.int64).tobytes() + covered.tobytes())
    about.update(repr((mechanism, rho2)).encode())
    return np.random.default_rng(list(about.digest()))
