"""Classifiers from reconstructed counts: fit on a release, predict for people (OLAP 6.3). Extra: ``learn``."""

from __future__ import annotations

from deniable.extend import extra_missing
from deniable.learn.classifiers import NaiveBayesClassifier, TreeClassifier, export_text

try:
    import sklearn  # noqa: F401
except ImportError:
    raise extra_missing("scikit-learn", "learn") from None

__all__ = ["NaiveBayesClassifier", "TreeClassifier", "export_text"]
