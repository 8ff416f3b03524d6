"""Charts: data -> specification -> SVG. No browser and no network; needs the extra ``report``."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from deniable.core.errors import OutputError, extra_missing
from deniable.planning.candidates import INDEPENDENCE, Chart, Point, Series
from deniable.release.folder import write_file
from deniable.report.tables import FONT, PALETTE, SERIES

# -- Charts: data -> specification -> SVG. No browser and no network; needs the extra ``report`` -----------------------
# Colours come from ``style.PALETTE``, so that a page can exchange them for those of a dark screen.


WIDTH, HEIGHT = 560, 320
NARROW = 400  # up to this width labels are short and legends stand below
BAR = 20  # pixels of height for each value of a histogram
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 4])
ERRORS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100]
SHARES = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1]
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
EPSILONS = [0.1, 0.2, 0.5, 1, 2, 3, 5, 8]


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


def error_against_epsilon(
    rows: Sequence[dict[str, Any]],
    selectivity: float,
    width: int = WIDTH,
    epsilon: float | None = None,
) -> Any:
    """Predicted error against epsilon, one line per mechanism; upright, what the release has."""
    alt = library()
    x = _logarithmic(alt.X, alt, "epsilon:Q", "epsilon against any attacker", EPSILONS, "~g")
    chart = (
        alt.Chart(inline(rows), width=width, height=HEIGHT)
        .mark_line(point=True)
        .encode(
            x=x,
            y=_logarithmic(alt.Y, alt, "error:Q", f"error of counts of {100 * selectivity:g} % of the rows", ERRORS),
            **_by_line(alt, "mechanism", [row["mechanism"] for row in rows], "mechanism"),
        )
    )
    if epsilon is not None:
        chart = alt.layer(_limit(alt, [{"epsilon": epsilon}]).encode(x=x), chart)
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


def _logarithmic(channel: Any, alt: Any, field: str, title: str, values: Sequence[float], written: str = "~%") -> Any:
    axis = alt.Axis(format=written, values=list(values))
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


# -- Charts that come as plain data (evaluation.chart), drawn: lines with spreads, the paper's figures, clouds ---------


FIGURE_WIDTH = 720
GAP = 78  # pixels between panels: labels and title of an axis
TALLEST = 300
WIDEST_CLOUD = 380
SMALLEST = 90  # pixels of a panel
MOST_TICKS = 10
FEW_SHARES = 3
CROWDED = 6  # lines: more need wider panels
FIGURE_DASHES = ([1, 0], [8, 3], [4, 2], [10, 3, 2, 3], [16, 5], [6, 2, 2, 2, 2, 2], [4, 7])
DOTTED = [1.5, 4]  # independence and nothing else
MARKER = "<!-- drawn by deniable -->"
_UNSEEN = re.compile(r'<path class="(?:foreground|background)"[^>]*? d="(?:M0,0h0v0h0Z)?"[^>]*/>')
_DEFAULT = re.compile(r' (?:aria-[a-z]+|role|class|pointer-events)="[^"]*"| opacity="1"')
_TAG = re.compile(r"<[a-z][^>]*>")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{2,}")


def draw(chart: Chart, width: int = FIGURE_WIDTH) -> Any:
    """The chart as a specification; panels stand side by side where there is room."""
    alt = library()
    across = columns_of(chart, width)
    gap = GAP if width > NARROW else GAP // 2  # on a phone the panels of a cloud have no titles of axes
    room = width // across - (gap if across > 1 else 0)
    ends = _ends(chart)
    made = [_panel(alt, chart, panel, max(room, SMALLEST), ends) for panel in chart.panels]
    whole = made[0] if len(made) == 1 else alt.concat(*made, columns=across, spacing=14)
    return themed(whole, width)


def columns_of(chart: Chart, width: int) -> int:
    """How many panels stand side by side: fewer where many lines need room, and no last row of one if avoidable."""
    many = len(chart.panels)
    if width <= NARROW:
        return 2 if chart.cloud and many > 1 else 1
    most = 3 if chart.cloud or len(chart.names) <= CROWDED else 2
    return many if many <= most else 2 if many == 4 else most


def svg(chart: Chart) -> str:
    """The chart as a file of its own: on white, so that it reads the same on light and dark pages; with a title."""
    note = _note(chart)
    drawn = draw(chart).properties(title={"text": chart.title, "subtitle": note} if note else chart.title)
    drawn.config.background = "white"
    text = _smaller(to_svg(drawn))
    start = text.index("<svg")
    inside = text.index(">", start) + 1
    return f"{text[start:inside]}{MARKER}<title>{escape(chart.described)}</title>{text[inside:]}\n"


def write_all(folder: Path, drawn: dict[str, str]) -> None:
    """Write NAME.svg for each, and remove pictures of an earlier run that are no more; other files stay."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.glob("*.svg"):
            if path.stem not in drawn and MARKER in path.read_text(encoding="utf-8", errors="replace"):
                path.unlink()
        for name, text in drawn.items():
            write_file(folder / f"{name}.svg", text)
    except OSError as error:
        raise OutputError(f"{str(folder)!r} cannot be written: {error.strerror}.") from None


