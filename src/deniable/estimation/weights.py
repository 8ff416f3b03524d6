"""Weights: an estimate as a sum over published rows (SPEC 8).

    w(c, y) = sum over x in S of P_c^-1[x][y],    E[w | x] = 1[x in S]

so the sum of w over rows is an unbiased count, and the sum of w^2 - w an unbiased estimate of its variance. A *state*
is a cell and a published value of it; weights of a value set S are one number per state.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.core.channel import SCALE, Channel
from deniable.core.errors import QuestionError
from deniable.estimation.published import Bools, Floats, Parameters
from deniable.estimation.tensor import SINGULAR


@dataclass(frozen=True, eq=False)
class States:
    """The states of a release: which values each cell has, and how its channel is inverted.

    Attributes:
        m: the size of the table's domain.
        channels, positions: of each cell.
        mixture: for unpublished cells the m x m channel of the whole release; None when every cell is published.
    """

    m: int
    channels: tuple[Channel, ...]
    positions: tuple[npt.NDArray[np.int64], ...]
    mixture: Floats | None = None

    @classmethod
    def of(cls, manifest: Parameters) -> States:
        """The states of a release, from its manifest."""
        parts = getattr(manifest, "parts", None)
        if parts is not None and (len(parts) != 1 or parts[0].range is not None):
            raise QuestionError(
                "This release perturbs several columns independently, or numbers within a range: such questions "
                "are answered from its parts, not from one list of values."
            )
        m = len(manifest.domain)
        positions = tuple(np.asarray(p, np.int64) for p in manifest.cell_positions)
        if manifest.cells_published or len(positions) == 1:
            return cls(m, tuple(manifest.channels), positions)
        mixture = getattr(manifest, "mixture", None)
        if mixture is None:
            raise QuestionError(
                "This release does not publish the cells of its rows, nor the channel of the whole table: "
                "questions about the sensitive column cannot be answered from it so. Fix: method='four-state exact'."
            )
        return cls(m, (), (np.arange(m),), np.asarray(mixture, np.float64))

    @cached_property
    def count(self) -> int:
        """How many states there are."""
        return sum(len(p) for p in self.positions)

    @cached_property
    def values(self) -> npt.NDArray[np.int64]:
        """For each state the position of its value in the domain."""
        return np.concatenate(self.positions)

    def slices(self) -> list[slice]:
        """Where each cell's states are."""
        edges = np.cumsum([0, *(len(p) for p in self.positions)])
        return [slice(int(a), int(b)) for a, b in pairwise(edges)]

    @cached_property
    def unbiased(self) -> bool:
        """Whether every channel can be inverted. Where one cannot (all values redrawn), its rows are estimated from
        the replacing distribution alone, and no interval is claimed."""
        if self.mixture is not None:
            return bool(np.linalg.cond(self.mixture) < SINGULAR)
        return all(channel.invertible for channel in self.channels)

    def weights(self, chosen: Bools) -> Floats:
        """w over states, for value sets given as rows of booleans over the domain: [..., m] -> [..., states]."""
        if self.mixture is not None:
            return self._mixture_weights(chosen)
        parts = []
        for channel, positions in zip(self.channels, self.positions, strict=True):
            inside = chosen[..., positions]
            found = channel.weights(inside) if channel.invertible else redrawn_weights(channel, inside)
            # Exactly 1 and 0 where the cell lies wholly inside or outside S: such rows carry no error.
            found = np.where(inside.all(-1, keepdims=True), 1.0, np.where(inside.any(-1, keepdims=True), found, 0.0))
            parts.append(found)
        return np.concatenate(parts, axis=-1)

    def _mixture_weights(self, chosen: Bools) -> Floats:
        assert self.mixture is not None
        if self.unbiased:
            solved = np.linalg.solve(self.mixture.T, chosen.reshape(-1, self.m).astype(np.float64).T).T
            return solved.reshape(chosen.shape).astype(np.float64)
        return chosen.astype(np.float64)


@dataclass(frozen=True)
class WithMissing:
    """A manifest whose exempt missing values are one more value, in a cell of its own that is published as it is."""

    domain: tuple[Hashable, ...]
    channels: tuple[Channel, ...]
    cell_positions: tuple[npt.NDArray[Any], ...]
    sensitive_columns: tuple[str, ...]
    public_columns: tuple[str, ...]
    rows: int
    marginal: Any
    cells_published: bool = True
    mixture: Any = None


def with_missing(manifest: Parameters) -> Parameters:
    """The manifest as it is, or with its exempt missing values made explicit."""
    names = tuple(manifest.sensitive_columns)
    missing: Hashable = (None,) * len(names) if len(names) > 1 else None
    if getattr(manifest, "missing", "value") != "exempt" or missing in manifest.domain:
        return manifest
    domain, public = (*manifest.domain, missing), tuple(manifest.public_columns)
    if not manifest.cells_published and len(manifest.channels) != 1:
        mixture = getattr(manifest, "mixture", None)
        if mixture is not None:  # one more value that is always published as itself
            mixture = np.pad(np.asarray(mixture, np.float64), (0, 1))
            mixture[-1, -1] = 1.0
        return WithMissing(domain, (), (), names, public, manifest.rows, manifest.marginal, False, mixture)
    kept = Channel((missing,), np.array([SCALE]), np.array([SCALE]))
    return WithMissing(
        domain,
        (*manifest.channels, kept),
        (*manifest.cell_positions, np.array([len(manifest.domain)])),
        names,
        public,
        manifest.rows,
        manifest.marginal,
    )


def redrawn_weights(channel: Channel, inside: npt.NDArray[Any]) -> Floats:
    """The share of the replacing distribution in S, whatever was published: all that a channel without coins tells."""
    share = (inside * channel.replacing).sum(-1, keepdims=True)
    return np.broadcast_to(share, inside.shape).astype(np.float64)
