"""Counts from line-ups beside other libraries' frequency oracles, at one epsilon: python benchmarks/lineup_peers.py

Everybody perturbs the same 20,000 values of a Zipf distribution under epsilon = ln gamma of (1/13, 1/6), for m = 50,
500 and 1,200 values, and estimates how many rows hold each value. All estimates are cut at 0 and scaled to the number
of rows, as multi-freq-ldpy does it by itself. What is printed: the root mean square error over values, in rows, mean
over draws. The other libraries are run in environments of their own (``peers``).
"""

from __future__ import annotations

import json
import math
import tempfile
from typing import Any

import numpy as np
import pyarrow as pa
from peers import run_peer

import deniable as dn

ROWS, DRAWS = 20_000, 3
SIZES = (50, 500, 1200)
GAMMA = 12 / 5
PRIVACY = dn.Privacy("1/13", "1/6", adversary="any-prior")
CALLED = """
import json, sys
import numpy as np
values, m, epsilon = json.load(open(sys.argv[1])), int(sys.argv[2]), float(sys.argv[3])
"""
PEERS = {
    ("multi-freq-ldpy", "OUE"): """
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client, UE_Aggregator_MI
print(json.dumps(list(UE_Aggregator_MI([UE_Client(x, m, epsilon, True) for x in values], epsilon, True))))
""",
    ("multi-freq-ldpy", "OLH"): """
from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Client, LH_Aggregator_MI
print(json.dumps(list(LH_Aggregator_MI([LH_Client(x, m, epsilon, True) for x in values], m, epsilon, True))))
""",
    ("multi-freq-ldpy", "subset selection"): """
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client, SS_Aggregator_MI
print(json.dumps(list(SS_Aggregator_MI([SS_Client(x, m, epsilon) for x in values], m, epsilon))))
""",
    ("pure-ldp", "OUE"): """
from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer
client, server = UEClient(epsilon, m, use_oue=True), UEServer(epsilon, m, use_oue=True)
for x in values:
    server.aggregate(client.privatise(x + 1))
print(json.dumps([float(server.estimate(x + 1, suppress_warnings=True)) for x in range(m)]))
""",
    ("pure-ldp", "OLH"): """
from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer
client, server = LHClient(epsilon, m, use_olh=True), LHServer(epsilon, m, use_olh=True)
for x in values:
    server.aggregate(client.privatise(x + 1))
print(json.dumps([float(server.estimate(x + 1, suppress_warnings=True)) for x in range(m)]))
""",
}


def made(m: int, draw: int) -> np.ndarray[Any, Any]:
    """The values of one draw, most frequent first."""
    share = 1 / np.arange(1, m + 1)
    return np.random.default_rng(draw).choice(m, ROWS, p=share / share.sum())


def off(estimates: Any, values: np.ndarray[Any, Any], m: int) -> float:
    """The root mean square error over values, in rows."""
    counts = np.maximum(np.asarray(estimates, dtype=np.float64), 0)
    counts *= len(values) / max(counts.sum(), 1e-300)
    return float(np.sqrt(np.mean((counts - np.bincount(values, minlength=m)) ** 2)))


def ours(mechanism: str, values: np.ndarray[Any, Any], m: int, draw: int) -> float:
    """A release of the table, and its estimated histogram."""
    table = pa.table({"value": values})
    key = draw.to_bytes(32, "big")
    release = dn.publish(table, sensitive="value", privacy=PRIVACY, mechanism=mechanism, domain=list(range(m)), key=key)
    answered = release.sql("SELECT value, COUNT(*) AS n FROM release GROUP BY value")
    counts = np.zeros(m)
    counts[answered["value"].to_numpy()] = answered["n"].to_numpy()
    return off(counts, values, m)


def rows() -> list[dict[str, Any]]:
    """One dict (what, m, off, ratio, note); the ratio is to line-ups."""
    result: list[dict[str, Any]] = []
    for m in SIZES:
        drawn = [made(m, draw) for draw in range(DRAWS)]
        line_ups = float(np.mean([ours("lineup", values, m, draw) for draw, values in enumerate(drawn)]))
        uniform = float(np.mean([ours("uniform", values, m, draw) for draw, values in enumerate(drawn)]))
        result += [
            {"what": "deniable, line-ups", "m": m, "off": line_ups, "ratio": 1.0, "note": ""},
            {"what": "deniable, uniform", "m": m, "off": uniform, "ratio": uniform / line_ups, "note": ""},
        ]
        for (package, oracle), script in PEERS.items():
            errors, note = [], ""
            for values in drawn:
                with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                    json.dump(values.tolist(), file)
                    file.flush()
                    arguments = (file.name, str(m), str(math.log(GAMMA)))
                    estimates, note = run_peer(package, CALLED + script, *arguments, timeout=900)
                errors += [] if estimates is None else [off(estimates, values, m)]
            mean = float(np.mean(errors)) if len(errors) == DRAWS else None
            ratio = None if mean is None else mean / line_ups
            result.append({"what": f"{package}, {oracle}", "m": m, "off": mean, "ratio": ratio, "note": note})
    return result


def main() -> None:
    print(f"{ROWS:,} rows, epsilon = {math.log(GAMMA):.3f}, {DRAWS} draws\n")
    print(f"{'what':<36}{'m':>6}{'rows off':>10}{'ratio':>7}  note")
    for row in rows():
        error, ratio = ("", "") if row["off"] is None else (f"{row['off']:.1f}", f"{row['ratio']:.2f}")
        print(f"{row['what']:<36}{row['m']:>6}{error:>10}{ratio:>7}  {row['note']}")


if __name__ == "__main__":
    main()
