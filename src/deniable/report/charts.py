"""Charts: data -> specification -> SVG. No browser and no network; needs the extra ``report``.

Colours come from ``style.PALETTE``, so that a page can exchange them for those of a dark screen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deniable.core.errors import extra_missing
from deniable.report.style import FONT, PALETTE, SERIES

WIDTH, HEIGHT = 560, 320
NARROW = 400  # up to this width labels are short and legends stand below
BAR = 20  # pixels of height for each value of a histogram
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 4])
ERRORS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100]
SHARES = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1]
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
BELIEFS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1]


def library() -> Any:
    """altair, or what to install."""
    try:
        import altair
        import vl_convert  # noqa: F401  (altair calls it to draw SVG)
    except ImportError as missing:
        raise extra_missing(missing.name or "altair", "report") from None
    return altair


def require() -> None:
    """Raise unless charts can be drawn here."""
    library()


def to_svg(chart: Any) -> str:
    """A chart as SVG text that stands on its own: what ``chart.save`` writes, without its check against the schema,
    which takes as long as the drawing."""
    import vl_convert

    version = library().SCHEMA_VERSION.rpartition(".")[0]
    svg: str = vl_convert.vegalite_to_svg(chart.to_dict(validate=False), vl_version=version)
    return svg


def inline(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Rows as the data of a chart. A tuple: altair copies a chart at each step of making it, and lists with it."""
    return {"values": tuple(rows)}


def error_against_rho2(
    rows: Sequence[dict[str, Any]],
    selectivity: float,
    width: int = WIDTH,
    rho2: float | None = None,
) -> Any:
    """Predicted error against how sure an attacker may become, one line per mechanism; upright, what is required."""
    alt = library()
    x = _logarithmic(alt.X, alt, "rho2:Q", "rho2: how sure an attacker may become", BELIEFS)
    chart = (
        alt.Chart(inline(rows), width=width, height=HEIGHT)
        .mark_line(point=True)
        .encode(
            x=x,
            y=_logarithmic(alt.Y, alt, "error:Q", f"error of counts of {100 * selectivity:g} % of the rows", ERRORS),
            **_by_line(alt, "mechanism", [row["mechanism"] for row in rows], "mechanism"),
        )
    )
    if rho2 is not None:
        chart = alt.layer(_limit(alt, [{"rho2": rho2}]).encode(x=x), chart)
    return themed(chart, width)


def _limit(alt: Any, where: list[dict[str, float]]) -> Any:
    """The dotted line of a requirement."""
    return alt.Chart(inline(where)).mark_rule(color=PALETTE["ink"], strokeWidth=1.5, strokeDash=[2, 3])


