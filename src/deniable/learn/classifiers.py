"""Classifiers from reconstructed counts: a decision tree and naive Bayes, on originals and on releases (OLAP 6.3)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError

from deniable.extend import Bools, ColumnError, Floats, OptionError
from deniable.learn.features import Codes, Feature, Training, as_table, from_release, from_rows, plain

# -- What the classifiers share: scikit-learn's conventions, on originals and on releases ------------------------------


class ReleaseClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that learns from reconstructed counts."""

    bins: int

    def fit(self, X: Any, y: Any = None, *, target: str | None = None, columns: Sequence[str] | None = None) -> Self:
        """Learn from originals, ``fit(X, y)``, or from a release, ``fit(release, target="income")``.

        Args:
            X: rows, or a release.
            y: the classes of originals.
            target: the column of a release that holds the classes; it may be public or perturbed.
            columns: the columns of a release to learn from; default: all others.
        """
        if not isinstance(self.bins, int | np.integer) or isinstance(self.bins, bool) or not 2 <= self.bins <= 256:
            raise OptionError(f"bins = {self.bins!r} is not allowed: a whole number from 2 to 256.")
        if hasattr(X, "manifest"):
            if target is None or y is not None:
                raise OptionError("fit on a release names the column of the classes: fit(release, target='income').")
            training = from_release(X, target, columns, self.bins)
        else:
            if target is not None:
                raise OptionError("target names a column of a release. Fix: fit(X, y) on originals.")
            training = from_rows(X, y, self.bins)
        self.classes_ = np.array(training.target.values)
        self.feature_names_in_ = np.array([feature.name for feature in training.features], dtype=object)
        self.n_features_in_ = len(training.features)
        self.features_ = training.features
        self._learn(training)
        return self

    @abstractmethod
    def _learn(self, training: Training) -> None: ...

    @abstractmethod
    def _probabilities(self, codes: Sequence[Codes], rows: int) -> Floats: ...

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, in the order of ``classes_``, for rows ``X`` as they are (not perturbed)."""
        if not hasattr(self, "features_"):
            raise NotFittedError(f"This {type(self).__name__} has not learned anything yet: call fit first.")
        table = as_table(X, list(self.feature_names_in_))
        lost = [name for name in self.feature_names_in_ if name not in table.column_names]
        if lost:
            raise ColumnError(f"The rows have no column {lost[0]!r}, which was learned from.")
        codes = [feature.codes(plain(table[feature.name])) for feature in self.features_]
        return self._probabilities(codes, table.num_rows)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The likeliest class of each row of ``X``."""
        likely = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[likely]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


# -- Naive Bayes from reconstructed two-column tables: Pr[class] prod_c Pr[state of column c | class] ------------------
# A reconstructed table is unbiased and noisy, and logarithms make much of noise in rare states. So it is drawn towards
# independence, each entry by as much as it is noise. With r = counts / expected - 1, the diagonal V of its variances,
# and true ratios of a class that vary over states with the covariance K, neighbours alike where states are bins of
# numbers,
#
#     r~ = K (K + V)^-1 r,    K = tau^2 exp(-|s - t| / reach)
#
# on average over many tau and reach, each as likely as it makes r in all columns. Where nothing stands out of the noise
# a column says nothing; without noise r~ = r.


REACHES = (0.0, 1.0, 3.0, 10.0)
SPREADS = (0.0, *np.geomspace(1e-4, 30.0, 14))
LEAST = 0.1  # of what independence gives: a logarithm of nothing would outvote all other columns


