"""Public columns that are functions of the sensitive one, or it of them: an ICD chapter beside an ICD code."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from deniable.core.arrays import Codes, Ints

DETERMINES = "each of its values has one sensitive value"
FOLLOWS = "each sensitive value has one of its values"
NEARLY_DETERMINES, NEARLY_FOLLOWS = f"nearly {DETERMINES}", f"nearly {FOLLOWS}"
NEARLY_ALL = 0.95  # of the disagreement that independent columns would have is gone
NO_CHANCE = 20.7  # -log of the probability by which chance makes a function: 1e-9


def functions_of(columns: Mapping[str, Codes], original: Ints) -> dict[str, str]:
    """Columns that determine the sensitive value or follow from it, exactly or nearly, and by no chance."""
    functions = {}
    for name, codes in columns.items():
        forth, back = _agreement(codes, original), _agreement(original, codes)
        if max(forth, back) >= NEARLY_ALL:
            exact, nearly = (DETERMINES, NEARLY_DETERMINES) if forth >= back else (FOLLOWS, NEARLY_FOLLOWS)
            functions[name] = exact if max(forth, back) == 1 else nearly
    return functions


def _agreement(arguments: Codes, results: Codes) -> float:
    """How nearly the one column is a function of the other: 1 where it is, 0 where that says nothing, or is chance.

    Rows beyond the first of each argument must agree with its most frequent result; compared with the most frequent
    result of all rows.
    """
    counts, everywhere = np.bincount(arguments), np.bincount(results)
    again = len(arguments) - int((counts > 0).sum())
    if not again or not _is_no_chance(counts, everywhere):
        return 0.0
    size = len(everywhere)
    pairs, rows = np.unique(arguments.astype(np.int64) * size + results, return_counts=True)
    largest = np.zeros(len(counts), np.int64)
    np.maximum.at(largest, pairs // size, rows)
    missed = len(arguments) - int(largest.sum())
    return 1 - (missed / again) / (1 - everywhere.max() / len(results))


def _is_no_chance(arguments: Ints, results: Ints) -> bool:
    """Whether independent columns with these rows of each value would not be a function from the one to the other."""
    rows = arguments.sum()
    again = rows - (arguments > 0).sum()
    agree = float(((results / rows) ** 2).sum()) if rows else 1.0
    return bool(agree < 1 and again * -np.log(agree) > NO_CHANCE)
