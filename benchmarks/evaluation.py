"""`deniable evaluate` at full size: 10 mechanisms x 10,000 questions x 20 draws on 100,000 rows, on two processes.

200 random conditions on public columns, each with all 50 values (SDR 10.9), of a made-up census; three estimators for
each mechanism that has several.
"""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Any

from deniable.core.privacy import Privacy
from deniable.lab.experiments import run_experiment
from deniable.lab.made_up import census
from deniable.lab.settings import setting_named
from deniable.planning.pools import CodedTable, sdr_pool

ROWS, DRAWS, WORKERS = 100_000, 20, 2
MECHANISMS = (
    *("uniform", "small-domain", "fine-grain", "identity", "designed"),
    *("pram", "redraw", "decoys", "anatomy", "laplace"),
)


def rows() -> list[dict[str, Any]]:
    begin = time.perf_counter()
    pool = sdr_pool(CodedTable.of(census(ROWS), "occupation"))
    asked = time.perf_counter()
    privacy = Privacy(rho2=Fraction(1, 6))
    settings = [setting_named(name, privacy) for name in MECHANISMS]
    result = run_experiment(pool, settings, draws=DRAWS, workers=WORKERS)
    done = time.perf_counter()
    refused = f"; refused: {', '.join(result.refused)}" if result.refused else ""
    what = f"evaluate {len(settings)} mechanisms x {len(pool):,} questions x {DRAWS} draws, {ROWS:,} rows"
    return [
        {"what": "read a table and count a pool", "seconds": asked - begin, "note": f"{len(pool):,} questions"},
        {
            "what": what,
            "seconds": done - asked,
            "note": f"{WORKERS} processes, {len(result.rows)} rows of results{refused}",
        },
    ]
