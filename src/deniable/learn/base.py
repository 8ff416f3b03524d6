"""What the classifiers share: scikit-learn's conventions, on originals and on releases."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError

from deniable.core.arrays import Floats
from deniable.core.errors import ColumnError, OptionError
from deniable.learn.features import Codes, Training, as_table, from_release, from_rows, plain


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
            if y is None or target is not None:
                raise OptionError("fit on originals needs their classes: fit(X, y).")
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
