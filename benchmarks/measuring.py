"""How benchmarks measure: the best of some runs, or one run in a process of its own, whose memory is its own."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable

COPY = """
with pq.ParquetFile(source) as file, pq.ParquetWriter(out, file.schema_arrow, compression="zstd") as writer:
    for batch in file.iter_batches(2**17):
        writer.write_batch(batch)
"""
# VmHWM is the high-water mark of this process alone; ru_maxrss would start at that of the process it was forked from.
# Processor time is that of the whole session: Spark's machine and its workers are processes of their own.
PROGRAM = """
import json, os, sys, time
def used():
    ticks = 0
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = open("/proc/" + process + "/stat").read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15])) if int(fields[3]) == os.getsid(0) else 0
    return ticks / os.sysconf("SC_CLK_TCK")
{setup}
begin, before = time.perf_counter(), used()
{work}
spent, processor = time.perf_counter() - begin, used() - before
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024
print(json.dumps([spent, processor, peak]))
"""


def best(work: Callable[[], object], repeats: int = 3) -> float:
    """The shortest of some runs, in seconds: the machine can only make a run slower."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def least(work: Callable[[], object], repeats: int = 5) -> tuple[float, float]:
    """Seconds by the clock and of processor time, each the least of some runs; other programs disturb the first."""
    runs = []
    for _ in range(repeats):
        begin, used = time.perf_counter(), time.process_time()
        work()
        runs.append((time.perf_counter() - begin, time.process_time() - used))
    return min(clock for clock, _ in runs), min(used for _, used in runs)


def alone(work: str, *arguments: object, setup: str = "") -> tuple[float, float]:
    """Seconds and peak mebibytes of a program text; ``setup`` is not timed, ``arguments`` are in sys.argv."""
    seconds, _, memory = alone_with_processor(work, *arguments, setup=setup)
    return seconds, memory


def alone_with_processor(work: str, *arguments: object, setup: str = "") -> tuple[float, float, float]:
    """The same with the seconds of processor time of it and all processes that it started, in between."""
    program = PROGRAM.format(setup=textwrap.dedent(setup), work=textwrap.dedent(work))
    command = [sys.executable, "-c", program, *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, check=True, text=True, start_new_session=True)
    seconds, processor, memory = json.loads(run.stdout.splitlines()[-1])
    return seconds, processor, memory
