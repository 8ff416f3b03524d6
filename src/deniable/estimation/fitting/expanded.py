"""Rows by what they show, each standing for all that its original may have been."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pyarrow as pa

from deniable.core.errors import QuestionError
from deniable.estimation.asking import asking
from deniable.estimation.fitting.design import Atom
from deniable.estimation.fitting.sources import Source, sources_of
from deniable.estimation.published import Floats, Ints, Published

MOST_LEVELS = 5_000
MOST_STEPS = 2 * 10**9  # kinds of rows x combinations of levels


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
class Combination:
    """One combination of levels: what every kind of row counts for at it, and each atom's numbers there.

    Attributes:
        places: the level of each source.
        weight: of each kind of row.
        factors: the same by source.
        numbers: of each atom, for every kind of row or alike for all.
    """

    places: tuple[int, ...]
    weight: Floats
    factors: tuple[Floats, ...]
    numbers: dict[Atom, Floats | float]


class Expanded:
    """The rows of a release as a model sees them.

    Args:
        published: the release.
        atoms: what the model needs of a row.

    Attributes:
        counts: how many rows there are of each kind; rows alike in all that matters are one kind.
        levels: of each perturbed source.
    """

    def __init__(self, published: Published, atoms: Sequence[Atom]) -> None:
        ask = asking(published)
        columns = list(dict.fromkeys(atom.column for atom in atoms))
        self.levels = [Levels.of(source, atoms) for source in sources_of(published, columns)]
        hidden = {name for levels in self.levels for name in levels.source.values}
        public = [name for name in columns if name not in hidden]
        codes = ask.counter.coded(public, ()).keys
        shown: list[Ints] = [levels.source.states for levels in self.levels]
        own: list[tuple[Atom, Floats]] = []
        for place, name in enumerate(public):
            distinct = ask.counter.distinct(name)
            values = pa.concat_arrays([distinct, pa.nulls(1, distinct.type)])
            made = [(atom, atom.numbers(values)) for atom in atoms if atom.column == name]
            _, alike = _alike(np.stack([numbers for _, numbers in made], axis=1))
            shown.append(alike[codes[:, place]])
            own += [(atom, numbers[codes[:, place]]) for atom, numbers in made]
        key = _key(shown, len(codes))
        _, first, inverse, counts = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
        self.counts = counts.astype(np.float64)
        self.kinds: Ints = inverse.reshape(-1)
        self._public: dict[Atom, Floats | float] = {atom: numbers[first] for atom, numbers in own}
        self._states = [levels.source.states[first] for levels in self.levels]
        combinations = math.prod(len(levels.numbers) for levels in self.levels)
        if combinations > MOST_LEVELS or combinations * len(counts) > MOST_STEPS:
            raise QuestionError(
                f"The perturbed columns of this model have {combinations:,} combinations of values that it tells "
                f"apart, more than can be computed with {len(counts):,} kinds of rows. Fix: fewer perturbed columns, "
                "or conditions on them in place of the columns themselves."
            )

    @property
    def perturbed(self) -> set[str]:
        """The columns whose rows do not show what they are, in what the model sees of them."""
        noisy = [levels for levels in self.levels if not np.isin(levels.weights, (0.0, 1.0)).all()]
        return {atom.column for levels in noisy for atom in levels.atoms}

    def __iter__(self) -> Iterator[Combination]:
        for places in product(*(range(len(levels.numbers)) for levels in self.levels)):
            numbers = dict(self._public)
            factors = []
            for levels, place, states in zip(self.levels, places, self._states, strict=True):
                factors.append(levels.weights[place][states])
                numbers |= {atom: float(levels.numbers[place, i]) for i, atom in enumerate(levels.atoms)}
            weight = np.ones(len(self.counts))
            for factor in factors:
                weight = weight * factor
            yield Combination(places, weight, tuple(factors), numbers)


def _alike(numbers: Floats) -> tuple[Ints, Ints]:
    """Rows of numbers that are the same, missing ones too: the first of each kind, and the kind of every row."""
    shown = np.concatenate([np.nan_to_num(numbers, nan=0.0), np.isnan(numbers)], axis=1)
    _, first, inverse = np.unique(shown, axis=0, return_index=True, return_inverse=True)
    return first, inverse.reshape(-1)


def _key(columns: Sequence[Ints], rows: int) -> Ints:
    """Columns of small numbers as one number a row."""
    key = np.zeros(rows, np.int64)
    for column in columns:
        size = int(column.max(initial=0)) + 1
        if int(key.max(initial=0)) >= 2**62 // size:
            _, key = np.unique(key, return_inverse=True)
            key = key.reshape(-1)
        key = key * size + column
    return key
