"""Experiments: the same numbers however they are run, unbiased draws, and errors as the closed form predicts."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from deniable.core.errors import OptionError
from deniable.core.privacy import Privacy
from deniable.lab.anatomy import Anatomized
from deniable.lab.draws import draw_release, stream_of
from deniable.lab.experiments import POINTS, Result, run_experiment
from deniable.lab.laplace import Noisy
from deniable.lab.made_up import census
from deniable.lab.rival import Answered, estimated
from deniable.lab.settings import DecoyGroups, Independent, Perturbed, Redrawn, setting_named
from deniable.mechanisms import Designed, Mechanism, SmallDomain, Uniform
from deniable.planning.pools import CodedTable, QuestionPool, sdr_pool
from deniable.planning.prediction import pool_variance, predicted_error
from deniable.tables.keys import Keystream

PRIVACY = Privacy("1/13", "1/6")
LOOSE = Privacy("1/13", "1/2")  # small errors, so that a small bias is seen


@pytest.fixture(scope="module")
def pool() -> QuestionPool:
    return sdr_pool(CodedTable.of(census(20_000, seed=5), "occupation"), conditions=60)


def numbers(result: Result) -> dict[str, dict[str, float]]:
    """All that does not depend on the clock."""
    return {
        row.name: {name: each.mean for name, each in row.numbers.items() if "seconds" not in name}
        for row in result.rows
    }


def settings() -> list[Perturbed]:
    return [
        Perturbed("uniform", Uniform(), PRIVACY, ("inverse", "calibrated", "shrunk", "mle")),
        Perturbed("cells", SmallDomain(), PRIVACY, ("inverse",)),
    ]


def test_independence_is_always_in_the_table(pool: QuestionPool) -> None:
    result = run_experiment(pool, settings()[1:], draws=1)
    assert [row.name for row in result.rows] == ["cells, inverse", "independence"]
    share = pool.table.histogram.relative[pool.chosen] * pool.condition_rows[pool.condition]
    asked = pool.truth >= 0.005 * pool.table.rows
    expected = np.mean(np.abs(share - pool.truth)[asked] / pool.truth[asked])
    assert result.row("independence").errors([0.005])[0] == pytest.approx(expected)


def test_processes_change_nothing_but_the_time(pool: QuestionPool) -> None:
    alone, together = (run_experiment(pool, settings(), draws=2, workers=workers) for workers in (1, 2))
    assert numbers(alone) == numbers(together)
    other = run_experiment(pool, settings(), draws=2, seed=2)
    assert numbers(other)["uniform, inverse"] != numbers(alone)["uniform, inverse"]


def test_a_stopped_experiment_goes_on_where_it_was(pool: QuestionPool, tmp_path: Path) -> None:
    log = tmp_path / "draws.jsonl"
    run_experiment(pool, settings(), draws=1, resume=log)
    with log.open("a") as file:
        file.write('{"experiment": "cut o')
    before = log.read_text().splitlines()
    seen: list[int] = []
    result = run_experiment(pool, settings(), draws=3, resume=log, progress=lambda done, total, what: seen.append(done))
    assert numbers(result) == numbers(run_experiment(pool, settings(), draws=3))
    assert len(before) == 4
    assert len(log.read_text().splitlines()) == 7
    assert seen == [4, 5, 6, 7]


@dataclass(frozen=True)
class Slow:
    """Independence, a quarter of a second late."""

    label: str = "slow"

    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        time.sleep(0.25)
        return Independent().run(pool, stream)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError])
def test_whoever_stops_need_not_wait_for_what_has_not_begun(
    pool: QuestionPool, tmp_path: Path, stop: type[BaseException]
) -> None:
    """60 units of 0.25 s on two processes take 7.5 s; what runs or is next in line takes about one."""
    log = tmp_path / "log.jsonl"

    def stopping(done: int, total: int, what: str) -> None:
        raise stop

    begin = time.perf_counter()
    with pytest.raises(stop):
        run_experiment(pool, [Slow()], draws=60, workers=2, resume=log, progress=stopping)
    assert time.perf_counter() - begin < 5
    assert len(log.read_text(encoding="utf-8").splitlines()) == 1


def test_clouds_hold_the_same_questions_for_every_row_and_survive_a_stop(pool: QuestionPool, tmp_path: Path) -> None:
    log = tmp_path / "draws.jsonl"
    run_experiment(pool, settings(), draws=1, resume=log)
    result = run_experiment(pool, settings(), draws=2, resume=log)
    clouds = {row.name: row.cloud for row in result.rows}
    assert clouds == {row.name: row.cloud for row in run_experiment(pool, settings(), draws=2).rows}
    asked = {tuple(true for true, _ in cloud) for cloud in clouds.values()}
    assert len(asked) == 1
    (true,) = asked
    assert 100 < len(true) <= POINTS
    assert min(true) >= 0.001 * pool.table.rows
    assert len(set(clouds.values())) == len(clouds)
    told = json.loads(json.dumps(result.to_dict()))
    assert told["rows"][0]["cloud"][0] == list(result.rows[0].cloud[0])
    assert told["rows"][0]["bands"][-1]["mean"] < told["rows"][0]["bands"][0]["mean"]
    assert all(band["deviation"] > 0 for band in told["rows"][0]["bands"])


def test_small_questions_are_shown_where_there_are_no_larger_ones(pool: QuestionPool) -> None:
    (row,) = run_experiment(pool, [], draws=1, selectivities=(0.9,)).rows
    assert row.cloud


def test_a_file_of_another_experiment_is_refused(pool: QuestionPool, tmp_path: Path) -> None:
    log = tmp_path / "draws.jsonl"
    run_experiment(pool, settings(), draws=1, resume=log)
    with pytest.raises(OptionError, match="another experiment"):
        run_experiment(pool, settings(), draws=1, seed=9, resume=log)
    log.write_text(json.dumps([1]) + "\n")
    with pytest.raises(OptionError, match="line 1"):
        run_experiment(pool, settings(), draws=1, resume=log)


def test_a_setting_that_cannot_meet_the_requirement_is_listed_with_its_reason(pool: QuestionPool) -> None:
    impossible = Perturbed("designed", Designed(), Privacy("1/13", "1/6", adversary="any-prior"))
    result = run_experiment(pool, [impossible], draws=2)
    assert [row.setting for row in result.rows] == ["independence"]
    assert "any-prior" in result.refused["designed"] or "frequency" in result.refused["designed"]


def test_mistakes_in_the_settings(pool: QuestionPool) -> None:
    with pytest.raises(OptionError, match="draws = 0"):
        run_experiment(pool, [], draws=0)
    with pytest.raises(OptionError, match="same label"):
        run_experiment(pool, [Redrawn(), Redrawn()])
    with pytest.raises(OptionError, match="Did you mean"):
        Perturbed("x", Uniform(), PRIVACY, ("invers",))
    with pytest.raises(OptionError, match="small-domain"):
        setting_named("small-domian", PRIVACY)


@pytest.mark.parametrize("mechanism", [Uniform(), SmallDomain(), Designed()], ids=lambda each: each.name)
def test_errors_are_as_large_as_the_closed_form_predicts(pool: QuestionPool, mechanism: Mechanism) -> None:
    table, draws = pool.table, 30
    plan = draw_release(table, mechanism, PRIVACY, stream_of(1, 0, "plan")).plan
    large = np.flatnonzero(pool.truth >= 50)
    variance = pool_variance(plan, pool.profile)[large]
    off = np.zeros(len(large))
    for draw in range(draws):
        made = draw_release(table, mechanism, PRIVACY, stream_of(1, draw, "measured"))
        answers = estimated(made.asking, pool.tally(made.states, made.asking.states.count), pool.sets, "inverse")
        error = pool.pick(answers)[large] - pool.truth[large]
        off += np.abs(error) / draws
    assert off.mean() == pytest.approx(predicted_error(variance).mean(), rel=0.1)


@pytest.mark.parametrize("mechanism", [Uniform(), SmallDomain(), Designed()], ids=lambda each: each.name)
def test_answers_are_right_on_average(pool: QuestionPool, mechanism: Mechanism) -> None:
    def slopes(draw: int) -> list[float]:
        made = draw_release(pool.table, mechanism, LOOSE, stream_of(1, draw, "average"))
        tally = pool.tally(made.states, made.asking.states.count)
        answers = [pool.pick(estimated(made.asking, tally, pool.sets, name)) for name in ("inverse", "calibrated")]
        return [float(estimates @ pool.truth / (pool.truth @ pool.truth)) for estimates in answers]

    drawn = np.array([slopes(draw) for draw in range(60)])
    error = drawn.std(axis=0, ddof=1) / np.sqrt(len(drawn))
    assert (error < 0.005).all(), "an error of 5 % in all answers would be ten of these"
    assert (np.abs(drawn.mean(axis=0) - 1) < 5.5 * error).all(), "Student's t, 59 degrees: false alarm below 1e-6"


def test_the_full_channel_of_decoys_is_unbiased_and_the_published_four_states_are_not(pool: QuestionPool) -> None:
    asked = pool.truth >= 0.01 * pool.table.rows
    bias = {"full channel": np.zeros(asked.sum()), "four states": np.zeros(asked.sum())}
    squares = np.zeros(asked.sum())
    draws = 12
    for draw in range(draws):
        answers = DecoyGroups(5).run(pool, stream_of(1, draw, "decoys")).answers
        for name, total in bias.items():
            total += (pool.pick(answers[name])[asked] - pool.truth[asked]) / draws
        squares += (pool.pick(answers["full channel"])[asked] - pool.truth[asked]) ** 2 / draws
    z = {name: np.abs(total) / np.sqrt(squares / draws) for name, total in bias.items()}
    assert z["full channel"].mean() < 1.5
    assert z["four states"].mean() > 1.5 * z["full channel"].mean()


def test_rivals_answer_as_they_should(pool: QuestionPool) -> None:
    stream = stream_of(1, 0, "rivals")
    counts = pool.table.histogram.counts
    anatomy = Anatomized(6).run(pool, stream)
    assert np.allclose(anatomy.answers[""].sum(1), pool.condition_rows), "every row of a condition is counted once"
    assert np.array_equal(anatomy.histogram[""], counts)
    noise = pool.pick(Noisy(np.log(2)).run(pool, stream).answers[""]) - pool.truth
    assert np.abs(noise).mean() == pytest.approx(1 / np.log(2), rel=0.1)
    redrawn = Redrawn().run(pool, stream)
    assert redrawn.kept == pytest.approx(float((pool.table.histogram.relative**2).sum()), abs=0.01)


def test_record_utility_is_what_the_plan_says(pool: QuestionPool) -> None:
    result = run_experiment(pool, [Perturbed("uniform", Uniform(), PRIVACY, ("inverse",))], draws=5)
    plan = Uniform().plan(pool.table.histogram, PRIVACY)
    assert result.row("uniform", "inverse").numbers["kept"].mean == pytest.approx(plan.record_utility, abs=0.004)
