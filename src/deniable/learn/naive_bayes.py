"""Naive Bayes from reconstructed two-column tables: Pr[class] prod_c Pr[state of column c | class].

A reconstructed table is unbiased and noisy, and logarithms make much of noise in rare states. So it is drawn towards
independence, each entry by as much as it is noise. With r = counts / expected - 1, the diagonal V of its variances, and
true ratios of a class that vary over states with the covariance K, neighbours alike where states are bins of numbers,

    r~ = K (K + V)^-1 r,    K = tau^2 exp(-|s - t| / reach)

on average over many tau and reach, each as likely as it makes r in all columns. Where nothing stands out of the noise
a column says nothing; without noise r~ = r.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deniable.core.arrays import Floats
from deniable.core.errors import OptionError
from deniable.learn.base import ReleaseClassifier
from deniable.learn.features import Codes, Training

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
