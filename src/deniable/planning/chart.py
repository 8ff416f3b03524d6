"""A chart as plain data: what is measured, not how it is drawn (report.figures draws it)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deniable.planning.accuracy import Spread

INDEPENDENCE = "independence"  # the line to beat has this name in every chart, and its own look


@dataclass(frozen=True)
class Point:
    """A measured number at x; ``deviation`` is that over draws, 0 where nothing was drawn."""

    x: float
    y: float
    deviation: float = 0.0


@dataclass(frozen=True)
class Series:
    """A line of points.

    Attributes:
        paper: the paper's own figures at the same places, where it prints them.
        panel: charts with several panels show each series in its own; the same name in two panels looks the same.
    """

    name: str
    points: tuple[Point, ...]
    paper: tuple[Point, ...] = ()
    panel: str = ""


@dataclass(frozen=True)
class Chart:
    """A chart: lines over x, or a cloud of points around the diagonal.

    Attributes:
        percent: whether y is a share, to be shown in per cent.
        percent_x: the same of x.
        from_zero: whether a linear y begins at 0.
        cloud: points (true, estimated) instead of lines; the diagonal is where estimates are right.
    """

    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    log_x: bool = False
    log_y: bool = False
    percent: bool = False
    percent_x: bool = False
    from_zero: bool = True
    cloud: bool = False

    @property
    def panels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(series.panel for series in self.series))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(series.name for series in self.series))

    @property
    def described(self) -> str:
        """The chart in a sentence, for those who cannot see it."""
        lines = "; ".join(self.names)
        panels = f" Panels: {'; '.join(self.panels)}." if len(self.panels) > 1 else ""
        paper = " Crosses: the paper's figures." if any(series.paper for series in self.series) else ""
        kind = "A cloud of points" if self.cloud else "Lines"
        return f"{self.title}. {kind} of {self.y} against {self.x}: {lines}.{panels}{paper}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it; numbers that do not exist are left out."""
        return {
            "title": self.title,
            "x": self.x,
            "y": self.y,
            "log_x": self.log_x,
            "log_y": self.log_y,
            "percent": self.percent,
            "kind": "cloud" if self.cloud else "lines",
            "series": [
                {
                    "name": series.name,
                    "panel": series.panel,
                    "points": [_plain(point) for point in series.points],
                    "paper": [[point.x, point.y] for point in series.paper],
                }
                for series in self.series
            ],
        }


def line(
    name: str,
    numbers: Mapping[float, Spread | float],
    *,
    paper: Mapping[float, float] | None = None,
    panel: str = "",
) -> Series:
    """A series from x -> number or spread; what is not a number is left out.

    >>> line("a", {1: 2.0, 2: float("nan")}).points
    (Point(x=1, y=2.0, deviation=0.0),)
    """
    points = tuple(
        Point(x, number.mean, number.deviation) if isinstance(number, Spread) else Point(x, float(number))
        for x, number in numbers.items()
    )
    kept = tuple(point for point in points if math.isfinite(point.y))
    return Series(name, kept, tuple(Point(x, y) for x, y in (paper or {}).items()), panel)


def lines(
    names: Sequence[str],
    rows: Mapping[Any, Sequence[Spread | float]],
    *,
    papers: Mapping[Any, Sequence[float]] | None = None,
    panel: str = "",
) -> tuple[Series, ...]:
    """A series for each name, from x -> their numbers in the order of the names; of the first also the paper's."""
    return tuple(
        line(
            name,
            {x: numbers[place] for x, numbers in rows.items()},
            paper={x: printed[place] for x, printed in (papers or {}).items() if place < len(printed)},
            panel=panel,
        )
        for place, name in enumerate(names)
    )


def level(name: str, y: float | Spread, xs: Iterable[float], *, panel: str = "") -> Series:
    """A number that does not depend on x, as a line from the first x to the last."""
    ends = sorted(xs)
    return line(name, {ends[0]: y, ends[-1]: y}, panel=panel)


def cloud(name: str, pairs: Sequence[tuple[float, float]], *, panel: str = "") -> Series:
    """Points (true, estimated)."""
    return Series(name, tuple(Point(true, estimated) for true, estimated in pairs), (), panel)


def _plain(point: Point) -> list[float]:
    return [point.x, point.y, point.deviation] if point.deviation else [point.x, point.y]
