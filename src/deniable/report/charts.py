"""Charts: data -> specification -> SVG. No browser and no network; needs the extra ``report``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deniable.core.errors import extra_missing

WIDTH, HEIGHT = 560, 320


def _altair() -> Any:
    try:
        import altair
        import vl_convert  # noqa: F401  (altair calls it to draw SVG)
    except ImportError as missing:
        raise extra_missing(missing.name or "altair", "report") from None
    return altair


def to_svg(chart: Any) -> str:
    """A chart as SVG text that stands on its own."""
    import io

    text = io.StringIO()
    chart.save(text, format="svg")
    return text.getvalue()


def error_against_rho2(rows: Sequence[dict[str, Any]], selectivity: float) -> Any:
    """Predicted error against how sure an attacker may become, one line per mechanism."""
    alt = _altair()
    return (
        alt.Chart(alt.Data(values=list(rows)), width=WIDTH, height=HEIGHT, title="What accuracy costs in certainty")
        .mark_line(point=True)
        .encode(
            x=alt.X("rho2:Q", title="rho2: how sure an attacker may become", scale=alt.Scale(type="log")),
            y=alt.Y(
                "error:Q",
                title=f"predicted relative error of counts of {100 * selectivity:g} % of the rows",
                scale=alt.Scale(type="log"),
            ),
            color=alt.Color("mechanism:N", title="mechanism"),
            strokeDash=alt.StrokeDash("mechanism:N", title="mechanism"),
        )
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
