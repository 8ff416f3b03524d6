"""The reproduced papers: exact figures exactly, drawn ones within their spread."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

from deniable.core.channels import Channel
from deniable.core.errors import OptionError
from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy
from deniable.lab.anatomy import Anatomized
from deniable.lab.experiments import run_experiment, run_on_pools
from deniable.lab.made_up import census
from deniable.lab.settings import Perturbed
from deniable.mechanisms import Designed, Uniform
from deniable.mechanisms.partitioning import Sums, balance, error_bound, joined
from deniable.planning.pools import CodedTable, sdr_pool
from reproduction import (
    PAPERS,
    Item,
    Paper,
    Part,
    Reproduction,
    Step,
    fine_grain,
    five_pools,
    olap,
    open_problems,
    page,
    repeated,
    small_domain,
    small_domain_series,
    splu,
    splu_which,
)
from reproduction.fine_grain_channels import uniform_channel
from reproduction.items import CENSUS, census_table
from reproduction.resampling import resampled
from reproduction.zipf import channel_errors, table_of, zipf, zipf_table

FOLDER = Path(os.environ.get("DENIABLE_DATA", Path(__file__).parents[3] / "shared" / "data"))
needs_census = pytest.mark.skipif(
    not (FOLDER / CENSUS).exists(), reason=f"needs {CENSUS}: set DENIABLE_DATA to the folder that holds it"
)


def test_sdr_table_1_to_the_digit() -> None:
    assert small_domain.table_1().agrees


def test_zipf_tables_have_the_values_that_the_thesis_reports() -> None:
    assert [zipf(50, skew).m for skew in (1, 2, 3)] == [50, 24, 9]
    table = table_of(zipf(50, 1))
    assert np.array_equal(np.bincount(table.codes), table.histogram.counts)


def test_thesis_table_10_uniform_and_fine_grain_agree() -> None:
    found = fine_grain.table_10(draws=10)
    assert found.agrees, found.why


def test_a_wrong_channel_would_not_agree_with_thesis_table_10() -> None:
    histogram = zipf(50, 1)
    wrong = uniform_channel(histogram, 10)  # a third of the tolerance
    errors = channel_errors(wrong, histogram, (0.001,), draws=10)
    assert 100 * errors[0].mean > 2 * fine_grain.TABLE_10[50][1][0]


def test_thesis_table_6_shows_both_and_a_spread() -> None:
    found = zipf_table("THESIS Table 6", [(50, 3)], draws=5)
    assert found.rows[0][0] == "lambda = 3"
    assert "44.8 %" in found.rows[0]
    assert all("±" in found.rows[0][place] for place in (2, 4, 5))


def test_splu_figures_that_are_arithmetic() -> None:
    assert splu.figure_5().agrees
    assert not splu.theorem_4().agrees, "Theorem 4 of the paper is wrong, and the table shows it"
    assert not splu.figure_4().agrees, "Lemma 1 of the paper is wrong, and the table shows it"


def test_olap_errors_of_made_up_bits_fall_with_the_coin_and_iteration_is_never_worse() -> None:
    bits = np.random.default_rng(8).random((20_000, 4)) < [0.5, 0.6, 0.7, 0.3]
    found = [olap.errors(bits, 3, coin, draws=5) for coin in (0.1, 0.3, 0.9)]
    assert all(iterative.mean <= inverse.mean + 1e-6 for _, iterative, inverse in found)
    assert all(inverse.mean < published.mean / 2 for published, _, inverse in found[1:])
    assert found[0][2].mean > 3 * found[1][2].mean > 9 * found[2][2].mean
    assert np.round(olap.masses(), 3).tolist() == [0.284, 0.604, 0.31, 0.375]


def test_a_page_has_verdicts_first_and_every_table() -> None:
    items = (Item("Table 1", "About it.", ("a", "b"), (("1", "2"),), True, "Because."),)
    text = page([Reproduction("x", "Title", items)])
    assert text.index("| Table 1 | agrees |  |") < text.index("| a | b |")
    assert "**Verdict: agrees.** Because." in text


def test_missing_data_is_said_with_a_fix(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DENIABLE_DATA", raising=False)
    with pytest.raises(OptionError, match="--data FOLDER"):
        PAPERS["splu"]()
    with pytest.raises(OptionError, match="does not exist"):
        PAPERS["fine-grain"](tmp_path)


def test_zipf_parts_need_no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DENIABLE_DATA", raising=False)
    (found,) = repeated([PAPERS["fine-grain"](draws=2)])
    assert [item.name for item in found.items] == [
        *("THESIS Table 10", "THESIS Figure 27", "THESIS Figure 28", "THESIS Figure 30")
    ]


def _numbered(number: int) -> Step:
    """Two items that say which process made them; the higher the number, the sooner it is begun."""
    names = (f"Table {number}", f"Table {number}, again")
    return Step(lambda: [Item(name, str(os.getpid()), (), (), None, "") for name in names], number)


@pytest.mark.parametrize("workers", [1, 2])
def test_steps_run_side_by_side_and_items_keep_their_order(workers: int) -> None:
    papers = [Paper("a", "A", (_numbered(1), _numbered(4))), Paper("b", "B", (_numbered(3),))]
    first, second = repeated(papers, workers=workers)
    assert [item.name for item in first.items] == ["Table 1", "Table 1, again", "Table 4", "Table 4, again"]
    assert [item.name for item in second.items] == ["Table 3", "Table 3, again"]
    made_by = {item.about for item in (*first.items, *second.items)}
    assert (str(os.getpid()) in made_by) == (workers == 1)


@pytest.mark.parametrize("workers", [1, 2])
def test_parts_of_a_step_run_by_themselves_and_are_joined_in_their_order(workers: int) -> None:
    """The last part is begun first; what the first gave is still the first."""
    given = Step(
        lambda made: Item(
            " ".join(name for name, _ in made), " ".join(sorted({by for _, by in made})), (), (), None, ""
        ),
        parts=tuple(Part(lambda n=n: (f"part {n}", str(os.getpid())), n) for n in (1, 2, 3)),  # type: ignore[misc]
    )
    (paper,) = repeated([Paper("a", "A", (_numbered(2), given, _numbered(5)))], workers=workers)
    assert [item.name for item in paper.items][2] == "part 1 part 2 part 3"
    assert len(paper.items) == 5
    assert (paper.items[2].about == str(os.getpid())) == (workers == 1)


def test_settings_that_were_drawn_apart_are_joined_pool_by_pool() -> None:
    """The rows of all parts, and independence, which every part adds, once and last."""
    table = CodedTable.of(census(3_000, seed=3), "occupation")
    pools = [sdr_pool(table, conditions=10, seed=seed) for seed in (1, 2)]
    settings = [Perturbed("uniform", Uniform(), Privacy(None, "1/3")), Anatomized(3)]
    apart = [run_on_pools(pools, [setting], draws=2) for setting in settings]
    together = run_on_pools(pools, settings, draws=2)
    for result, whole in zip(five_pools.joined(apart), together, strict=True):
        assert [row.name for row in result.rows] == [row.name for row in whole.rows]
        for row, same in zip(result.rows, whole.rows, strict=True):
            assert row.errors(result.selectivities) == pytest.approx(same.errors(result.selectivities), nan_ok=True)
    assert {row.setting for row in five_pools.only(together[0], ["anatomy"]).rows} == {"anatomy"}


def test_what_a_step_refuses_is_raised_and_not_lost() -> None:
    def refuse() -> Item:
        raise OptionError("no table")

    with pytest.raises(OptionError, match="no table"):
        repeated([Paper("a", "A", (Step(refuse), _numbered(1)))], workers=2)


def test_sums_are_off_as_often_as_noise_and_draws_say() -> None:
    """Discrete Laplace against its sum, decoys against mathematics 7, and a channel against its own draws."""
    assert splu_which.decoys(10).small == pytest.approx(0.6126, abs=5e-5)
    a = 0.5  # epsilon = ln 2: small sums of 1 to 3 rows are off by more than 0.3 f wherever the noise is not 0
    noise = splu_which.noisy("ln 2", np.log(2))
    assert noise.small == pytest.approx(1 - (1 - a) / (1 + a))
    histogram = splu_which.with_planted(Histogram(tuple("abcdefghijklmnopqr"), np.full(18, 4000)))
    measured = splu_which.perturbed("designed", Designed(), histogram)
    plan = Designed().plan(histogram, Privacy(Fraction(1, 13), Fraction(1, 6)))
    channel, rng, off = plan.cells[0].channel, np.random.default_rng(1), 0
    matrix = channel.matrix()
    for _ in range(400):
        shown = sum(rng.multinomial(n, matrix[:, x]) for x, n in enumerate(histogram.counts.tolist()))
        off += abs(channel.invert(shown)[-1] - 2000) >= 200
    assert off / 400 == pytest.approx(measured.large, abs=0.14)  # 5.5 deviations of 400 fair coins


@needs_census
def test_sdr_tables_2_and_3_agree_on_occ_100k() -> None:
    histogram = CodedTable.of(census_table(FOLDER), "occupation").histogram
    assert small_domain.table_2(histogram).agrees
    groups, *_ = small_domain_series.statistics(census_table(FOLDER), 100_000, 1)
    assert groups == 17, "as the paper has it"


def test_the_best_partition_is_that_of_all_partitions() -> None:
    """The dynamic program over sets of groups against every set partition, in SDR's cost."""
    privacy = Privacy("1/3", "2/3")
    histogram = Histogram(tuple(range(10)), np.array(small_domain_series.EXAMPLE_1))
    groups = balance(histogram.counts, np.ones(10, bool))
    best = min(
        sum(
            float(
                error_bound(
                    Sums(*(np.array([number]) for number in (cell.size, cell.counts.max(), len(cell.positions), 0, 0))),
                    2 / 3,
                    histogram.rows,
                    small_domain_series.DELTA,
                )[0]
            )
            for cell in (joined([groups[k] for k in places]) for places in cells)
        )
        for cells in partitions(list(range(len(groups))))
    )
    assert small_domain_series.optimal_bound(groups, 2 / 3, histogram.rows) == pytest.approx(best, rel=1e-12)
    assert small_domain_series.plan_bound(histogram, privacy, "all") == pytest.approx(best, rel=1e-12)


