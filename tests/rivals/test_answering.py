"""Answers by Laplace: noise of the right law, a budget that is spent, and nothing handed over."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace

import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import binom, chi2

import deniable as dn
from deniable.core.errors import ColumnError, OptionError, OutputError, QuestionError, TableError
from deniable.core.manifest import schema
from deniable.mechanisms import Laplace
from deniable.rivals.laplace.estimate import LaplaceEstimate, laplace_quantile

KEY = bytes(range(32))
EXACT = Laplace(epsilon=500, questions=25)  # 20 for each question: no noise but once in 10^8
SHARE = 0.5
DRAWS = 25_000


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    disease = rng.choice(["flu", "gout", "hiv", None], 2000, p=[0.5, 0.3, 0.15, 0.05])
    city = rng.choice(["Ulm", "Bonn", None], 2000)
    return pa.table({"city": city, "age": rng.integers(18, 90, 2000), "disease": disease})


def ask(table, mechanism="laplace", **options):
    return dn.publish(table, sensitive="disease", mechanism=mechanism, key=options.pop("key", KEY), **options)


# -- the budget -------------------------------------------------------------------------------------------------------


def test_every_answer_costs_its_share_and_the_last_but_one_is_refused(table):
    answers = ask(table, Laplace(epsilon=0.9, questions=3))
    assert answers.answerer.remaining == 3
    first = answers.count({"disease": "hiv"})
    assert (answers.answerer.remaining, first.epsilon) == (2, pytest.approx(0.3))
    again = answers.count({"disease": "hiv"})
    assert answers.answerer.remaining == 1
    assert first.value != again.value  # fresh noise; equal once in 14 under other keys
    answers.count()
    assert answers.answerer.remaining == 0
    with pytest.raises(QuestionError, match=r"all 3 questions of epsilon 0\.3 each were asked.*Laplace\(questions"):
        answers.count()
    assert answers.answerer.remaining == 0


def test_a_copy_of_the_object_spends_the_same_budget(table):
    answers = ask(table, Laplace(epsilon=0.9, questions=2))
    another = copy.copy(answers)
    first, second = answers.count({"disease": "hiv"}), another.count({"disease": "hiv"})
    assert first.value != second.value  # another number, so fresh noise; equal once in 9 under other keys
    assert (answers.answerer.remaining, another.answerer.remaining) == (0, 0)
    with pytest.raises(QuestionError, match="The budget is spent"):
        answers.count()


def test_a_question_that_is_not_understood_costs_nothing(table):
    answers = ask(table)
    for where, problem in [
        ({"diseas": "flu"}, ColumnError),
        ({"disease": "mumps"}, QuestionError),
        ({"city": "Paris"}, QuestionError),
        ("disease", QuestionError),
    ]:
        with pytest.raises(problem):
            answers.count(where)
    with pytest.raises(OptionError, match="confidence"):
        answers.count(confidence=2)
    with pytest.raises(QuestionError, match=r"on 'age': 'old' cannot be compared .* Fix: ask for values of type"):
        answers.count({"age": "old"})
    assert answers.answerer.remaining == 100


def test_the_requirement_decides_the_budget(table):
    answers = ask(table, Laplace(questions=10), privacy=dn.Privacy(rho1="1/5", rho2="1/4"))
    assert 10 * answers.count().epsilon == pytest.approx(math.log(4 / 3), rel=1e-8)
    assert answers.manifest.options["epsilon"] == pytest.approx(math.log(4 / 3), rel=1e-8)


# -- answers ----------------------------------------------------------------------------------------------------------


def test_all_kinds_of_conditions_count_the_right_rows(table):
    frame = table.to_pandas()
    answers = ask(table, EXACT)
    old = frame["age"].between(40, 60)
    for where, rows in [
        (None, np.ones(len(frame), bool)),
        ({"disease": "flu"}, frame["disease"] == "flu"),
        ({"disease": ["flu", "hiv"], "city": "Ulm"}, frame["disease"].isin(["flu", "hiv"]) & (frame["city"] == "Ulm")),
        ({"disease": None}, frame["disease"].isna()),
        ({"disease": dn.not_("flu"), "age": dn.between(40, 60)}, (frame["disease"] != "flu") & old),
        ({"city": None, "disease": "gout"}, frame["city"].isna() & (frame["disease"] == "gout")),
        ({"city": [None, "Bonn"]}, frame["city"] != "Ulm"),
    ]:
        estimate = answers.count(where)
        assert estimate.value == rows.sum()
        assert estimate.low <= estimate.value <= estimate.high
        assert estimate.method == "laplace"
    assert answers.count({"age": dn.between(40, 60)}).largest == old.sum()


def test_several_sensitive_columns_bins_and_domains_are_as_in_any_release(table):
    frame = table.to_pandas()
    both = dn.publish(table, sensitive=["disease", "city"], mechanism=EXACT, key=KEY)
    assert (
        both.count({"city": "Ulm", "disease": "flu"}).value
        == ((frame["city"] == "Ulm") & (frame["disease"] == "flu")).sum()
    )
    wider = ask(table, EXACT, domain=["flu", "gout", "hiv", "mumps", None])
    assert wider.count({"disease": "mumps"}).value == 0
    with pytest.raises(TableError, match="missing = 'refuse'"):
        ask(table, EXACT, missing="refuse")
    for wrong in ({"missing": "exempt"}, {"row_id": "age"}, {"marginals": True}):
        with pytest.raises(OptionError, match="takes no"):
            ask(table, EXACT, **wrong)


def test_a_file_gives_the_same_answers_as_a_table(table, tmp_path):
    pq.write_table(table, tmp_path / "t.parquet")
    questions = [{"disease": "flu"}, {"city": "Ulm"}, None]
    assert [ask(tmp_path / "t.parquet").count(q) for q in questions] == [ask(table).count(q) for q in questions]


# -- noise ------------------------------------------------------------------------------------------------------------


def noise_of(table, where, truth, **options):
    answers = ask(table, Laplace(epsilon=SHARE * 50, questions=50), **options)
    return np.array([answers.count(where).value - truth for _ in range(50)])


def test_the_same_key_gives_the_same_answers_and_no_two_questions_share_their_noise(table):
    """Shared noise would cancel in a difference, and leave the exact one."""
    frame = table.to_pandas()
    flu, gout = (int((frame["disease"] == value).sum()) for value in ("flu", "gout"))
    first = noise_of(table, {"disease": "flu"}, flu)
    assert np.array_equal(first, noise_of(table, {"disease": "flu"}, flu))
    one_less = table.slice(1)
    others = [
        noise_of(table, {"disease": "gout"}, gout),
        noise_of(table, {"disease": "flu"}, flu, key=bytes(32)),
        noise_of(table, {"disease": "flu"}, flu, name="another"),
        noise_of(one_less, {"disease": "flu"}, flu - (frame["disease"][0] == "flu")),
    ]
    for other in others:
        assert (first == other).mean() < 0.5  # 0.12 expected of 50; false alarm 3e-9, and 1 if the noise is shared
    assert len(set(first)) > 5


def test_two_budgets_under_one_key_do_not_share_their_draws(table):
    """Noise of two sizes from the same draws has the same sign, and both answers together would show the draws."""
    truth = sum(value == "flu" for value in table["disease"].to_pylist())

    def signs(epsilon):
        answers = ask(table, Laplace(epsilon=epsilon * 100, questions=100))
        return np.array([np.sign(answers.count({"disease": "flu"}).value - truth) for _ in range(100)])

    # Equal for about 0.47 of 100; false alarm 4e-8, and 0.98 if the draws are shared.
    assert (signs(0.1) == signs(0.11)).mean() < 0.75


@pytest.fixture(scope="module")
def draws():
    """25,000 answers, through the public door; a budget is 500 at most, so 25 objects answer."""
    small = pa.table({"city": ["Ulm"] * 40, "disease": ["flu", "gout"] * 20})
    found = []
    for number in range(DRAWS // 1000):
        answers = ask(small, Laplace(epsilon=1000 * SHARE, questions=1000), name=f"table {number}")
        found += [answers.count() for _ in range(1000)]
    return found


def test_noise_follows_the_discrete_laplace_law(draws):
    """The mean of |z| and the whole law; false alarm < 1e-6.

    |z| has a standard deviation of about its mean, so 25,000 draws tell 5 % of the scale at 7.9 standard errors:
    a power of 0.998 at a threshold of 4.9.
    """
    z = np.array([estimate.value for estimate in draws]) - 40
    a = math.exp(-SHARE)
    mean = 2 * a / (1 - a * a)
    second = 2 * a / (1 - a) ** 2
    assert draws[0].stderr == pytest.approx(math.sqrt(second))

    def deviation(scale):
        return abs(np.abs(z).mean() * scale - mean) / math.sqrt((second - mean**2) / DRAWS)

    assert deviation(1.0) < 4.9
    assert deviation(1.05) > 4.9
    assert deviation(1 / 1.05) > 4.9
    assert abs(z.mean()) < 4.9 * math.sqrt(second / DRAWS)
    edges = np.arange(-12, 13)
    expected = (1 - a) / (1 + a) * a ** np.abs(edges)
    observed = np.array([(z == k).sum() for k in edges])
    rest = DRAWS - observed.sum()
    tail = 1 - expected.sum()
    statistic = ((observed - DRAWS * expected) ** 2 / (DRAWS * expected)).sum()
    statistic += (rest - DRAWS * tail) ** 2 / (DRAWS * tail)
    assert chi2.sf(statistic, len(edges)) > 1e-6
    assert abs(np.corrcoef(z[:-1], z[1:])[0, 1]) < 4.9 / math.sqrt(DRAWS)


def test_intervals_hold_the_truth_as_often_as_they_say(draws):
    """The exact coverage of this noise at 95 % is 0.953: a binomial tail, false alarm < 1e-6."""
    uncut = [replace(estimate, smallest=-math.inf, largest=math.inf) for estimate in draws]
    held = sum(estimate.low <= 40 <= estimate.high for estimate in uncut)
    a = math.exp(-SHARE)
    exact = 1 - 2 * a ** (laplace_quantile(0.95, SHARE) + 1) / (1 + a)
    assert exact >= 0.95
    assert 1e-6 < binom.cdf(held, DRAWS, exact) < 1 - 1e-6
    assert binom.cdf(held, DRAWS, exact - 0.02) > 1 - 1e-6  # an interval that misses 2 % more would be seen


@pytest.mark.parametrize("epsilon", [1e-4, 0.01, 0.3, 1.0, 2.0, 20.0])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
def test_the_quantile_is_the_smallest_that_covers(epsilon, confidence):
    k = laplace_quantile(confidence, epsilon)
    a = math.exp(-epsilon)

    def outside(j):
        return 2 * a ** (j + 1) / (1 + a)

    assert outside(k) <= (1 - confidence) * (1 + 1e-9)
    assert k == 0 or outside(k - 1) > (1 - confidence) * (1 - 1e-9)


def test_answers_can_be_added_and_cut_to_what_is_possible():
    one = LaplaceEstimate(5.0, 13.5, smallest=0, largest=9, method="laplace", epsilon=0.1)
    assert (one.low, one.high) == (0.0, 9.0)
    both = one + one
    assert both.value == 10
    assert both.stderr == pytest.approx(13.5 * math.sqrt(2))


# -- nothing is handed over -------------------------------------------------------------------------------------------


def test_rows_files_and_other_questions_are_refused(table, tmp_path):
    answers = ask(table)
    for use in (lambda: answers.table, lambda: dn.audit(table, answers)):
        with pytest.raises(QuestionError, match="publishes no rows"):
            use()
    with pytest.raises(OutputError, match="publishes no rows"):
        answers.save(tmp_path / "r")
    with pytest.raises(OutputError, match="publishes no rows"):
        ask(table, out=tmp_path / "r")
    assert not (tmp_path / "r").exists()
    with pytest.raises(QuestionError, match="cannot be verified"):
        answers.verify()
    for use in (
        lambda: answers.sum("age"),
        lambda: answers.mean("age"),
        lambda: answers.group_by("city"),
        answers.histogram,
        lambda: answers.count_many([{}]),
        lambda: answers.cube(["city"]),
        lambda: answers.sql("SELECT count(*) FROM release"),
        answers.counter,
    ):
        with pytest.raises(QuestionError, match="answers count"):
            use()
    assert answers.answerer.remaining == 100


def test_neither_the_words_for_it_nor_the_manifest_show_the_data(table):
    answers = ask(table)
    assert repr(answers) == "<NoisyAnswers about 2,000 rows, disease by laplace: 100 of 100 questions left>"
    raw = json.loads(answers.manifest.to_json())
    jsonschema.validate(raw, schema())
    assert raw["data"] is None
    assert raw["rows"] == 2000
    assert [column["role"] for column in raw["columns"]] == ["public", "public", "sensitive"]
    assert raw["parts"][0]["cells"] == []
