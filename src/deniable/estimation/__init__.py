"""Estimation: from published rows back to the truth, with intervals that say how far off it may be (SPEC 8)."""

from deniable.estimation.answers import count, group_by, histogram, mean, sum_of
from deniable.estimation.estimate import Estimate
from deniable.estimation.pools import Pool, count_many
from deniable.estimation.predicates import between, not_
from deniable.estimation.sql import sql

__all__ = [
    "Estimate",
    "Pool",
    "between",
    "count",
    "count_many",
    "group_by",
    "histogram",
    "mean",
    "not_",
    "sql",
    "sum_of",
]
