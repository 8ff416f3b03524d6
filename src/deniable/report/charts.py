"""Charts: data -> specification -> SVG. No browser and no network; needs the extra ``report``.

Colours come from ``style.PALETTE``, so that a page can exchange them for those of a dark screen.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from deniable.core.errors import extra_missing
from deniable.report.style import FONT, PALETTE, SERIES

WIDTH, HEIGHT = 560, 320
NARROW = 400  # up to this width labels are short and legends stand below
BAR = 20  # pixels of height for each value of a histogram


def _altair() -> Any:
    try:
        import altair
        import vl_convert  # noqa: F401  (altair calls it to draw SVG)
    except ImportError as missing:
        raise extra_missing(missing.name or "altair", "report") from None
    return altair


def require() -> None:
    """Raise unless charts can be drawn here."""
    _altair()


def to_svg(chart: Any) -> str:
    """A chart as SVG text that stands on its own."""
    text = io.StringIO()
    chart.save(text, format="svg")
    return text.getvalue()


def error_against_rho2(rows: Sequence[dict[str, Any]], selectivity: float, width: int = WIDTH) -> Any:
    """Predicted error against how sure an attacker may become, one line per mechanism."""
    alt = _altair()
    return _themed(
        alt.Chart(alt.Data(values=list(rows)), width=width, height=HEIGHT, title="What accuracy costs in certainty")
        .mark_line(point=True)
        .encode(
            x=alt.X("rho2:Q", title="rho2: how sure an attacker may become", scale=alt.Scale(type="log")),
            y=alt.Y(
                "error:Q",
                title=f"predicted relative error of counts of {100 * selectivity:g} % of the rows",
                axis=alt.Axis(format="~%"),
                scale=alt.Scale(type="log"),
            ),
            color=alt.Color("mechanism:N", title="mechanism"),
            strokeDash=alt.StrokeDash("mechanism:N", title="mechanism"),
        ),
        width,
    )


def cells_picture(cells: Sequence[dict[str, Any]]) -> Any:
    """Which values each cell holds: a row per cell, a column per value, shaded by the share of the cell's rows."""
    alt = _altair()
    return (
        alt.Chart(alt.Data(values=list(cells)), width=WIDTH, title="The cells of the plan")
        .mark_rect()
        .encode(
            x=alt.X("value:N", title="value", sort=None, axis=alt.Axis(labelLimit=80)),
            y=alt.Y("cell:O", title="cell"),
            color=alt.Color("share:Q", title="share of the cell", scale=alt.Scale(scheme="blues")),
        )
    )


def posterior_against_prior(
    lines: Sequence[dict[str, Any]],
    points: Sequence[dict[str, Any]] = (),
    limit: dict[str, Any] | None = None,
    reach: float = 1.0,
    width: int = WIDTH,
) -> Any:
    """How sure an attacker can become, against what was believed before.

    Args:
        lines: rows (line, prior, posterior), one line per kind of attacker.
        points: rows (prior, posterior), one per value, for the attacker who knows the frequencies.
        limit: (prior, posterior) of the requirement: the rectangle that beliefs must stay in.
        reach: where the axis of the prior ends.
    """
    alt = _altair()
    x = alt.X("prior:Q", title="believed before", axis=_percents(alt), scale=alt.Scale(domain=[0, reach]))
    y = alt.Y("posterior:Q", title="believed after, at most", axis=_percents(alt), scale=alt.Scale(domain=[0, 1]))
    names = list(dict.fromkeys(row["line"] for row in lines))
    layers = [
        alt.Chart(alt.Data(values=list(lines)))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=x,
            y=y,
            color=alt.Color("line:N", title=None, sort=names),
            strokeDash=alt.StrokeDash("line:N", title=None, sort=names),
        )
    ]
    if limit is not None:
        edges = [
            {"prior": 0, "posterior": limit["posterior"], "prior2": limit["prior"], "posterior2": limit["posterior"]},
            {"prior": limit["prior"], "posterior": 0, "prior2": limit["prior"], "posterior2": limit["posterior"]},
        ]
        layers.append(
            alt.Chart(alt.Data(values=edges))
            .mark_rule(color=PALETTE["ink"], strokeWidth=1.5, strokeDash=[2, 3])
            .encode(x=x, y=y, x2="prior2:Q", y2="posterior2:Q")
        )
    if points:
        layers.append(
            alt.Chart(alt.Data(values=list(points)))
            .mark_point(filled=True, size=28, opacity=0.9, color=PALETTE["series3"])
            .encode(x=x, y=y)
        )
    return _themed(alt.layer(*layers).properties(width=width, height=min(HEIGHT, width)), width)


