"""Experiments: settings x draws on one pool of questions, with the line to beat always beside them.

Each unit of work is one draw of one setting. Units are independent: they run on several processes in any order, and a
file of finished ones (JSON lines) lets a stopped experiment go on where it was.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.core.errors import DeniableError, OptionError, OutputError, option
from deniable.core.histogram import SELECTIVITIES
from deniable.core.values import Floats, Ints
from deniable.lab.draws import stream_of
from deniable.lab.rival import Answered, Setting
from deniable.lab.settings import Independent
from deniable.planning.pools import CountedRows, QuestionPool, Rows
from deniable.planning.prediction import Spread, mean_between, relative_error, spread, spreads
from deniable.tables.base import Progress, no_progress

MOST_DRAWS = 100_000
DRAWS = 5
BANDS = (3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)  # ends of bands of selectivity, for charts
FEWEST = 5  # questions of a band: the mean of fewer says little
POINTS = 300  # of a cloud of (true, estimated)
BEGINNING = '{"experiment": '  # of every line of a file of finished draws


@dataclass(frozen=True)
class Row:
    """A setting and an estimator, over all draws.

    Attributes:
        numbers: mean and spread of every measure: ``relative 0.001``, ``absolute 0.001``, .., ``reconstruction``,
            ``kept``, ``draw seconds``, ``answer seconds``, ``slope``, ``r2``.
        bands: mean relative error by (low, high) selectivity, where enough questions were asked.
        cloud: (true, estimated) counts of the first draw, the same questions for every row.
    """

    setting: str
    estimator: str
    numbers: Mapping[str, Spread]
    bands: Mapping[tuple[float, float], Spread] = field(default_factory=dict)
    cloud: tuple[tuple[float, float], ...] = ()

    @property
    def name(self) -> str:
        return f"{self.setting}, {self.estimator}" if self.estimator else self.setting

    def errors(self, selectivities: Sequence[float], kind: str = "relative") -> tuple[float, ...]:
        return tuple(self.numbers[f"{kind} {share:g}"].mean for share in selectivities)

    def to_dict(self) -> dict[str, Any]:
        numbers = {name: {"mean": over.mean, "deviation": over.deviation} for name, over in self.numbers.items()}
        bands = [
            {"from": low, "to": high, "mean": over.mean, "deviation": over.deviation}
            for (low, high), over in self.bands.items()
        ]
        cloud = [list(pair) for pair in self.cloud]
        return {"setting": self.setting, "estimator": self.estimator, **numbers, "bands": bands, "cloud": cloud}


@dataclass(frozen=True)
class Result:
    """The table of an experiment; settings that refused are listed with their reason."""

    pool: str
    questions: tuple[int, ...]
    draws: int
    seed: int
    selectivities: tuple[float, ...]
    rows: tuple[Row, ...]
    refused: Mapping[str, str]

    def row(self, setting: str, estimator: str = "") -> Row:
        for row in self.rows:
            if (row.setting, row.estimator) == (setting, estimator):
                return row
        raise OptionError(f"The experiment has no row {setting!r}, {estimator!r}.")

    def to_dict(self) -> dict[str, Any]:
        return {
            "pool": self.pool,
            "questions": dict(zip(map(str, self.selectivities), self.questions, strict=True)),
            "draws": self.draws,
            "seed": self.seed,
            "rows": [row.to_dict() for row in self.rows],
            "refused": dict(self.refused),
        }


@dataclass(frozen=True, eq=False)
class _Work:
    pools: tuple[QuestionPool, ...]  # about one table; a draw answers all of them
    settings: tuple[Setting, ...]
    seed: int
    selectivities: tuple[float, ...]

    def run(self, place: int, draw: int) -> list[dict[str, Any]]:
        """One draw of one setting: a line per pool and estimator, or a line that says why not."""
        setting = self.settings[place]
        try:
            answered = setting.run(self.together, stream_of(self.seed, draw, setting.label))
        except DeniableError as refused:
            return [{"setting": setting.label, "draw": draw, "refused": str(refused)}]
        lines: list[dict[str, Any]] = []
        ends = np.cumsum([0, *(len(pool.rows) for pool in self.pools)])
        for number, pool in enumerate(self.pools):
            for name, answers in answered.answers.items():
                estimates = pool.pick(answers[ends[number] : ends[number + 1]])
                line = {"setting": setting.label, "draw": draw, "pool": number, "estimator": name}
                numbers = self._numbers(pool, answered, name, estimates)
                lines.append({**line, "numbers": numbers, **self._drawn(pool, estimates, draw)})
        return lines

    @cached_property
    def together(self) -> QuestionPool:
        """The conditions of all pools, one after the other."""
        return self.pools[0] if len(self.pools) == 1 else _joined(self.pools)

    def _drawn(self, pool: QuestionPool, estimates: Floats, draw: int) -> dict[str, Any]:
        """What charts need: errors by band, and of the first draw the points of a cloud."""
        truth, rows = pool.truth, pool.table.rows
        bands = [[low, high, error] for (low, high), error in errors_by_band(estimates, truth, rows).items()]
        if draw > 0:
            return {"bands": bands}
        shown = spread_out(truth, self.selectivities[0] * rows)
        if not len(shown):  # all questions are smaller: show them, rather than none
            shown = spread_out(truth, 1)
        pairs = zip(truth[shown].tolist(), estimates[shown].tolist(), strict=True)
        return {"bands": bands, "cloud": [[true, round(guess, 2)] for true, guess in pairs if np.isfinite(guess)]}

    def _numbers(self, pool: QuestionPool, answered: Answered, name: str, estimates: Floats) -> dict[str, float]:
        truth, table = pool.truth, pool.table
        by_kind = errors_by_selectivity(estimates, truth, table.rows, self.selectivities)
        numbers = {
            f"{kind} {share:g}": error
            for kind, errors in by_kind.items()
            for share, error in zip(self.selectivities, errors, strict=True)
        }
        numbers["reconstruction"] = reconstruction_error(answered.histogram[name], table.histogram.counts)
        if answered.kept is not None:
            numbers["kept"] = answered.kept
        numbers["draw seconds"], numbers["answer seconds"] = answered.seconds
        large = truth >= self.selectivities[0] * table.rows
        numbers["slope"], numbers["r2"] = fitted_line(truth[large], estimates[large])
        return numbers


def _joined(pools: Sequence[QuestionPool]) -> QuestionPool:
    """The conditions of several pools about one table and the same value sets, one after the other."""
    first = pools[0]
    if any(pool.table is not first.table or not np.array_equal(pool.sets, first.sets) for pool in pools):
        raise OptionError("Pools that share draws are about one table, and the same sets of values.")
    starts = np.cumsum([0, *(len(pool.rows) for pool in pools[:-1])])
    return QuestionPool(
        ", ".join(pool.name for pool in pools),
        first.table,
        _rows_of(pools),
        first.sets,
        np.concatenate([pool.condition + start for pool, start in zip(pools, starts, strict=True)]),
        np.concatenate([pool.chosen for pool in pools]),
        tuple(mask for pool in pools for mask in pool.masks),
    )


def _rows_of(pools: Sequence[QuestionPool]) -> Sequence[Rows]:
    counted = [pool.rows for pool in pools if isinstance(pool.rows, CountedRows)]
    if len(counted) == len(pools):
        return reduce(CountedRows.__add__, counted)
    return tuple(rows for pool in pools for rows in pool.rows)


def run_experiment(pool: QuestionPool, settings: Sequence[Setting], **options: Any) -> Result:
    """Every setting, drawn several times, on one pool; the ``options`` are those of ``run_on_pools``."""
    (result,) = run_on_pools([pool], settings, **options)
    return result


def run_on_pools(
    pools: Sequence[QuestionPool],
    settings: Sequence[Setting],
    *,
    draws: int = DRAWS,
    seed: int = 1,
    selectivities: Sequence[float] = SELECTIVITIES,
    workers: int = 1,
    resume: str | os.PathLike[str] | None = None,
    progress: Progress = no_progress,
) -> tuple[Result, ...]:
    """Run every setting ``draws`` times, and answer every pool from each draw; independence is always added.

    Args:
        workers: processes; more than one only where the system can fork.
        resume: a file of JSON lines that finished draws are appended to and read back from.
    """
    if draws < 1:
        raise OptionError(f"draws = {draws} is not allowed: draw at least once. Fix: {option('draws', 5)}.")
    if draws > MOST_DRAWS:
        raise OptionError(
            f"draws = {draws} is not allowed: at most {MOST_DRAWS:,} are drawn. Fix: {option('draws', 20)}."
        )
    labels = [setting.label for setting in settings]
    if len(set(labels)) < len(labels):
        raise OptionError("Two settings have the same label: give each its own, they name the rows of the table.")
    compared = (*(setting for setting in settings if setting != Independent()), Independent())
    work = _Work(tuple(pools), compared, seed, tuple(selectivities))
    units = [(place, draw) for draw in range(draws) for place in range(len(compared) - 1)]
    units.append((len(compared) - 1, 0))
    with Log(resume, _fingerprint(work)) as log:
        left = [(place, draw) for place, draw in units if (compared[place].label, draw) not in log.done]
        wanted = {(compared[place].label, draw) for place, draw in units}
        every = [line for key, lines in log.done.items() for line in lines if key in wanted]
        with closing(_executed(work, left, workers)) as executed:  # closed when interrupted, too
            for number, lines in enumerate(executed, start=len(units) - len(left) + 1):
                every += lines
                log.write(lines)
                progress(number, len(units), "draws")
    return tuple(_result(work, number, draws, every) for number in range(len(work.pools)))


_inherited: list[_Work] = []  # what forked processes find when they start: it is not sent to them


def _executed(work: _Work, units: list[tuple[int, int]], workers: int) -> Generator[list[dict[str, Any]]]:
    can_fork = "fork" in multiprocessing.get_all_start_methods()
    if workers <= 1 or not can_fork or len(units) < 2:
        yield from (work.run(place, draw) for place, draw in units)
        return
    for pool in (*work.pools, work.together):  # computed once, before processes part ways
        _ = pool.truth, pool.condition_rows
    _inherited.append(work)
    processes = ProcessPoolExecutor(min(workers, len(units)), multiprocessing.get_context("fork"))
    try:
        for future in as_completed([processes.submit(_inherit, place, draw) for place, draw in units]):
            yield future.result()
    finally:  # whoever stops an experiment need not wait for the units that have not begun
        processes.shutdown(cancel_futures=True)
        _inherited.pop()


def _inherit(place: int, draw: int) -> list[dict[str, Any]]:
    return _inherited[-1].run(place, draw)


def _fingerprint(work: _Work) -> str:
    """What lines of a file must have been computed for: the questions, their answers, the seed and the settings."""
    digest = hashlib.sha256()
    for pool in work.pools:
        digest.update(pool.truth.tobytes())
        digest.update(pool.condition_rows.tobytes())
    digest.update(repr((work.seed, work.selectivities, BANDS, POINTS, work.pools[0].table.rows)).encode())
    digest.update(repr(work.settings).encode())
    return digest.hexdigest()[:16]


def _result(work: _Work, number: int, draws: int, every: list[dict[str, Any]]) -> Result:
    rows: list[Row] = []
    refused: dict[str, str] = {}
    for setting in work.settings:
        lines = sorted((line for line in every if line["setting"] == setting.label), key=lambda line: line["draw"])
        reasons = [line["refused"] for line in lines if "refused" in line]
        if reasons:
            refused[setting.label] = reasons[0]
        own = [line for line in lines if "estimator" in line and line.get("pool", 0) == number]
        for estimator in dict.fromkeys(line["estimator"] for line in own):
            rows.append(_row(setting.label, estimator, [line for line in own if line["estimator"] == estimator]))
    pool = work.pools[number]
    questions = pool.sizes(work.selectivities)
    return Result(pool.name, questions, draws, work.seed, work.selectivities, tuple(rows), refused)


def _row(setting: str, estimator: str, lines: list[dict[str, Any]]) -> Row:
    """One row of the table from the lines of its draws, the first draw first."""
    bands: dict[tuple[float, float], list[float]] = {}
    for line in lines:
        for low, high, error in line["bands"]:
            bands.setdefault((low, high), []).append(error)
    return Row(
        setting,
        estimator,
        spreads([line["numbers"] for line in lines]),
        {ends: spread(errors) for ends, errors in bands.items()},
        tuple((true, guess) for true, guess in lines[0].get("cloud", ())),
    )


# -- how far off answers are -------------------------------------------------------------------------------------------


def errors_by_selectivity(
    estimates: Floats, truth: Floats, rows: int, selectivities: Sequence[float] = SELECTIVITIES
) -> dict[str, tuple[float, ...]]:
    """Mean relative and mean absolute error of the questions of selectivity >= s, for each s (SDR 6.1)."""
    relative, absolute = relative_error(estimates, truth), np.abs(estimates - truth)
    limits = [share * rows for share in selectivities]
    return {
        "relative": tuple(mean_between(relative, truth, limit) for limit in limits),
        "absolute": tuple(mean_between(absolute, truth, limit) for limit in limits),
    }


def errors_by_band(
    estimates: Floats, truth: Floats, rows: int, bands: Sequence[float] = BANDS
) -> dict[tuple[float, float], float]:
    """Mean relative error of the questions of selectivity in [low, high), for bands that hold at least five."""
    relative, by_band = relative_error(estimates, truth), {}
    for low, high in pairwise(bands):
        if int(np.sum((truth > 0) & (truth >= low * rows) & (truth < high * rows))) >= FEWEST:
            by_band[low, high] = mean_between(relative, truth, low * rows, high * rows)
    return by_band


def spread_out(truth: Floats, least: float, most: int = POINTS) -> Ints:
    """At most ``most`` questions with at least ``least`` true rows, evenly over their order by size; no chance in it.

    >>> spread_out(np.array([5.0, 0.0, 1.0, 9.0, 7.0]), 1, most=3).tolist()
    [2, 4, 3]
    """
    large = np.nonzero(truth >= max(least, 1.0))[0]
    by_size = large[np.argsort(truth[large], kind="stable")]
    places = np.round(np.linspace(0, len(large) - 1, min(most, len(large)))).astype(np.int64)
    return by_size[places]


def reconstruction_error(estimates: npt.ArrayLike, counts: npt.ArrayLike, least: float = 0.0) -> float:
    """The mean over values of |f - f*| / f (THESIS Def. 2), for values with f >= least."""
    f = np.asarray(counts, dtype=np.float64)
    return mean_between(relative_error(estimates, f), f, max(least, 1.0))


def fitted_line(truth: Floats, estimates: Floats) -> tuple[float, float]:
    """Slope and r2 of the straight line through (act, est), by least squares: 1 and 1 are perfect (SDR Fig. 3).

    >>> slope, r2 = fitted_line(np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0]))
    >>> round(slope, 6), round(r2, 6)
    (2.0, 1.0)
    """
    if len(truth) < 2 or np.ptp(truth) == 0:
        return float("nan"), float("nan")
    slope, intercept = np.polyfit(truth, estimates, 1)
    left = float(((estimates - slope * truth - intercept) ** 2).sum())
    variation = float(((estimates - estimates.mean()) ** 2).sum())
    return float(slope), 1 - left / variation if variation > 0 else 1.0


# -- finished draws in a file ------------------------------------------------------------------------------------------


def _for_the_owner(path: str, flags: int) -> int:
    """A new file is its owner's alone: clouds hold exact counts of the original."""
    return os.open(path, flags, 0o600)


