"""The four-state estimate of a decoy release: a public condition, values of sensitive columns (mathematics 7, 11.2;
SPLU 5).

For a public condition Q and a value s of a column, a row with s shows s with probability q = 1/c, another with a_s
(``estimation.decoys``), so a row that shows y counts for

    w_s(y) = ([y = s] - a_s) / (q - a_s),     W(y) = sum over s in S of w_s(y)

of S, and a row of Q for the product of W over the sensitive columns asked about. The sum over rows, cut to what is
possible, is the fixed point of the iterative Bayesian rule; for single values that is computed as such.

The variance is that of the sampling, by the delta method: a_s depends on f_s, which the whole table shows, so a row
showing y has the influence I = [Q] W(y_1) .. W(y_k) + sum over columns of d_y, d_s = dx/da_s da_s/df_s, and

    Var = sum of I^2 - E[I | x_1 .. x_k]^2,   E[I | x] = [Q, x in S] + sum over columns of sum_s d_s Pr[s is shown | x]

over the rows, whose values x are estimated likewise; for Q = all rows that is f_s (1 - 1/c^2) or less. A value that
nobody shows may have rows all the same: all c f rows of its groups show others with probability e^-f at the most. The
variance does not hold the bias: rows without s are not alike, and where Q is correlated with the value, those of Q show
s more or less often than a_s. How much cannot be seen in the release.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from deniable.core.errors import OptionError, QuestionError, option
from deniable.core.part import Grouping
from deniable.estimation.asking import Options
from deniable.estimation.decoys import SINGULAR, Others, chance, chance_slope, four_states, marginal, several_columns
from deniable.estimation.model.columns import PerturbedColumn
from deniable.estimation.model.conditions import MOST_LABELS, Conditions, leaves_of, perturbed_column, places
from deniable.estimation.model.weighed import Answers
from deniable.estimation.predicates import And, Leaf, Predicate
from deniable.estimation.published import Bools, Floats, Ints, Published
from deniable.estimation.questions import merged, require_column

UNSEEN = (math.log(40) / 1.96) ** 2  # the variance whose 95 % end at ln 40 rows, all unseen once in 40
Label = tuple[Hashable, ...]


def group_size(manifest: Any, method: str) -> int:
    """c, of a release of decoy groups; refused for any other."""
    groups: Grouping | None = manifest.parts[0].groups
    if groups is None:
        raise OptionError(
            f"method = {method!r} is for decoy groups; this release was made by {manifest.mechanism!r}. Fix: "
            f"{option('method', 'inverse')}, 'mle' or 'shrunk'."
        )
    return groups.c


def answer_four_state(
    published: Published, predicate: Predicate, options: Options, groups: Sequence[str] = ()
) -> tuple[Ints, tuple[Label, ...], Answers]:
    """Public group keys, labels of the sensitive groups, and counts [groups, labels]."""
    manifest, counter = published.manifest, published.counter()
    c = group_size(manifest, options.method)
    if options.calibrate:
        raise OptionError(f"calibrate=True does not go with method = {options.method!r}. Fix: leave calibrate out.")
    hidden = [name for name in groups if name in manifest.sensitive_columns]
    public = [name for name in groups if name not in hidden]
    condition, leaves = _split(manifest, predicate)
    columns = {name: perturbed_column(manifest, name) for name in dict.fromkeys((*hidden, *leaves))}
    sets = {name: _set(column, leaves.get(name)) for name, column in columns.items()}
    columns = {name: column for name, column in columns.items() if name in hidden or not sets[name].all()}
    joint = Conditions(manifest, counter, condition)
    classes = np.where(joint.truth.reshape(-1) > 0, 0, 1).astype(np.int64)
    blocks = list(counter.tally([*public, *columns], joint.leaves, classes))
    keys = np.concatenate([block.keys for block in blocks])
    counts = np.concatenate([block.counts[:, :, 0] for block in blocks])
    counts = np.pad(counts, ((0, 0), (0, 2 - counts.shape[1])))
    shape, listed = tuple(len(sets[name]) for name in columns), tuple(columns.values())
    own, group = np.unique(keys[:, : len(public)], axis=0, return_inverse=True)
    if math.prod(shape) * len(own) > MOST_LABELS:
        raise QuestionError("The question has more groups than can be answered. Fix: group by fewer columns.")
    place = places(counter, listed, shape, keys[:, len(public) :])
    inside = np.zeros((len(own), math.prod(shape)))
    np.add.at(inside, (group.reshape(-1), place), counts[:, 0])
    total = np.bincount(place, weights=counts.sum(1), minlength=math.prod(shape)).astype(np.float64)
    others: Others = "exact" if options.method == "four-state exact" else "as published"
    states = FourStates(inside.reshape(-1, *shape), total.reshape(shape), c, others, listed)
    kept = inside.sum(1) > 0 if public else np.ones(1, bool)
    labels = list(product(*(np.flatnonzero(sets[name]).tolist() for name in hidden)))
    fixed = [sets[name] for name in columns if name not in hidden]
    answers = states.answers(
        [[*(np.arange(size) == at for size, at in zip(shape, label, strict=False)), *fixed] for label in labels]
    )
    lists = [column.label(np.arange(len(sets[name]))) for name, column in columns.items()]
    named = tuple(tuple(lists[i][at] for i, at in enumerate(label)) for label in labels)
    table = np.array([[one.value, one.variance, one.raw, one.smallest, one.largest] for one in answers])
    by_part = np.moveaxis(table.reshape(len(answers), 5, len(own)), 0, -1)  # no label where no value satisfies
    return own[kept], named, Answers(*by_part[:, kept])


@dataclass(frozen=True, eq=False)
class FourStates:
    """Published rows by the values that they show.

    Attributes:
        inside: rows of each question's public condition, [questions, values of the first column, ..].
        total: rows of the whole table.
        c, others: the size of groups, and which a.
        columns: the sensitive columns.
    """

    inside: Floats
    total: Floats
    c: int
    others: Others
    columns: tuple[PerturbedColumn, ...]

    def answers(self, questions: Sequence[Sequence[Bools]]) -> list[Answers]:
        """Counts of the rows that have a value of each column's set (a mask over its states), for some such sets."""
        single = [
            i for i, sets in enumerate(questions) if sets and all(one.sum() == 1 for one in sets) and not self._exempt
        ]
        fixed = self._fixed_points([[int(np.argmax(one)) for one in questions[i]] for i in single])
        values = dict(zip(single, fixed, strict=True))
        return [self._answer(sets, values.get(i)) for i, sets in enumerate(questions)]

    def _answer(self, sets: Sequence[Bools], fixed: Floats | None) -> Answers:
        rows = self.inside.sum(tuple(range(1, self.inside.ndim)))
        weights = [column.weights(chosen) for column, chosen in zip(self._weighing, sets, strict=True)]
        value = np.clip(_contracted(self.inside, weights) if fixed is None else fixed, 0.0, rows)
        variance = np.maximum(self._spread(sets, weights), 0.0)
        if self._any(sets, [weighing.unseen for weighing in self._weighing]):
            variance = np.where(rows > 0, variance + UNSEEN, 0.0)
        if self._any(sets, [weighing.lost for weighing in self._weighing]):
            variance = np.where(rows > 0, np.inf, 0.0)
        return Answers(value, variance, variance, np.zeros_like(rows) if sets else rows, rows)

    @cached_property
    def _weighing(self) -> tuple[Weighing, ...]:
        axes = range(self.total.ndim)
        shown = [self.total.sum(tuple(i for i in axes if i != axis)) for axis in axes]
        return tuple(
            Weighing.of(seen, self.c, self.others, int(column.exempt))
            for seen, column in zip(shown, self.columns, strict=True)
        )

    @property
    def _exempt(self) -> bool:
        return any(column.exempt for column in self.columns)

    def _fixed_points(self, places: Sequence[Sequence[int]]) -> list[Floats]:
        """Single values: the states (does not show s, shows s) of every column, Q and its complement first."""
        if not places:
            return []
        observed = np.stack([self._states(at) for at in places])
        k = len(self.columns)
        points = (
            four_states(observed, self.c, others=self.others)
            if k == 1
            else several_columns(observed, [self.c] * k, others=self.others)
        )
        return list(points.reshape(len(places), len(self.inside), -1)[:, :, -1])

    def _states(self, at: Sequence[int]) -> Floats:
        inside, whole = self.inside, self.total[None]
        for axis, place in enumerate(at, start=1):
            inside, whole = (_two(x, axis, place) for x in (inside, whole))
        return np.stack([np.maximum(whole - inside, 0.0), inside], axis=1)

    def _any(self, sets: Sequence[Bools], which: Sequence[Bools]) -> bool:
        """Whether such values are among those asked for."""
        return any((chosen[: len(such)] & such).any() for such, chosen in zip(which, sets, strict=True))

    def _spread(self, sets: Sequence[Bools], weights: Sequence[Floats]) -> Floats:
        """Sum over the rows of the table of I^2 - E[I | their values]^2, for each question."""
        axes = tuple(range(1, self.inside.ndim))
        own, member = np.ones((1,) * self.inside.ndim), np.ones((1,) * self.inside.ndim)
        through, expected = np.zeros_like(own), np.zeros_like(own)  # what a row counts for through its columns' a
        inside, whole = self.inside, self.total[None]
        for axis, (weighing, chosen) in enumerate(zip(self._weighing, sets, strict=True)):
            others = [np.ones_like(w) if i == axis else w for i, w in enumerate(weights)]
            slopes = weighing.slopes(_contracted(self.inside, others, keep=axis)) * chosen
            own, through = own * _along(weights[axis][None], axis, len(sets)), through + _along(slopes, axis, len(sets))
            member = member * _along(weighing.member(chosen)[None], axis, len(sets))
            expected = expected + _along(weighing.expected(slopes, chosen), axis, len(sets))
            inside, whole = (weighing.originals(x, chosen, axis + 1) for x in (inside, whole))
        outside = np.maximum(self.total[None] - self.inside, 0.0)
        shown = (self.inside * (own + through) ** 2 + outside * through**2).sum(axes)
        return shown - (inside * (member + expected) ** 2 + (whole - inside) * expected**2).sum(axes)


