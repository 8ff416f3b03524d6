"""Rows of one person, and people who are published again: what is asked for, and what is said of it."""

from __future__ import annotations

import datetime
import os
from dataclasses import replace
from pathlib import Path

from deniable.core.errors import OptionError, option
from deniable.core.guarantee import Guarantee
from deniable.core.manifest import PERSON_AND_VALUE, ROW_ID, ROW_NUMBER
from deniable.engines.request import Request
from deniable.publishing.looks import composed
from deniable.publishing.parts import Prepared
from deniable.publishing.series import Series


def series_of(
    path: str | os.PathLike[str] | None,
    changes: int | None,
    new_people: bool,
    who: str | None,
    key: bytes | None,
    key_file: str | os.PathLike[str] | None,
    seed: int | None,
) -> Series | None:
    """The series that a publication belongs to, if it does to one."""
    if path is None:
        if changes is not None:
            raise OptionError(
                f"{option('changes')} goes with series: how often a person's value may change in it. Fix: "
                f"{option('series', 'FILE')}."
            )
        if new_people:
            raise OptionError(
                f"{option('new_people')} goes with series: it says who is new in it. Fix: {option('series', 'FILE')}."
            )
        return None
    if any(given is not None for given in (key, key_file, seed)):
        raise OptionError(
            f"{option('series')} has a key of its own. Fix: leave key, {option('key_file')} and seed out."
        )
    if who is None:
        raise OptionError(
            f"{option('series')} needs to know who is who: a column that names the row or the person, and is not "
            f"published. Fix: {option('row_id', 'COLUMN')}, or {option('person', 'COLUMN')}."
        )
    return Series.open(Path(path), changes, new_people)


def said_of_looks(ready: Prepared, request: Request, series: Series | None, who: str) -> Prepared:
    """What is published, saying what several looks at a person come to; a series takes note of it."""
    promised = ready.plan.guarantee
    if series is None:
        said = _said_of_people(promised)
    else:
        if series.plan is None:
            series.freeze(ready, ready.published(request.missing))
        series.note(request, ready.jobs, who, datetime.date.today().isoformat())
        said = series.said(promised, any(ready.marginals))
    return replace(ready, plan=replace(ready.plan, guarantee=said))


def _said_of_people(promised: Guarantee) -> Guarantee:
    """Several rows of a person are one look as long as they hold one value (mathematics 13.9)."""
    sentence = (
        "Rows of one person that hold the same value are published alike, and are one look at that person. Whoever has "
        f"rows with k different values is looked at k times: {composed([promised.gamma] * 2)}."
    )
    return replace(promised, not_protected=(*promised.not_protected, sentence))


def require_own_draws(ready: Prepared, who: str | None, by_value: bool) -> None:
    """A row id decides the draws of its row; where rows are dealt to cells or swapped, their order decides too. A
    person and a value draw their cell themselves, but for groups."""
    if who is not None and any(
        (len(work.part.cells) > 1 and not (by_value and work.part.cells_published)) or work.part.swapped
        for work in ready.jobs
    ):
        raise OptionError(
            f"The column {who!r}, which names rows or people ({option('row_id')}, person), does not go with mechanism "
            f"{ready.plan.mechanism!r}: it deals rows to cells, or swaps them, by their order. Fix: leave it out, or "
            "publish with a mechanism of one cell, for example 'designed'."
        )


def drawn_by(who: str | None, by_value: bool) -> str:
    """What a row's draw depends on, beside the key."""
    if who is None:
        return ROW_NUMBER
    return PERSON_AND_VALUE if by_value else ROW_ID
