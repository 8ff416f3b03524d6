"""How a report looks: one palette for light and dark, the style sheet, the script that sorts, and SVG made inline."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib import resources

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


def content_security_policy() -> str:
    """What the page may do: show itself, with this style sheet and this script, and ask no network for anything.

    The style sheet and the script are named by their SHA-256, so text that slipped in could not run.
    """
    return (
        f"default-src 'none'; style-src '{_digest(style_sheet())}'; script-src '{_digest(script())}'; "
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
