"""Perturbed generalization (Tao, Xiao, Li, Zhang, ICDE 2008): perturb, generalize, publish one row of each box.

Sensitive values are perturbed uniformly; public columns become boxes of k rows or more, cut without a look at the
sensitive values; and of each box one row is drawn and published, beside the number of rows that the box has. Nobody
knows whose row it is, so the perturbation may keep more than the requirement would let it. To whoever knows everything
about all others of a box of n rows, y is published with

    P'(y | x) = P(y | x) / n + (rest),    rest >= (1 - 1/n) q,    q = min P

so that an amplification of gamma in the channel is one of at most 1 + (gamma - 1) / n <= 1 + (gamma - 1) / k in what is
published of a person. The price is the sample: n/k rows or fewer speak for n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pyarrow as pa

from deniable.core.arrays import Codes, Ints
from deniable.core.channel import Channel
from deniable.core.errors import OptionError, TableError, option
from deniable.core.grouped_sentence import sample_sentence
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Histogram
from deniable.core.manifest import Form
from deniable.core.privacy import Privacy, amplification_limit, largest_prior, worst_posterior
from deniable.core.probability import percent
from deniable.core.promise import OneOfBox
from deniable.engines.base import CELL
from deniable.engines.batch.kernel import Kernel
from deniable.engines.batch.shuffling import order_of
from deniable.engines.randomness import Keystream
from deniable.engines.request import Request
from deniable.mechanisms.requirement import (
    DISTRIBUTION,
    DOMAIN,
    REPEATED,
    check_histogram,
    needs_rho2,
)
from deniable.mechanisms.view import beyond_rho1_at, checks_tell, strongest_belief
from deniable.rivals.base import Rival, RivalRelease, codes_of, manifest_of, noisy_histogram
from deniable.rivals.diversity import group_size
from deniable.rivals.generalize.axes import axes_of_rows
from deniable.rivals.generalize.boxes import box_table, box_texts
from deniable.rivals.generalize.mechanism import require_public
from deniable.rivals.generalize.mondrian import mondrian

LARGEST_K = 2**20
LIMITS = (
    DOMAIN,
    DISTRIBUTION,
    REPEATED,
    "Public columns are published as ranges and sets: they say who may have taken part, and a narrow range says nearly "
    "as much as the value.",
    "How many rows a box has is published exactly.",
)


@dataclass(frozen=True)
class PerturbedGeneralization(Rival):
    """One perturbed row of every box of k rows or more (Tao et al., ICDE 2008).

    Attributes:
        k: how many rows a box has at least. Published by its name alone, as many as rho2 asks for.

    >>> import deniable as dn
    >>> from deniable.mechanisms import PerturbedGeneralization
    >>> counts = dn.Histogram.of({"flu": 30, "gout": 40, "hiv": 30})
    >>> required = dn.Privacy(rho1="1/5", rho2="1/4", adversary="any-prior")
    >>> PerturbedGeneralization(k=6).channel(counts, required).diagonal.round(4).tolist()
    [0.6, 0.6, 0.6]
    """

    k: int = 10
    name: ClassVar[str] = "perturbed-generalization"
    reveals: ClassVar[str] = "nothing of single rows; public columns only as ranges, and one row of each box"
    form: ClassVar[Form] = "samples"

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, int) or not 1 <= self.k <= LARGEST_K:
            raise OptionError(f"k = {self.k!r} is not allowed: a box has 1 to {LARGEST_K:,} rows or more. Fix: k=10.")

    def fitted(self, privacy: Privacy | None) -> PerturbedGeneralization:
        """With boxes as large as generalization needs for the same requirement."""
        return self if privacy is None else PerturbedGeneralization(max(self.k, group_size(privacy)))

    def channel(self, histogram: Histogram, privacy: Privacy | None, public: Histogram | None = None) -> Channel:
        """Uniform perturbation with gamma = 1 + k (gamma' - 1), gamma' being what the requirement allows.

        Args:
            histogram: how many rows hold each value.
            privacy: the requirement.
            public: the histogram with noise, from which an owner's rho1 is taken where it is left out.
        """
        required = needs_rho2(privacy, self.name)
        check_histogram(histogram, required)
        if histogram.rows < self.k:
            raise TableError(
                f"k = {self.k} is larger than the table, which has {histogram.rows} rows. Fix: a smaller k."
            )
        assert required.rho2 is not None
        rho1 = strongest_belief(histogram, required, public)
        gamma = 1 + self.k * (amplification_limit(rho1, required.rho2) - 1)
        return Channel.uniform(histogram.domain, gamma=gamma, coarse=required.rho1 is None)

    def guarantee(self, histogram: Histogram, privacy: Privacy | None, public: Histogram | None = None) -> Guarantee:
        """What a perturbed row of a box promises; the numbers are those of the channel that is used.

        Args:
            histogram, privacy, public: as for ``channel``.
        """
        required = needs_rho2(privacy, self.name)
        gamma = row_amplification(self.channel(histogram, required, public), self.k)
        assert required.rho2 is not None
        covered = largest_prior(required.rho2, gamma)
        rho1 = Fraction(int(covered * 10_000), 10_000) if required.rho1 is None else required.rho1
        above = beyond_rho1_at(histogram, required, public, [gamma] * histogram.m)
        promise = OneOfBox(gamma, rho1, required.rho2, above, self.k)
        return Guarantee(
            promises=(promise,),
            adversary=required.adversary,
            rho1=rho1,
            rho2=required.rho2,
            worst=worst_posterior(covered if required.rho1 is None else rho1, gamma),
            gamma=gamma,
            also=(
                "It holds for whoever knows the values of all others of a person's box, and for any statement about "
                "the value, upward and downward.",
                f"What is published of a person satisfies epsilon-local differential privacy with epsilon = "
                f"{math.log(gamma):.4g}: one row of {self.k} or more is drawn, and its value perturbed.",
            ),
            not_protected=(*LIMITS, *_unprotected(rho1, required.rho2, above), *checks_tell(histogram, public)),
            sentence=sample_sentence(promise),
        )

    def published(self, request: Request) -> RivalRelease:
        """One row of each box, and the boxes, that ``publish`` makes of a ``request``.

        Boxes are cut on the whole table at once, so it is held in memory, as codes. Only the row that is drawn of a box
        is perturbed: what the others would have shown is never seen.
        """
        self._check(request)
        scan = request.scan(request.sensitive, request.domain)
        public = noisy_histogram(request, scan.histogram)
        guarantee = self.guarantee(scan.histogram, request.privacy, public)
        channel = self.channel(scan.histogram, request.privacy, public)
        codes = codes_of(request, scan.encoder)
        axes = axes_of_rows(request.dataset, request.public, np.arange(len(codes)), request.progress)
        groups = mondrian(list(axes.values()), np.zeros(len(codes), np.int8), self.k, 1)
        boxes = box_table(axes, groups)
        member = one_of_each(groups, request.keys.subkey("sample"))
        shown = perturbed(channel, codes[member], request.keys.subkey("draws"))
        order = order_of(request.keys.subkey("order").words(0, len(member)))
        own = pa.array(order, pa.int64())
        values = dict(zip(request.sensitive, scan.encoder.decode(shown[order]), strict=True))
        rows = pa.table({**{name: box_texts(boxes, name).take(own) for name in axes}, **values, CELL: own})
        manifest = manifest_of(self, request, guarantee, scan, rows.schema, len(member), channel=channel)
        return RivalRelease(manifest, rows.schema, lambda _: [rows], lambda: [boxes])

    def _check(self, request: Request) -> None:
        require_public(request, self.name, instead="uniform")
        if not request.shuffle:
            raise OptionError(
                "mechanism 'perturbed-generalization' publishes a row of each box, in random order. Fix: leave out "
                f"{option('shuffle', False)}."
            )
        if request.privacy is not None and request.privacy.adversary == "any-prior" and request.domain is None:
            raise OptionError(
                "The values of the sensitive column are not declared: adversary 'any-prior' covers whatever was "
                "believed, and that a value is listed because someone holds it is evidence. Fix: "
                f"{option('domain', '[..]', 'COLUMN=FILE')} with every value that the column may hold."
            )


def row_amplification(channel: Channel, k: int) -> Fraction:
    """The amplification of what is published of a person, one of k rows or more: 1 + (gamma - 1) / k."""
    gamma = channel.exact_gamma
    assert gamma is not None
    return 1 + (gamma - 1) / k


def _unprotected(rho1: Fraction, rho2: Fraction, above: tuple[int, ...]) -> list[str]:
    said = [f"Beliefs above {percent(rho1)} before the release: they can grow beyond {percent(rho2)}."]
    if above:
        said.append(
            f"{len(above)} values that are more frequent than {percent(rho1)} or nearly: to who knows how "
            f"frequent they are, the bound of {percent(rho2)} does not hold for them."
        )
    return said


def one_of_each(groups: Ints, stream: Keystream) -> Ints:
    """A row of each group, drawn evenly: the first of the group in a random order of all rows."""
    order = order_of(stream.words(0, len(groups)))
    _, first = np.unique(groups[order], return_index=True)
    member: Ints = order[first]
    return member


def perturbed(channel: Channel, codes: Codes, stream: Keystream) -> Codes:
    """What rows show, by the kernel that perturbs every release."""
    kernel = Kernel([channel], [np.arange(channel.m)])
    return kernel.perturb(codes, stream.words(0, len(codes)))
