"""Classes of hostile inputs, in processes of their own, for so many minutes; then one table."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.pool import ThreadPool
from pathlib import Path
from random import Random, SystemRandom

from fuzz.case import Cases, judged, peak_megabytes
from fuzz.classes import CLASSES

LONGEST = 30.0  # seconds of the processor that a case may take: the clock counts what else a machine does
WAITING = 4  # times as many by the clock, for a case that waits and takes nothing of the processor
CEILING = 2_048  # megabytes that a process may hold
HARD = 6 * 2**30  # bytes: what would take the machine with it fails inside the process instead


@dataclass
class Tally:
    """What became of the cases of one class."""

    verdicts: Counter[str] = field(default_factory=Counter)
    failures: dict[str, str] = field(default_factory=dict)  # problem -> the first case that showed it
    slowest: float = 0.0
    peak: float = 0.0


def work(cases: Cases, seed: int, home: Path, pipe: Connection) -> None:
    """Take case after case and report: what begins, then what became of it."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_DATA, (HARD, HARD))
    ignored: list[str] = []  # Python prints the traceback of an exception that has nowhere to go
    sys.unraisablehook = lambda lost: ignored.append(repr(lost.exc_value))
    for case in cases(Random(seed), home):
        pipe.send(("begins", case.about, 0.0))
        started = time.process_time()
        end = judged(case)
        problem = end.problem or (f"an exception without a place to go: {ignored[0]}" if ignored else "")
        ignored.clear()
        if peak_megabytes() > CEILING:
            problem = problem or f"{peak_megabytes():,.0f} MB, above the ceiling"
        pipe.send((end.verdict if not problem else "failed", problem, time.process_time() - started))
        pipe.send(("peak", "", peak_megabytes()))
        if peak_megabytes() > CEILING:
            return  # a process cannot forget its peak: the next one starts afresh


def run_class(name: str, seed: int, seconds: float) -> Tally:
    """One class for so long; a process that hangs is ended, and another goes on with other cases."""
    tally, until = Tally(), time.monotonic() + seconds
    while time.monotonic() < until:
        with tempfile.TemporaryDirectory(prefix="deniable-fuzz-") as home:
            _one_process(CLASSES[name], seed, Path(home), tally, until)
        seed += 1_000_003
    return tally


def _one_process(cases: Cases, seed: int, home: Path, tally: Tally, until: float) -> None:
    ours, theirs = multiprocessing.get_context("spawn").Pipe(duplex=False)
    worker = multiprocessing.get_context("spawn").Process(target=work, args=(cases, seed, home, theirs))
    worker.start()
    theirs.close()
    about, grace = "before the first case", 90.0  # starting takes a while
    try:
        while time.monotonic() < until or about != "":
            if _hangs(ours, worker.pid or 0, grace):
                _count(tally, "failed", f"hangs for more than {grace:.0f} s", about, grace)
                return
            kind, text, number = ours.recv()
            grace = LONGEST
            if kind == "begins":
                if time.monotonic() >= until and tally.verdicts:  # on a busy machine, starting can take all the time
                    return
                about = text
            elif kind == "peak":
                tally.peak = max(tally.peak, number)
                about = ""
            else:
                _count(tally, kind, text, about, number)
    except EOFError:
        worker.join(LONGEST)
        if about or worker.exitcode:  # a process that cannot forget its peak ends with 0, between two cases
            _count(tally, "failed", f"the process ended (exit code {worker.exitcode})", about or "between cases", 0.0)
    finally:
        worker.kill()
        worker.join()


def _hangs(pipe: Connection, process: int, grace: float) -> bool:
    """Wait for a word; whether none came in time."""
    begin, used = time.monotonic(), _processor_seconds(process)
    while not pipe.poll(1.0):
        if _processor_seconds(process) - used > grace or time.monotonic() - begin > WAITING * grace:
            return True
    return False


def _processor_seconds(process: int) -> float:
    """What a process has used so far; by the clock where the system does not say."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return time.monotonic()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _count(tally: Tally, verdict: str, problem: str, about: str, seconds: float) -> None:
    tally.verdicts[verdict] += 1
    tally.slowest = max(tally.slowest, seconds)
    if verdict == "failed":
        tally.failures.setdefault(problem.partition(": ")[0], f"{problem} | {about}")


def main() -> int:
    """Run every class for its share of the time; 1 where anything failed."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="for all classes together, two at a time")
    parser.add_argument("--seed", type=int, default=None, help="left out: another one every time")
    parser.add_argument("--only", action="append", choices=sorted(CLASSES), help="a class; repeat it for several")
    options = parser.parse_args()
    seed = SystemRandom().randrange(2**31) if options.seed is None else options.seed
    names = options.only or list(CLASSES)
    share = options.minutes * 60 * min(2, len(names)) / len(names)
    print(f"Seed {seed}; {share:.0f} s for each of {len(names)} classes, two at a time.", flush=True)
    with ThreadPool(2) as pool:
        tallies = dict(zip(names, pool.starmap(run_class, [(name, seed, share) for name in names], 1), strict=True))
    print(f"{'class':<10} {'cases':>8} {'answered':>9} {'refused':>8} {'failed':>7} {'slowest s':>10} {'peak MB':>8}")
    for name, tally in tallies.items():
        counts = [tally.verdicts[verdict] for verdict in ("answered", "refused", "failed")]
        print(
            f"{name:<10} {sum(counts):>8,} {counts[0]:>9,} {counts[1]:>8,} {counts[2]:>7,} "
            f"{tally.slowest:>10.1f} {tally.peak:>8,.0f}"
        )
    for name, tally in tallies.items():
        for example in tally.failures.values():
            print(f"FAILED {name}: {example}")
    return int(any(tally.failures for tally in tallies.values()))