@dataclass(frozen=True, eq=False)
class Weighing:
    """The weights of one column's values, from how many rows of the table show each.

    Attributes:
        a, slope: a_s and da_s / df'_s.
        share: f_s / N.
        spread: q - a_s; 1 where it is lost.
        lost: values in every group (f_s = N/c), which show nothing.
        unseen: values that no row shows.
        exempt: 1 where a last state, missing, is published as it is.
    """

    c: int
    a: Floats
    slope: Floats
    share: Floats
    spread: Floats
    lost: Bools
    unseen: Bools
    exempt: int

    @classmethod
    def of(cls, shown: Floats, c: int, others: Others, exempt: int) -> Weighing:
        seen = shown[: len(shown) - exempt]
        rows = np.full_like(seen, seen.sum())
        f = marginal(seen, rows, c, others)
        a = chance(f, rows, c, others)
        spread = 1 / c - a
        lost = spread < SINGULAR
        slope = chance_slope(f, rows, c, others)
        return cls(c, a, slope, f / np.maximum(rows, 1.0), np.where(lost, 1.0, spread), lost, seen == 0, exempt)

    def weights(self, chosen: Bools) -> Floats:
        """W(y). A value that shows nothing is taken to be as frequent in every row as in the table."""
        mine = chosen[: len(self.a)]
        constant = np.where(self.lost, self.share, -self.a / self.spread)[mine].sum()
        w = constant + np.where(mine & ~self.lost, 1 / self.spread, 0.0)
        return np.append(w, chosen[len(self.a) :].astype(np.float64))

    def slopes(self, rest: Floats) -> Floats:
        """dx / df'_s [questions, states], given the rows of Q by what they show of this column, weighed by the others.

        dW(y)/da_s = ([y = s] - q) / (q - a_s)^2
        """
        mine = rest[:, : len(self.a)]
        slopes = (mine - mine.sum(1, keepdims=True) / self.c) * np.where(self.lost, 0.0, self.slope / self.spread**2)
        return np.pad(slopes, ((0, 0), (0, self.exempt)))

    def member(self, chosen: Bools) -> Floats:
        """Which originals are asked for: the values of the set one by one, all others as one, and missing where it is
        published as it is."""
        mine, missing = chosen[: len(self.a)], chosen[len(self.a) :]
        return np.concatenate([np.ones(mine.sum()), [0.0], missing])

    def expected(self, slopes: Floats, chosen: Bools) -> Floats:
        """What an original counts for through a, on average over what it shows [questions, originals]."""
        mine = chosen[: len(self.a)]
        d, a = slopes[:, : len(self.a)][:, mine], self.a[mine]
        rest = (d * a).sum(1, keepdims=True)
        return np.concatenate([rest + d * (1 / self.c - a), rest, np.zeros((len(d), self.exempt))], axis=1)

    def originals(self, shown: Floats, chosen: Bools, axis: int) -> Floats:
        """Rows by what they show along an axis, as rows by their estimated originals."""
        by_value, mine = np.moveaxis(shown, axis, -1), chosen[: len(self.a)]
        rows = by_value[..., : len(self.a)].sum(-1, keepdims=True)
        inverse = (by_value[..., : len(self.a)][..., mine] - self.a[mine] * rows) / self.spread[mine]
        own = np.where(self.lost[mine], self.share[mine] * rows, inverse)
        every = [own, rows - own.sum(-1, keepdims=True), by_value[..., len(self.a) :]]
        return np.moveaxis(np.concatenate(every, axis=-1), -1, axis)


