"""What its owner should know of a release, computed when someone reads it; and the errors to expect of typical counts,
which the release says itself."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from deniable.core.about import About
from deniable.core.errors import OptionError, TableError
from deniable.core.histogram import Histogram
from deniable.core.manifest import Manifest
from deniable.core.plan import Choice, Plan
from deniable.core.sentence import not_covered
from deniable.planning.candidates import errors_of
from deniable.planning.prediction import BySelectivity
from deniable.publishing.memory import Recall
from deniable.publishing.parts import Prepared
from deniable.publishing.request import Publication
from deniable.release.release import Release

TYPICAL = (0.001, 0.01, 0.1)  # of the rows, that a count may be about
FEW = 10  # rows; counts of fewer are nobody's typical question


def with_expected(about: About, ready: Prepared) -> About:
    """The same, with errors that follow from what is published: channels, and the noisy histogram for the counts."""
    noisy, plan = ready.marginals[0], ready.plan
    if len(plan.parts) != 1 or plan.parts[0].histogram is None or plan.parts[0].hidden or noisy is None:
        return about
    public = Histogram(plan.parts[0].histogram.domain, np.maximum(np.array(noisy.counts, dtype=np.int64), 0))
    errors = expected_errors(plan, True, public)
    return replace(about, expected=tuple((share, float(f"{error:.2g}")) for share, error in errors.items()))


def expected_errors(plan: Plan, calibrated: bool, counts: Histogram | None = None) -> dict[float, float]:
    """Of counts about typical shares of the rows, where they can be predicted; of other ``counts`` than planned. Those
    of a model are known by asking it."""
    if len(plan.parts) != 1 or plan.parts[0].histogram is None or plan.parts[0].learned is not None:
        return {}
    rows = plan.histogram if counts is None else counts
    shares = tuple(share for share in TYPICAL if share * rows.rows >= FEW)
    profile = BySelectivity(rows, shares)
    try:
        errors = errors_of(plan, profile, calibrated=calibrated)
    except OptionError:  # a channel that has no inverse: no question is answered from it
        return {}
    return {share: error for share, error in zip(shares, errors, strict=True) if not math.isnan(error)}


@dataclass(eq=False)
class Advice:
    """What was published, and how, for its owner alone.

    Attributes:
        publication, ready: what was asked for, and what was executed: the table is read again for the warnings.
        manifest: what the release says of itself.
        draws: what is remembered of its draws.
        series: what it belongs to, by name; empty where it is in none.
        recall: beside what was published before; None where that is not remembered.
        release: what was made; set by ``given_with``.
    """

    publication: Publication
    ready: Prepared
    manifest: Manifest
    draws: str
    series: str
    recall: Recall | None
    release: Release | None = None

    def given_with(self, release: Release) -> Release:
        """The release, whose owner can ask for this advice."""
        self.release, release.advice = release, self
        return release

    @cached_property
    def looks(self) -> Recall | None:
        """This release, in a folder or not yet in one, beside what was published before."""
        return self.recalled(None) if self.publication.request.out is None else self.recall

    def recalled(self, out: Path | None) -> Recall | None:
        """The same where it is saved in another folder."""
        return Recall.of(self.publication, self.draws, self.ready.plan.guarantee.gamma, out, self.series)

    @cached_property
    def choice(self) -> Choice:
        """By what it was published, why, and how accurate typical answers will be."""
        plan = self.ready.plan
        parts = self.manifest.parts
        uncovered = not_covered(parts[0], plan.guarantee.adversary) if len(parts) == 1 else ""
        about = self.manifest.about
        said = {} if about is None else dict(about.expected)  # as the release says it, where it does
        return Choice(
            mechanism=plan.mechanism,
            chosen=self.ready.chosen,
            rows=self.ready.jobs[0].rows,
            expected=said or expected_errors(plan, self.ready.marginals[0] is not None),
            not_covered=uncovered.strip(),
        )

    @cached_property
    def decision(self) -> Any:
        """Whether it may be published, or what is to be decided first."""
        from deniable.owner.advice import decision_about

        return decision_about(self)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What is to be decided on, and what else is odd in the table."""
        try:
            return (*(point.in_words() for point in self.decision.open), *self.notes)
        except (OSError, TableError):
            return (
                "The table cannot be read as it was when it was published, so nothing is said of its columns. Fix: "
                "read the warnings of a release right after it is published.",
            )

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What is odd in the table, or in what can be learnt from the release, and calls for no decision."""
        from deniable.owner.advice import notes_about

        return tuple(notes_about(self))
