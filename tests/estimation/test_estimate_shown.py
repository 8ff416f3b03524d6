"""An estimate in one line, and as a small table."""

from __future__ import annotations

from deniable.estimation.asking import SAID
from deniable.estimation.estimate import HOPELESS, Estimate


def test_repr_is_one_line_that_reads_like_str():
    assert repr(Estimate(1204.0, 53.06, smallest=0, largest=9000)) == "<Estimate 1,204 (95 %: 1,100 to 1,308)>"
    assert repr(Estimate(-0.2, 0.0, 0.9)) == "<Estimate 0 (90 %: 0 to 0)>"
    assert repr(Estimate(5.0, 100.0, smallest=0, largest=9)) == "<Estimate 5 (95 %: 0 to 9, hopeless)>"


def test_how_it_was_computed_does_not_make_the_line_longer():
    plain, told = Estimate(12.0, 3.0), Estimate(12.0, 3.0, method=SAID["four-state"])
    assert repr(told) == repr(plain)


def test_a_notebook_shows_the_numbers_and_the_method(notebook):
    page = notebook(Estimate(1204.0, 53.06, smallest=0, largest=9000, method="<script>"))
    assert page.rows == [
        ["estimate", "95 %: from", "to", "standard error", "method"],
        ["1,204", "1,100", "1,308", "53", "<script>"],
    ]
    assert page.paragraphs == []


def test_a_hopeless_estimate_says_so(notebook):
    assert notebook(Estimate(5.0, 100.0, smallest=0, largest=9)).paragraphs == [HOPELESS]


def test_numbers_that_are_none_are_shown_all_the_same(notebook):
    page = notebook(Estimate(float("nan"), float("inf")))
    assert page.rows[1][0] == "nan"
