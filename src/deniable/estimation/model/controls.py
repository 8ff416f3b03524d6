"""Calibration of several columns: each of them in a question follows what the whole table shows of its histogram
(mathematics 8).

A column's error e = sum over all rows of u - f~ . s is known where its noisy histogram f~ is published: s is what the
question asks of the column alone, u what rows count for in it. Columns are perturbed independently of each other, so
their errors have no covariance, and

    Cov(sum over R of W, e) = sum over R of (W u - W''),    W'' the weights of t s

Of a column that is grouped by, s is the label's value. Of one with conditions it is the average of the question's truth
t over all other columns, as often as the table has their values; any s leaves the estimate without bias.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deniable.core.values import Bools, Floats, Ints
from deniable.estimation.calibration import LAPLACE_TAIL, Calibration, Control
from deniable.estimation.model.columns import PerturbedColumn
from deniable.estimation.model.conditions import Conditions, Labels, control_of, often_of, totals_of


@dataclass(frozen=True, eq=False)
class Controlled:
    """A column of a question whose histogram is known.

    Attributes:
        axis: its place among the labels, or among the conditions' columns.
        column: the column, or the function of it that is grouped by.
        known: what the whole table says of it, value by value.
        states: of a condition's column, where the values stand in the conditions' tensor; None for a label.
    """

    axis: int
    column: PerturbedColumn
    known: Control
    states: Ints | None = None

    @cached_property
    def by_label(self) -> Calibration:
        """Of every value, or of every value of a function."""
        factor, known = self.column.factor(), self.known
        total, counts, noisy = (self._merged(one) for one in (known.total, known.counts, known.noisy))
        estimated = factor.invert(total)
        noise = known.variance * noisy * (1 - noisy / max(float(noisy.sum()), 1.0))
        return Calibration(estimated - counts, factor.squares(total) - estimated + noise, LAPLACE_TAIL * noise)

    def _merged(self, by_value: Floats | Bools) -> Floats:
        """Numbers of the column's values as those of a function of it."""
        if self.column.source is None:
            return by_value.astype(np.float64)
        return np.bincount(self.column.source[1], by_value, self.column.factor().size).astype(np.float64)

    def of_condition(self, own: Floats, other: Floats) -> Calibration:
        """Of two functions of the conditions' states: the first one's error, and the covariance of both."""
        assert self.states is not None
        factor, known = self.column.factor(), self.known
        one, its = own[self.states], other[self.states]
        weights, both = factor.weights(one), factor.weights(one * its)
        noise = known.noise(one, its)
        error = weights @ known.total - one @ known.counts
        spread = (weights * factor.weights(its) - both) @ known.total + noise
        return Calibration(*(np.array([number]) for number in (error, spread, LAPLACE_TAIL * noise)))


class Controls:
    """The columns of a question whose histograms are known, and what their rows show as often as the table has it.

    Args:
        conditions, labels: of the question.
        chosen: the combinations of labels that are asked for.
    """

    def __init__(self, conditions: Conditions, labels: Labels, chosen: Ints) -> None:
        self.conditions, self.labels, self.chosen = conditions, labels, chosen
        manifest, counter = conditions.manifest, conditions.counter
        self.of_labels: list[Controlled] = []
        self.of_conditions: list[Controlled] = []
        for axis, column in enumerate(labels.columns):
            plain = column if column.source is None else column.source[0]
            known = control_of(manifest, counter, plain)
            if known is not None:
                self.of_labels.append(Controlled(axis, column, known))
        self._bits = [*(bits for bits in conditions.bits if bits.column is not None), *conditions.wide]
        for axis, bits in enumerate(self._bits):
            assert bits.column is not None
            known = control_of(manifest, counter, bits.column)
            if known is not None:
                states = np.arange(len(known.counts)) if bits in conditions.wide else bits.states()
                self.of_conditions.append(Controlled(axis, bits.column, known, states))

    def functions(self, truth: Floats, rows: Floats) -> list[Floats]:
        """s of every condition's column, from a truth [public patterns, states ..] and how many rows have each."""
        average = np.tensordot(rows, truth, axes=1)
        often = [bits.shares(often_of(self.conditions.counter, bits.column), wide=bits in self.conditions.wide)
                 for bits in self._bits if bits.column is not None]  # fmt: skip
        functions = []
        for one in self.of_conditions:
            own = average
            for axis in reversed(range(len(often))):
                if axis != one.axis:
                    own = np.tensordot(own, often[axis], axes=(axis, 0))
            largest = float(np.abs(own).max(initial=0.0))
            functions.append(own / largest if largest > 0 else own)
        return functions

    @cached_property
    def shown(self) -> Floats:
        """How often rows show each combination of the conditions' published states, if columns are independent."""
        result = np.ones(1)
        for bits in self._bits:
            assert bits.column is not None
            total = totals_of(self.conditions.counter, bits.column)
            if bits not in self.conditions.wide:
                total = bits.shares(total, wide=False)
            result = np.multiply.outer(result, total / max(float(total.sum()), 1.0)).reshape(-1)
        return result

    @cached_property
    def _labels_shown(self) -> list[tuple[Floats, Floats]]:
        """Of each label's column, the share of its values, and the variance that a row adds to their counts."""
        pairs = []
        for column in self.labels.columns:
            factor, total = column.factor(), totals_of(self.conditions.counter, column)
            shown = total / max(float(total.sum()), 1.0)
            share = factor.invert(shown)
            pairs.append((share, factor.squares(shown) - share))
        return pairs

    def usual_labels(self, followed: int | None) -> Floats:
        """What a row adds to the covariance by the labels asked for, along one of their axes; None: to a count."""
        product = np.ones(1)
        for axis, (share, variance) in enumerate(self._labels_shown):
            product = np.multiply.outer(product, variance if axis == followed else share).reshape(-1)
        return product[self.chosen]

    def by_label(self) -> list[Calibration]:
        """The calibration of the labels asked for, of each of their columns."""
        shape = self.labels.tensor.shape
        places = np.unravel_index(self.chosen, shape) if shape else ()
        return [one.by_label.picked(places[one.axis]) for one in self.of_labels]

    def of_functions(self, own: Sequence[Floats], others: Sequence[Floats]) -> list[Calibration]:
        """That of the conditions' columns."""
        pairs = zip(self.of_conditions, own, others, strict=True)
        return [one.of_condition(first, second) for one, first, second in pairs]


def along(function: Floats, axis: int, axes: int) -> Floats:
    """A function of one column's states, in the shape of a truth without its public patterns."""
    return function.reshape(math.prod(function.shape), *[1] * (axes - 1 - axis))