def test_figures_that_the_papers_print_and_that_are_wrong() -> None:
    """SDR 1.1, THESIS 1.1 and Example 9: docs/explanation/corrections.md."""
    both, fifty, twenty = (Channel.uniform(tuple(range(m)), gamma=Fraction(5)) for m in (5390, 50, 20))
    assert float(both.diagonal[0]) == pytest.approx(9.27e-4, rel=1e-3)
    assert float(both.coins[0]) == pytest.approx(7.4e-4, rel=1e-2)
    assert float(fifty.diagonal[0]) == pytest.approx(0.0926, rel=1e-3)
    assert float(twenty.diagonal[0]) == pytest.approx(0.208, rel=2e-3)
    occurring = Channel.uniform(tuple(range(3164)), gamma=Fraction(5))
    assert float(occurring.coins[0]) == pytest.approx(1.26e-3, rel=3e-3), "printed as p + q"
    assert float(occurring.diagonal[0]) == pytest.approx(1.58e-3, rel=2e-3)
    assert round(100 / 6 / 2, 2) == 8.33, "printed as 8.5"
    whole = Sums(*(np.array([float(number)]) for number in (42, 12, 10, 0, 0)))
    assert float(error_bound(whole, 2 / 3, 42, 0.05)[0]) == pytest.approx(2.07, abs=0.005)
    as_printed = Sums(*(np.array([float(number)]) for number in (42, 14, 10, 0, 0)))  # rho1 = 1/3
    assert float(error_bound(as_printed, 2 / 3, 42, 0.05)[0]) == pytest.approx(2.57, abs=0.005)