def histogram_with_intervals(rows: Sequence[dict[str, Any]], title: str, width: int = WIDTH) -> Any:
    """A bar for each value's estimated count, and a line from ``low`` to ``high``; rows (value, estimate, low, high)."""
    alt = _altair()
    label = alt.Axis(labelLimit=110 if width <= NARROW else 200)
    base = alt.Chart(alt.Data(values=list(rows))).encode(y=alt.Y("value:N", title=None, sort=None, axis=label))
    bars = base.mark_bar(color=PALETTE["series1"], height={"band": 0.72}).encode(
        x=alt.X("estimate:Q", title=title, axis=alt.Axis(format="~s" if width <= NARROW else ","))
    )
    spans = base.mark_rule(color=PALETTE["ink"], strokeWidth=1.5).encode(x="low:Q", x2="high:Q")
    ends = [
        base.mark_tick(color=PALETTE["ink"], thickness=1.5, height=8).encode(x=f"{end}:Q") for end in ("low", "high")
    ]
    return _themed(alt.layer(bars, spans, *ends).properties(width=width, height=BAR * max(len(rows), 1)), width)


def error_against_size(rows: Sequence[dict[str, Any]], width: int = WIDTH) -> Any:
    """Relative error against the size of a question; rows (share, error, line)."""
    alt = _altair()
    names = list(dict.fromkeys(row["line"] for row in rows))
    percents = alt.Axis(format="~%", values=[0.0001, 0.001, 0.01, 0.1, 1])
    return _themed(
        alt.Chart(alt.Data(values=list(rows)), width=width, height=min(HEIGHT, width))
        .mark_line(point=True)
        .encode(
            x=alt.X(
                "share:Q", title="rows that the answer counts, of all rows", axis=percents, scale=alt.Scale(type="log")
            ),
            y=alt.Y(
                "error:Q",
                title="relative error",
                axis=alt.Axis(format="~%"),
                scale=alt.Scale(type="log", nice=False),
            ),
            color=alt.Color("line:N", title=None, sort=names),
            strokeDash=alt.StrokeDash("line:N", title=None, sort=names),
        ),
        width,
    )


def _percents(alt: Any) -> Any:
    return alt.Axis(format=".0%", tickCount=5)


def _themed(chart: Any, width: int) -> Any:
    """The looks that all charts share; no ARIA inside, because the whole picture carries one description."""
    ink, muted, grid = PALETTE["ink"], PALETTE["muted"], PALETTE["grid"]
    return (
        chart.configure(font=FONT, background="transparent", aria=False)
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=ink,
            titleColor=ink,
            gridColor=grid,
            domainColor=muted,
            tickColor=muted,
            labelFontSize=12,
            titleFontSize=12,
            titleFontWeight="normal",
            titlePadding=8,
        )
        .configure_legend(
            labelColor=ink,
            titleColor=ink,
            labelFontSize=12,
            titleFontSize=12,
            orient="bottom",
            direction="vertical" if width <= NARROW else "horizontal",
            labelLimit=width,
            columns=1 if width <= NARROW else 3,
            symbolSize=200,
            symbolStrokeWidth=2.5,
        )
        .configure_title(color=ink, anchor="start")
        .configure_range(category=[PALETTE[name] for name in SERIES])
    )
