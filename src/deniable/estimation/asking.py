"""How to answer, and what is computed from a release once, however many questions follow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from deniable.core.errors import OptionError, did_you_mean
from deniable.core.learned import Coding, Learned
from deniable.core.lineups import LineUpDesign
from deniable.core.manifest import Manifest
from deniable.core.tally import CodeMask, Derived
from deniable.estimation.calibration import Control
from deniable.estimation.estimate import normal_quantile
from deniable.estimation.model.conditions import is_joint
from deniable.estimation.model.likelihood import likelihood_counts
from deniable.estimation.model.lineups import LineUpStates
from deniable.estimation.model.moments import Moments
from deniable.estimation.model.states import States
from deniable.estimation.published import Counter, Floats, Ints, OnePart, Published
from deniable.estimation.questions import Resolver
from deniable.estimation.shrinkage import Shrinkage, fit_shrinkage
from deniable.learned.levels import level_codes

Simultaneous = Literal[False, True, "selected"]
Method = Literal["inverse", "mle", "shrunk", "four-state", "four-state exact"]

# What an estimate says of how it was computed, where the name of the method alone would promise too much.
SAID = {
    "four-state": "four-state as published (a = f/N): about 1/(c+1) too low, and biased by any amount where the public "
    "condition is correlated with the value; the interval holds the sampling error only",
    "four-state exact": "four-state exact (a = f(c-1)/(c(N-f))): biased by any amount where the public condition is "
    "correlated with the value; the interval holds the sampling error only",
}


@dataclass(frozen=True)
class Options:
    """How to answer: checked once, for all questions alike."""

    method: Method = "inverse"
    calibrate: bool | None = None
    confidence: float = 0.95
    simultaneous: Simultaneous = False

    def __post_init__(self) -> None:
        if self.simultaneous not in (False, True, "selected"):
            raise OptionError(
                f"simultaneous = {self.simultaneous!r} is not known: choose False (each interval by itself), True (all "
                "of a result together) or 'selected' (on average over the rows that are shown)."
            )
        if self.method not in get_args(Method):
            known = get_args(Method)
            raise OptionError(
                f"method = {self.method!r} is not known: choose 'inverse' (unbiased), 'mle' (never negative), 'shrunk' "
                "(smallest error), or for decoy groups 'four-state' or 'four-state exact'."
                f"{did_you_mean(self.method, known)}"
            )
        normal_quantile(self.confidence)

    @property
    def four_state(self) -> bool:
        return self.method in SAID

    @property
    def said(self) -> str:
        """The method, for an estimate."""
        return SAID.get(self.method, self.method)

    @property
    def z(self) -> float:
        return normal_quantile(self.confidence)

    def z_of(self, intervals: int) -> float:
        """z that makes so many intervals hold all at once with the given confidence, where that is asked for.

        Sidak's: each holds with confidence^(1/m). For normal errors that is enough, however they go together, and it is
        sharper than Bonferroni's 1 - (1 - confidence) / m.
        """
        if self.simultaneous is not True or intervals < 2:
            return self.z
        return normal_quantile(self.confidence ** (1 / intervals))

    def z_selected(self, shown: int, intervals: int) -> float:
        """z for the rows that a selection leaves: of the intervals shown, no more than 1 - confidence miss on average.

        Each holds with 1 - (1 - confidence) R / m, R of m being shown (Benjamini and Yekutieli 2005).
        """
        missed = (1 - self.confidence) * max(shown, 1) / max(intervals, 1)
        return normal_quantile(1 - min(missed, 1 - self.confidence))


@dataclass(eq=False)
class Asking:
    """A release with what is computed from it once: states, the whole table's tally, the fitted shrinkage."""

    manifest: Any
    counter: Counter

    def __post_init__(self) -> None:
        self.published = self.manifest
        if isinstance(self.manifest, Manifest) and not is_joint(self.manifest):  # those have a tensor channel instead
            self.manifest = OnePart.of(self.manifest)

    @cached_property
    def states(self) -> States | LineUpStates:
        lineups: LineUpDesign | None = getattr(self.manifest, "lineups", None)
        if lineups is not None:
            return LineUpStates(lineups, len(self.manifest.domain) > lineups.m)
        return States.of(self.manifest)

    @cached_property
    def learned(self) -> Learned | None:
        """What the values were dealt from, where rows were not perturbed one by one."""
        return getattr(self.manifest, "learned", None)

    @cached_property
    def by_level(self) -> Counter:
        """A counter that has the levels of public columns, too, as the model of a learned release reads them."""
        return self.counter if self.learned is None else self.counter.with_columns(level_columns(self.learned.codings))

    @cached_property
    def exempt(self) -> list[CodeMask]:
        """Which rows of a learned release have a value that was learned; empty where all have."""
        (part,) = self.published.parts
        if not part.beside_domain:
            return []
        return [(name, np.append(np.ones(len(self.counter.distinct(name)), bool), False)) for name in part.columns]

    @cached_property
    def often(self) -> list[Floats]:
        """How often each cell has its values, as nearly as its rows tell."""
        parts = []
        for part, positions in zip(self.states.slices, self.states.positions, strict=True):
            known = np.maximum(self._originals(part, positions), 0.5)
            parts.append(known / known.sum())
        return parts

    def _originals(self, part: slice, positions: Ints) -> Floats:
        """The values of a cell's rows."""
        states = self.states
        if not states.unbiased:
            return np.asarray(self.distribution()[positions] * max(self.total.sum(), 1.0))
        alone = np.zeros_like(self.total)
        alone[part] = self.total[part]
        return states.invert(alone)[positions]

    @cached_property
    def value_moments(self) -> list[Moments] | None:
        """Of the weights of every single value, cell by cell."""
        return self.states.value_moments(self.often)

    def resolver(self) -> Resolver:
        return Resolver(self.manifest, self.counter)

    @cached_property
    def total(self) -> Floats:
        """The rows of the whole table by state."""
        (block,) = self.counter.tally((), (), np.zeros(1, np.int64), states=True)
        return block.counts[0, 0]

    def control(self, options: Options) -> Control | None:
        """The published histogram to calibrate with; None when there is none or it is not wanted."""
        marginal = self.manifest.marginal
        if marginal is None or not self.states.unbiased:
            if options.calibrate:
                raise OptionError(
                    "calibrate=True needs the noisy histogram of the sensitive column, which this release does not "
                    "have. Fix: leave calibrate out."
                )
            return None
        if options.calibrate is False:
            return None
        noisy = np.arange(self.states.m) < len(marginal.counts)
        return Control.of(self.total, self.histogram(), float(marginal.variance), noisy)

    def histogram(self) -> Floats:
        """f~, the published noisy histogram; missing values that are exempt are counted exactly."""
        counts = np.asarray(self.manifest.marginal.counts, np.float64)
        return np.append(counts, self.total[len(self.total) - (self.states.m - len(counts)) :])

    def distribution(self) -> Floats:
        """f~ / n: from the published histogram, or else from the rows, by maximum likelihood."""
        if self.manifest.marginal is not None:
            known = np.maximum(self.histogram(), 0.5)
        else:
            known = likelihood_counts(self.states, self.total[None, :])[0]
        return known / max(known.sum(), 1.0)

    @cached_property
    def shrinkage(self) -> Shrinkage:
        return fit_shrinkage(self, self.control(Options()))


def level_column(coding: Coding) -> str:
    """What the column is called that holds the levels of a public column."""
    return f"level of {coding.column}"


def level_columns(codings: Sequence[Coding]) -> list[Derived]:
    """The level of each column that a model sees, as columns of their own."""

    def levels(coding: Coding) -> Callable[[pa.Array], pa.Array]:
        return lambda column: pa.array(level_codes(coding, column))

    return [Derived(level_column(coding), (coding.column,), levels(coding)) for coding in codings]


_askings: WeakKeyDictionary[Any, Asking] = WeakKeyDictionary()


def asking(published: Published) -> Asking:
    """What was computed from a release before, kept as long as the release lives."""
    if published not in _askings:
        _askings[published] = Asking(published.manifest, published.counter())
    return _askings[published]