@pytest.mark.parametrize(("n", "m", "gamma", "f"), [(2_000, 6, 4.0, 700), (400, 2, 3.0, 100), (6_000, 20, 5.0, 20)])
def test_the_error_bound_of_sdr_and_thesis_is_a_guarantee(n: int, m: int, gamma: float, f: int) -> None:
    """Exactly: what a published count is off by, against eps, and Hoeffding's 2 (delta/2)^8 for its failure."""
    p, q = (gamma - 1) / (m - 1 + gamma), 1 / (m - 1 + gamma)
    shown = np.convolve(binom.pmf(np.arange(f + 1), f, p + q), binom.pmf(np.arange(n - f + 1), n - f, q))
    off = np.abs((np.arange(n + 1) - n * q) / p - f) / n

    def missed(delta: float, share: float) -> float:
        top = n / (1 + gamma)  # rho2 = 1/2: gamma = (1 - rho1) / rho1
        sums = Sums(*(np.array([float(number)]) for number in (n, top, m, 0, 0)))
        eps = float(error_bound(sums, 0.5, n, delta)[0])
        return float(shown[off > share * eps].sum())

    for delta in (0.05, 0.2, 0.45):
        assert missed(delta, 1) <= 2 * (delta / 2) ** 8
    assert missed(0.45, 1 / 3) > 2 * (0.45 / 2) ** 8, "a third of the bound would not do"