def _along(x: Floats, axis: int, k: int) -> Floats:
    """[questions, states of one column] among the axes of k columns."""
    return x.reshape(len(x), *(x.shape[1] if i == axis else 1 for i in range(k)))


def _contracted(x: Floats, weights: Sequence[Floats], keep: int | None = None) -> Floats:
    """Sum over all columns' axes of x times the weights; the axis of column ``keep`` stays."""
    for axis in reversed(range(len(weights))):
        if axis != keep:
            x = np.moveaxis(x, axis + 1, -1) @ weights[axis]
    return x


def _two(x: Floats, axis: int, place: int) -> Floats:
    """(does not show s, shows s) along one axis."""
    shows = np.take(x, place, axis=axis)
    return np.stack([x.sum(axis) - shows, shows], axis=axis)


def _set(column: PerturbedColumn, leaf: Leaf | None) -> Bools:
    """Which states of a column are asked for; all without a condition."""
    if leaf is None:
        return np.ones(len(column.masses) + int(column.exempt), bool)
    column.require(leaf)
    return column.states_of(leaf)


def _split(manifest: Any, predicate: Predicate) -> tuple[Predicate, dict[str, Leaf]]:
    """The condition on public columns, and the one on each sensitive column."""
    flat = merged(predicate)
    public: list[Predicate] = []
    leaves: dict[str, Leaf] = {}
    for part in flat.parts if isinstance(flat, And) else (flat,):
        for leaf in leaves_of(part):
            require_column(manifest, leaf.column)
        if not any(leaf.column in manifest.sensitive_columns for leaf in leaves_of(part)):
            public.append(part)
        elif isinstance(part, Leaf):
            leaves[part.column] = part
        else:
            raise QuestionError(
                "method = 'four-state' answers a condition on public columns AND values of sensitive columns; a "
                f"sensitive column stands inside an OR. Fix: {option('method', 'inverse')}, or ask in parts that share "
                "no row."
            )
    return And(tuple(public)), leaves
