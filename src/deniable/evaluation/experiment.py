"""Experiments: settings x draws on one pool of questions, with the line to beat always beside them.

Each unit of work is one draw of one setting. Units are independent: they run on several processes in any order, and a
file of finished ones (JSON lines) lets a stopped experiment go on where it was.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

import numpy as np

from deniable.core.arrays import Floats
from deniable.core.errors import DeniableError, OptionError, option
from deniable.core.profile import SELECTIVITIES
from deniable.engines.base import Progress, no_progress
from deniable.evaluation.answered import Answered, Setting
from deniable.evaluation.draws import stream_of
from deniable.evaluation.finished import Log
from deniable.evaluation.metrics import (
    BANDS,
    POINTS,
    errors_by_band,
    errors_by_selectivity,
    fitted_line,
    reconstruction_error,
    spread_out,
)
from deniable.evaluation.settings import Independent
from deniable.planning.accuracy import Spread, spread, spreads
from deniable.planning.condition_rows import CountedRows, Rows
from deniable.planning.pools import QuestionPool

MOST_DRAWS = 100_000
DRAWS = 5


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
