"""Questions about several columns that are perturbed independently (SPEC 6, 8; OLAP 4).

Rows are tallied into the 2^k patterns of the question's conditions once. The sum of the patterns' weights w is the
unbiased count, the sum of w^2 - w its unbiased variance; sums and means of public columns follow from the same weights.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.errors import OptionError, QuestionError
from deniable.estimation.asking import Options
from deniable.estimation.joint import MOST_LABELS, Joint, Labels
from deniable.estimation.linear import Answers
from deniable.estimation.predicates import Predicate, conjunction
from deniable.estimation.published import Counter, Floats, Ints, Published
from deniable.estimation.questions import merged
from deniable.estimation.swapping import Swapped, swapped_columns, swapped_in
from deniable.estimation.tensor import Tensor


def answer_parts(
    published: Published, predicate: Predicate, options: Options, groups: Sequence[str] = (), values: Sequence[str] = ()
) -> tuple[Ints, tuple[tuple[Hashable, ...], ...], Answers, dict[str, Answers], dict[str, Answers]]:
    """Public group keys, labels, counts, sums and means, of the rows that satisfy a predicate."""
    manifest, counter = published.manifest, published.counter()
    check_options(options)
    hidden = [name for name in groups if name in manifest.sensitive_columns]
    public = [name for name in groups if name not in hidden]
    labels = Labels.of(manifest, hidden)
    rest, chosen = labels.chosen(merged(predicate))
    joint = Joint(manifest, counter, rest)
    say_condition(joint, labels)
    tallied = Tallied(joint, labels, counter, public, hidden, values)
    count = tallied.count(options, chosen)
    sums = {name: tallied.sum(name, chosen) for name in values}
    means = {name: tallied.mean(name, chosen, options.z) for name in values}
    return tallied.keys, labels.values(chosen), count, sums, means


class NoisyQuestionWarning(UserWarning):
    """A question about so many perturbed columns that the noise may drown the answer."""


def say_condition(joint: Joint, labels: Labels) -> None:
    """Warn, in words, where the condition number makes an answer worthless."""
    words = Tensor((*labels.tensor.factors, *joint.whole.factors)).condition_in_words()
    if words:
        warnings.warn(words, NoisyQuestionWarning, stacklevel=2)


def count_each(
    published: Published, wheres: Sequence[Mapping[str, Any] | None], options: Options
) -> tuple[Floats, Floats, Floats, Floats]:
    """Many counts: values, standard errors, lower and upper ends."""
    return count_predicates(published, [conjunction(where) for where in wheres], options)


def count_predicates(
    published: Published, predicates: Sequence[Predicate], options: Options
) -> tuple[Floats, Floats, Floats, Floats]:
    """The same for conditions that are resolved already."""
    found = np.zeros((4, len(predicates)))
    for i, predicate in enumerate(predicates):
        _, _, count, _, _ = answer_parts(published, predicate, options)
        value, error = count.value[0, 0], np.sqrt(count.variance[0, 0])
        low, high = np.clip([value - options.z * error, value + options.z * error], count.smallest, count.largest)[0]
        found[:, i] = value, error, min(low, value), max(high, value)
    return found[0], found[1], found[2], found[3]


def check_options(options: Options) -> None:
    if options.calibrate:
        raise OptionError(
            "calibrate=True is for releases of one sensitive column, not swapped. Fix: leave calibrate out."
        )
    if options.four_state:
        raise OptionError(f"method = {options.method!r} answers counts, not cubes. Fix: group_by the columns.")
    if options.method == "shrunk":
        raise OptionError(
            "method = 'shrunk' is for releases of one sensitive column, not swapped: choose 'inverse' or 'mle'."
        )


class Tallied:
    """Rows by public group, published labels and pattern, weighed."""

    def __init__(
        self,
        joint: Joint,
        labels: Labels,
        counter: Counter,
        public: Sequence[str],
        hidden: Sequence[str],
        values: Sequence[str],
    ) -> None:
        self.joint, self.labels = joint, labels
        wide = joint.wide_names
        blocks = list(counter.tally([*public, *hidden, *wide], joint.leaves, joint.classes, values))
        keys = np.concatenate([block.keys for block in blocks])
        self.keys, group = (
            np.unique(keys[:, : len(public)], axis=0, return_inverse=True)
            if public
            else (np.zeros((1, 0), np.int64), np.zeros(len(keys), np.int64))
        )
        self.group = group.reshape(-1)
        self.place = labels.positions(counter, keys[:, len(public) : len(public) + len(hidden)])
        self.wide = joint.wide_places(keys[:, len(public) + len(hidden) :])
        self.shape = (len(self.keys), math.prod(labels.tensor.shape))
        if math.prod(self.shape) > MOST_LABELS:
            raise QuestionError("The question has more groups than can be answered. Fix: group by fewer columns.")
        # A counter of one column of categories tells its values apart as well; here its conditions do.
        self.counts = np.concatenate([block.counts.sum(2) for block in blocks])
        self.moments = {
            name: [
                np.concatenate([getattr(block.moments[name], what).sum(2) for block in blocks])
                for what in ("rows", "sums", "squares")
            ]
            for name in values
        }
        self.ends = {name: _ends(counter.distinct(name)) for name in values}
        swapped = swapped_columns(joint.manifest)
        self.swapped_labels = swapped_in(labels.tensor, labels.names, swapped)
        self.swapped_conditions = swapped_in(joint.tensor, joint.perturbed_names, swapped)
        axes = tuple(range(1, joint.truth.ndim))
        self.weight = joint.weights.reshape(self.counts.shape[1], -1)[:, self.wide].T  # as counts: [keys, patterns]
        self.possible = joint.by_pattern(joint.truth.any(axis=axes))
        self.certain = joint.by_pattern(joint.truth.all(axis=axes)) * (not labels.names)

    def _spread(self, per_group: Floats) -> Floats:
        total = np.zeros(self.shape)
        np.add.at(total, (self.group, self.place), per_group)
        return total.reshape(-1, *self.labels.tensor.shape)

    def first(self, tally: Floats) -> Floats:
        """Sum of w over rows, by [public group, label]."""
        return self.labels.tensor.invert(self._spread((tally * self.weight).sum(1))).reshape(self.shape)

    def second(self, tally: Floats) -> Floats:
        """Sum of w^2."""
        return self.labels.tensor.squares(self._spread((tally * self.weight**2).sum(1))).reshape(self.shape)

    def bound(self, tally: Floats, mask: Floats) -> Floats:
        total = np.zeros(len(self.keys))
        np.add.at(total, self.group, tally @ mask)
        return np.broadcast_to(total[:, None], self.shape).copy()

    def count(self, options: Options, chosen: Ints) -> Answers:
        value = self.first(self.counts)
        variance = self._spread_of(self.second(self.counts) - value, self._pairs(self.counts))
        if options.method == "mle":
            value = self._likely()
        ends = self.bound(self.counts, self.certain), self.bound(self.counts, self.possible)
        return Answers(*(a[:, chosen] for a in (value, variance, variance, *ends)))

    def _likely(self) -> Floats:
        """Counts by the fixed point of the iterative Bayesian rule over labels and patterns together."""
        if self._size > MOST_LABELS:
            raise QuestionError("method = 'mle' cannot hold so many groups. Fix: method='inverse', or fewer groups.")
        split = self._cells(self.counts, "likelihood").reshape(*self.shape, len(self.joint.truth), -1)
        return np.einsum("glon,on->gl", split, self.joint.truth.reshape(len(self.joint.truth), -1))

    @property
    def _size(self) -> int:
        return math.prod((*self.shape, self.counts.shape[1], *self.joint.values.shape))

    def _cells(self, tally: Floats, method: Literal["likelihood", "invert"]) -> Floats:
        """A tally as it was before the perturbation: [group, label, public pattern, states of each column ..]."""
        tensor = Tensor((*self.labels.tensor.factors, *self.joint.whole.factors))
        total = np.zeros((*self.shape, tally.shape[1], math.prod(self.joint.values.shape)))
        np.add.at(total.swapaxes(2, 3), (self.group, self.place, self.wide), tally)
        outer = len(self.joint.truth)
        observed = np.moveaxis(total.reshape(*self.shape, outer, -1), 2, 1)
        found = getattr(tensor, method)(observed.reshape(len(self.keys), outer, *tensor.shape))
        by_label = found.reshape(len(self.keys), outer, self.shape[1], *self.joint.whole.shape)
        return np.moveaxis(by_label, 2, 1)

    def _pairs(self, tally: Floats, base: Floats | None = None, ratio: Floats | None = None) -> Floats:
        """What pairs of rows that share a swapped column add to the variance of a sum, less ``ratio`` times another."""
        found = np.zeros(self.shape)
        for one in self.swapped_labels:
            values, whole = (self._less(each, tally, base, ratio) for each in (self.first, partial(self._whole, one)))
            found += one.of_label(*(a.reshape(-1, *self.labels.tensor.shape) for a in (values, whole))).reshape(
                self.shape
            )
        if self.swapped_conditions and self._size <= MOST_LABELS:
            cells = self._less(partial(self._cells, method="invert"), tally, base, ratio)
            for one in self.swapped_conditions:
                found += one.of_condition(cells.reshape(-1, *self.joint.truth.shape), self.joint.truth).reshape(
                    self.shape
                )
        return found

    def _whole(self, label: Swapped, tally: Floats) -> Floats:
        return label.whole(self.first(tally).reshape(-1, *self.labels.tensor.shape)).reshape(self.shape)

    def _less(
        self, estimate: Callable[[Floats], Floats], tally: Floats, base: Floats | None, ratio: Floats | None
    ) -> Floats:
        value = estimate(tally)
        if base is None or ratio is None:
            return value
        return value - ratio.reshape(*self.shape, *[1] * (value.ndim - 2)) * estimate(base)

    def _spread_of(self, independent: Floats, pairs: Floats) -> Floats:
        """The variance: what rows have on their own, and what pairs add; never below what rounding leaves open."""
        least = sum(one.rounding for one in (*self.swapped_labels, *self.swapped_conditions))
        return np.maximum(independent + pairs, least)

    def sum(self, name: str, chosen: Ints) -> Answers:
        _, sums, squares = self.moments[name]
        low, high = self.ends[name]
        value = self.first(sums)
        variance = self._spread_of(self.second(squares) - self.first(squares), self._pairs(sums))
        ends = [self.bound(sums, self.certain), self.bound(sums, self.possible)]
        if low < 0 < high:
            ends = [np.full(self.shape, -np.inf), np.full(self.shape, np.inf)]
        return Answers(*(a[:, chosen] for a in (value, variance, variance, np.minimum(*ends), np.maximum(*ends))))

    def mean(self, name: str, chosen: Ints, z: float) -> Answers:
        """The ratio of two estimates, by the delta method; without a claim where the count may be zero (Fieller)."""
        rows, sums, squares = self.moments[name]
        low, high = self.ends[name]
        number, total = self.first(rows), self.first(sums)
        doubt = np.maximum(self.second(rows) - number, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = total / number
            both = self.second(sums) - total
            variance = self.second(squares) - self.first(squares) - 2 * ratio * both + ratio**2 * doubt
            variance = self._spread_of(variance, self._pairs(sums, rows, np.where(np.isfinite(ratio), ratio, 0.0)))
            unsure = z**2 * doubt / number**2
            variance = np.where(unsure < 1, np.maximum(variance, 0.0) / (number * (1 - unsure)) ** 2, np.inf)
        unknown = (number <= 0) | ~np.isfinite(ratio)
        there = self.bound(rows, self.possible) > 0
        value = np.where(there, np.where(unknown, (low + high) / 2, np.clip(ratio, low, high)), np.nan)
        variance = np.where(unknown, np.inf, variance)
        ends = np.full(self.shape, low), np.full(self.shape, high)
        return Answers(*(a[:, chosen] for a in (value, variance, variance, *ends)))


def _ends(values: pa.Array) -> tuple[float, float]:
    found = pc.min_max(values).as_py()
    return (0.0, 0.0) if found["min"] is None else (float(found["min"]), float(found["max"]))
