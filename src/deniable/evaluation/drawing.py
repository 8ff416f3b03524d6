"""One draw of a release without writing a table: codes in, states out, by the kernel and dealing that publish."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.core.channel import Channel
from deniable.core.histogram import Histogram
from deniable.core.manifest import Marginal, cells_of
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.engines.batch.columns import Codes, smallest
from deniable.engines.batch.dealing import Dealer
from deniable.engines.batch.kernel import Kernel
from deniable.engines.local.counting import LocalCounter
from deniable.engines.randomness import Keystream, Secret, discrete_laplace, discrete_laplace_variance
from deniable.estimation.asking import Asking
from deniable.estimation.decoys import FullChannel
from deniable.evaluation.tables import CodedTable
from deniable.mechanisms import Mechanism, PlansFromPublic

MARGINAL_EPSILON = 1.0

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Parameters:
    """The public parameters of a draw, as a manifest would give them."""

    domain: tuple[Hashable, ...]
    channels: tuple[Channel, ...]
    cell_positions: tuple[Ints, ...]
    cells_published: bool
    sensitive_columns: tuple[str, ...]
    public_columns: tuple[str, ...]
    rows: int
    marginal: Marginal | None
    mixture: Floats | None


class DrawnCounter(LocalCounter):
    """Counts a draw: the public columns of the original, encoded once, and the states that were drawn."""

    def __init__(self, table: CodedTable, parameters: Parameters, states: Codes) -> None:
        super().__init__("", parameters)
        self._columns = dict(table.columns)
        self._states = states
        self.rows = table.rows


@dataclass(frozen=True, eq=False)
class Draw:
    """A release that was drawn.

    Attributes:
        plan: how.
        published: the published value of every row, as a position in the domain.
        states: cell and published value of every row as one number, where cells are published.
        asking: what estimators need.
    """

    plan: Plan
    published: Codes
    states: Codes
    asking: Asking


def stream_of(seed: int, draw: int, label: str) -> Keystream:
    """The randomness of one draw: the same for the same seed, number and label, on any machine."""
    key = hashlib.sha256(f"deniable experiment, seed {seed}, draw {draw}".encode()).digest()
    return Keystream(Secret.from_key(key), "experiment", label)


def draw_release(table: CodedTable, mechanism: Mechanism, privacy: Privacy | None, stream: Keystream) -> Draw:
    """Plan, deal, perturb."""
    marginal = None
    if privacy is None or privacy.adversary == "frequency":
        marginal = noisy_marginal(table.histogram, stream)
    plan = _plan(mechanism, table.histogram, privacy, marginal)
    return draw_plan(table, plan, stream, marginal)


def draw_plan(table: CodedTable, plan: Plan, stream: Keystream, marginal: Marginal | None) -> Draw:
    """Deal and perturb by a plan that was made before."""
    channels, positions = cells_of(plan)
    cells = Dealer(plan, stream.subkey("dealing")).deal(table.codes) if len(channels) > 1 else None
    published = Kernel(channels, positions).perturb(table.codes, stream.subkey("draws").words(0, table.rows), cells)
    seen = plan.cells_published and cells is not None
    states = _states(table.m, positions, cells, published) if seen else published
    hidden = cells is not None and not plan.cells_published
    parameters = Parameters(
        domain=table.domain,
        channels=channels,
        cell_positions=positions,
        cells_published=plan.cells_published,
        sensitive_columns=table.sensitive_columns,
        public_columns=table.public_columns,
        rows=table.rows,
        marginal=marginal,
        mixture=FullChannel.of_plan(plan).matrix if hidden else None,
    )
    return Draw(plan, published, states, Asking(parameters, DrawnCounter(table, parameters, states)))


def noisy_marginal(histogram: Histogram, stream: Keystream) -> Marginal:
    """The histogram with discrete Laplace noise of epsilon 1, as a release publishes it (SPEC 8)."""
    noise = discrete_laplace(stream.subkey("marginal"), histogram.m, MARGINAL_EPSILON)
    counts = tuple((histogram.counts + noise).tolist())
    return Marginal(counts, MARGINAL_EPSILON, discrete_laplace_variance(MARGINAL_EPSILON))


def _plan(mechanism: Mechanism, histogram: Histogram, privacy: Privacy | None, marginal: Marginal | None) -> Plan:
    if marginal is None or not isinstance(mechanism, PlansFromPublic):
        return mechanism.plan(histogram, privacy)
    public = Histogram(histogram.domain, np.maximum(np.array(marginal.counts, dtype=np.int64), 1))
    return mechanism.plan(histogram, privacy, public=public)


def _states(m: int, positions: Sequence[Ints], cells: Any, published: Codes) -> Codes:
    """Cell and value as one number: cell i's values take the numbers from m_0 + .. + m_{i-1}."""
    place = np.zeros((len(positions), m), np.int64)
    start = 0
    for cell, values in enumerate(positions):
        place[cell, values] = start + np.arange(len(values))
        start += len(values)
    return smallest(place[cells, published], start)