def _note(chart: Chart) -> str:
    said = []
    if any(point.deviation for line in chart.series for point in line.points):
        said.append("bars: one standard deviation over draws either way")
    if any(line.paper for line in chart.series):
        said.append("crosses: the paper's figures")
    if chart.cloud:
        said.append("on the line both are the same; at the edges: points beyond them")
    return "; ".join(said)


def _smaller(text: str) -> str:
    """The same picture in fewer bytes: nothing that cannot be seen, and places to a tenth of a pixel."""
    text = _UNSEEN.sub("", text)
    return _TAG.sub(
        lambda tag: _LONG_NUMBER.sub(lambda match: f"{float(match[0]):.1f}", _DEFAULT.sub("", tag[0])), text
    )


def _panel(alt: Any, chart: Chart, panel: str, width: int, ends: tuple[float, float]) -> Any:
    shown = [line for line in chart.series if line.panel == panel]
    width = min(width, WIDEST_CLOUD) if chart.cloud else width
    height = width if chart.cloud else min(TALLEST, max(width * 2 // 3, 2 * SMALLEST))
    layers = _cloud(alt, chart, shown, width, ends) if chart.cloud else _lines(alt, chart, shown, width)
    made = alt.layer(*layers).properties(width=width, height=height)
    lines = panel.split(", ") if width < 2 * SMALLEST else panel
    return made.properties(title=alt.TitleParams(lines, fontSize=12, fontWeight="bold")) if panel else made


def _lines(alt: Any, chart: Chart, shown: Sequence[Series], width: int) -> list[Any]:
    """A line with dots for each series, bars for the spread, crosses for the paper."""
    x, y = _axes(alt, chart, width)
    look = _look(alt, chart)
    layers = [
        alt.Chart(_data([(line, point) for line in shown for point in line.points]))
        .mark_line(strokeWidth=2)
        .encode(x=x, y=y, **look)
    ]
    dots = [(line, point) for line in shown if line.name != INDEPENDENCE for point in line.points]
    layers.append(
        alt.Chart(_data(dots)).mark_point(filled=True, size=26, opacity=1).encode(x=x, y=y, color=look["color"])
    )
    spans = [(line, point) for line in shown for point in line.points if point.deviation]
    if spans:
        layers.append(
            alt.Chart(_data(spans))
            .mark_rule(strokeWidth=1.2)
            .encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=look["color"])
        )
    crosses = [(line, point) for line in shown for point in line.paper]
    if crosses:
        mark = {"shape": "M-1,-1L1,1M-1,1L1,-1", "size": 110, "strokeWidth": 2, "opacity": 1}
        layers.append(alt.Chart(_data(crosses)).mark_point(**mark).encode(x=x, y=y, color=look["color"]))
    return layers


def _data(pairs: Sequence[tuple[Series, Point]]) -> dict[str, Any]:
    rows = []
    for line, point in pairs:
        row = {"line": line.name, "x": point.x, "y": point.y}
        if point.deviation:
            least = point.y / 10 if point.y > 0 else -math.inf  # a logarithmic axis has no 0
            row |= {"low": max(point.y - point.deviation, least), "high": point.y + point.deviation}
        rows.append(row)
    return inline(rows)


def _cloud(alt: Any, chart: Chart, shown: Sequence[Series], width: int, ends: tuple[float, float]) -> list[Any]:
    """The diagonal, and the points around it."""
    low, high = ends
    ticks = _powers(low, high, 4 if width > 2 * SMALLEST else 3) if high / low > 100 else _steps(low, high)
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    axis = alt.Axis(values=ticks, format="~s" if low >= 1 / 2 else ",.3~r")
    titled = width > SMALLEST + GAP // 4
    x = alt.X("x:Q", title=chart.x if titled else None, scale=scale, axis=axis)
    y = alt.Y("y:Q", title=chart.y if titled else None, scale=scale, axis=axis)
    right = inline([{"at": 0, "x": low, "y": low}, {"at": 1, "x": high, "y": high}])
    diagonal = alt.Chart(right).mark_line(color=PALETTE["muted"], strokeWidth=1.2).encode(x=x, y=y, order="at:Q")
    points = [(line.name, point.x, min(max(point.y, low), high)) for line in shown for point in line.points]
    return [diagonal, _shapes(alt, chart, points, x, y) if len(shown) > 1 else _dots(alt, points, x, y)]


def _dots(alt: Any, points: Sequence[tuple[str, float, float]], x: Any, y: Any) -> Any:
    """Points as one path with gaps and round ends: a tenth of the size of as many circles."""
    rows: list[dict[str, Any]] = []
    for _, across, up in points:
        rows += [{"at": len(rows), "x": across, "y": up}, {"at": len(rows) + 1, "x": None, "y": None}]
    mark = {"color": PALETTE["series1"], "strokeWidth": 3.2, "strokeCap": "round", "opacity": 0.65}
    return alt.Chart(inline(rows)).mark_line(**mark).encode(x=x, y=y, order="at:Q")


def _shapes(alt: Any, chart: Chart, points: Sequence[tuple[str, float, float]], x: Any, y: Any) -> Any:
    """Several kinds of points in one panel: told apart by shape as well as by colour."""
    names = list(chart.names)
    colours = [PALETTE[SERIES[place % len(SERIES)]] for place in range(len(names))]
    shapes = [SHAPES[place % len(SHAPES)] for place in range(len(names))]
    legend = alt.Legend(title=None, symbolType="circle", symbolSize=50, symbolStrokeWidth=1.5)
    rows = [{"kind": name, "x": across, "y": up} for name, across, up in points]
    return (
        alt.Chart(inline(rows))
        .mark_point(size=34, strokeWidth=1.5, opacity=0.9)
        .encode(
            x=x,
            y=y,
            color=alt.Color("kind:N", legend=legend, scale=alt.Scale(domain=names, range=colours)),
            shape=alt.Shape("kind:N", legend=legend, scale=alt.Scale(domain=names, range=shapes)),
        )
    )


def _ends(chart: Chart) -> tuple[float, float]:
    """Where the axes of a cloud begin and end: a little outside of the true counts and the estimates."""
    if not chart.cloud:
        return 0.0, 0.0
    true = [point.x for line in chart.series for point in line.points] or [1.0]
    estimated = [point.y for line in chart.series for point in line.points] or [1.0]
    return min(true) / 2, 1.3 * min(max(*true, *estimated), 5 * max(true))


def _axes(alt: Any, chart: Chart, width: int) -> tuple[Any, Any]:
    points = [point for line in chart.series for point in (*line.points, *line.paper)]
    places = sorted({point.x for point in points})
    ticks: dict[str, Any] = {"values": places} if len(places) <= (MOST_TICKS if width > 240 else 6) else {}
    if chart.log_x and chart.percent_x and len(places) > FEW_SHARES:  # middles of bands are no round numbers
        ticks = {"values": [tick for tick in SHARES if places[0] <= tick <= places[-1]]}
    form = ".3~p" if chart.percent_x else "~s" if places[-1] >= 10_000 else ",.4~r"
    x = alt.X(
        "x:Q",
        title=chart.x,
        axis=alt.Axis(format=form, grid=False, **ticks),
        scale=_scale(alt, chart.log_x, places),
    )
    tall = [point.y + point.deviation for point in points]
    deep = [max(point.y - point.deviation, point.y / 10) for point in points]
    shape: dict[str, Any] = {"format": ",.3~p" if chart.percent else ",.3~r"}
    if chart.log_y:
        shape["values"] = _steps(min(deep), max(tall))
    y = alt.Y(
        "y:Q",
        title=chart.y,
        axis=alt.Axis(**shape),
        scale=_scale(alt, chart.log_y, [*deep, *tall], zero=chart.from_zero),
    )
    return x, y


def _scale(alt: Any, log: bool, numbers: Sequence[float], *, zero: bool = False) -> Any:
    if log:
        ends = [min(numbers) / 1.15, max(numbers) * 1.15]
        return alt.Scale(type="log", nice=False, domain=ends)
    if zero:
        return alt.Scale(zero=True)
    return alt.Scale(zero=False, nice=False, padding=14)


def _steps(low: float, high: float) -> list[float]:
    """Ticks of a logarithmic axis: 1, 2, 5 over few decades, powers of ten over many.

    >>> _steps(0.04, 0.6)
    [0.05, 0.1, 0.2, 0.5]
    """
    if high / low > 3000:
        return _powers(low, high, 8)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    ticks = [round(step * 10.0**power, 10) for power in range(first, last + 1) for step in (1, 2, 5)]
    return [tick for tick in ticks if low / 1.15 <= tick <= high * 1.15]


def _powers(low: float, high: float, most: int) -> list[float]:
    powers = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    step = math.ceil(max(len(powers), 1) / most)
    return [10.0**power for power in powers if power % step == 0]


def _look(alt: Any, chart: Chart) -> dict[str, Any]:
    """Colour and dashes by name, so that lines can be told apart without colours; independence is dotted ink."""
    names = chart.names
    rest = [name for name in names if name != INDEPENDENCE]
    place = {name: number for number, name in enumerate(rest)}
    colours = [PALETTE["ink"] if name == INDEPENDENCE else PALETTE[SERIES[place[name] % len(SERIES)]] for name in names]
    dashes = [DOTTED if name == INDEPENDENCE else FIGURE_DASHES[place[name] % len(FIGURE_DASHES)] for name in names]
    legend = alt.Legend(title=None, columns=1) if len(names) > 1 else None
    return {
        "color": alt.Color("line:N", legend=legend, scale=alt.Scale(domain=list(names), range=colours)),
        "strokeDash": alt.StrokeDash("line:N", legend=legend, scale=alt.Scale(domain=list(names), range=dashes)),
    }
