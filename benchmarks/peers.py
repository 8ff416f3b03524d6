"""Randomized response per record beside other libraries, each in an environment of its own (their pins conflict).

The environments live in `.bench/`, outside the package's own. A peer that cannot be installed here is skipped, and the
reason is printed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from deniable.core.channels import Channel
from deniable.tables.keys import Keystream, Secret
from deniable.tables.sampler import Kernel

ENVIRONMENTS = Path(__file__).parent.parent / ".bench"
M = 50
OURS = 20_000_000
# What packages import and do not ask for; newer xxhash refuses the texts that both hash.
BESIDE = {"pure-ldp": ["scikit-learn", "statsmodels", "xxhash<3.6"], "multi-freq-ldpy": ["xxhash<3.6"]}

PEERS = {
    "opendp": """
import json, time
import opendp.prelude as dp
dp.enable_features("contrib")
respond = dp.m.make_randomized_response([str(i) for i in range(50)], 0.2)
n = 20_000
begin = time.perf_counter()
for i in range(n):
    respond(str(i % 50))
print(json.dumps((time.perf_counter() - begin) / n))
""",
    "multi-freq-ldpy": """
import json, time
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client
respond = lambda value: GRR_Client(value, 50, 1.0)
n = 20_000
respond(3)
begin = time.perf_counter()
for i in range(n):
    respond(i % 50)
print(json.dumps((time.perf_counter() - begin) / n))
""",
}


def peer_seconds(package: str, script: str) -> tuple[float | None, str]:
    """Seconds a record, or None and why not."""
    printed, note = run_peer(package, script)
    return (None, note) if printed is None else (float(printed), note)


def run_peer(package: str, script: str, *arguments: str, timeout: float = 300) -> tuple[Any, str]:
    """What a script prints as JSON in an environment that has the package, or None and why not."""
    home = ENVIRONMENTS / package
    python = home / "bin" / "python"
    try:
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(home)], check=True, capture_output=True, timeout=120)
            install = [str(python), "-m", "pip", "install", "--quiet", package, *BESIDE.get(package, [])]
            subprocess.run(install, check=True, capture_output=True, text=True, timeout=600)
        command = [str(python), "-c", script, *arguments]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=timeout)
        return json.loads(done.stdout), "installed in its own environment"
    except subprocess.CalledProcessError as error:
        last = (error.stderr or "no message").strip().splitlines()[-1:] or ["no message"]
        return None, f"skipped: {last[0] if isinstance(last[0], str) else last[0].decode()}"[:120]
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, f"skipped: {error}"[:120]


def rows() -> list[dict[str, Any]]:
    """One dict (what, seconds, ratio, note); seconds are per million records, the ratio is to ours."""
    channel = Channel.uniform(range(M), gamma=Fraction(12, 5))
    kernel, stream = Kernel([channel], [np.arange(M)]), Keystream(Secret.generate(), "benchmark")
    codes = np.random.default_rng(1).integers(0, M, OURS).astype(np.uint8)
    begin = time.perf_counter()
    kernel.perturb_rows(codes, stream)
    ours = (time.perf_counter() - begin) / OURS
    result: list[dict[str, Any]] = [
        {"what": "randomized response: deniable", "seconds": ours * 1e6, "ratio": 1.0, "note": "per 10^6 records"}
    ]
    for package, script in PEERS.items():
        each, note = peer_seconds(package, script)
        seconds, ratio = (None, None) if each is None else (each * 1e6, each / ours)
        result.append({"what": f"randomized response: {package}", "seconds": seconds, "ratio": ratio, "note": note})
    return result
