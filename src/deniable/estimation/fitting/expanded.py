"""Rows by what they show, each standing for all that its original may have been."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from scipy import sparse

from deniable.core.errors import QuestionError
from deniable.estimation.asking import asking
from deniable.estimation.fitting.design import Atom
from deniable.estimation.fitting.sources import Source, sources_of
from deniable.estimation.published import Floats, Ints, Published

MOST_LEVELS = 5_000
MOST_STEPS = 2 * 10**9  # kinds of rows x combinations of levels
KEPT = 2**24  # estimates of kinds at combinations
BLOCK_ENTRIES = 2**16  # kinds of public rows x combinations, or what rows show


@dataclass(frozen=True, eq=False)
class Levels:
    """The true states of a source as a model sees them: those alike in all atoms are one level.

    Attributes:
        source: whose states.
        atoms: the model's atoms of its columns.
        numbers: of each level and atom [levels, atoms].
        weights: what rows in each published state count for at each level [levels, published].
        masses: the share of replacements at each level; of swapped columns only.
    """

    source: Source
    atoms: tuple[Atom, ...]
    numbers: Floats
    weights: Floats
    masses: Floats | None = None

    @classmethod
    def of(cls, source: Source, atoms: Sequence[Atom]) -> Levels:
        own = tuple(atom for atom in atoms if atom.column in source.values)
        by_state = np.stack([atom.numbers(source.values[atom.column]) for atom in own], axis=1)
        first, level = _alike(by_state)
        member = np.arange(len(first))[:, None] == level[None, :]
        masses = None if source.swap is None else member @ source.swap[1]
        return cls(source, own, by_state[first], source.weights(member.astype(np.float64)), masses)


@dataclass(frozen=True, eq=False)
class Block:
    """Some kinds of public rows, with all combinations of levels that their originals may have had.

    Attributes:
        numbers: of each atom [kinds, combinations]; one of them is 1 where it decides nothing.
        counts: rows of each kind by what they show [kinds, shown], sparse.
        factors: what these count for at each combination, by source [combinations, shown].
    """

    numbers: dict[Atom, Floats]
    counts: sparse.csr_array
    factors: tuple[Floats, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """How many kinds and combinations."""
        return self.counts.shape[0], len(self.factors[0])

    @cached_property
    def weights(self) -> Floats:
        """What rows count for at each combination [combinations, shown]."""
        return self.without(-1)

    def without(self, source: int) -> Floats:
        """The same but for one source."""
        others = [factor for place, factor in enumerate(self.factors) if place != source]
        return math.prod(others, start=np.ones_like(self.factors[0]))

    @cached_property
    def rows(self) -> Floats:
        """Estimated originals [kinds, combinations]."""
        return self.counts @ self.weights.T

    def shown(self, numbers: Floats, weights: Floats) -> Floats:
        """Numbers of originals [kinds, combinations, size] as rows show them, where there are rows [filled, size]."""
        kind, shown = self.counts.tocoo().coords
        by_shown: Floats = (np.ascontiguousarray(numbers.transpose(0, 2, 1)) @ weights).transpose(0, 2, 1)[kind, shown]
        return by_shown


class Expanded:
    """The distinct rows of a release as a model sees them.

    Args:
        published: the release.
        atoms: what the model needs of a row.

    Attributes:
        levels: of each perturbed source.
        places: the level of each source at each combination [sources, combinations].
    """

    def __init__(self, published: Published, atoms: Sequence[Atom]) -> None:
        ask = asking(published)
        columns = list(dict.fromkeys(atom.column for atom in atoms))
        self.levels = [Levels.of(source, atoms) for source in sources_of(published, columns)]
        hidden = {name for levels in self.levels for name in levels.source.values}
        public = [name for name in columns if name not in hidden]
        codes = ask.counter.coded(public, ()).keys
        alike, own = [], []
        for place, name in enumerate(public):
            distinct = ask.counter.distinct(name)
            values = pa.concat_arrays([distinct, pa.nulls(1, distinct.type)])
            made = [(atom, atom.numbers(values)) for atom in atoms if atom.column == name]
            first, kind = _alike(np.stack([numbers for _, numbers in made], axis=1))
            alike.append(kind[codes[:, place]])
            own += [(place, atom, numbers[first]) for atom, numbers in made]
        factors = []
        for levels in self.levels:
            first, kind = _alike(levels.weights.T)  # what counts alike at every level
            alike.append(kind[levels.source.states])
            factors.append(levels.weights[:, first])
        rows, counts, _ = _distinct(alike, len(codes))
        kinds, _, kind = _distinct(list(rows.T[: len(public)]), len(rows))
        shown, _, state = _distinct(list(rows.T[len(public) :]), len(rows))
        self._counts = sparse.csr_array((counts.astype(np.float64), (kind, state)), (len(kinds), len(shown)))
        self._public = {atom: numbers[kinds[:, place], None] for place, atom, numbers in own}
        sizes = [len(levels.numbers) for levels in self.levels]
        combinations = math.prod(sizes)
        if combinations > MOST_LEVELS or combinations * len(counts) > MOST_STEPS:
            raise QuestionError(
                f"The perturbed columns of this model have {combinations:,} combinations of values that it tells "
                f"apart, more than can be computed with {len(counts):,} kinds of rows. Fix: fewer perturbed columns, "
                "or conditions on them in place of the columns themselves."
            )
        self.places: Ints = np.indices(sizes).reshape(len(sizes), combinations)
        self._hidden: dict[Atom, Floats] = {}
        self._factors = []
        for place, levels in enumerate(self.levels):
            at = self.places[place]
            self._factors.append(factors[place][at][:, shown[:, place]])
            self._hidden |= {atom: levels.numbers[None, at, i] for i, atom in enumerate(levels.atoms)}
        self._factors = self._factors or [np.ones((1, len(shown)))]

    @property
    def perturbed(self) -> set[str]:
        """The columns whose rows do not show what they are, in what the model sees of them."""
        noisy = [levels for levels in self.levels if not np.isin(levels.weights, (0.0, 1.0)).all()]
        return {atom.column for levels in noisy for atom in levels.atoms}

    def __iter__(self) -> Iterator[Block]:
        yield from self._kept or self._blocks()

    @cached_property
    def _kept(self) -> list[Block]:
        """All blocks, if their estimates fit into memory: a model is fitted in several passes."""
        return list(self._blocks()) if self._counts.shape[0] * len(self._factors[0]) <= KEPT else []

    def _blocks(self) -> Iterator[Block]:
        step = max(1, BLOCK_ENTRIES // max(self._factors[0].shape))
        for start in range(0, self._counts.shape[0], step):
            part = slice(start, start + step)
            counts = self._counts[part]
            seen, places = np.unique(counts.indices, return_inverse=True)
            counts = sparse.csr_array((counts.data, places, counts.indptr), (counts.shape[0], len(seen)))
            public = {atom: numbers[part] for atom, numbers in self._public.items()}
            yield Block(public | self._hidden, counts, tuple(factor[:, seen] for factor in self._factors))


def _alike(numbers: Floats) -> tuple[Ints, Ints]:
    """Rows of numbers that are the same, missing ones too: the first of each kind, and the kind of every row."""
    shown = np.concatenate([np.nan_to_num(numbers, nan=0.0), np.isnan(numbers)], axis=1)
    _, first, inverse = np.unique(shown, axis=0, return_index=True, return_inverse=True)
    return first, inverse.reshape(-1)


def _distinct(columns: Sequence[Ints], rows: int) -> tuple[Ints, Ints, Ints]:
    """The distinct rows of columns of small numbers, in their order, how often each occurs, and which every row is."""
    sizes, key = [int(column.max(initial=0)) + 1 for column in columns], np.zeros(rows, np.int64)
    for column, size in zip(columns, sizes, strict=True):
        if int(key.max(initial=0)) >= 2**62 // size:
            key = np.unique(key, return_inverse=True)[1].reshape(-1)
        key = key * size + column
    if math.prod(sizes) <= max(8 * rows, 2**16):  # far faster than sorting
        every = np.bincount(key)
        first = np.zeros(len(every), np.int64)
        first[key] = np.arange(rows)
        filled = np.flatnonzero(every)
        first, counts = first[filled], every[filled]
        every[filled] = np.arange(len(filled))
        inverse = every[key]
    else:
        _, first, inverse, counts = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    picked = [column[first] for column in columns]
    return np.stack(picked, axis=1) if picked else np.zeros((len(first), 0), np.int64), counts, inverse.reshape(-1)
