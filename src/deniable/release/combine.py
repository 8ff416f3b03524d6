"""Releases of several owners as one: the same columns of other people, or other columns of the same people (SPEC 6).

Every row was perturbed by its owner before it came here; nothing is perturbed again, and no original is needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.channel import SCALE, Channel
from deniable.core.errors import ColumnError, OptionError, listing
from deniable.core.manifest import Column, Manifest, Marginal, Part, Randomness, guarantee_dict
from deniable.core.privacy import Privacy
from deniable.core.replace import Breach, NumberRange
from deniable.estimation.swapping import swapped_columns
from deniable.mechanisms.retention_guarantee import Perturbed, guarantee
from deniable.release.release import Release


def pool(releases: Sequence[Release]) -> Release:
    """The rows of several releases that have the same columns and were perturbed in the same way.

    Questions are then answered about all rows together, with the accuracy of all of them.
    """
    several = [releases] if isinstance(releases, Release) else list(releases)
    for release in several:
        _require_release("pool", release)
    if len(several) < 2:
        raise OptionError(f"pool needs two releases or more; got {len(several)}.")
    first = several[0].manifest
    for number, release in enumerate(several[1:], start=2):
        problem = _difference(first, release.manifest)
        if problem:
            raise OptionError(
                f"Release {number} cannot be pooled with release 1: {problem} Fix: let all owners publish with the "
                "same columns, declared values (domain=) or ranges, and coins."
            )
    table = pa.concat_tables([release.table for release in several]).combine_chunks()
    parts = tuple(
        replace(part, marginal=_added([release.manifest.parts[i].marginal for release in several]))
        for i, part in enumerate(first.parts)
    )
    order = "Rows of a pool stand release by release: their place tells whose release they come from."
    promised = {**first.guarantee, "not_protected": [*first.guarantee["not_protected"], order]}
    manifest = replace(
        first,
        name=" + ".join(dict.fromkeys(release.manifest.name for release in several)),
        rows=table.num_rows,
        parts=parts,
        guarantee=promised,
        randomness=_randomness([release.manifest.randomness for release in several]),
        data=None,
    )
    return Release(manifest, table=table)


def _difference(one: Manifest, other: Manifest) -> str:
    """Why two releases cannot be pooled; empty when they can."""
    if one.columns != other.columns:
        names = [{(column.name, column.type) for column in manifest.columns} for manifest in (one, other)]
        off = sorted(name for name, _ in names[0] ^ names[1])
        return f"the columns differ ({listing(off)})." if off else "the columns stand in another order or role."
    if len(one.parts) != len(other.parts):
        return "one perturbs its columns together, the other one by one."
    swapped = [*swapped_columns(one), *swapped_columns(other)]
    if swapped:
        return f"{listing(list(dict.fromkeys(swapped)))} is swapped among the rows of each release, not of the pool."
    for mine, theirs in zip(one.parts, other.parts, strict=True):
        what = listing(list(mine.columns))
        if mine.columns != theirs.columns or mine.missing != theirs.missing or mine.range != theirs.range:
            return f"{what} has another range or another way with missing values."
        if mine.domain != theirs.domain:
            return f"{what} has other values."
        if len(mine.channels) != len(theirs.channels) or mine.cells_published != theirs.cells_published:
            return f"{what} has other cells."
        pairs = zip(mine.channels, theirs.channels, mine.cell_positions, theirs.cell_positions, strict=True)
        if not all(_same(a, b) and np.array_equal(p, q) for a, b, p, q in pairs):
            return f"{what} was perturbed with other coins or replacements."
    return ""


def _same(one: Channel, other: Channel) -> bool:
    return np.array_equal(one.keep, other.keep) and np.array_equal(one.replace, other.replace)


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


def _randomness(each: Sequence[Randomness]) -> Randomness:
    """The weakest of all sources: one seed is enough to undo a share of the rows."""
    weakest = next((one for one in each if one.source == "seed"), each[0])
    return replace(weakest, shuffled=all(one.shuffled for one in each))


def join(left: Release, right: Release, on: str) -> Release:
    """Two owners' columns of the same people, matched by a public id; rows without a partner are left out.

    Each owner perturbed its own columns, so the joined release has the parts of both, and questions combine them.
    """
    for release in (left, right):
        _require_release("join", release)
    for side, release in (("left", left), ("right", right)):
        _check_joinable(side, release, on)
    shared = (set(left.manifest.types) & set(right.manifest.types)) - {on}
    if shared:
        raise ColumnError(
            f"Both releases have the column{'s' * (len(shared) > 1)} {listing(sorted(shared))}. Fix: let one of the "
            "owners drop it, or rename it."
        )
    if left.manifest.types[on] != right.manifest.types[on]:
        raise ColumnError(
            f"{on!r} is {left.manifest.types[on]} on the left and {right.manifest.types[on]} on the right. "
            "Fix: publish it with one type."
        )
    table = left.table.join(right.table, on, join_type="inner").combine_chunks()
    if table.num_rows == 0:
        raise ColumnError(f"No value of {on!r} is in both releases.")
    manifests = (left.manifest, right.manifest)
    columns = [column for manifest in manifests for column in manifest.columns if column.name != on]
    ordered = [
        Column(on, left.manifest.types[on], "public"),
        *(column for column in columns if column.role == "public"),
        *(column for column in columns if column.role == "sensitive"),
    ]
    parts = tuple(part for manifest in manifests for part in manifest.parts)
    perturbed = [perturbed_of(part, manifest) for manifest in manifests for part in manifest.parts]
    told = {part.columns[0]: _told(part, manifest) for manifest in manifests for part in manifest.parts}
    manifest = replace(
        left.manifest,
        name=" x ".join(manifest.name for manifest in manifests),
        mechanism="retention",
        options={"columns": told},
        rows=table.num_rows,
        columns=tuple(ordered),
        parts=tuple(replace(part, marginal=None) for part in parts),  # they are of the owners' tables, not of the match
        privacy=None,
        guarantee=guarantee_dict(guarantee(perturbed)),
        randomness=_randomness([manifest.randomness for manifest in manifests]),
        data=None,
    )
    return Release(manifest, table=table.select([column.name for column in ordered]))


def _require_release(what: str, release: Any) -> None:
    if not isinstance(release, Release):
        raise OptionError(
            f"{what} puts releases together; got {type(release).__name__}. Fix: dn.open_release(folder) opens one."
        )


def _check_joinable(side: str, release: Release, on: str) -> None:
    manifest = release.manifest
    if on not in manifest.public_columns:
        raise ColumnError(
            f"The {side} release has no public column {on!r}. Fix: publish the id of the rows as a public column."
        )
    ids = release.table[on]
    if ids.null_count or pc.count_distinct(ids).as_py() != len(ids):
        raise ColumnError(f"{on!r} does not name the rows of the {side} release: it is missing or repeated somewhere.")
    for part in manifest.parts:
        constant = part.range is not None or (
            len(part.channels) == 1 and bool((part.channels[0].keep == part.channels[0].keep[0]).all())
        )
        if len(part.columns) != 1 or not constant:
            raise OptionError(
                f"The {side} release perturbs {listing(list(part.columns))} in cells, together or with several coins; "
                "columns can be joined when each has one coin. Fix: publish with 'uniform' or Retention({..})."
            )


def _told(part: Part, manifest: Manifest) -> dict[str, Any]:
    """How a column was perturbed, and its requirement, as a manifest of several columns has it."""
    name = part.columns[0]
    told: dict[str, Any] = dict(manifest.options.get("columns", {}).get(name, {}))
    if not told:
        like_the_column = part.range is None and not part.channels[0].is_uniform
        told["replacing"] = "identity" if like_the_column else "uniform"
        if like_the_column:
            told["relative_prior"] = str(_relative_prior(part, manifest.rows))
        stated = manifest.privacy
        if stated is not None and not like_the_column and None not in (stated["rho1"], stated["rho2"]):
            told["privacy"] = {name: stated[name] for name in ("rho1", "rho2", "adversary")}
    # Swapped columns keep the number of rows that they were swapped among, partners or not: errors depend on it.
    swapped = swapped_columns(manifest)
    return told | ({"rows": swapped[name]} if name in swapped else {})


def _relative_prior(part: Part, rows: int) -> Fraction:
    """How many times likelier than its replacements a value is, at most, as far as the release itself tells it."""
    weights = part.channels[0].replace.tolist()
    if part.marginal is None:
        return Fraction(SCALE, min(weights))
    slack = math.ceil(14 / part.marginal.epsilon)  # the noise exceeds it once in a million
    most = [max(part.marginal.counts[place], 0) + slack for place in part.cell_positions[0].tolist()]
    return max(Fraction(count * SCALE, rows * weight) for count, weight in zip(most, weights, strict=True))


def perturbed_of(part: Part, manifest: Manifest) -> Perturbed:
    """What a column of a manifest promises."""
    told = _told(part, manifest)
    if part.range is not None:
        grid = NumberRange.from_dict(part.range)
        gamma, keep, rounded = grid.exact_gamma, grid.keep, grid.rounds_to
    else:
        channel = part.channels[0]
        gamma, keep, rounded = channel.exact_gamma, int(channel.keep[0]), None
    return Perturbed(
        column=part.columns[0],
        replacing=told["replacing"],
        keep=keep,
        gamma=None if told["replacing"] == "swapping" else gamma,
        noise=0.0 if part.marginal is None else part.marginal.epsilon,
        rounded=rounded,
        relative=Fraction(told.get("relative_prior", 1)),
        required=_required(told),
    )


def _required(told: Mapping[str, Any]) -> Breach | Privacy | None:
    if "breach" in told:
        s, rho1, rho2 = map(Fraction, told["breach"])
        return s, rho1, rho2
    return Privacy(told["privacy"]["rho1"], told["privacy"]["rho2"]) if "privacy" in told else None
