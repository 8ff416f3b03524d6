"""What a promise leaves out: values more frequent than rho1 must be so, and single values of columns that are perturbed
together must be kept, too."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import Any

from deniable.audit.verify.checks import FULL, Check
from deniable.core.promise import Amplification, Cells, Frequency, LineUps
from deniable.core.values import from_json, to_json

Json = Mapping[str, Any]
NOT_CHECKED = "NOT CHECKED: it needs the distribution, which this release does not publish; `deniable audit` checks it"


def noise_slack(part: Json) -> int:
    """How far noise takes a count from the true one, once in a million."""
    return math.ceil(14 / part["marginal"]["epsilon"])


def above_checks(promise: Amplification | Cells | Frequency | LineUps, part: Json, manifest: Json) -> list[Check]:
    """Values that are left out for being more frequent than rho1: by the noisy histogram they can be, each of them."""
    if not promise.above:
        return []
    m, rows = len(part["domain"]), manifest["rows"]
    if promise.rho1 is None or any(not 0 <= place < m for place in promise.above):
        return [Check("left out", False, "values are left out as more frequent than rho1, which is not stated")]
    if part["marginal"] is None:
        return [Check("left out", True, f"NOT CHECKED: that {len(promise.above)} values are more frequent than rho1")]
    line, slack = promise.rho1 * rows, 2 * noise_slack(part)
    wrong = sum(part["marginal"]["counts"][place] + slack <= line for place in promise.above)
    values = f"{len(promise.above)} values, more frequent than rho1 = {float(promise.rho1):.4g}"
    return [Check("left out", not wrong, f"{wrong} of {values} are not, by the noisy histogram" if wrong else values)]


def surest_at_least(part: Json) -> dict[int, Fraction]:
    """Pr[x | y = x] of each value of the only channel, with as few rows of x and as many of others as noise allows."""
    slack, (cell,) = noise_slack(part), part["cells"]
    noisy = [part["marginal"]["counts"][place] for place in cell["values"]]
    replaced = sum((count + slack) * (FULL - k) for count, k in zip(noisy, cell["keep"], strict=True))
    beliefs = {}
    for place, count, k, w in zip(cell["values"], noisy, cell["keep"], cell["replace"], strict=True):
        mine = max(count - slack, 0) * (k * FULL + (FULL - k) * w)
        others = w * (replaced - (count + slack) * (FULL - k))
        beliefs[place] = Fraction(mine, mine + others) if mine + others > 0 else Fraction(0)
    return beliefs


def single_checks(promise: Cells | Frequency, part: Json, manifest: Json) -> list[Check]:
    """Pr[a column's value | y] of columns that are perturbed together, as far as the noisy histogram tells it.

    A value is believed at least by its rows that noise cannot explain, against all other rows that it can. How many
    rows of a value a cell took is not published.
    """
    if len(part["columns"]) < 2 or promise.rho2 is None:
        return []
    if part["marginal"] is None or isinstance(promise, Cells):
        lacking = "a noisy histogram" if part["marginal"] is None else "how many rows of a value each cell took"
        detail = f"NOT CHECKED: the bound for the values of each of {len(part['columns'])} columns alone; {lacking}"
        return [Check("single values", True, f"{detail} is not published, `deniable audit` checks that")]
    (cell,) = part["cells"]
    noisy = [part["marginal"]["counts"][place] for place in cell["values"]]
    entries = [part["domain"][place] for place in cell["values"]]
    order = [list(dict.fromkeys(repr(entry[column]) for entry in part["domain"])) for column in range(len(entries[0]))]
    spread = noise_slack(part)
    wrong = checked = 0
    for column, known in enumerate(order):
        for place, value in enumerate(known):
            if (column, place) in promise.loose:
                continue
            checked += 1
            inside = [repr(entry[column]) == value for entry in entries]
            wrong += _at_least(cell, noisy, inside, spread) > promise.rho2
    values = f"{checked} single values of {len(order)} columns"
    return [Check("single values", not wrong, f"{wrong} of {values} exceed rho2" if wrong else f"{values} within rho2")]


def _at_least(cell: Json, noisy: list[int], inside: list[bool], spread: int) -> Fraction:
    """A lower bound on the largest Pr[inside | y]: noise in a sum of k counts is at most sqrt(k) times that of one."""
    slack = math.ceil(spread * math.sqrt(len(noisy)))
    replaced = [max(f, 0) * (FULL - k) for f, k in zip(noisy, cell["keep"], strict=True)]
    mine = max(sum(r for r, own in zip(replaced, inside, strict=True) if own) - slack * FULL, 0)
    others = sum(r for r, own in zip(replaced, inside, strict=True) if not own) + slack * FULL
    worst = Fraction(0)
    for f, k, w, own in zip(noisy, cell["keep"], cell["replace"], inside, strict=True):
        kept = max(f - spread, 0) * k * FULL if own else 0
        missed = 0 if own else (f + spread) * k * FULL
        seen = kept + missed + w * (mine + others)
        worst = max(worst, Fraction(kept + w * mine, seen) if seen else Fraction(0))
    return worst


def names_of(part: Json) -> list[Any]:
    """The values of a domain as requirements name them."""
    if len(part["columns"]) == 1:
        return [entry[0] for entry in part["domain"]]
    return [
        to_json(tuple(from_json(item, kind) for item, kind in zip(entry, part["types"], strict=True)))
        for entry in part["domain"]
    ]


def key(value: Any) -> Hashable:
    """A value as it is looked up by: a requirement in a damaged manifest may name lists."""
    return repr(value) if isinstance(value, list | dict) else value