class NaiveBayesClassifier(ReleaseClassifier):
    """Naive Bayes, Pr[class] prod_c Pr[column c | class], from reconstructed tables that are drawn
    towards independence as far as they are noise.

    Args:
        bins: how many bins a numeric column is cut into.
        smoothing: rows added to each entry of a table.

    >>> import pyarrow as pa
    >>> import deniable as dn
    >>> table = pa.table({"age": [25, 60] * 500, "income": ["low", "high"] * 500})
    >>> release = dn.publish(table, sensitive="income", privacy=dn.Privacy(rho2="3/4"))
    >>> model = dn.learn.NaiveBayesClassifier().fit(release, target="income")
    >>> model.predict(pa.table({"age": [25, 60]})).tolist()
    ['low', 'high']
    """

    def __init__(self, bins: int = 16, smoothing: float = 1.0) -> None:
        self.bins = bins
        self.smoothing = smoothing

    def _learn(self, training: Training) -> None:
        if not self.smoothing > 0:
            raise OptionError(f"smoothing = {self.smoothing!r} is not allowed: a number above 0.")
        target = training.target
        known, published = target.size - 1, target.published
        classes = target.asked_for(np.eye(known, target.size))
        seen = np.bincount(training.classes, minlength=published).astype(np.float64)
        prior = np.maximum(classes @ seen, 0.0) + self.smoothing
        self.class_log_prior_: Floats = np.log(prior / prior.sum())
        tables = []
        for feature, codes in zip(training.features, training.codes, strict=True):
            table = np.bincount(codes * published + training.classes, minlength=feature.published * published)
            observed = table.reshape(feature.published, published).astype(np.float64)
            states = feature.asked_for(np.eye(feature.size))
            counts, squares = states @ observed @ classes.T, states**2 @ observed @ (classes**2).T
            exact = feature.exact and target.exact
            ordered = feature.edges is not None
            tables.append(counts + self.smoothing if exact else _Noisy(counts, squares, prior, self.smoothing, ordered))
        noisy = [table for table in tables if isinstance(table, _Noisy)]
        likely = np.sum([table.likely for table in noisy], axis=0)
        logs = [np.log(table.steadied(likely) if isinstance(table, _Noisy) else table) for table in tables]
        self.feature_log_prob_: list[Floats] = [log - np.log(np.exp(log).sum(axis=0)) for log in logs]

    def _probabilities(self, codes: Sequence[Codes], rows: int) -> Floats:
        total = np.broadcast_to(self.class_log_prior_, (rows, len(self.classes_))).copy()
        for states, logs in zip(codes, self.feature_log_prob_, strict=True):
            total += logs[states]
        total -= total.max(axis=1, keepdims=True)
        result: Floats = np.exp(total)
        return result / result.sum(axis=1, keepdims=True)


class _Noisy:
    """Reconstructed rows by (state, class), and what is expected of them for each covariance that they may have.

    Args:
        counts: as reconstructed.
        squares: the sums of squared weights, which is what they may be off by, sampling included.
        classes: rows of each class.
        smoothing: rows added to each state.
        ordered: whether the states, but for the last, are neighbours.
    """

    def __init__(self, counts: Floats, squares: Floats, classes: Floats, smoothing: float, ordered: bool) -> None:
        known, shares = np.maximum(counts.sum(axis=1), 0.0), classes / classes.sum()
        steady = np.maximum(known, np.sqrt(squares.sum(axis=1))) + smoothing  # a state is no smaller than its noise
        self.expected: Floats = steady[:, None] * shares
        ratio, noise = (counts - known[:, None] * shares) / self.expected, (squares + smoothing) / self.expected**2
        place = np.arange(len(ratio))
        far = np.abs(np.subtract.outer(place, place)).astype(np.float64)
        far[-1, :-1] = far[:-1, -1] = np.inf  # missing is nobody's neighbour
        fits = []
        for reach in REACHES:
            alike = np.exp(-far / reach) if reach and ordered else np.eye(len(ratio))
            fits += [_fit(ratio, noise, spread * alike) for spread in SPREADS]
        self.likely: Floats = np.array([fit[0] for fit in fits]) * (1 - 1 / len(classes))  # the last class follows
        self.ratios: Floats = np.array([fit[1] for fit in fits])

    def steadied(self, likely: Floats) -> Floats:
        """The rows on average over covariances, each as likely as it makes the tables of all columns; all above 0."""
        weight = np.exp(likely - likely.max())
        ratio = np.einsum("f,fsk->sk", weight / weight.sum(), self.ratios)
        return self.expected * np.maximum(1 + ratio, LEAST)


def _fit(ratio: Floats, noise: Floats, covariance: Floats) -> tuple[float, Floats]:
    """Log-likelihood of the ratios of all classes, but for a constant, and what is expected of the true ones."""
    whole = covariance[None] + noise.T[:, :, None] * np.eye(len(ratio))[None]
    solved = np.linalg.solve(whole, ratio.T[:, :, None])[..., 0]
    likely = -float((ratio.T * solved).sum() + np.linalg.slogdet(whole)[1].sum()) / 2
    return likely, (solved @ covariance).T


# -- A decision tree grown from reconstructed joint counts (mathematics 6; OLAP 6.3) -----------------------------------
# A node is a set of states S_c for each column c on its path. Every published row counts in every node, with the weight
#
#     w(row) = prod_c w_c(S_c, what the row shows of c)
#
# whose expectation is 1 if the original row is in the node, else 0: rows are never partitioned by perturbed values. A
# split is judged by the gini of the weighted counts, and made where the children's classes differ by more than the
# noise.


