"""Charts of the desk as SVG text: bars before and after, and points of error against epsilon. Colours are classes of
the style sheet that the reports have, so a chart follows light and dark; every chart stands beside its figures.

Reports draw with altair (extra ``report``); a page that answers while its owner moves a slider draws in microseconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple

LABELS, WIDTH, BAR, GAP = 118, 400, 11, 7
PLOT_WIDTH, PLOT_HEIGHT = 400, 280
LEFT, BOTTOM, TOP = 50, 42, 12
LONGEST = 17  # letters of a label
BELOW = 1e-4  # smaller errors are drawn at the edge


class Pair(NamedTuple):
    """Two bars side by side; None where there is none."""

    label: str
    first: float | None
    second: float | None
    low: float | None = None
    high: float | None = None


class Dot(NamedTuple):
    """A point with a name; an infinite x stands at the right edge."""

    label: str
    x: float
    y: float
    chosen: bool = False


def pairs(rows: Sequence[Pair], name: str, title: str) -> str:
    """Horizontal bars: the first series behind, the second before it, and its interval as a line."""
    heights = [BAR * ((row.first is not None) + (row.second is not None)) + GAP for row in rows]
    most = max([0.0, *(number for row in rows for number in row[1:] if number is not None)]) or 1.0
    wide = WIDTH - LABELS - 6
    parts, y = [], 4
    for row, height in zip(rows, heights, strict=True):
        parts.append(_text(LABELS - 6, y + (height - GAP) / 2 + 4, _short(row.label), "end", "label"))
        top = y
        for number, kind in ((row.first, "before"), (row.second, "after")):
            if number is None:
                continue
            parts.append(
                f'<rect class="{kind}" x="{LABELS}" y="{top}" width="{max(wide * number / most, 0.5):.1f}" '
                f'height="{BAR}"/>'
            )
            top += BAR
        if row.low is not None and row.high is not None:
            ends = [LABELS + wide * min(max(end, 0.0) / most, 1.0) for end in (row.low, row.high)]
            parts.append(f'<path class="span" d="M{ends[0]:.1f} {top - BAR / 2}H{ends[1]:.1f}"/>')
        y += height
    return _svg(WIDTH, y + 2, name, title, parts)


def dots(rows: Sequence[Dot], name: str, title: str, across: str, up: str, percent: Callable[[float], str]) -> str:
    """Points of error (up) against epsilon (across), both logarithmic; numbers name them, as the table does."""
    finite = [row.x for row in rows if 0 < row.x < math.inf]
    low, high = (min(finite) / 1.3, max(finite) * 1.3) if finite else (0.5, 2.0)
    errors = [max(row.y, BELOW) for row in rows]
    least, most = (min(errors) / 1.4, max(errors) * 1.4) if errors else (0.01, 1.0)
    right = PLOT_WIDTH - (56 if any(math.isinf(row.x) for row in rows) else 14)

    def x_of(number: float) -> float:
        if math.isinf(number):
            return PLOT_WIDTH - 24.0
        return LEFT + (right - LEFT) * math.log(max(number, low) / low) / math.log(high / low)

    def y_of(number: float) -> float:
        return TOP + (PLOT_HEIGHT - TOP - BOTTOM) * math.log(most / max(number, BELOW)) / math.log(most / least)

    bottom = PLOT_HEIGHT - BOTTOM
    parts = [f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{PLOT_WIDTH - 8}"/>']
    for tick in _ticks(low, high):
        parts.append(f'<path class="grid" d="M{x_of(tick):.1f} {TOP}V{bottom}"/>')
        parts.append(_text(x_of(tick), bottom + 16, f"{tick:g}", "middle"))
    for tick in _ticks(least, most):
        parts.append(f'<path class="grid" d="M{LEFT} {y_of(tick):.1f}H{PLOT_WIDTH - 8}"/>')
        parts.append(_text(LEFT - 6, y_of(tick) + 4, percent(tick), "end"))
    if right < PLOT_WIDTH - 20:
        parts.append(_text(PLOT_WIDTH - 24, bottom + 16, "∞", "middle"))
    parts.append(_text((LEFT + right) / 2, PLOT_HEIGHT - 6, across, "middle"))
    parts.append(_text(LEFT + 4, TOP + 8, up, "start"))
    written: list[tuple[float, float]] = []
    for number, row in enumerate(rows):
        kind = "dot chosen" if row.chosen else "dot"
        x, y = x_of(row.x), y_of(row.y)
        parts.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="5"/>')
        beside = ((12, 4), (-12, 4), (0, -9), (0, 17), (12, 16), (-12, 16))  # the first place that is free
        places = [(x + right, y + down) for right, down in beside]
        free = [at for at in places if all(abs(at[0] - a) > 12 or abs(at[1] - b) > 10 for a, b in written)]
        at = (free or places)[0]
        written.append(at)
        parts.append(_text(*at, str(number + 1), "middle", "number-of-dot"))
    return _svg(PLOT_WIDTH, PLOT_HEIGHT, name, title, parts)


def _ticks(low: float, high: float) -> list[float]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1,) if last - first > 3 else (1, 2, 5)
    ticks = [round(step * 10.0**power, 12) for power in range(first, last + 1) for step in steps]
    return [tick for tick in ticks if low <= tick <= high]


def _short(label: str) -> str:
    return label if len(label) <= LONGEST else label[: LONGEST - 1] + "…"


def _text(x: float, y: float, text: str, anchor: str, kind: str = "tick") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(width: float, height: float, name: str, title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {width:g} {height:g}" role="img" aria-labelledby="{name}-name">'
        f'<title id="{name}-name">{escape(title)}</title>{"".join(parts)}</svg>'
    )
