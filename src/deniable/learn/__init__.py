"""Classifiers from reconstructed counts: fit on a release, predict for people (OLAP 6.3). Extra: ``learn``."""

from deniable.core.errors import extra_missing

try:
    import sklearn  # noqa: F401
except ImportError:
    raise extra_missing("scikit-learn", "learn") from None

from deniable.learn.naive_bayes import NaiveBayesClassifier
from deniable.learn.tree import TreeClassifier, export_text

__all__ = ["NaiveBayesClassifier", "TreeClassifier", "export_text"]
