"""One draw of a release without writing a table: codes in, states out, by the kernel and dealing that publish."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from deniable.core.channels import Channel
from deniable.core.histogram import Histogram
from deniable.core.lineups import LineUpDesign
from deniable.core.part import COUNT_EPSILON, Marginal
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.core.values import Codes, Floats, Ints
from deniable.estimation.asking import Asking
from deniable.estimation.published import OnePart
from deniable.mechanisms import Mechanism
from deniable.mechanisms.decoys import Decoys, full_channel
from deniable.planning.pools import CodedTable
from deniable.tables.counting import CodeCounter
from deniable.tables.encoding import code_type, smallest
from deniable.tables.keys import Keystream, Secret, discrete_laplace, discrete_laplace_variance
from deniable.tables.lineups import LineUpKernel
from deniable.tables.sampler import Kernel
from deniable.tables.worker import Dealer


@dataclass(frozen=True, eq=False)
class Draw:
    """A release that was drawn.

    Attributes:
        plan: how.
        published: the published value of every row, as a position in the domain; -1 where a set is published.
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


def planning_stream() -> Keystream:
    """The randomness of what is predicted from one draw: always the same, so that a plan can be repeated."""
    return stream_of(0, 0, "planner")


def draw_release(table: CodedTable, mechanism: Mechanism, privacy: Privacy | None, stream: Keystream) -> Draw:
    """Plan, deal, perturb."""
    marginal = None
    if privacy is None or privacy.adversary == "frequency":
        marginal = noisy_marginal(table.histogram, stream)
    public = None
    if marginal is not None:
        public = Histogram(table.domain, np.maximum(np.array(marginal.counts, dtype=np.int64), 1))
    plan = mechanism.plan(table.histogram, privacy, public=public)
    return draw_plan(table, plan, stream, marginal)


@dataclass(frozen=True, eq=False)
class _Ready:
    """What every draw of a plan needs. Decoy groups have thousands of cells, so it takes longer than the draw."""

    plan: Plan

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        return tuple(cell.channel for cell in self.plan.parts[0].cells)

    @cached_property
    def positions(self) -> tuple[Ints, ...]:
        return tuple(self.plan.parts[0].positions(cell) for cell in self.plan.parts[0].cells)

    @cached_property
    def kernel(self) -> Kernel:
        return Kernel(self.channels, self.positions)

    @cached_property
    def mixture(self) -> Floats:
        part = self.plan.parts[0]
        return full_channel(replace(part, left_out=None)) if part.mixture is None else np.array(part.mixture)


_lately: dict[int, _Ready] = {}  # of the last plans that were drawn from, by identity
LATELY = 16
CHUNK = 2**20  # rows whose line-ups are drawn at a time


def _ready(plan: Plan) -> _Ready:
    known = _lately.get(id(plan))
    if known is None or known.plan is not plan:
        if len(_lately) >= LATELY:
            _lately.pop(next(iter(_lately)))
        known = _lately[id(plan)] = _Ready(plan)
    return known


@lru_cache(maxsize=LATELY)
def decoys_planned(mechanism: Decoys, histogram: Histogram) -> Plan:
    """A plan of decoy groups, made once for all draws: it depends on nothing that is drawn."""
    return mechanism.plan(histogram, None)


def draw_plan(table: CodedTable, plan: Plan, stream: Keystream, marginal: Marginal | None) -> Draw:
    """Deal and perturb by a plan that was made before."""
    part = plan.parts[0]
    if part.lineups is not None:
        return _draw_lineups(table, plan, part.lineups, stream, marginal)
    ready = _ready(plan)
    channels, positions, cells = ready.channels, ready.positions, None
    if len(channels) > 1:
        cells = Dealer(part, stream.subkey("dealing")).deal(table.codes, np.zeros(table.m, np.int64))
    published = ready.kernel.perturb_rows(table.codes, stream.subkey("draws"), 0, cells)
    seen = plan.cells_published and cells is not None
    states = _states(table.m, positions, cells, published) if seen else published
    hidden = cells is not None and not plan.cells_published
    number = sum(len(places) for places in positions) if seen else table.m
    about = {"channels": channels, "cell_positions": positions, "cells_published": plan.cells_published}
    asking = _asking(table, states, number, marginal, **about, mixture=ready.mixture if hidden else None)
    return Draw(plan, published, states, asking)


def _asking(table: CodedTable, states: Codes, number: int, marginal: Marginal | None, **about: Any) -> Asking:
    """What estimators need of a draw whose rows are in one of a number of states."""
    parameters = OnePart(
        domain=table.domain,
        sensitive_columns=table.sensitive_columns,
        public_columns=table.public_columns,
        rows=table.rows,
        marginal=marginal,
        **about,
    )
    return Asking(parameters, CodeCounter(table.columns.__getitem__, lambda: states, number, table.rows))


def _draw_lineups(
    table: CodedTable, plan: Plan, design: LineUpDesign, stream: Keystream, marginal: Marginal | None
) -> Draw:
    """The set of every row; no row publishes its value alone."""
    words, kernel, number = stream.subkey("draws"), LineUpKernel(design), len(design.sets.lengths)
    states = np.empty(table.rows, code_type(number))
    for start in range(0, table.rows, CHUNK):
        codes = table.codes[start : start + CHUNK]
        states[start : start + CHUNK] = kernel.perturb(codes, words.words(start, len(codes)))
    about = {"channels": (), "cell_positions": (), "cells_published": False, "lineups": design}
    return Draw(plan, np.full(table.rows, -1, np.int8), states, _asking(table, states, number, marginal, **about))


def noisy_marginal(histogram: Histogram, stream: Keystream) -> Marginal:
    """The histogram with discrete Laplace noise, as a release publishes it (mathematics 8)."""
    noise = discrete_laplace(stream.subkey("marginal"), histogram.m, COUNT_EPSILON)
    counts = tuple((histogram.counts + noise).tolist())
    return Marginal(counts, COUNT_EPSILON, discrete_laplace_variance(COUNT_EPSILON))


def _states(m: int, positions: Sequence[Ints], cells: Any, published: Codes) -> Codes:
    """Cell and value as one number: cell i's values take the numbers from m_0 + .. + m_{i-1}."""
    place = np.zeros((len(positions), m), np.int64)
    start = 0
    for cell, values in enumerate(positions):
        place[cell, values] = start + np.arange(len(values))
        start += len(values)
    return smallest(place[cells, published], start)
