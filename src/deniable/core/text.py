"""Text for people: what notebooks and Markdown show of a stranger's text, and small files that people write."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from deniable.core.errors import OptionError

# -- What notebooks show of a value: a few paragraphs and small tables, as plain HTML ----------------------------------
# Every text is escaped, and there is no script and no style from elsewhere: values of a table may hold markup.


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


# -- Text of strangers inside Markdown: values and names of a table may hold markup, links and control characters ------


def escaped(text: str) -> str:
    """Text in which no character means anything to Markdown, nor to the HTML it becomes.

    >>> escaped("a|b <i> *c*")
    'a\\\\|b &lt;i&gt; \\\\*c\\\\*'
    """
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join("\\" + c if c in "\\`*_[]#|~$" else c for c in text).replace("\n", " ")


def line(text: str) -> str:
    """A sentence on one line, whose markup and unseen characters are to be read and not to work.

    >>> line("of 'a<b>\\x1b[2J'")
    "of 'a&lt;b&gt;\\\\\\\\x1b\\\\[2J'"
    """
    return escaped(shown(text, most=len(text) + 1))


def code(name: str) -> str:
    """A name as code, whatever it is.

    >>> code("age"), code("a`b")
    ('`age`', '`` a`b ``')
    """
    text = shown(name)
    if "`" not in text:
        return f"`{text}`"
    fence = "`" * (1 + max(len(run) for run in "".join(c if c == "`" else " " for c in text).split()))
    return f"{fence} {text} {fence}"


# -- Small files that people write: read whole, and refused where they have no end -------------------------------------


LARGEST = 2**26  # bytes: a list of a million values takes less


def small_bytes(path: Path, most: int = LARGEST) -> bytes:
    """The content of a file of at most so many bytes; a device that never ends is refused, too."""
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OptionError(
            f"{str(path)!r} holds more than {most >> 20:,} MB, which is more than such a file can need. "
            "Fix: name the right file."
        )
    return content


def small_text(path: Path) -> str:
    """The same as text; a byte order mark is no part of it."""
    return small_bytes(path).decode("utf-8-sig")