@dataclass
class Node:
    """A node of a tree: class counts as reconstructed, and where its rows go."""

    counts: Floats
    feature: int | None = None
    left_states: Bools | None = None
    left: Node | None = None
    right: Node | None = None

    @property
    def shares(self) -> Floats:
        return self.counts / self.counts.sum()


@dataclass(frozen=True, eq=False)
class Split:
    """A way to split a node: by a feature's states, with the children's counts and the gain in gini."""

    feature: int
    left_states: Bools
    left: Floats
    right: Floats
    gain: float


class TreeClassifier(ReleaseClassifier):
    """A binary tree of gini splits, grown from counts that are reconstructed for every node (mathematics 6; OLAP 6.3).

    Args:
        max_depth: how many splits a path may have.
        min_rows: the fewest (reconstructed) rows of a leaf.
        bins: how many bins a numeric column is cut into.
        caution: how many standard errors the classes of two children must differ by, and a child's rows from zero.

    >>> import pyarrow as pa
    >>> import deniable as dn
    >>> table = pa.table({"age": [25, 60] * 500, "income": ["low", "high"] * 500})
    >>> release = dn.publish(table, sensitive="income", privacy=dn.Privacy(rho2="3/4"))
    >>> model = dn.learn.TreeClassifier().fit(release, target="income")
    >>> model.predict(pa.table({"age": [25, 60]})).tolist()
    ['low', 'high']
    """

    def __init__(self, max_depth: int = 5, min_rows: int = 20, bins: int = 32, caution: float = 4.0) -> None:
        self.max_depth = max_depth
        self.min_rows = min_rows
        self.bins = bins
        self.caution = caution

    def _learn(self, training: Training) -> None:
        for name in ("max_depth", "min_rows"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise OptionError(f"{name} = {value!r} is not allowed: a whole number, 1 or more.")
        if not self.caution >= 0:
            raise OptionError(f"caution = {self.caution!r} is not allowed: a number, 0 or more.")
        self.tree_: Node = _Grower(training, self.min_rows, self.caution).root(int(self.max_depth))

    def _probabilities(self, codes: Sequence[Codes], rows: int) -> Floats:
        result = np.zeros((rows, len(self.classes_)))
        waiting = [(self.tree_, np.arange(rows))]
        while waiting:
            node, members = waiting.pop()
            if node.feature is None or node.left is None or node.right is None or node.left_states is None:
                result[members] = node.shares
                continue
            goes_left = node.left_states[codes[node.feature][members]]
            waiting += [(node.left, members[goes_left]), (node.right, members[~goes_left])]
        return result

    def get_depth(self) -> int:
        """How many splits the longest path has."""

        def depth(node: Node | None) -> int:
            return 0 if node is None or node.feature is None else 1 + max(depth(node.left), depth(node.right))

        return depth(self.tree_)


@dataclass(frozen=True, eq=False)
class _Weight:
    """What rows count for in a node.

    Attributes:
        weight, square: of each row, and squared; None where every row counts for one.
        members: the rows that count at all, each for one, where rows are not perturbed; else None.
    """

    weight: Floats | None
    square: Floats | None
    members: Codes | None

    @classmethod
    def product(cls, factors: Sequence[Floats], exact: bool) -> _Weight:
        """Of rows that count for such numbers by the conditions of a path; only zeros and ones where they are exact."""
        if not factors:
            return cls(None, None, None)
        weight = np.multiply.reduce(list(factors))
        if exact:
            return cls(None, None, np.flatnonzero(weight))
        return cls(weight, weight**2, None)

    def sums(self, key: Codes, number: int) -> tuple[Floats, Floats]:
        """The sums of weights and of their squares, by key."""
        if self.weight is None:
            there = key if self.members is None else key[self.members]
            counts = np.bincount(there, minlength=number).astype(np.float64)
            return counts, counts
        assert self.square is not None
        first, second = (np.bincount(key, powers, number) for powers in (self.weight, self.square))
        return first.astype(np.float64, copy=False), second.astype(np.float64, copy=False)


class _Grower:
    """Grows a tree by weighing all rows anew for every node.

    A node has one table per feature, rows by (state, class). Deep in the tree the reconstructed table is mostly noise;
    it is then shrunk towards what the parent's table says if the last split told no more about this feature than the
    class does: H~ = prior + k (H - prior), k = max(0, 1 - c sum Var(H) / sum (H - prior)^2), c a little above 1.
    Without perturbation k = 1.
    """

    def __init__(self, training: Training, min_rows: int, caution: float) -> None:
        self.training, self.min_rows, self.caution = training, min_rows, caution
        self.known = training.target.size - 1
        self.class_weights = training.target.asked_for(np.eye(self.known, training.target.size))
        self.exact = training.target.exact
        self.roots: dict[int, tuple[Floats, Floats]] = {}  # of each feature: what a shrunk table ultimately rests on
        self.keys = [codes * training.target.published + training.classes for codes in training.codes]
        self.own = [feature.asked_for(np.eye(feature.size)) for feature in training.features]

    def root(self, max_depth: int) -> Node:
        seen = np.bincount(self.training.classes, minlength=self.training.target.published)
        counts = np.maximum(self.class_weights @ seen, 0.0)
        sets = [np.ones(feature.size, bool) for feature in self.training.features]
        return self.grow(counts, sets, frozenset(), None, max_depth)

    def grow(
        self, counts: Floats, sets: list[Bools], path: frozenset[int], above: list[Floats] | None, depth: int
    ) -> Node:
        """The subtree of a node with these class counts; ``above`` are its parent's tables."""
        node = Node(counts)
        if depth == 0 or counts.max() >= 0.999 * counts.sum():
            return node
        tables, split = self._best(counts, sets, path, above)
        if split is None:
            return node
        node.feature, node.left_states = split.feature, split.left_states
        sides = (split.left_states, split.left), (~split.left_states, split.right)
        children = []
        for states, rows in sides:
            inner = list(sets)
            inner[split.feature] = sets[split.feature] & states
            children.append(self.grow(rows, inner, path | {split.feature}, tables, depth - 1))
        node.left, node.right = children
        return node

    def _best(
        self, counts: Floats, sets: Sequence[Bools], path: frozenset[int], above: list[Floats] | None
    ) -> tuple[list[Floats], Split | None]:
        """The node's tables, and the split with the largest gain among those that stand out of the noise."""
        features, codes = self.training.features, self.training.codes
        rows = {c: features[c].asked_for(sets[c][None])[0][codes[c]] for c in path}
        exact = self.exact and all(features[c].exact for c in path)
        weights = {c: _Weight.product([rows[other] for other in path if other != c], exact) for c in path}
        whole = _Weight.product(list(rows.values()), exact)
        tables: list[Floats] = []
        best: Split | None = None
        for c, feature in enumerate(features):
            weight = weights.get(c, whole)  # a feature's own condition restricts its states instead
            prior = None if above is None else above[c] * sets[c][:, None]
            table, kept, second = self._table(c, weight, sets[c], prior, counts, exact and feature.exact)
            tables.append(table)
            split = self._split(c, table, kept, second, sets[c])
            if split is not None and (best is None or split.gain > best.gain):
                best = split
        return tables, best

    def _table(
        self, c: int, weight: _Weight, allowed: Bools, prior: Floats | None, counts: Floats, exact: bool
    ) -> tuple[Floats, float, Floats]:
        """A node's rows by (state, class), how much of the reconstruction was kept, and the sums of squared weights."""
        feature = self.training.features[c]
        shape = (feature.published, self.training.target.published)
        first, second = (sums.reshape(shape) for sums in weight.sums(self.keys[c], shape[0] * shape[1]))
        own = self.own[c]
        table = own @ first @ self.class_weights.T * allowed[:, None]
        kept = 1.0
        if prior is not None and not exact:
            squares = own**2 @ second @ (self.class_weights**2).T * allowed[:, None]
            prior = prior * (counts / np.maximum(prior.sum(axis=0), 1e-9))
            noise = np.maximum(squares - table, 0.0).sum()
            off = ((table - prior) ** 2).sum()
            margin = 1 + 2 * np.sqrt(2 / (allowed.sum() * self.known))  # noise alone rarely moves a table further
            kept = float(max(0.0, 1.0 - margin * noise / off)) if off > 0 else 0.0
            table = prior + kept * (table - prior)
        table = np.maximum(table, 0.0)
        return table * (counts / np.maximum(table.sum(axis=0), 1e-9)), kept, second

    def _split(self, c: int, table: Floats, kept: float, second: Floats, allowed: Bools) -> Split | None:
        feature = self.training.features[c]
        masks = _candidates(feature, allowed, table)
        if not len(masks):
            return None
        left = masks.astype(np.float64) @ table
        right = np.maximum(table.sum(axis=0) - left, 0.0)
        sizes = [np.maximum(side.sum(axis=1), 1e-9) for side in (left, right)]
        shares = [side / size[:, None] for side, size in zip((left, right), sizes, strict=True)]
        apart = ((shares[0] - shares[1]) ** 2).sum(axis=1)
        asks = [feature.asked_for(states) for states in (masks, allowed & ~masks)]
        doubt = np.zeros(len(masks))
        at_root = self.roots.setdefault(c, (table, second))
        for ask, share, size, states in zip(asks, shares, sizes, (masks, allowed & ~masks), strict=True):
            there = np.maximum(states @ at_root[0].sum(axis=1), 1e-9)
            drawn = (share * (1 - share)).sum(axis=1) / size
            here = np.maximum(self._variance(ask, share, size, second) - drawn, 0.0)
            doubt += drawn + kept**2 * here + (1 - kept) ** 2 * self._variance(ask, share, there, at_root[1])
        # Categories are ordered by the very classes that are compared: each of them is a chance to look different.
        chances = 0 if feature.edges is not None else max(int(allowed.sum()) - 2, 0)
        fits = (np.minimum(*sizes) >= self.min_rows) & (apart > (self.caution**2 + chances) * doubt)
        if not fits.any():
            return None
        sure = np.maximum(np.sqrt(apart) - np.sqrt(doubt), 0.0) ** 2  # what is left when the noise is taken off
        gain = np.where(fits, sizes[0] * sizes[1] / (sizes[0] + sizes[1]) * sure, -np.inf)
        best = int(np.argmax(gain))
        return Split(c, masks[best], left[best], right[best], float(gain[best]))

    def _variance(self, ask: Floats, share: Floats, size: Floats, second: Floats) -> Floats:
        """The variance of class shares: sum over rows of w^2 (w_k - share)^2 / N^2, over all classes (delta method)."""
        off = (self.class_weights[None] - share[:, :, None]) ** 2  # [candidates, class, published class]
        return np.einsum("tp,tkp->t", ask**2 @ second, off) / size**2


def _candidates(feature: Feature, allowed: Bools, table: Floats) -> Bools:
    """Sets of states for the left child: prefixes of the states in order (numbers by size, categories by class).

    Missing takes part as a category; of a numeric split it goes right, alone where all numbers go left.
    """
    places = np.flatnonzero(allowed)
    if feature.edges is None:
        main = int(np.argmax(table.sum(axis=0)))
        places = places[np.argsort(table[places, main] / np.maximum(table[places].sum(axis=1), 1e-9), kind="stable")]
    masks = np.zeros((max(len(places) - 1, 0), feature.size), bool)
    for i in range(len(masks)):
        masks[i, places[: i + 1]] = True
    return masks


def export_text(tree: TreeClassifier, *, show_rows: bool = True) -> str:
    """The tree in words, one line per node.

    Args:
        tree: a tree that has learned.
        show_rows: whether a leaf says about how many rows it has.

    >>> import pyarrow as pa
    >>> import deniable as dn
    >>> rows = pa.table({"age": [25, 60] * 50})
    >>> print(dn.learn.export_text(dn.learn.TreeClassifier().fit(rows, ["low", "high"] * 50), show_rows=False))
    |--- age <= 25
    |   |--- class: low  100 %
    |--- age > 25
    |   |--- class: high  100 %
    """
    lines: list[str] = []

    def write(node: Node, indent: str) -> None:
        if node.feature is None or node.left is None or node.right is None or node.left_states is None:
            best = int(np.argmax(node.shares))
            rows = f"  (about {max(node.counts.sum(), 0):,.0f} rows)" if show_rows else ""
            lines.append(f"{indent}|--- class: {tree.classes_[best]}  {100 * node.shares[best]:.0f} %{rows}")
            return
        feature = tree.features_[node.feature]
        for branch, left in ((node.left, True), (node.right, False)):
            lines.append(f"{indent}|--- {_condition(feature, node.left_states, left)}")
            write(branch, indent + "|   ")

    write(tree.tree_, "")
    return "\n".join(lines)


def _condition(feature: Feature, left_states: Bools, left: bool) -> str:
    """What leads to a child, in words; a numeric split is told by the end of its left bins, missing goes right."""
    if feature.edges is None:
        states = left_states if left else ~left_states
        named = [str(value) for value, inside in zip((*feature.values, "missing"), states, strict=True) if inside]
        return f"{feature.name} in {{{', '.join(named)}}}"
    last = int(np.flatnonzero(left_states)[-1])
    if last == len(feature.edges):
        return f"{feature.name} is {'known' if left else 'missing'}"
    end = feature.edges[last]
    return f"{feature.name} <= {end:g}" if left else f"{feature.name} > {end:g}"
