"""A question to a release of several parts: rows by public group, label and pattern of conditions (mathematics 6, 8).

Rows are tallied into the 2^k patterns of the question's conditions once. The weights of patterns undo the conditions'
columns, the inverse of a tensor channel the columns that are grouped by, whose values are the labels.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from deniable.core import tally as tallied
from deniable.core.errors import OptionError, QuestionError, option, warn_caller
from deniable.core.tally import Block, Counter
from deniable.core.values import Bools, Floats, Ints
from deniable.estimation.calibration import Calibration
from deniable.estimation.limits import Cumulants
from deniable.estimation.mapped import Grouped, Mapped, column_of
from deniable.estimation.model.conditions import MOST_LABELS, MOST_SHOWN, Conditions, Labels, often_of
from deniable.estimation.model.controls import Controls, along
from deniable.estimation.model.moments import Moments, cumulants_of, of_sets
from deniable.estimation.model.swapped import swapped_columns, swapped_in
from deniable.estimation.model.tensor import Tensor
from deniable.estimation.model.weighed import Tallies, Weighed
from deniable.estimation.predicates import And, Predicate
from deniable.estimation.questions import merged

if TYPE_CHECKING:
    from deniable.estimation.linear import Narrowed


class NoisyQuestionWarning(UserWarning):
    """A question about so many perturbed columns that the noise may drown the answer."""


def say_condition(conditions: Conditions, labels: Labels) -> None:
    """Warn, in words, where the condition number makes an answer worthless."""
    words = Tensor((*labels.tensor.factors, *conditions.whole.factors)).condition_in_words()
    if words:
        warn_caller(words, NoisyQuestionWarning)


def weighed(
    manifest: Any,
    counter: Counter,
    where: Predicate,
    narrowed: Sequence[Narrowed],
    groups: Sequence[Grouped],
    values: Sequence[str],
    calibrate: bool | None,
) -> tuple[tuple[tuple[Hashable, ...], ...], list[Weighed]]:
    """The labels, and all rows weighed: by the condition itself, then by each of some further conditions on them."""
    if calibrate and not any(part.marginal is not None for part in manifest.parts):
        raise OptionError(
            "calibrate=True needs the noisy histograms of the sensitive columns, which this release does not have. "
            "Fix: leave calibrate out."
        )
    hidden = [group for group in groups if column_of(group) in manifest.sensitive_columns]
    labels = Labels.of(manifest, hidden)
    rest, chosen = labels.chosen(merged(where))
    further = [labels.chosen(merged(one.condition)) for one in narrowed]
    numbers = [one.numbers for one in narrowed if one.numbers is not None]
    for added_up in numbers:
        if added_up.column in labels.names:
            raise QuestionError(
                f"{added_up.column!r} is grouped by and added up. Fix: ask for counts, and multiply them."
            )
    resolved = Conditions(manifest, counter, And((rest, *(predicate for predicate, _ in further))), numbers)
    say_condition(resolved, labels)
    public = [group for group in groups if isinstance(group, str) and group not in hidden]
    rows = PatternRows(resolved, labels, chosen, counter, public, values, resolved.possible(rest))
    truth = resolved.truth_of(rest)
    controls = None if calibrate is False else Controls(resolved, labels, chosen)
    weights: list[Weighed] = [Patterns(rows, truth, np.ones(len(chosen), bool), controls)]
    for one, (predicate, inside) in zip(narrowed, further, strict=True):
        own = truth * resolved.truth_of(predicate)
        own = own if one.numbers is None else own * resolved.numbers_of(one.numbers)
        weights.append(Patterns(rows, own, np.isin(chosen, inside), controls))
    return labels.values(chosen), weights


def row_weights(manifest: Any, counter: Counter, where: Predicate, numbers: Mapped | None = None) -> Floats:
    """w of every row, in the order of the table: the product of what its columns count for."""
    conditions = Conditions(manifest, counter, merged(where), [] if numbers is None else [numbers])
    say_condition(conditions, Labels((), ()))
    rows = counter.coded(conditions.wide_names, conditions.leaves)
    truth = conditions.truth if numbers is None else conditions.truth * conditions.numbers_of(numbers)
    by_pattern = conditions.weights_of(truth).reshape(len(conditions.classes), -1)
    return by_pattern[rows.patterns, conditions.wide_places(rows.keys)]


class PatternRows:
    """Rows by [public group and published labels, pattern], tallied once for all conditions.

    Attributes:
        keys: the public groups.
        chosen: the combinations of the labels' values that are asked for.
        group, place, wide: where each tallied row of the table stands: public group, labels, values of wide columns.
        shape: groups and labels.
        shown: groups and what rows show of the labels; the same but for line-ups.
    """

    def __init__(
        self,
        conditions: Conditions,
        labels: Labels,
        chosen: Ints,
        counter: Counter,
        public: Sequence[str],
        values: Sequence[str],
        possible: Bools,
    ) -> None:
        self.conditions, self.labels, self.chosen = conditions, labels, chosen
        columns = [*public, *labels.names, *conditions.wide_names]
        blocks = [
            _satisfying(block, possible)
            for block in counter.tally(columns, conditions.leaves, conditions.classes, values)
        ]
        keys = np.concatenate([block.keys for block in blocks])
        self.keys, group = (
            np.unique(keys[:, : len(public)], axis=0, return_inverse=True)
            if public
            else (np.zeros((1, 0), np.int64), np.zeros(len(keys), np.int64))
        )
        self.group = group.reshape(-1)
        self.place = labels.positions(counter, keys[:, len(public) : len(public) + len(labels.names)])
        self.wide = conditions.wide_places(keys[:, len(public) + len(labels.names) :])
        self.shape = (len(self.keys), math.prod(labels.tensor.shape))
        self.shown = (len(self.keys), math.prod(labels.tensor.published))
        if math.prod(self.shape) > MOST_LABELS or math.prod(self.shown) > MOST_SHOWN:
            raise QuestionError("The question has more groups than can be answered. Fix: group by fewer columns.")
        self.counts = np.concatenate([block.counts[:, :, 0] for block in blocks])
        self.moments = {
            name: Tallies(
                *(
                    np.concatenate([getattr(block.moments[name], what)[:, :, 0] for block in blocks])
                    for what in ("rows", "sums", "squares")
                )
            )
            for name in values
        }
        swapped = swapped_columns(conditions.manifest)
        self.swapped_labels = swapped_in(labels.tensor, labels.names, swapped)
        names = [*conditions.perturbed_names, *conditions.wide_names]
        self.swapped_conditions = swapped_in(conditions.whole, names, swapped)

    def spread(self, per_key: Floats) -> Floats:
        """What each tallied row of the table adds, by group and published label."""
        total = np.zeros(self.shown)
        np.add.at(total, (self.group, self.place), per_key)
        return total.reshape(-1, *self.labels.tensor.published)

    def by_group(self, per_key: Floats) -> Floats:
        """The same by group alone, at every label asked for."""
        total = np.zeros(len(self.keys))
        np.add.at(total, self.group, per_key)
        return np.broadcast_to(total[:, None], (len(self.keys), len(self.chosen))).copy()

    def picked(self, by_label: Floats) -> Floats:
        return by_label.reshape(self.shape)[:, self.chosen]

    @cached_property
    def label_moments(self) -> Moments:
        """Of the weights of the labels that are asked for."""
        moments = Moments(np.ones(1), (np.ones(1), np.ones(1)), (np.ones(1), np.ones(1)))
        for column, factor in zip(self.labels.columns, self.labels.tensor.factors, strict=True):
            moments = moments.times(factor.moments(often_of(self.conditions.counter, column)))
        return moments.picked(self.chosen)

    @cached_property
    def condition_shares(self) -> Floats:
        """How often the conditions' columns have their states, if nothing is known of how these go together."""
        often = np.ones(1)
        for bits in (*self.conditions.bits, *self.conditions.wide):
            if bits.column is not None:
                own = bits.shares(often_of(self.conditions.counter, bits.column), wide=bits in self.conditions.wide)
                often = np.multiply.outer(often, own).reshape(-1)
        return often

    @property
    def size(self) -> int:
        return math.prod((*self.shown, self.counts.shape[1], *self.conditions.values.published))

    def cells(self, tally: Floats, method: Literal["likelihood", "invert"]) -> Floats:
        """A tally as it was before the perturbation: [group, label, public pattern, states of each column ..]."""
        tensor = Tensor((*self.labels.tensor.factors, *self.conditions.whole.factors))
        total = np.zeros((*self.shown, tally.shape[1], math.prod(self.conditions.values.published)))
        np.add.at(total.swapaxes(2, 3), (self.group, self.place, self.wide), tally)
        outer = len(self.conditions.truth)
        observed = np.moveaxis(total.reshape(*self.shown, outer, math.prod(total.shape[2:]) // outer), 2, 1)
        cells = getattr(tensor, method)(observed.reshape(len(self.keys), outer, *tensor.published))
        by_label = cells.reshape(len(self.keys), outer, self.shape[1], *self.conditions.whole.shape)
        return np.moveaxis(by_label, 2, 1)


def _satisfying(block: Block, possible: Bools) -> Block:
    """Of a tally, what may satisfy the condition by its public columns: groups of other rows are no groups of it."""
    inside = block.counts[:, possible, 0].any(axis=1)
    if inside.all():
        return block
    moments = {
        name: tallied.Moments(moment.rows[inside], moment.sums[inside], moment.squares[inside])
        for name, moment in block.moments.items()
    }
    return Block(block.keys[inside], block.counts[inside], moments)


class Patterns(Weighed):
    """The patterns of one condition: which of them satisfy it, and at which labels it is asked."""

    def __init__(self, rows: PatternRows, truth: Floats, inside: Bools, controls: Controls | None = None) -> None:
        self.rows, self.truth, self.inside = rows, truth, inside
        self.keys, self.counts, self.moments = rows.keys, rows.counts, rows.moments
        axes = tuple(range(1, truth.ndim))
        self._weight = self._by_key(truth)
        self._is_set = bool(((truth == 0) | (truth == 1)).all())
        most, least = truth.max(axis=axes), truth.min(axis=axes)
        if rows.labels.names:  # whether a row has the label's values is never certain
            most, least = np.maximum(most, 0.0), np.minimum(least, 0.0)
        self._possible, self._certain = rows.conditions.by_pattern(most), rows.conditions.by_pattern(least)
        self._known = controls
        if controls is not None:
            outer = self.counts.reshape(len(self.counts), len(truth), self.counts.shape[1] // len(truth))
            self._functions = controls.functions(truth, outer.sum(axis=(0, 2)))
            self.controls = [*controls.by_label(), *controls.of_functions(self._functions, self._functions)]

    def _by_key(self, truth: Floats) -> Floats:
        """The weights of a truth, in the shape of the counts."""
        return self._keyed(self.rows.conditions.weights_of(truth))

    def _keyed(self, weights: Floats) -> Floats:
        return weights.reshape(self.counts.shape[1], -1)[:, self.rows.wide].T

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.keys), len(self.rows.chosen)

    def first(self, tally: Floats) -> Floats:
        return self.rows.picked(self._every_first(tally)) * self.inside

    def _every_first(self, tally: Floats) -> Floats:
        return self.rows.labels.tensor.invert(self.rows.spread((tally * self._weight).sum(1)))

    def common(self, other: Patterns, tally: Floats) -> Floats:
        tensor, spread = self.rows.labels.tensor, self.rows.spread
        same = other is self and self._is_set
        both = self._weight if same else self._by_key(self.truth * other.truth)
        squares = tensor.squares(spread((tally * self._weight * other._weight).sum(1)))
        return self.rows.picked(squares - tensor.invert(spread((tally * both).sum(1)))) * self.inside * other.inside

    def _spreads(self, other: Patterns) -> list[Floats]:
        """W u - W'' of another condition's functions of the conditions' columns, in the shape of the weights."""
        assert self._known is not None
        conditions, axes = self.rows.conditions, self.truth.ndim - 1
        own, spreads = conditions.weights_of(self.truth), []
        for one, function in zip(self._known.of_conditions, other._functions, strict=True):
            u = along(conditions.whole.factors[one.axis].weights(function), one.axis, axes)
            spreads.append(own * u - conditions.weights_of(self.truth * along(function, one.axis, axes)))
        return spreads

    def followed(self, other: Patterns, tally: Floats) -> list[Floats]:
        assert self._known is not None
        tensor, inside, by_label = self.rows.labels.tensor, self.inside * other.inside, []
        if self._known.of_labels:
            shown = self.rows.spread((tally * self._weight).sum(1))
            by_label = [self.rows.picked(tensor.spread(shown, one.axis)) * inside for one in self._known.of_labels]
        spreads = [self.rows.spread((tally * self._keyed(one)).sum(1)) for one in self._spreads(other)]
        return [*by_label, *(self.rows.picked(tensor.invert(one)) * inside for one in spreads)]

    def usual(self, tally: Floats) -> list[Floats]:
        known = self._known
        assert known is not None
        rows = np.zeros((len(self.keys), len(self.truth)))
        np.add.at(
            rows,
            self.rows.group,
            tally.reshape(len(tally), len(self.truth), tally.shape[1] // len(self.truth)).sum(axis=-1),
        )

        def added(weights: Floats, label: int | None) -> Floats:
            often = weights.reshape(len(self.truth), -1) @ known.shown
            return np.multiply.outer(rows @ often, known.usual_labels(label)) * self.inside

        own = self.rows.conditions.weights_of(self.truth)
        return [
            *(added(own, one.axis) for one in known.of_labels),
            *(added(one, None) for one in self._spreads(self)),
        ]

    def shared(self, other: Patterns) -> Sequence[Calibration]:
        assert self._known is not None
        by_label = self.controls[: len(self._known.of_labels)]
        return [*by_label, *self._known.of_functions(self._functions, other._functions)]

    def bounds(self, tally: Floats) -> tuple[Floats, Floats]:
        certain, possible = (self.rows.by_group(tally @ mask) * self.inside for mask in (self._certain, self._possible))
        return certain, possible

    def cumulants(self, value: Floats, variance: Floats, smallest: Floats) -> Cumulants | None:
        rows = self.rows
        if not self._is_set or not self.inside.all() or rows.swapped_labels or rows.swapped_conditions:
            return None
        labels, conditions = rows.label_moments, rows.conditions
        truth = self.truth.reshape(len(self.truth), -1)
        weights = conditions.weights_of(self.truth).reshape(len(truth), -1)
        whole = conditions.whole

        def back(z: Floats) -> Floats:
            return whole.transposed(z.reshape(-1, *whole.published)).reshape(len(z), -1)

        satisfying = of_sets(back, weights, truth.astype(bool), rows.condition_shares)
        counts = self.counts.reshape(len(self.counts), len(truth), self.counts.shape[1] // len(truth)).sum(axis=-1)
        parts = []
        for outer in range(len(truth)):
            by_group = np.zeros(len(self.keys))
            np.add.at(by_group, rows.group, counts[:, outer])
            own = satisfying.picked(slice(outer, outer + 1))
            if rows.labels.names and not truth[outer].any():
                continue
            if truth[outer].all():  # the labels alone decide
                own = Moments(np.ones(1), (np.ones(1), np.ones(1)), (np.ones(1), np.ones(1)))
                if not rows.labels.names:
                    continue
            both = labels.times(own) if rows.labels.names else own
            parts.append((by_group[:, None], both))
        return cumulants_of(parts, self.shape)

    def likely(self) -> Floats:
        """Counts by the fixed point of the iterative Bayesian rule over labels and patterns together."""
        if self.rows.size > MOST_LABELS:
            raise QuestionError(
                f"method = 'mle' cannot hold so many groups. Fix: {option('method', 'inverse')}, or fewer groups."
            )
        truth = self.truth.reshape(len(self.truth), -1)
        split = self.rows.cells(self.counts, "likelihood").reshape(*self.rows.shape, *truth.shape)
        fitted: Floats = np.einsum("glon,on->gl", split, truth)
        return self.rows.picked(fitted) * self.inside

    @property
    def rounding(self) -> float:
        return sum(one.rounding for one in (*self.rows.swapped_labels, *self.rows.swapped_conditions))

    def covariance(self, other: Patterns, tally: Floats, its: Floats, products: Floats) -> Floats:
        return self.common(other, products) + self._pairs(tally, other, its)

    def _pairs(self, tally: Floats, other: Patterns, its: Floats) -> Floats | float:
        """Rows that share a swapped column are not independent."""
        rows = self.rows
        if not rows.swapped_labels and not rows.swapped_conditions:
            return 0.0
        added = np.zeros(rows.shape)
        for one in rows.swapped_labels:
            values, others = self._every_first(tally), other._every_first(its)
            added += one.of_label(values, one.whole(values), (others, one.whole(others))).reshape(rows.shape)
        if rows.swapped_conditions and rows.size <= MOST_LABELS:
            cells, its_cells = (rows.cells(which, "invert").reshape(-1, *self.truth.shape) for which in (tally, its))
            for one in rows.swapped_conditions:
                added += one.of_condition(cells, self.truth, (its_cells, other.truth)).reshape(rows.shape)
        return rows.picked(added) * self.inside * other.inside
