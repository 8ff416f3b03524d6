"""Questions about several columns that are perturbed independently (SPEC 6, 8; OLAP 4).

Rows are tallied into the 2^k patterns of the question's conditions once. The sum of the patterns' weights w is the
unbiased count, the sum of w^2 - w its unbiased variance; sums and means of public columns follow from the same weights.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.errors import OptionError, QuestionError
from deniable.estimation.asking import Options
from deniable.estimation.joint import MOST_LABELS, Joint, Labels
from deniable.estimation.linear import Answers
from deniable.estimation.predicates import Predicate, conjunction
from deniable.estimation.published import Counter, Floats, Ints, Published
from deniable.estimation.questions import _merged
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
    rest, chosen = labels.chosen(_merged(predicate))
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
    words = Tensor((*labels.tensor.factors, *joint.tensor.factors)).condition_in_words()
    if words:
        warnings.warn(words, NoisyQuestionWarning, stacklevel=2)


def count_each(
    published: Published, wheres: Sequence[Mapping[str, Any] | None], options: Options
) -> tuple[Floats, Floats, Floats, Floats]:
    """Many counts: values, standard errors, lower and upper ends."""
    found = np.zeros((4, len(wheres)))
    for i, where in enumerate(wheres):
        _, _, count, _, _ = answer_parts(published, conjunction(where), options)
        value, error = count.value[0, 0], np.sqrt(count.variance[0, 0])
        low, high = np.clip([value - options.z * error, value + options.z * error], count.smallest, count.largest)[0]
        found[:, i] = value, error, min(low, value), max(high, value)
    return found[0], found[1], found[2], found[3]


def check_options(options: Options) -> None:
    if options.calibrate:
        raise OptionError("calibrate=True is for releases of one sensitive column. Fix: leave calibrate out.")
    if options.method == "shrunk":
        raise OptionError("method = 'shrunk' is for releases of one sensitive column: choose 'inverse' or 'mle'.")


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
        blocks = list(counter.tally([*public, *hidden], joint.leaves, joint.classes, values))
        keys = np.concatenate([block.keys for block in blocks])
        self.keys, group = (
            np.unique(keys[:, : len(public)], axis=0, return_inverse=True)
            if public
            else (np.zeros((1, 0), np.int64), np.zeros(len(keys), np.int64))
        )
        self.group = group.reshape(-1)
        self.place = labels.positions(counter, keys[:, len(public) :])
        self.shape = (len(self.keys), math.prod(labels.tensor.shape))
        if math.prod(self.shape) > MOST_LABELS:
            raise QuestionError("The question has more groups than can be answered. Fix: group by fewer columns.")
        self.counts = np.concatenate([block.counts[:, :, 0] for block in blocks])
        self.moments = {
            name: [
                np.concatenate([getattr(block.moments[name], what)[:, :, 0] for block in blocks])
                for what in ("rows", "sums", "squares")
            ]
            for name in values
        }
        self.ends = {name: _ends(counter.distinct(name)) for name in values}
        axes = tuple(range(1, joint.truth.ndim))
        self.weight = joint.weights.reshape(-1)
        self.possible = joint.by_pattern(joint.truth.any(axis=axes))
        self.certain = joint.by_pattern(joint.truth.all(axis=axes)) if not labels.names else np.zeros(len(self.weight))

    def _spread(self, per_group: Floats) -> Floats:
        total = np.zeros(self.shape)
        np.add.at(total, (self.group, self.place), per_group)
        return total.reshape(-1, *self.labels.tensor.shape)

    def first(self, tally: Floats) -> Floats:
        """Sum of w over rows, by [public group, label]."""
        return self.labels.tensor.invert(self._spread(tally @ self.weight)).reshape(self.shape)

    def second(self, tally: Floats) -> Floats:
        """Sum of w^2."""
        return self.labels.tensor.squares(self._spread(tally @ self.weight**2)).reshape(self.shape)

    def bound(self, tally: Floats, mask: Floats) -> Floats:
        total = np.zeros(len(self.keys))
        np.add.at(total, self.group, tally @ mask)
        return np.broadcast_to(total[:, None], self.shape).copy()

    def count(self, options: Options, chosen: Ints) -> Answers:
        value = self.first(self.counts)
        variance = np.maximum(self.second(self.counts) - value, 0.0)
        if options.method == "mle":
            value = self._likely()
        ends = self.bound(self.counts, self.certain), self.bound(self.counts, self.possible)
        return Answers(*(a[:, chosen] for a in (value, variance, variance, *ends)))

    def _likely(self) -> Floats:
        """Counts by the fixed point of the iterative Bayesian rule over labels and patterns together."""
        tensor = Tensor((*self.labels.tensor.factors, *self.joint.tensor.factors))
        if math.prod(self.shape) * self.counts.shape[1] > MOST_LABELS:
            raise QuestionError("method = 'mle' cannot hold so many groups. Fix: method='inverse', or fewer groups.")
        total = np.zeros((*self.shape, self.counts.shape[1]))
        np.add.at(total, (self.group, self.place), self.counts)
        outer = len(self.joint.truth)
        observed = np.moveaxis(total.reshape(*self.shape, outer, -1), 2, 1)
        fitted = tensor.likelihood(observed.reshape(len(self.keys), outer, *tensor.shape))
        split = fitted.reshape(len(self.keys), outer, self.shape[1], -1)
        return np.einsum("goln,on->gl", split, self.joint.truth.reshape(outer, -1))

    def sum(self, name: str, chosen: Ints) -> Answers:
        _, sums, squares = self.moments[name]
        low, high = self.ends[name]
        value = self.first(sums)
        variance = np.maximum(self.second(squares) - self.first(squares), 0.0)
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


def cube(
    published: Published,
    conditions: Mapping[str, Any],
    where: Mapping[str, Any] | None = None,
    *,
    method: str = "inverse",
    confidence: float = 0.95,
) -> pa.Table:
    """All 2^k combinations of conditions on k columns: for each whether it holds, then value, stderr and interval."""
    options = Options(method, None, confidence)  # type: ignore[arg-type]
    check_options(options)
    joint = Joint(published.manifest, published.counter(), conjunction({**(where or {}), **conditions}))
    asked = list(conditions)
    places = {leaf.column: place for place, (_, leaf) in enumerate(joint.flat) if leaf is not None}
    (block,) = joint.counter.tally((), joint.leaves, joint.classes)
    counts = block.counts[0, :, 0].reshape(-1, *joint.tensor.shape)
    fitted = joint.tensor.likelihood(counts) if method == "mle" else joint.tensor.invert(counts)
    variance = np.maximum(joint.tensor.squares(counts) - joint.tensor.invert(counts), 0.0)
    return _cube_table(joint, asked, places, fitted.reshape(-1), variance.reshape(-1), options)


def _cube_table(
    joint: Joint, asked: Sequence[str], places: Mapping[str, int], value: Floats, variance: Floats, options: Options
) -> pa.Table:
    number = len(joint.flat)
    patterns = np.arange(2**number)
    bit = {name: ((patterns >> (number - 1 - place)) & 1).astype(bool) for name, place in places.items()}
    kept = np.ones(len(patterns), bool)
    for name, holds_here in bit.items():
        if name not in asked:
            kept &= holds_here
    key = np.zeros(len(patterns), np.int64)
    for name in asked:
        key = key * 2 + bit[name]
    size = 2 ** len(asked)
    total = np.bincount(key[kept], weights=value[kept], minlength=size)
    error = np.sqrt(np.bincount(key[kept], weights=variance[kept], minlength=size))
    half = options.z * error
    columns = {
        name: ((np.arange(size) >> (len(asked) - 1 - place)) & 1).astype(bool) for place, name in enumerate(asked)
    }
    rows = float(joint.counter.rows)
    low, high = np.minimum(np.clip(total - half, 0, rows), total), np.maximum(np.clip(total + half, 0, rows), total)
    return pa.table({**columns, "value": total, "stderr": error, "value_low": low, "value_high": high})
