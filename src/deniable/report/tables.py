"""How a report looks: its tables, its palette for light and dark, its style sheet and script."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources
from typing import Any, Literal

from deniable.core import values
from deniable.core.text import escaped, shown
from deniable.core.values import percent

# -- How a report looks: one palette for light and dark, the style sheet, the script that sorts, and SVG made inline.


FONT = "Arial, Helvetica, Liberation Sans, sans-serif"  # what labels are measured with when a chart is drawn
# What a chart is drawn with. In a page each colour becomes a variable of style.css, which has a value for dark screens.
PALETTE = {
    "ink": "#1f2328",
    "muted": "#7a828c",
    "grid": "#dfe3e8",
    "series1": "#2563a8",
    "series2": "#b4470e",
    "series3": "#0b7a5b",
    "series4": "#8a3ea8",
    "series5": "#6b5b00",
    "serious": "#a3141f",
}
SERIES = tuple(name for name in PALETTE if name.startswith("series"))
_COLOUR = re.compile(r'(fill|stroke)="(' + "|".join(PALETTE.values()) + r')"', re.IGNORECASE)
_NAME_OF = {colour: name for name, colour in PALETTE.items()}
_ID = re.compile(r'\bid="([^"]+)"')
_ROOT = re.compile(r"<svg\b[^>]*?\bwidth=\"([\d.]+)\" height=\"([\d.]+)\"[^>]*>")
_ARIA = re.compile(r'\s(?:aria-[a-z]+|role)="[^"]*"')


@cache
def style_sheet() -> str:
    """The style sheet, to stand inside the page."""
    return _data("style.css")


@cache
def script() -> str:
    """The script that makes tables sortable, to stand inside the page."""
    return _data("sort.js")


def content_security_policy(style: str, script: str) -> str:
    """What a page may do: show itself, with its style sheet and its script, and ask no network for anything.

    The style sheet and the script are named by their SHA-256, so text that slipped in could not run.
    """
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def inline_svg(svg: str, prefix: str, labelled_by: str) -> str:
    """A chart inside a page: one picture with a name, colours that follow the page, ids that no other chart has."""
    svg = svg[svg.index("<svg") :]
    for name in set(_ID.findall(svg)):
        svg = svg.replace(f'id="{name}"', f'id="{prefix}-{name}"').replace(f"url(#{name})", f"url(#{prefix}-{name})")
    svg = _ARIA.sub("", svg)
    svg = _COLOUR.sub(lambda match: f'{match[1]}="var(--{_NAME_OF[match[2].lower()]})"', svg)
    size = _ROOT.search(svg)
    if size is None:
        return svg
    width, height = float(size[1]), float(size[2])
    root = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="{labelled_by}" width="{width:g}" '
        f'height="{height:g}" viewBox="0 0 {width:g} {height:g}">'
    )
    return svg[: size.start()] + root + svg[size.end() :]


def _data(name: str) -> str:
    return resources.files("deniable.report").joinpath(name).read_text(encoding="utf-8").strip()


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


# -- Tables of a report: typed columns, so that each format can align, round and sort them -----------------------------


Kind = Literal["text", "count", "share", "number"]
MOST_ROWS = 300  # more are for programs: --format json of a smaller question, or SQL
TALL = 16  # rows from which a table scrolls inside the page
LONG = 28  # characters from which a column of text gets room


@dataclass(frozen=True)
class Table:
    """A caption, columns (name -> kind), rows; ``left_off`` says how many rows were too many to show, ``marked`` which
    of them stand out."""

    caption: str
    columns: Mapping[str, Kind]
    rows: tuple[tuple[Any, ...], ...]
    left_off: int = 0
    marked: frozenset[int] = frozenset()

    @classmethod
    def of(
        cls,
        caption: str,
        columns: Mapping[str, Kind],
        rows: Iterable[Sequence[Any]],
        most: int = MOST_ROWS,
        marked: Iterable[int] = (),
    ) -> Table:
        """A table of at most ``most`` rows."""
        listed = [tuple(row) for row in rows]
        return cls(caption, dict(columns), tuple(listed[:most]), max(len(listed) - most, 0), frozenset(marked))

    @property
    def full_caption(self) -> str:
        return self.caption + (f" {self.left_off:,} more rows are not shown." if self.left_off else "")

    def to_dict(self) -> dict[str, Any]:
        rows = [[plain(value) for value in row] for row in self.rows]
        return {"kind": "table", "caption": self.full_caption, "columns": list(self.columns), "rows": rows}


def formatted(value: Any, kind: Kind) -> str:
    """A cell as people read it; nothing where there is no number."""
    if kind == "text":
        return shown(value, 400)
    if not _is_number(value):
        return "" if value is None or isinstance(value, float) else shown(value)
    if kind == "share":
        return share(value)
    if kind == "count":
        return f"{round(value):,}".replace("-0", "0") if round(value) == 0 else f"{round(value):,}"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def share(value: float, digits: int = 3) -> str:
    """A share in percent, also where it is more than the whole, as errors can be.

    >>> share(0.0123), share(12.345)
    ('1.23 %', '1,234 %')
    """
    return percent(value, digits) if abs(value) < 1 else f"{100 * value:,.0f} %"


def to_html(table: Table, name: str) -> str:
    """A table in a frame that scrolls by itself; its headings become buttons where scripts run."""
    kinds = list(table.columns.values())
    wide = [any(len(formatted(row[i], kind)) > LONG for row in table.rows) for i, kind in enumerate(kinds)]
    head = "".join(
        f'<th scope="col"{_class(kind, long)}>{in_html(title)}</th>'
        for (title, kind), long in zip(table.columns.items(), wide, strict=True)
    )
    opened = {False: "<tr>", True: '<tr class="exposed">'}
    body = "\n".join(f"{opened[i in table.marked]}{_row(row, kinds)}</tr>" for i, row in enumerate(table.rows))
    tall = " tall" if len(table.rows) > TALL else ""
    sortable = ' class="sortable"' if len(table.rows) > 1 else ""
    return (
        f'<div class="scroll{tall}" role="group" tabindex="0" aria-labelledby="{name}">\n<table{sortable}>'
        f'<caption><span id="{name}">{in_html(table.full_caption)}</span></caption>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def in_html(text: str) -> str:
    """Text in which no character means anything to HTML; a number is not parted from its percent sign."""
    return escape(text).replace(" %", "&nbsp;%")


def to_markdown(table: Table) -> str:
    """A pipe table below its caption."""
    kinds = list(table.columns.values())
    lines = [escaped(table.full_caption), ""]
    lines.append("| " + " | ".join(escaped(title) for title in table.columns) + " |")
    lines.append("|" + "|".join("---" if kind == "text" else "---:" for kind in kinds) + "|")
    for row in table.rows:
        cells = (escaped(formatted(value, kind)) for value, kind in zip(row, kinds, strict=True))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def plain(value: Any) -> Any:
    """A value as JSON has it; what is no number becomes null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return values.to_json(value)


def _row(row: Sequence[Any], kinds: Sequence[Kind]) -> str:
    cells = []
    for place, (value, kind) in enumerate(zip(row, kinds, strict=True)):
        tag = 'th scope="row"' if place == 0 else "td"
        key = "" if kind == "text" else f' data-sort="{float(value)!r}"' if _is_number(value) else ' data-sort=""'
        cells.append(f"<{tag}{_class(kind)}{key}>{in_html(formatted(value, kind))}</{tag[:2]}>")
    return "".join(cells)


def _class(kind: Kind, long: bool = False) -> str:
    return ' class="number"' if kind != "text" else ' class="long"' if long else ""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
