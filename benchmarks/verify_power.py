"""Which forgeries `verify` sees in the counts of 20,000 rows: `python benchmarks/verify_power.py`.

Each release is published honestly with a key of its own and forged in three ways: 5 % of the rows are given other
views, drawn with the frequencies of views turned round (the rarest becomes the most frequent); coins are stated a fifth
larger than those that were tossed; two values of the noisy histogram are exchanged, the most frequent and one of the
middle. With an argument, of so many rows.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import deniable as dn
from deniable_verify.counts import counts_check, possible_check
from deniable_verify.folder import Rows
from deniable_verify.rows import tally

FULL, TRUTH_STEP = 2**32, 2**14
Part = dict[str, Any]
Floats = npt.NDArray[np.float64]
ROWS, KEYS = 20_000, 10
MECHANISMS = (
    *("uniform", "fine-grain", "small-domain", "lineup", "designed"),
    *("decoys:c=2", "redraw", "identity", "pram"),
)
HEAD = "| mechanism | honest | 5 % of the rows | coins | histogram |\n|---|---|---|---|---|"
Forgery = Callable[[Part, Floats, np.random.Generator], tuple[Part, Floats]]


class Line(NamedTuple):
    """How many of the releases of a mechanism failed, honest and by forgery; None where there is no such forgery."""

    mechanism: str
    honest: int
    rows: int
    coins: int | None
    histogram: int


def other_rows(part: Part, shown: Floats, rng: np.random.Generator) -> tuple[Part, Floats]:
    taken = rng.multivariate_hypergeometric(shown.astype(np.int64), int(shown.sum()) // 20)
    turned = np.empty(len(shown))
    turned[np.argsort(shown)] = np.sort(shown)[::-1]
    return part, shown - taken + rng.multinomial(int(shown.sum()) // 20, turned / turned.sum())


def larger_coins(part: Part, shown: Floats, rng: np.random.Generator) -> tuple[Part, Floats]:
    forged = copy.deepcopy(part)
    if "lineups" in part:
        forged["lineups"]["truth"] = min(part["lineups"]["truth"] * 6 // 5 // TRUTH_STEP * TRUTH_STEP, FULL)
    for cell in forged["cells"]:
        cell["keep"] = [min(keep * 6 // 5, FULL) for keep in cell["keep"]]
    return forged, shown


def exchanged(part: Part, shown: Floats, rng: np.random.Generator) -> tuple[Part, Floats]:
    forged = copy.deepcopy(part)
    counts, middle = forged["marginal"]["counts"], len(part["domain"]) // 2
    counts[0], counts[middle] = counts[middle], counts[0]
    return forged, shown


def caught(part: Part, shown: Floats) -> bool:
    """Whether a check of the counts fails, as `verify` makes them."""
    checks = [*counts_check(part, shown, by_person=False), *possible_check(part, shown)]
    return any(check.holds is False for check in checks)


def published(mechanism: str, m: int, rows: int, key: int) -> tuple[Part, Floats]:
    """A release of values with frequencies 1, 1/2, 1/3, .., and the rows of each view."""
    zipf = 1 / np.arange(2, m + 2)
    codes = np.random.default_rng(key).choice(m, rows, p=zipf / zipf.sum())
    table = pa.table({"job": np.array([f"v{code:02d}" for code in range(m)])[codes]})
    privacy = None if mechanism.startswith("decoys") else dn.Privacy(rho2="2/3")
    release = dn.publish(table, sensitive="job", privacy=privacy, mechanism=mechanism, key=bytes([key]) * 32)
    raw, rows_of = release.manifest.to_dict(), Rows(release.table.schema, rows, table=release.table)
    return raw["parts"][0], tally(rows_of, raw).shown[0][:-1]


def line(mechanism: str, m: int, rows: int, keys: int = KEYS) -> Line:
    """All forgeries of one mechanism."""
    failed = dict.fromkeys(("honest", "rows", "coins", "histogram"), 0)
    forged: dict[str, Forgery] = {"rows": other_rows, "coins": larger_coins, "histogram": exchanged}
    no_coins = False
    for key in range(keys):
        part, shown = published(mechanism, m, rows, key)
        failed["honest"] += caught(part, shown)
        no_coins = "lineups" not in part and not any(max(cell["keep"]) for cell in part["cells"])
        for name, forge in forged.items():
            failed[name] += caught(*forge(part, shown, np.random.default_rng(key)))
    coins = None if no_coins else failed["coins"]
    return Line(mechanism, failed["honest"], failed["rows"], coins, failed["histogram"])


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    for m in (10, 50):
        print(f"{m} values, {rows:,} rows, of {KEYS} releases\n\n{HEAD}")
        for mechanism in MECHANISMS:
            print("|", " | ".join("-" if entry is None else str(entry) for entry in line(mechanism, m, rows)), "|")
        print()


if __name__ == "__main__":
    main()
