"""Perturbed generalization (Tao, Xiao, Li, Zhang, ICDE 2008): perturb, generalize, publish one row of each box.

Sensitive values are perturbed uniformly; public columns become boxes of k rows or more, cut without a look at the
sensitive values; and of each box one row is drawn and published, beside the number of rows that the box has. Nobody
knows whose row it is, so the perturbation may keep more than the requirement would let it. To whoever knows everything
about all others of a box of n rows, y is published with

    P'(y | x) = P(y | x) / n + (rest),    rest >= (1 - 1/n) q,    q = min P

so that an amplification of gamma in the channel is one of at most 1 + (gamma - 1) / n <= 1 + (gamma - 1) / k in what is
published of a person. The price is the sample: n/k rows or fewer speak for n.

With y_g the value that box g shows, n_g its rows, s_g the share of it that a condition covers, and the weights of a
value set (mathematics 8), w(y) = sum over x in it of P^-1[x][y],

    sum over boxes of n_g s_g w(y_g)

is unbiased over draws and samples if rows lie evenly in their boxes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from deniable.core.channels import Channel
from deniable.core.errors import OptionError, TableError
from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy, amplification_limit, largest_prior, worst_posterior
from deniable.core.promise import Guarantee
from deniable.core.values import Floats, Ints, percent
from deniable.lab.generalize import Boxed
from deniable.lab.rival import Answered, Bound, Rival, Setting, group_size
from deniable.mechanisms.requirement import check_histogram, needs_rho2, strongest_belief
from deniable.planning.pools import CodedTable, QuestionPool
from deniable.planning.prediction import Errors, Profile
from deniable.tables.keys import Keystream
from deniable.tables.sampler import Kernel
from deniable.tables.shuffling import order_of

LARGEST_K = 2**20


@dataclass(frozen=True)
class PerturbedGeneralization(Rival):
    """One perturbed row of every box of k rows or more (Tao et al., ICDE 2008).

    Attributes:
        k: how many rows a box has at least. Published by its name alone, as many as rho2 asks for.

    >>> import deniable as dn
    >>> from deniable.lab import PerturbedGeneralization
    >>> counts = dn.Histogram.of({"flu": 30, "gout": 40, "hiv": 30})
    >>> required = dn.Privacy(rho1="1/5", rho2="1/4", adversary="any-prior")
    >>> PerturbedGeneralization(k=6).channel(counts, required).diagonal.round(4).tolist()
    [0.6, 0.6, 0.6]
    """

    k: int = 10
    name: ClassVar[str] = "perturbed-generalization"
    reveals: ClassVar[str] = "nothing of single rows; public columns only as ranges, and one row of each box"

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, int) or not 1 <= self.k <= LARGEST_K:
            raise OptionError(f"k = {self.k!r} is not allowed: a box has 1 to {LARGEST_K:,} rows or more. Fix: k=10.")

    def fitted(self, privacy: Privacy | None) -> PerturbedGeneralization:
        """With boxes as large as generalization needs for the same requirement."""
        return self if privacy is None else PerturbedGeneralization(max(self.k, group_size(privacy)))

    def channel(self, histogram: Histogram, privacy: Privacy | None) -> Channel:
        """Uniform perturbation with gamma = 1 + k (gamma' - 1), gamma' being what the requirement allows."""
        required = needs_rho2(privacy, self.name)
        check_histogram(histogram, required)
        if histogram.rows < self.k:
            raise TableError(
                f"k = {self.k} is larger than the table, which has {histogram.rows} rows. Fix: a smaller k."
            )
        assert required.rho2 is not None
        rho1 = strongest_belief(histogram, required, None)
        gamma = 1 + self.k * (amplification_limit(rho1, required.rho2) - 1)
        return Channel.uniform(histogram.domain, gamma=gamma, coarse=required.rho1 is None)

    def guarantee(self, histogram: Histogram, privacy: Privacy | None) -> Bound:
        """What a perturbed row of a box bounds; the numbers are those of the channel that is used."""
        required = needs_rho2(privacy, self.name)
        gamma = row_amplification(self.channel(histogram, required), self.k)
        assert required.rho2 is not None
        covered = largest_prior(required.rho2, gamma)
        rho1 = Fraction(int(covered * 10_000), 10_000) if required.rho1 is None else required.rho1
        return Bound(
            adversary=required.adversary,
            rho1=rho1,
            rho2=required.rho2,
            worst=worst_posterior(covered if required.rho1 is None else rho1, gamma),
            gamma=gamma,
            sentence=(
                f"No attacker who believed a value at up to {percent(rho1)} beforehand becomes surer of it than "
                f"{percent(required.rho2)}: of every {self.k} rows or more that look alike one is published, and its "
                "value is perturbed."
            ),
        )

    def setting(self, label: str, privacy: Privacy) -> Setting:
        return SampledBoxes(self.k, privacy, label)

    def errors(self, profile: Profile, privacy: Privacy, bound: Guarantee) -> Errors:
        return profile.errors_of(SampleMoments(self, privacy))


def row_amplification(channel: Channel, k: int) -> Fraction:
    """The amplification of what is published of a person, one of k rows or more: 1 + (gamma - 1) / k."""
    gamma = channel.exact_gamma
    assert gamma is not None
    return 1 + (gamma - 1) / k


@dataclass(frozen=True, eq=False)
class Sampled:
    """What is published.

    Attributes:
        boxed: the groups, whose boxes are published.
        member: the row that was drawn from each group; not published.
        sample: its perturbed value, and the rows of its group.
    """

    boxed: Boxed
    member: Ints
    sample: BoxSample

    @classmethod
    def draw(cls, table: CodedTable, k: int, privacy: Privacy, stream: Keystream) -> Sampled:
        """Perturb, generalize, sample."""
        channel = PerturbedGeneralization(k).channel(table.histogram, privacy)
        boxed = Boxed.of(table, np.arange(table.rows), k, 1)
        member = one_of_each(boxed.groups, stream.subkey("sample"))
        kernel = Kernel([channel], [np.arange(channel.m)])
        shown = kernel.perturb(table.codes[member], stream.subkey("draws").words(0, len(member))).astype(np.int64)
        return cls(boxed, member, BoxSample(channel, shown, np.bincount(boxed.groups)))


@dataclass(frozen=True)
class SampledBoxes(Setting):
    """One perturbed row for each box of k rows or more, in an experiment (mathematics 9)."""

    k: int
    privacy: Privacy
    label: str = "perturbed-generalization"

    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        begin = time.perf_counter()
        made = Sampled.draw(pool.table, self.k, self.privacy, stream)
        drawn = time.perf_counter()
        answers = np.array([made.sample.by_value(share) for share in made.boxed.shares(pool)]) @ pool.sets.T
        answered = time.perf_counter()
        histogram = made.sample.by_value(np.ones(len(made.sample.rows)))
        return Answered({"": answers}, {"": histogram}, None, (drawn - begin, answered - drawn))


@dataclass(frozen=True, eq=False)
class BoxSample:
    """What is published of all boxes.

    Attributes:
        channel: by which values were perturbed.
        shown: the perturbed value of each box, as a position in the domain.
        rows: how many rows each box has.
    """

    channel: Channel
    shown: Ints
    rows: Ints

    def by_value(self, share: Floats) -> Floats:
        """The estimated count of every value, among rows that lie in this share of each box."""
        observed = np.bincount(self.shown, weights=self.rows * share, minlength=self.channel.m)
        return self.channel.invert(observed)


@dataclass(frozen=True)
class SampleMoments:
    """How far off a perturbed row of each box is, which is drawn: what a box adds varies by its row and its coin.

    A box g of n rows, c_x of which have x and of which a condition covers the share s, adds n s w_x(y) to the count of
    x: c_x s on average, with the variance (n s)^2 (E w_x(y)^2 - (c_x/n)^2), y published by the channel of c/n.
    """

    mechanism: PerturbedGeneralization
    privacy: Privacy

    def variance_per_row(self, share: Floats, question: Floats) -> Floats:
        return np.full(share.shape, np.nan)

    def moments(self, pool: QuestionPool) -> tuple[Floats, Floats]:
        table = pool.table
        channel = self.mechanism.channel(table.histogram, self.privacy)
        boxed = Boxed.of(table, np.arange(table.rows), self.mechanism.k, 1)
        rows = np.bincount(boxed.groups).astype(np.float64)
        shares = np.zeros((len(rows), table.m))
        np.add.at(shares, (boxed.groups, table.codes), 1.0)
        shares /= rows[:, None]
        weights = channel.weights(pool.sets)  # [sets, values]
        mean = shares @ pool.sets.T
        variance = (shares @ channel.matrix().T) @ (weights**2).T - mean**2
        covered = np.array([rows * share for share in boxed.shares(pool)])
        return covered @ mean - pool.true_answers, covered**2 @ variance


def one_of_each(groups: Ints, stream: Keystream) -> Ints:
    """A row of each group, drawn evenly: the first of the group in a random order of all rows."""
    order = order_of(stream.words(0, len(groups)))
    _, first = np.unique(groups[order], return_index=True)
    member: Ints = order[first]
    return member
