"""Releases of several owners as one: the same columns of other people, or other columns of the same people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.channels import Breach, Channel, Requirement
from deniable.core.errors import ColumnError, OptionError, did_you_mean, listing, option, shortened
from deniable.core.exact import SCALE
from deniable.core.manifest import Column, Manifest, Randomness, guarantee_dict, with_sentence
from deniable.core.part import Marginal, Part
from deniable.core.privacy import Privacy
from deniable.core.promise import Amplification, Promise, RelativePrior
from deniable.core.values import Floats
from deniable.mechanisms.retention import Perturbed, guarantee, heaviest
from deniable.release.release import Release

# -- Which releases may be pooled, and what a part of them says about the rows of all ----------------------------------


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


# -- Releases of several owners as one: the same columns of other people, or other columns of the same people ----------
# (mathematics 6).
#
# Every row was perturbed by its owner before it came here; nothing is perturbed again, and no original is needed.


NO_CHANCE = 64  # so many perturbed rows are not alike by chance
ORDER = "Rows of a pool stand release by release: their place tells whose release they come from."
FREQUENCIES = (
    "How frequent a value is, is said of the whole pool: whoever knows that it is more frequent among the rows of one "
    "release may become surer of it there."
)


def pool(releases: Sequence[Release]) -> Release:
    """The rows of several releases that have the same columns and were perturbed in the same way.

    Questions are then answered about all rows together, with the accuracy of all of them.

    Args:
        releases: two or more, of different people: whoever is in two of them counts twice, and errors are then larger
            than is said. Publications of one series are refused, since they have the same people; who else is in two
            releases, no release tells.

    >>> import pyarrow as pa
    >>> import deniable as dn
    >>> how = {"privacy": dn.Privacy("1/2", "3/4"), "mechanism": "uniform", "domain": ["cold", "flu", "hiv"]}
    >>> north = dn.publish(pa.table({"disease": ["flu", "cold"] * 100}), sensitive="disease", **how)
    >>> south = dn.publish(pa.table({"disease": ["flu", "hiv"] * 150}), sensitive="disease", **how)
    >>> dn.pool([north, south])
    <Release of 500 rows, disease by uniform>
    """
    several = [releases] if isinstance(releases, Release) else list(releases)
    for release in several:
        _require_release("pool", release)
    if len(several) < 2:
        raise OptionError(f"pool needs two releases or more; got {len(several)}. Fix: name another.")
    first = several[0].manifest
    for number, release in enumerate(several[1:], start=2):
        problem = difference(first, release.manifest)
        if problem:
            raise OptionError(
                f"Release {number} cannot be pooled with release 1: {problem} Fix: let all owners publish with the "
                f"same columns, declared values ({option('domain', '')}) or ranges, coins and requirement; coins "
                f"depend on no counts with {option('mechanism', 'uniform')} and rho1, or where "
                f"{option('mechanism', 'retention')} names them."
            )
    _require_others(several)
    table = pa.concat_tables([release.table for release in several]).combine_chunks()
    parts = tuple(
        pooled_part([release.manifest.parts[i] for release in several], table.num_rows) for i in range(len(first.parts))
    )
    limits = [ORDER, *([FREQUENCIES] if first.guarantee["adversary"] == "frequency" else ())]
    promised = {**first.guarantee, "not_protected": [*first.guarantee["not_protected"], *limits]}
    manifest = replace(
        first,
        name=" + ".join(dict.fromkeys(release.manifest.name for release in several)),
        rows=table.num_rows,
        parts=parts,
        guarantee=promised,
        randomness=_randomness([release.manifest.randomness for release in several]),
        data=None,
        lineups=None,
    )
    return Release(with_sentence(manifest), table=table)


def _require_others(releases: Sequence[Release]) -> None:
    """Refuse people who are known to be there twice: their rows would count twice, and so would their errors."""
    for number, release in enumerate(releases, start=1):
        for earlier, other in enumerate(releases[: number - 1], start=1):
            rows = release.manifest.rows
            if set(release.manifest.randomness.series) & set(other.manifest.randomness.series):
                raise OptionError(
                    f"Releases {earlier} and {number} are publications of one series: their people are the same, who "
                    "must not count twice. Fix: pool the latest of each series."
                )
            if release is other or (rows >= NO_CHANCE and release.table.equals(other.table)):
                raise OptionError(
                    f"Release {number} has the same rows as release {earlier}: people must not count twice. Fix: pool "
                    "releases of different people."
                )


def _randomness(sources: Sequence[Randomness]) -> Randomness:
    """The weakest of all sources: one seed is enough to undo a share of the rows."""
    weakest = next((one for one in sources if one.source == "seed"), sources[0])
    series = tuple(dict.fromkeys(name for one in sources for name in one.series))
    return replace(weakest, shuffled=all(one.shuffled for one in sources), series=series)


def join(left: Release, right: Release, on: str) -> Release:
    """Two owners' columns of the same people, matched by a public id; rows without a partner are left out.

    Each owner perturbed its own columns, so the joined release has the parts of both, and questions combine them.

    Args:
        left, right: the two releases; each column has one coin.
        on: the public column that names a row in both; it stays in the joined release.

    >>> import pyarrow as pa
    >>> import deniable as dn
    >>> privacy = dn.Privacy(rho1="1/2", rho2="3/4")
    >>> jobs = pa.table({"id": range(200), "job": ["cook", "nurse"] * 100})
    >>> diseases = pa.table({"id": range(200), "disease": ["flu", "hiv"] * 100})
    >>> left = dn.publish(jobs, sensitive="job", privacy=privacy, mechanism="uniform")
    >>> right = dn.publish(diseases, sensitive="disease", privacy=privacy, mechanism="uniform")
    >>> dn.join(left, right, on="id")
    <Release of 200 rows, job, disease by retention>
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
    parts = [(part, manifest) for manifest in manifests for part in manifest.parts]
    perturbed = [perturbed_of(part, manifest) for part, manifest in parts]
    promised = guarantee(perturbed)
    manifest = replace(
        left.manifest,
        name=" x ".join(manifest.name for manifest in manifests),
        mechanism="retention",
        options={"columns": {column.column: {"replacing": column.replacing} for column in perturbed}},
        rows=table.num_rows,
        columns=tuple(ordered),
        # Histograms are of the owners' tables, not of the match. Swapped columns keep the number of rows that they were
        # swapped among, partners or not: errors depend on it.
        parts=tuple(
            replace(part, marginal=None, promise=promise, requirement=_requirement(part, manifest, column.replacing))
            for (part, manifest), column, promise in zip(parts, perturbed, promised.promises, strict=True)
        ),
        privacy=None,
        guarantee=guarantee_dict(promised),
        randomness=_randomness([manifest.randomness for manifest in manifests]),
        data=None,
        lineups=None,
        recoded={**right.manifest.recoded, **left.manifest.recoded},
        labels={**right.manifest.labels, **left.manifest.labels},
    )
    return Release(with_sentence(manifest), table=table.select([column.name for column in ordered]))