def partitions(places: list[int]) -> Iterator[list[list[int]]]:
    """All set partitions."""
    if not places:
        yield []
        return
    first, rest = places[0], places[1:]
    for cells in partitions(rest):
        yield [[first], *cells]
        for number, cell in enumerate(cells):
            yield [*cells[:number], [first, *cell], *cells[number + 1 :]]


def test_a_resample_has_the_rows_of_its_table() -> None:
    table = pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    assert resampled(table, 3) is table
    larger = resampled(table, 3000)
    assert larger.num_rows == 3000
    assert set(zip(larger["a"].to_pylist(), larger["b"].to_pylist(), strict=True)) == {(1, "x"), (2, "y"), (3, "z")}
    assert resampled(table, 3000).equals(larger)
    assert not resampled(table, 3000, seed=2).equals(larger)


@needs_census
def test_thesis_table_9_agrees_on_edu() -> None:
    assert fine_grain.table_9(CodedTable.of(census_table(FOLDER), "education").histogram, draws=20).agrees


@needs_census
def test_designed_channels_are_as_accurate_as_claimed_and_ahead_of_anatomy() -> None:
    privacy = Privacy("1/13", "1/6")
    pool = sdr_pool(CodedTable.of(census_table(FOLDER), "occupation"))
    result = run_experiment(pool, [Perturbed("designed", Designed(), privacy), Anatomized(6)], draws=5)
    shares = result.selectivities
    for estimator, limits in (("calibrated", (0.25, 0.12, 0.09)), ("shrunk", (0.22, 0.12, 0.085))):
        errors = result.row("designed", estimator).errors(shares)
        assert all(error <= limit for error, limit in zip(errors, limits, strict=True)), (estimator, errors)
        for rival in ("anatomy", "independence"):
            assert all(e < other for e, other in zip(errors, result.row(rival).errors(shares), strict=True))


def test_the_made_up_symptoms_can_be_grouped_as_the_paper_groups_its_own() -> None:
    from reproduction.splu_medical import SIZES, symptoms

    counts = symptoms().histogram
    assert int(counts.counts.max()) * max(SIZES) <= counts.rows


def test_a_descent_finds_better_cells_and_none_is_below_what_no_partition_is() -> None:
    rng = np.random.default_rng(2)
    counts = np.sort(rng.integers(20, 200, size=20))[::-1].astype(np.int64)
    histogram = Histogram(tuple(range(20)), counts)
    begun = counts[None, :].astype(np.float64)
    rows, rho2 = int(counts.sum()), 1 / 4
    after = open_problems.descended(begun, rows, rho2, moves=20_000)
    assert (after.sum(0) == counts).all()
    least = open_problems.no_partition_below(histogram, rho2)
    bounds = [float(open_problems.bound_of_cells(cells, rows, rho2).sum()) for cells in (begun, after)]
    assert least < bounds[1] <= bounds[0]
    shuffled = rng.multinomial(1, np.full(3, 1 / 3), size=(200, 20)).transpose(0, 2, 1) * counts
    assert all(open_problems.bound_of_cells(cells.astype(float), rows, rho2).sum() >= least for cells in shuffled)


def test_a_group_is_promised_for_where_its_members_values_follow_from_each_other() -> None:
    """By someone who knows how households agree, and all other households."""
    seen = open_problems.seen_by_tables(1, grouped=False), open_problems.seen_by_tables(1, grouped=True)
    alone, together = (float((beliefs.max(2) > 1 / 2).mean()) for beliefs in seen)
    assert alone > 0.2, "a promise for a row is none for people whose values follow from each other"
    assert together == 0