class Log:
    """Finished units in a file of JSON lines; a last line that was cut off is ignored and done again.

    Attributes:
        done: setting and number of a draw -> its lines.
    """

    def __init__(self, path: str | os.PathLike[str] | None, fingerprint: str) -> None:
        self.path = None if path is None else Path(path)
        self.fingerprint = fingerprint
        self._file: Any = None
        self.done: dict[tuple[str, int], list[dict[str, Any]]] = {}

    def __enter__(self) -> Log:
        if self.path is not None:
            try:
                text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
                kept = text[: text.rfind("\n") + 1]
                self.done = self._read(kept.splitlines(), text[len(kept) :])
                if kept != text:
                    os.truncate(self.path, len(kept.encode()))  # what is whole stays, even on a full disk
                self._file = open(self.path, "a", encoding="utf-8", opener=_for_the_owner)
            except OSError as problem:
                raise OutputError(
                    f"{str(self.path)!r} cannot be used: {problem.strerror}. Fix: a file in a folder that is there."
                ) from None
            except UnicodeDecodeError:
                raise OptionError(
                    f"{self.path} is not text, so it holds no finished draws. Fix: give another file."
                ) from None
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def _read(self, whole: list[str], rest: str) -> dict[tuple[str, int], list[dict[str, Any]]]:
        """What the lines of a file hold. Nothing is cut off a file before all of it is known to be of this kind: it may
        be anything that was named by mistake."""
        done: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for number, text in enumerate(whole, start=1):
            try:
                unit = json.loads(text)
                same, lines = unit["experiment"] == self.fingerprint, unit["lines"]
            except (ValueError, KeyError, TypeError):
                raise OptionError(
                    f"{self.path}, line {number}, is not a finished draw. Fix: give another file."
                ) from None
            if not same:
                raise OptionError(
                    f"{self.path} belongs to another experiment (other table, questions, seed or settings). "
                    "Fix: give another file, or delete this one."
                )
            done[lines[0]["setting"], lines[0]["draw"]] = lines
        if rest[: len(BEGINNING)] != BEGINNING[: len(rest)]:
            raise OptionError(f"{self.path}, line {len(whole) + 1}, is not a finished draw. Fix: give another file.")
        return done

    def write(self, lines: list[dict[str, Any]]) -> None:
        if self._file is not None:
            self._file.write(json.dumps({"experiment": self.fingerprint, "lines": lines}) + "\n")
            self._file.flush()
