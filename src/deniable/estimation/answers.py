"""Asking a release in Python: count, sum, mean, group by and histogram."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.core.errors import QuestionError
from deniable.estimation.asking import Method, Options, asking
from deniable.estimation.estimate import Estimate
from deniable.estimation.grouping import answer, group_columns, interval
from deniable.estimation.linear import Answers
from deniable.estimation.predicates import conjunction
from deniable.estimation.published import Published


def count(
    published: Published,
    where: Mapping[str, Any] | None = None,
    *,
    method: Method = "inverse",
    calibrate: bool | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """How many rows satisfy ``where``."""
    options = Options(method, calibrate, confidence)
    found = answer(published, conjunction(where), options)
    return single(found.count, options)


def sum_of(
    published: Published,
    column: str,
    where: Mapping[str, Any] | None = None,
    *,
    calibrate: bool | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """The sum of a public numeric column over the rows that satisfy ``where``."""
    options = Options("inverse", calibrate, confidence)
    return single(answer(published, conjunction(where), options, values=[column]).sums[column], options)


def mean(
    published: Published,
    column: str,
    where: Mapping[str, Any] | None = None,
    *,
    calibrate: bool | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """The average of a public numeric column over the rows that satisfy ``where``."""
    options = Options("inverse", calibrate, confidence)
    found = answer(published, conjunction(where), options, values=[column]).means[column]
    if np.isnan(found.value[0, 0]):
        raise QuestionError(f"No row can satisfy the condition, so {column!r} has no average.")
    return single(found, options)


def single(found: Answers, options: Options) -> Estimate:
    """The one estimate of answers without groups."""
    return Estimate(
        float(found.value[0, 0]),
        float(np.sqrt(found.variance[0, 0])),
        options.confidence,
        float(found.smallest[0, 0]),
        float(found.largest[0, 0]),
        options.said,
        float(np.sqrt(found.raw[0, 0])),
    )


def group_by(
    published: Published,
    columns: Sequence[str] | str,
    where: Mapping[str, Any] | None = None,
    *,
    method: Method = "inverse",
    calibrate: bool | None = None,
    confidence: float = 0.95,
) -> pa.Table:
    """How many rows each group has: its columns, then value, stderr, value_low and value_high."""
    names = [columns] if isinstance(columns, str) else list(columns)
    if not names or len(set(names)) < len(names):
        raise QuestionError("group_by needs one or more different columns.")
    options = Options(method, calibrate, confidence)
    found = answer(published, conjunction(where), options, groups=names)
    arrays = group_columns(asking(published), names, found)
    low, high = interval(found.count, options.z)
    arrays["value"] = pa.array(found.count.value.reshape(-1))
    arrays["stderr"] = pa.array(np.sqrt(found.count.variance).reshape(-1))
    arrays["value_low"], arrays["value_high"] = pa.array(low.reshape(-1)), pa.array(high.reshape(-1))
    return pa.table(arrays)


def histogram(published: Published, where: Mapping[str, Any] | None = None, **options: Any) -> pa.Table:
    """How many rows hold each sensitive value, among those that satisfy ``where``."""
    return group_by(published, list(published.manifest.sensitive_columns), where, **options)
