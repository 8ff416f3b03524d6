"""Which releases may be pooled, and what a part of them says about the rows of all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from deniable.core.arrays import Floats
from deniable.core.channel import Channel
from deniable.core.errors import listing, option
from deniable.core.manifest import Manifest
from deniable.core.part import Marginal, Part
from deniable.core.promise import Amplification, Promise


def difference(one: Manifest, other: Manifest) -> str:
    """Why two releases cannot be pooled; empty when they can."""
    if one.columns != other.columns:
        names = [{(column.name, column.type) for column in manifest.columns} for manifest in (one, other)]
        off = sorted(name for name, _ in names[0] ^ names[1])
        return f"the columns differ ({listing(off)})." if off else "the columns stand in another order or role."
    if one.recoded != other.recoded:
        return (
            f"columns were made coarser in one of them, or in another way ({option('recode', '')}, "
            f"{option('rare', '')}, {option('suppress', '')})."
        )
    grouped = [manifest.mechanism for manifest in (one, other) for part in manifest.parts if part.groups is not None]
    if grouped:
        return f"{grouped[0]!r} publishes groups of its own rows; 'uniform' can be pooled."
    if len(one.parts) != len(other.parts):
        return "one perturbs its columns together, the other one by one."
    swapped = [part.columns[0] for manifest in (one, other) for part in manifest.parts if part.swapped is not None]
    if swapped:
        return f"{listing(list(dict.fromkeys(swapped)))} is swapped among the rows of each release, not of the pool."
    for mine, theirs in zip(one.parts, other.parts, strict=True):
        what = listing(list(mine.columns))
        if mine.columns != theirs.columns or mine.missing != theirs.missing or mine.range != theirs.range:
            return f"{what} has another range or another way with missing values."
        if mine.item != theirs.item:
            return f"{what} is an item of lists that were read in another way (most=, beyond=)."
        if mine.domain != theirs.domain:
            return f"{what} has other values."
        if _design(mine) != _design(theirs):
            return f"{what} shows line-ups of another design."
        if not _same_channels(mine, theirs):
            return f"{what} was perturbed with other coins, cells or replacements."
        if _without_frequent(mine.promise) != _without_frequent(theirs.promise):
            return f"{what} is promised something else (rho1, rho2, exempt or more frequent values)."
    return ""


def _design(part: Part) -> dict[str, Any] | None:
    return None if part.lineups is None else part.lineups.integers()


def _same_channels(mine: Part, theirs: Part) -> bool:
    if mine.mixture is not None or theirs.mixture is not None:
        return np.array_equal(_matrix(mine), _matrix(theirs))
    if len(mine.channels) != len(theirs.channels) or mine.cells_published != theirs.cells_published:
        return False
    pairs = zip(mine.channels, theirs.channels, mine.cell_positions, theirs.cell_positions, strict=True)
    return all(_same(a, b) and np.array_equal(p, q) for a, b, p, q in pairs)


def _matrix(part: Part) -> Floats:
    return np.zeros(0) if part.mixture is None else np.asarray(part.mixture)


def _same(one: Channel, other: Channel) -> bool:
    return np.array_equal(one.keep, other.keep) and np.array_equal(one.replace, other.replace)


def _without_frequent(promise: Promise) -> Promise:
    """A promise by gamma alone, which holds for every value that is not too frequent in the pool; else as it is."""
    return replace(promise, above=()) if type(promise) is Amplification else promise


def pooled_part(parts: Sequence[Part], rows: int) -> Part:
    """A part for the rows of all: with the sum of their histograms, and what they promise of all rows together.

    A value is too frequent for a belief of rho1 in the pool only if it is in one of the releases. Of these values all
    are left out that may be, by the noisy histogram.
    """
    marginal, promise = _added([part.marginal for part in parts]), parts[0].promise
    if type(promise) is Amplification and promise.rho1 is not None:
        frequent = sorted({place for part in parts for place in _frequent(part.promise)})
        if marginal is not None:
            line, slack = promise.rho1 * rows, 2 * math.ceil(14 / marginal.epsilon)  # what verify lets pass
            frequent = [place for place in frequent if marginal.counts[place] + slack > line]
        promise = replace(promise, above=tuple(frequent))
    return replace(parts[0], marginal=marginal, promise=promise)


def _frequent(promise: Promise) -> tuple[int, ...]:
    return promise.above if isinstance(promise, Amplification) else ()


def _added(marginals: Sequence[Marginal | None]) -> Marginal | None:
    """Noisy histograms of different people add up, and so do the variances of their noise."""
    known = [marginal for marginal in marginals if marginal is not None]
    if len(known) < len(marginals):
        return None
    counts = np.sum([marginal.counts for marginal in known], axis=0)
    return Marginal(
        tuple(counts.tolist()),
        max(marginal.epsilon for marginal in known),
        sum(marginal.variance for marginal in known),
    )
