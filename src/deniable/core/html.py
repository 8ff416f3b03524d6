"""What notebooks show of a value: a few paragraphs and small tables, as plain HTML.

Every text is escaped, and there is no script and no style from elsewhere: values of a table may hold markup.
"""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import islice

MOST_ROWS = 30
MOST_COLUMNS = 20
LONGEST = 80  # characters of a value
LONGEST_TEXT = 600  # of a sentence or two
UNSEEN = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}  # control, format, private and separator characters
LEFT, RIGHT = ' style="text-align: left"', ' style="text-align: right"'


def shown(value: object, most: int = LONGEST) -> str:
    """A value as text on one line: characters that cannot be seen, or turn text round, become visible.

    >>> shown("a\\nb"), shown(None), shown(("x", 3))
    ('a\\\\nb', '(missing)', 'x, 3')
    """
    if value is None:
        return "(missing)"
    if isinstance(value, tuple | list):
        return ", ".join(shown(item, most) for item in value)
    text = str(value)
    text = text if len(text) <= most else text[: most - 1] + "…"
    if not text.strip():
        return repr(text)
    return "".join(repr(c)[1:-1] if unicodedata.category(c) in UNSEEN else c for c in text)


def escape(value: object, most: int = LONGEST_TEXT) -> str:
    """A value as text in which no character means anything to HTML, cut after ``most`` characters.

    >>> escape("<b>&")
    '&lt;b&gt;&amp;'
    """
    return html.escape(shown(value, most))


def first_values(values: Sequence[object], most: int = 5, longest: int = 20) -> str:
    """The first of many values as one text, each of them short.

    >>> first_values(("flu", "cold", "hiv"), most=2)
    'flu, cold, ..'
    """
    named = ", ".join(shown(value, longest) for value in values[:most])
    return named if len(values) <= most else f"{named}, .."


def title(shown_as: str) -> str:
    """The heading of what a ``repr`` says in one line."""
    return f"<p><b>{escape(shown_as.removeprefix('<').removesuffix('>'))}</b></p>"


def paragraph(text: object) -> str:
    """A sentence or two."""
    return f"<p>{escape(text)}</p>"


def table(columns: Sequence[object], rows: Iterable[Sequence[object]], *, total: int, what: str = "rows") -> str:
    """A table of at most 30 rows and 20 columns, and a line that says how many of ``total`` were left out.

    Numbers stand on the right, texts on the left; an empty text is an empty cell.

    >>> table(["coin"], [("<5 %",)], total=1).replace(LEFT, "")
    '<table><thead><tr><th>coin</th></tr></thead><tbody><tr><td>&lt;5 %</td></tr></tbody></table>'
    """
    listed = [tuple(row)[:MOST_COLUMNS] for row in islice(rows, MOST_ROWS)]
    head = "".join(f"<th{LEFT}>{_cell(column)}</th>" for column in columns[:MOST_COLUMNS])
    body = "".join(f"<tr>{''.join(f'<td{_side(item)}>{_cell(item)}</td>' for item in row)}</tr>" for row in listed)
    missing = ((total - len(listed), what), (len(columns) - MOST_COLUMNS, "columns"))
    left_out = [f"{number:,} more {kind} are not shown." for number, kind in missing if number > 0]
    lines = "".join(paragraph(line) for line in left_out)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{lines}"


def _cell(item: object) -> str:
    if item == "":
        return ""
    return escape(f"{item:.6g}" if isinstance(item, float) else item)


def _side(item: object) -> str:
    return RIGHT if isinstance(item, int | float) and not isinstance(item, bool) else LEFT