def cells_picture(cells: Sequence[dict[str, Any]]) -> Any:
    """Which values each cell holds: a row per cell, a column per value, shaded by the share of the cell's rows."""
    alt = library()
    return (
        alt.Chart(inline(cells), width=WIDTH, title="The cells of the plan")
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
        points: rows (prior, posterior, protected), one per value, for the attacker who knows the frequencies; values
            that are not protected are drawn in red.
        limit: (prior, posterior) of the requirement: the rectangle that beliefs must stay in.
        reach: where the axis of the prior ends.
    """
    alt = library()
    x = alt.X("prior:Q", title="believed before", axis=_percents(alt), scale=alt.Scale(domain=[0, reach]))
    y = alt.Y("posterior:Q", title="believed after, at most", axis=_percents(alt), scale=alt.Scale(domain=[0, 1]))
    layers = [
        alt.Chart(inline(lines))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=x,
            y=y,
            **_by_line(alt, "line", [row["line"] for row in lines], "who"),
        )
    ]
    if limit is not None:
        edges = [
            {"prior": 0, "posterior": limit["posterior"], "prior2": limit["prior"], "posterior2": limit["posterior"]},
            {"prior": limit["prior"], "posterior": 0, "prior2": limit["prior"], "posterior2": limit["posterior"]},
        ]
        layers.append(_limit(alt, edges).encode(x=x, y=y, x2="prior2:Q", y2="posterior2:Q"))
    for covered, colour, shape in ((True, "series3", "circle"), (False, "serious", "diamond")):
        some = [point for point in points if point["protected"] == covered]
        if some:
            layers.append(
                alt.Chart(inline(some))
                .mark_point(filled=True, size=28 if covered else 60, opacity=0.9, color=PALETTE[colour], shape=shape)
                .encode(x=x, y=y)
            )
    return themed(alt.layer(*layers).properties(width=width, height=min(HEIGHT, width)), width)


def histogram_with_intervals(rows: Sequence[dict[str, Any]], title: str, width: int = WIDTH) -> Any:
    """A bar for each value's estimated count and a line for its interval; rows (value, estimate, low, high)."""
    alt = library()
    room = 110 if width <= NARROW else 200  # for the names of values
    label = alt.Axis(labelLimit=room)
    base = alt.Chart(inline(rows)).encode(y=alt.Y("value:N", title=None, sort=None, axis=label))
    form, ticks = ("~s", 3) if width <= NARROW else (",d", 5)  # more would touch each other on a phone
    bars = base.mark_bar(color=PALETTE["series1"], height={"band": 0.72}).encode(
        x=alt.X("estimate:Q", title=title, axis=alt.Axis(format=form, tickCount=ticks))
    )
    spans = base.mark_rule(color=PALETTE["ink"], strokeWidth=1.5).encode(x="low:Q", x2="high:Q")
    ends = [
        base.mark_tick(color=PALETTE["ink"], thickness=1.5, height=8).encode(x=f"{end}:Q") for end in ("low", "high")
    ]
    return themed(
        alt.layer(bars, spans, *ends).properties(width=width - room // 2, height=BAR * max(len(rows), 1)), width
    )


def attack_success(rows: Sequence[dict[str, Any]], width: int = WIDTH, rho2: float | None = None) -> Any:
    """How often attacks are right: rows (attack, success, low, high, baseline); dotted, how sure one may become."""
    alt = library()
    room = 130 if width <= NARROW else 220
    base = alt.Chart(inline(rows)).encode(y=alt.Y("attack:N", title=None, sort=None, axis=alt.Axis(labelLimit=room)))
    x = alt.X("success:Q", title="right guesses", axis=_percents(alt), scale=alt.Scale(domain=[0, 1]))
    layers = [
        base.mark_rule(color=PALETTE["series1"], strokeWidth=3).encode(x="low:Q", x2="high:Q"),
        base.mark_tick(color=PALETTE["ink"], thickness=2, height=14).encode(x="baseline:Q"),
        base.mark_point(filled=True, size=70, opacity=1, color=PALETTE["series1"]).encode(x=x),
    ]
    if rho2 is not None:
        layers.insert(0, _limit(alt, [{"success": rho2}]).encode(x=x))
    return themed(alt.layer(*layers).properties(width=width - room // 2, height=1.3 * BAR * len(rows)), width)


def error_against_size(rows: Sequence[dict[str, Any]], width: int = WIDTH) -> Any:
    """Relative error against the size of a question; rows (share, error, line)."""
    alt = library()
    return themed(
        alt.Chart(inline(rows), width=width, height=min(HEIGHT, width))
        .mark_line(point=True)
        .encode(
            x=_logarithmic(alt.X, alt, "share:Q", "rows that the answer counts, of all rows", SHARES),
            y=_logarithmic(alt.Y, alt, "error:Q", "relative error", ERRORS),
            **_by_line(alt, "line", [row["line"] for row in rows], "estimated"),
        ),
        width,
    )


def error_against_risk(
    points: Sequence[dict[str, Any]], line: float, width: int = WIDTH, rho2: float | None = None
) -> Any:
    """Relative error against an attacker's right guesses: points (name, risk, error), told apart by colour and shape;
    dotted, the error that needs no release, and how sure one may become."""
    alt = library()
    names = [point["name"] for point in points]
    colours = [PALETTE[SERIES[place % len(SERIES)]] for place in range(len(names))]
    shapes = [SHAPES[place % len(SHAPES)] for place in range(len(names))]
    y = _logarithmic(alt.Y, alt, "error:Q", "relative error", ERRORS)
    x = alt.X(
        "risk:Q",
        title="right guesses of an informed attacker",
        axis=_percents(alt),
        scale=alt.Scale(zero=False, padding=14),
    )
    look = {"title": "release", "legend": alt.Legend(symbolType="circle", symbolSize=90, columns=1)}
    marks = (
        alt.Chart(inline(points))
        .mark_point(filled=True, size=110, opacity=0.9)
        .encode(
            x=x,
            y=y,
            color=alt.Color("name:N", scale=alt.Scale(domain=names, range=colours), **look),
            shape=alt.Shape("name:N", scale=alt.Scale(domain=names, range=shapes), **look),
        )
    )
    layers = [_limit(alt, [{"error": line}]).encode(y=y)]
    layers += [] if rho2 is None else [_limit(alt, [{"risk": rho2}]).encode(x=x)]
    return themed(alt.layer(*layers, marks).properties(width=width, height=min(HEIGHT, width)), width)


def _logarithmic(channel: Any, alt: Any, field: str, title: str, values: Sequence[float]) -> Any:
    axis = alt.Axis(format="~%", values=list(values))
    return channel(field, title=title, axis=axis, scale=alt.Scale(type="log", nice=False, padding=12))


def _by_line(alt: Any, field: str, names: Sequence[str], title: str) -> dict[str, Any]:
    """Lines told apart by colour and by dashes, so that they can be told apart without colours."""
    known = list(dict.fromkeys(names))
    dashes = alt.Scale(domain=known, range=[DASHES[i % len(DASHES)] for i in range(len(known))])
    colours = alt.Scale(domain=known, range=[PALETTE[SERIES[i % len(SERIES)]] for i in range(len(known))])
    return {
        "color": alt.Color(f"{field}:N", title=title, scale=colours),
        "strokeDash": alt.StrokeDash(f"{field}:N", title=title, scale=dashes),
    }


def _percents(alt: Any) -> Any:
    return alt.Axis(format=".0%", tickCount=5)


def themed(chart: Any, width: int) -> Any:
    """The looks that all charts share; no ARIA inside, because the whole picture carries one description."""
    ink, muted, grid = PALETTE["ink"], PALETTE["muted"], PALETTE["grid"]
    return (
        chart.configure(
            font=FONT, background="transparent", aria=False, padding={"left": 16, "right": 16, "top": 6, "bottom": 6}
        )
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
            titleFontWeight="normal",
            orient="bottom",
            direction="vertical",
            labelLimit=width,
            symbolType="stroke",
            symbolSize=400,
            symbolStrokeWidth=2.5,
        )
        .configure_title(color=ink, anchor="start", subtitleColor=ink, subtitleFontSize=12, offset=12)
    )
