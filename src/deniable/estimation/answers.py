"""Asking a release for tables: group by and histogram."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.core.errors import QuestionError
from deniable.estimation.aggregates import Count
from deniable.estimation.answering import answer, group_columns, interval
from deniable.estimation.asking import Method, Options, asking
from deniable.estimation.predicates import conjunction
from deniable.estimation.published import Published
from deniable.estimation.question import Question


def group_by(
    published: Published,
    columns: Sequence[str] | str,
    where: Mapping[str, Any] | None = None,
    *,
    method: Method = "inverse",
    calibrate: bool | None = None,
    confidence: float = 0.95,
    simultaneous: bool = False,
) -> pa.Table:
    """How many rows each group has: its columns, then value, stderr, value_low and value_high."""
    names = [columns] if isinstance(columns, str) else list(columns)
    if not names or len(set(names)) < len(names):
        raise QuestionError("group_by needs one or more different columns.")
    options = Options(method, calibrate, confidence, simultaneous)
    grouped = answer(published, Question(conjunction(where), tuple(names), options=options))
    arrays = group_columns(asking(published), names, grouped)
    counts = grouped.by_aggregate[Count()]
    low, high = interval(counts, options.z_of(int((counts.variance > 0).sum())))
    arrays["value"] = pa.array(counts.value.reshape(-1))
    arrays["stderr"] = pa.array(np.sqrt(counts.variance).reshape(-1))
    arrays["value_low"], arrays["value_high"] = pa.array(low.reshape(-1)), pa.array(high.reshape(-1))
    return pa.table(arrays)


def histogram(published: Published, where: Mapping[str, Any] | None = None, **options: Any) -> pa.Table:
    """How many rows hold each sensitive value, among those that satisfy ``where``."""
    return group_by(published, list(published.manifest.sensitive_columns), where, **options)
