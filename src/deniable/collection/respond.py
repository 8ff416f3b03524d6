"""Perturb one row where it was collected, with the thresholds of a release (mathematics 6: clients can do it alone)."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa

from deniable.collection.client import read
from deniable.core.errors import ColumnError, ManifestError, OptionError, listing
from deniable.core.manifest import Manifest
from deniable.core.part import Part, part_dict
from deniable.release.commit import PATIENCE, Commit
from deniable.release.release import Release
from deniable.tables import worker as one_row
from deniable.tables.encoding import arrow_type
from deniable.tables.transforms import fits
from deniable_verify.manifest import part_amplification


def respond(
    row: Mapping[str, Any],
    release: Release | Manifest,
    *,
    draw: Callable[[], int] | None = None,
    limit: float | None = None,
    columns: Sequence[str] | None = None,
    public: Sequence[str] | None = None,
    memory: str | os.PathLike[str] | None = None,
) -> dict[str, Any]:
    """One more row, perturbed as the release's rows are: given the same 64-bit draws, exactly as ``publish`` does.

    What is asked for is a release, and it may ask for too much: its coins, not its words, say how much an answer tells.
    A respondent says what they allow with ``limit``, ``columns`` and ``public``; a request beyond that is refused
    before the row is looked at. Only columns of the release are in the answer, no error names a value, and how much
    work is done does not depend on it.

    Args:
        row: column -> value, None where missing; public columns stay as they are.
        release: whose columns, coins and replacements count.
        draw: a source of 64-bit numbers; by default the operating system's.
        limit: the largest epsilon that the respondent allows, of all perturbed columns together, recomputed from the
            integers of the release; with ``memory``, of all that was ever answered from it.
        columns: the columns that may be asked for, if they are perturbed.
        public: the columns that may be asked for as they are; none, where ``columns`` or this is given and names none.
        memory: a file of the respondent's own, made when it is not there. The same question and value then give the
            same answer, however often they are asked; a changed question or value is one more look, and counts. One
            file for each person; whoever has it can undo the answers.

    >>> import pyarrow as pa
    >>> import deniable as dn
    >>> pilot = pa.table({"town": ["Ulm", "Bonn"] * 50, "smokes": ["yes", "no", "no", "no"] * 25})
    >>> release = dn.publish(pilot, sensitive="smokes", privacy=dn.Privacy("1/2", "3/4"), mechanism="uniform")
    >>> answer = dn.respond({"town": "Ulm", "smokes": "yes"}, release)
    >>> answer["town"], answer["smokes"] in ("yes", "no")
    ('Ulm', True)
    >>> try:
    ...     dn.respond({"smokes": "yes"}, release, limit=0.5, columns=["smokes"], public=["town"])
    ... except dn.DeniableError as refusal:
    ...     print(str(refusal).partition(" Fix")[0])
    The request asks for epsilon 1.099 ('smokes' 1.099), and the limit is 0.5.
    """
    manifest = row_local(release)
    _require_allowed(manifest, columns, public)
    gammas = [part_amplification(part_dict(part)) for part in manifest.parts]
    _require_true(manifest, gammas)
    if limit is not None or memory is not None:
        _require_bounded(manifest.parts, gammas)
    if limit is not None:
        _require_within(limit, manifest.parts, gammas)
    shown = {name: row[name] for name in row if name in manifest.types}
    _require_recoded(shown, manifest)
    if memory is None:
        return one_row.respond(shown, manifest.parts, draw)
    if draw is not None:
        raise OptionError("draw and memory exclude each other: a memory has its own draws. Fix: leave one of them out.")
    return _remembered(shown, manifest.parts, [gamma for gamma in gammas if gamma is not None], limit, Path(memory))


def _remembered(
    row: Mapping[str, Any], parts: Sequence[Part], gammas: Sequence[Fraction], limit: float | None, path: Path
) -> dict[str, Any]:
    codes = [one_row.encoded(row, part) for part in parts]
    with Commit() as commit:  # nobody else looks at the memory meanwhile: two looks at once must not count as one
        commit.hold(path, PATIENCE)
        known = after = read(path)
        for part, code, gamma in zip(parts, codes, gammas, strict=True):
            after = after.with_look(part, code, gamma)
        if limit is not None and after.epsilon > limit:
            raise OptionError(
                f"With this answer all answers from {str(path)!r} would come to epsilon {after.epsilon:.4g}, "
                f"{after.epsilon - known.epsilon:.4g} more than before, and the limit is {limit:g}. Fix: do not answer."
            )
        commit.write(path, after.to_json(), private=True)
    answer = dict(row)
    for part, code in zip(parts, codes, strict=True):
        answer[part.columns[0]] = one_row.value_of(part, one_row.perturbed(part, code, after.word(part, code)))
    return answer


def _require_allowed(manifest: Manifest, columns: Sequence[str] | None, public: Sequence[str] | None) -> None:
    """Nothing is asked for that the respondent does not allow."""
    if columns is None and public is None:
        return
    for wanted, allowed, how in (
        (manifest.sensitive_columns, columns, "perturbed"),
        (manifest.public_columns, public, "as it is"),
    ):
        names = (allowed,) if isinstance(allowed, str) else tuple(allowed or ())
        others = [name for name in wanted if name not in names]
        if others:
            raise ColumnError(
                f"The request asks for {listing(others)} {how}, which you do not allow. Fix: do not answer, or name it "
                f"in {'columns' if how == 'perturbed' else 'public'}=."
            )


def _require_true(manifest: Manifest, gammas: Sequence[Fraction | None]) -> None:
    """A request that says less about itself than its integers do is not answered."""
    stated = manifest.guarantee["gamma"]
    if stated is None:
        return
    known = [gamma for gamma in gammas if gamma is not None]
    if len(known) < len(gammas) or math.prod(known, start=Fraction(1)) > Fraction(stated):
        raise ManifestError(
            "The request is not what it says: its coins tell more about a row than the epsilon that it states. "
            "Fix: do not answer; tell whoever asks."
        )


def _require_bounded(parts: Sequence[Part], gammas: Sequence[Fraction | None]) -> None:
    for part, gamma in zip(parts, gammas, strict=True):
        if gamma is None or part.exempt:
            kept = "keeps or never draws some values" if part.lineups is None else "rules values out"
            why = "publishes missing values as they are" if part.exempt else kept
            raise OptionError(
                f"The request has no epsilon: {listing(list(part.columns))} {why}, so an answer can be certain. Fix: "
                "do not answer, or leave limit= and memory= out."
            )


def _require_within(limit: float, parts: Sequence[Part], gammas: Sequence[Fraction | None]) -> None:
    if not limit > 0:
        raise OptionError(f"limit = {limit} is not allowed: an epsilon above 0.")
    epsilons = [math.log(gamma) for gamma in gammas if gamma is not None]
    if sum(epsilons) > limit:
        shares = ", ".join(f"{part.columns[0]!r} {one:.4g}" for part, one in zip(parts, epsilons, strict=True))
        raise OptionError(
            f"The request asks for epsilon {sum(epsilons):.4g} ({shares}), and the limit is {limit:g}. Fix: do not "
            "answer, or raise limit=."
        )


def _require_recoded(row: Mapping[str, Any], manifest: Manifest) -> None:
    """Public values are given as coarse as the release has them: nothing finer leaves by mistake."""
    for column in manifest.public_columns:
        steps = manifest.recoded.get(column, ())
        if not steps or row.get(column) is None:
            continue
        try:
            right = fits(pa.array([row[column]], arrow_type(manifest.types[column])), steps[-1])
        except (pa.ArrowException, TypeError, ValueError):
            right = False
        if not right:
            raise ColumnError(
                f"{column!r} is not as coarse as the release has it ({steps[-1]}). Fix: give it like that."
            )


def row_local(release: Release | Manifest) -> Manifest:
    """The manifest, if a row can be perturbed on its own as its rows were."""
    manifest = release.manifest if isinstance(release, Release) else release
    if not isinstance(manifest, Manifest):
        raise OptionError(f"respond needs a release or its manifest; got {type(manifest).__name__}.")
    swapped = [part.columns[0] for part in manifest.parts if part.swapped is not None]
    if swapped:
        raise ColumnError(
            f"{listing(swapped)} is swapped among the rows of the whole table: no row can do that on its own. "
            "Fix: replacing='uniform' for columns that people perturb themselves."
        )
    for part in manifest.parts:
        if part.item is not None:
            raise ColumnError(
                f"{part.item.list!r} is published item by item under one budget for a list, and respond answers column "
                "by column. Fix: publish the table with mechanism 'items', or ask for each item with Retention({..})."
            )
        alone = part.range is not None or part.lineups is not None or len(part.channels) == 1
        if len(part.columns) > 1 or not alone:
            raise ColumnError(
                f"{listing(list(part.columns))} is perturbed by {manifest.mechanism!r} in cells or together, which "
                "depends on other rows. Fix: respond to releases of 'uniform', 'lineup' or Retention({..})."
            )
    return manifest
