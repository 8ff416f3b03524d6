"""A reproduced table or figure: the paper's numbers, ours, and a verdict."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from deniable.core.errors import InternalError, OptionError
from deniable.planning.candidates import Chart
from deniable.planning.prediction import Spread
from reproduction.criteria import CRITERIA, Criterion

CENSUS = "census_occ100k.parquet"
ADULT = "adult.parquet"
VARIABLE = "DENIABLE_DATA"
FEW = 10  # draws: a verdict on fewer says so


@dataclass(frozen=True)
class Item:
    """One table or figure of a paper, side by side with ours.

    Attributes:
        name: where it stands in the paper.
        about: what is measured, on what.
        columns, rows: the two side by side.
        agrees: the verdict; None where the paper has nothing to compare with.
        why: in one or two sentences.
        chart: the same to look at, where a chart tells more than the table.
        draws: how many releases the figures are means of, where chance has a part in them.
        reading: of what the paper does not state, the one that agrees, where the one that is judged differs.
    """

    name: str
    about: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    agrees: bool | None
    why: str
    chart: Chart | None = None
    draws: int | None = None
    reading: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise InternalError(f"{self.name}: a row of {len(row)} cells under {len(self.columns)} columns")

    @property
    def slug(self) -> str:
        """The name as part of a file's name.

        >>> Item("SDR Figure 4 (THESIS Figure 19)", "", (), (), None, "").slug
        'sdr-figure-4-thesis-figure-19'
        """
        return "-".join(re.findall(r"[a-z0-9]+", self.name.lower()))

    @property
    def verdict(self) -> str:
        return "depends" if self.reading else {True: "agrees", False: "differs", None: "ours"}[self.agrees]

    @property
    def criterion(self) -> Criterion | None:
        """What it is judged by, settled beforehand."""
        return None if self.agrees is None else CRITERIA.get(self.name)

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "about": self.about,
            "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
            "verdict": self.verdict,
            "draws": self.draws,
            "reading": self.reading,
            "why": self.why,
            "chart": None if self.chart is None else self.chart.to_dict(),
        }

    def markdown(self, folder: str | None = None) -> str:
        """The item as part of a page; its chart stands in a folder beside the page, where there is one."""
        head = f"| {' | '.join(self.columns)} |\n|{'---|' * len(self.columns)}\n"
        body = "".join(f"| {' | '.join(row)} |\n" for row in self.rows)
        picture = ""
        if self.chart is not None and folder is not None:
            picture = f"![{_alternative(self.chart)}]({folder}/{self.slug}.svg)\n\n"
        tested = "" if self.criterion is None else f"{self.criterion.markdown()}\n\n"
        return f"### {self.name}\n\n{self.about}\n\n{picture}{head}{body}\n{tested}{self._judged()}\n"

    def _judged(self) -> str:
        few = ""
        if self.agrees is not None and self.draws is not None and self.draws < FEW:
            few = f" Of {self.draws} draws: others may turn it."
        other = f" It agrees where the paper is read as: {self.reading}." if self.reading else ""
        return f"**Verdict: {self.verdict}.**{few}{other} {self.why}"


@dataclass(frozen=True)
class Reproduction:
    """All that was repeated of one paper."""

    name: str
    title: str
    items: tuple[Item, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "title": self.title, "items": [item.to_dict() for item in self.items]}

    def markdown(self, folder: str | None = None) -> str:
        return f"## {self.title}\n\n" + "\n".join(item.markdown(folder) for item in self.items)


def _alternative(chart: Chart) -> str:
    return chart.described.replace("[", "(").replace("]", ")")


def data_folder(file: str, given: str | os.PathLike[str] | None = None) -> Path:
    """The folder with the real tables: given, or named by DENIABLE_DATA."""
    named = given if given is not None else os.environ.get(VARIABLE)
    if named is None:
        raise OptionError(
            f"This reproduction needs {file}, which is not part of deniable. "
            f"Fix: --data FOLDER, or set {VARIABLE} to the folder that holds it."
        )
    return Path(named)


def data_table(file: str, given: str | os.PathLike[str] | None = None) -> pa.Table:
    """A real table; refused with what to do where it is not there."""
    path = data_folder(file, given) / file
    if not path.exists():
        raise OptionError(f"{str(path)!r} does not exist. Fix: --data with the folder that holds {file}.")
    return pq.read_table(path)


def census_table(given: str | os.PathLike[str] | None = None) -> pa.Table:
    """CENSUS OCC-100k, the table of the SDR, THESIS and SPLU experiments."""
    return data_table(CENSUS, given)


def per_cent(number: float, digits: int = 1) -> str:
    return f"{100 * number:.{digits}f} %"


def with_spread(share: Spread, digits: int = 1) -> str:
    """A share in per cent with its standard deviation over draws."""
    return f"{100 * share.mean:.{digits}f} ± {100 * share.deviation:.{digits}f} %"


def slashed(numbers: Iterable[float], form: str = ".2f") -> str:
    """Errors at several selectivities as in mathematics 5.

    >>> slashed([0.241, 0.114])
    '0.24 / 0.11'
    """
    return " / ".join(f"{number:{form}}" for number in numbers)


def yes(held: bool) -> str:
    """What a claim of a paper came to."""
    return "so here" if held else "not here"


def near(ours: float, paper: float, share: float) -> bool:
    """Whether two numbers differ by at most a share of the paper's."""
    return abs(ours - paper) <= share * abs(paper)