def _require_release(what: str, release: Any) -> None:
    if not isinstance(release, Release):
        raise OptionError(
            f"{what} puts releases together; got {type(release).__name__}. Fix: dn.open_release(folder) opens one."
        )


def _check_joinable(side: str, release: Release, on: str) -> None:
    manifest = release.manifest
    if on not in manifest.public_columns:
        raise ColumnError(
            f"The {side} release has no public column {shortened(on)}.{did_you_mean(on, manifest.public_columns)} "
            "Fix: publish the id of the rows as a public column."
        )
    ids = release.table[on]
    if ids.null_count or pc.count_distinct(ids).as_py() != len(ids):
        raise ColumnError(
            f"{on!r} does not name the rows of the {side} release: it is missing or repeated somewhere. Fix: a column "
            "that has one value for each row, and another for every other row."
        )
    for part in manifest.parts:
        if part.item is not None:
            raise OptionError(
                f"The {side} release publishes the items of {part.item.list!r} under one budget for a row, which other "
                "columns of the same people are no part of. Fix: publish both columns from one table."
            )
        if len(part.columns) != 1 or part.coin is None:
            raise OptionError(
                f"The {side} release perturbs {listing(list(part.columns))} in cells, together or with several coins; "
                "columns can be joined when each has one coin. Fix: publish with 'uniform' or Retention({..})."
            )


def perturbed_of(part: Part, manifest: Manifest) -> Perturbed:
    """What a column of a manifest promises, in the terms of columns that are perturbed one by one."""
    if part.range is not None:
        gamma, keep, step = part.range.exact_gamma, part.range.keep, part.range.rounds_to
    else:
        channel = part.channels[0]
        gamma, keep, step = channel.exact_gamma, int(channel.keep[0]), None
    if part.swapped is not None:
        replacing, gamma = "swapping", None
    else:
        replacing = "uniform" if part.range is not None or part.channels[0].is_uniform else "identity"
    return Perturbed(
        column=part.columns[0],
        replacing=replacing,
        keep=keep,
        gamma=gamma,
        noise=0.0 if part.marginal is None else part.marginal.cost,
        rounded=step,
        relative=_relative_prior(part, manifest.rows) if replacing == "identity" else Fraction(1),
        required=_required(_requirement(part, manifest, replacing)),
        swapped=part.swapped,
        mass=heaviest(part.range if part.range is not None else part.channels[0]),
    )


def _requirement(part: Part, manifest: Manifest, replacing: str) -> Requirement | None:
    """The column's own requirement, or the release's where that is one for all values."""
    stated = manifest.privacy
    if part.requirement is not None or stated is None or replacing != "uniform":
        return part.requirement
    if stated["rho1"] is None or stated["rho2"] is None:
        return None
    return Requirement(Fraction(stated["rho1"]), Fraction(stated["rho2"]), stated["adversary"])


def _required(stated: Requirement | None) -> Breach | Privacy | None:
    if stated is None:
        return None
    return Privacy(stated.rho1, stated.rho2) if stated.s is None else (stated.s, stated.rho1, stated.rho2)


def _relative_prior(part: Part, rows: int) -> Fraction:
    """How many times likelier than its replacements a value is, at most: as promised, or as the release tells."""
    if isinstance(part.promise, RelativePrior) and part.promise.like_column:
        return part.promise.s
    weights = part.channels[0].replace.tolist()
    if part.marginal is None:
        return Fraction(SCALE, min(weights))
    slack = math.ceil(14 / part.marginal.epsilon)  # the noise exceeds it once in a million
    most = [max(part.marginal.counts[place], 0) + slack for place in part.cell_positions[0].tolist()]
    return max(Fraction(count * SCALE, rows * weight) for count, weight in zip(most, weights, strict=True))
