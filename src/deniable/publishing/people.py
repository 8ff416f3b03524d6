"""Rows of one person, and people who are published again: what is asked for, and what is said of it."""

from __future__ import annotations

import datetime
from dataclasses import replace

from deniable.core.errors import OptionError, option
from deniable.core.guarantee import Guarantee
from deniable.publishing.looks import composed
from deniable.publishing.parts import Prepared
from deniable.publishing.request import Publication
from deniable.publishing.series import Series


def said_of_looks(ready: Prepared, publication: Publication, series: Series | None) -> Prepared:
    """What is published, saying what several looks at a person come to; a series takes note of it."""
    promised = ready.plan.guarantee
    if series is None:
        said = _said_of_people(promised)
    else:
        if series.plan is None:
            series.freeze(ready, ready.published(publication.request.missing))
        series.note(publication, ready.jobs, datetime.date.today().isoformat())
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
