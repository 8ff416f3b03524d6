"""Naive Bayes from reconstructed two-column tables: Pr[class] prod_c Pr[state of column c | class]."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deniable.core.errors import OptionError
from deniable.estimation.model.tensor import Tensor
from deniable.learn.base import ReleaseClassifier
from deniable.learn.features import Codes, Floats, Training


class NaiveBayesClassifier(ReleaseClassifier):
    """Naive Bayes, Pr[class] prod_c Pr[column c | class], from tables reconstructed by maximum likelihood.

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
        known = target.size - 1
        seen = np.bincount(training.classes, minlength=target.size).astype(np.float64)
        prior = Tensor((target.factor,)).likelihood(seen)[:known] + self.smoothing
        self.class_log_prior_: Floats = np.log(prior / prior.sum())
        self.feature_log_prob_: list[Floats] = []
        for feature, codes in zip(training.features, training.codes, strict=True):
            table = np.bincount(codes * target.size + training.classes, minlength=feature.size * target.size)
            observed = table.reshape(feature.size, target.size).astype(np.float64)
            found = Tensor((feature.factor, target.factor)).likelihood(observed)[:, :known] + self.smoothing
            self.feature_log_prob_.append(np.log(found / found.sum(axis=0)))

    def _probabilities(self, codes: Sequence[Codes], rows: int) -> Floats:
        total = np.broadcast_to(self.class_log_prior_, (rows, len(self.classes_))).copy()
        for states, logs in zip(codes, self.feature_log_prob_, strict=True):
            total += logs[states]
        total -= total.max(axis=1, keepdims=True)
        result: Floats = np.exp(total)
        return result / result.sum(axis=1, keepdims=True)
