"""Plain HTML for notebooks: nothing that a table holds means anything to a browser."""

from __future__ import annotations

import pytest

from deniable.core import text as html

HOSTILE = "<script>alert(1)</script>"


class Shown:
    """A table as a notebook asks for it."""

    def __init__(self, *parts: object, **how: object) -> None:
        self.parts, self.how = parts, how

    def _repr_html_(self) -> str:
        return html.table(*self.parts, **self.how)  # type: ignore[arg-type]


@pytest.mark.parametrize("hostile", [HOSTILE, '"><img src=x onerror=alert(1)>', "&lt;b&gt;", "'", "<!-- "])
def test_markup_is_shown_and_means_nothing(notebook, hostile):
    page = notebook(Shown([hostile], [(hostile,)], total=1))
    assert page.rows == [[hostile], [hostile]]
    assert "<" not in html.escape(hostile)
    assert html.escape(hostile) in html.paragraph(hostile)
    assert "<script" not in html.title(f"<Plan of {HOSTILE}>")


def test_a_table_has_thirty_rows_at_most_and_says_how_many_it_left_out(notebook):
    page = notebook(Shown(["n"], ((n,) for n in range(1234)), total=1234, what="cells"))
    assert [row[0] for row in page.rows[1:]] == [str(n) for n in range(30)]
    assert page.paragraphs == ["1,204 more cells are not shown."]
    assert notebook(Shown(["n"], [(n,) for n in range(30)], total=30)).paragraphs == []


def test_a_wide_table_is_cut_as_well(notebook):
    page = notebook(Shown([f"column {n}" for n in range(25)], [tuple(range(25))], total=1))
    assert {len(row) for row in page.rows} == {20}
    assert page.paragraphs == ["5 more columns are not shown."]


def test_long_values_are_cut_and_what_cannot_be_seen_becomes_visible():
    assert len(html.escape("x" * 10**6)) <= html.LONGEST_TEXT
    assert html.escape("\u202eabc\x00") == "\\u202eabc\\x00"
    assert html.shown(None) == "(missing)"
    assert html.first_values(["y" * 1000] * 1000) == ", ".join(["y" * 19 + "…"] * 5) + ", .."


def test_numbers_stand_on_the_right_and_empty_cells_are_empty():
    shown = html.table(["a", "b", "c"], [(1.0000001, "1", "")], total=1)
    assert '<td style="text-align: right">1</td><td style="text-align: left">1</td>' in shown
    assert '<td style="text-align: left"></td>' in shown
