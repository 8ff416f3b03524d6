"""What the desk knows: the table, the project file in which everything decided is kept, what was computed from them.

Nothing else is ever written before something is published: a desk that is killed loses the page that was open, and no
more. The project file holds names of columns, roles, recodings and the requirement, and no values of rows; the key of
the release is in memory until it is published.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import threading
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.core.errors import DeniableError, OptionError
from deniable.core.histogram import Histogram
from deniable.core.privacy import EPSILON_LIMIT, Privacy
from deniable.desk.figures import Figures, public_of
from deniable.desk.work import Bench, Work
from deniable.owner.project import Project
from deniable.planning.candidates import Candidate
from deniable.planning.comparison import Comparison
from deniable.planning.outlook import Outlook, limit_for
from deniable.planning.planner import compare
from deniable.release.folder import TABLES
from deniable.tables import engine_named
from deniable.tables.base import Dataset, Progress

STEPS = ("table", "columns", "coarsen", "promise", "compare", "look", "publish")
PROJECT = "deniable.toml"
SHARES = (0.1, 0.01, 0.001)  # of the rows, whose counts are said to be off by so much
PATIENCE = 1.2  # seconds that a page waits for work before it shows its progress
MOST_FILES = 200
FEW_CODES = 2**16  # of values or combinations, that are counted each in a place of its own
PREVIEW = 10


class StaleError(Exception):
    """The page is older than a change in another tab."""


class Form:
    """What a page sent."""

    def __init__(self, fields: Mapping[str, Sequence[str]]) -> None:
        self.fields = fields

    def get(self, name: str, usual: str = "") -> str:
        """One value, without spaces around it."""
        return self.fields.get(name, [usual])[-1].strip()

    def all(self, name: str) -> list[str]:
        """Every value."""
        return list(self.fields.get(name, ()))

    def has(self, name: str) -> bool:
        """Whether it was sent at all, as boxes that are not ticked are not."""
        return name in self.fields


@dataclass(frozen=True)
class Compared:
    """The mechanisms side by side, and what is taken where none is named.

    Attributes:
        comparison: of all that meet the requirement.
        outlook: by which ``publish`` decides whether to learn, before it looks at any sensitive value.
    """

    comparison: Comparison
    outlook: Outlook

    @property
    def auto(self) -> Candidate:
        """What ``publish`` takes where no mechanism is named, as far as that is known before it is done."""
        usable = self.comparison.usable
        learned = [one.plan is not None and one.plan.parts[0].learned is not None for one in usable]
        fitting = [one for one, learns in zip(usable, learned, strict=True) if learns == self.outlook.learns]
        return (fitting or usable)[0]

    @property
    def reason(self) -> str:
        """Why, in two sentences."""
        return f"{self.outlook.in_words}." if self.outlook.learns else self.comparison.reason

    def chosen(self, mechanism: str) -> Candidate:
        """The mechanism that a project names, or what is taken where it names none."""
        named = [one for one in self.comparison.candidates if one.guarantee is not None and option_of(one) == mechanism]
        return named[0] if named else self.auto


def option_of(one: Candidate) -> str:
    """A mechanism as ``--mechanism`` names it."""
    floor = None if one.plan is None else one.plan.options.get("epsilon")
    return one.name if floor is None else f"{one.name}:epsilon={floor}"


@dataclass
class Published:
    """What was published by this desk.

    Attributes:
        folder: the release.
        rows: that were published.
        sentence: what it promises.
        verified: what its check said, and whether it holds.
        files: that were written, with what each is for.
        command, python: what makes the same release again.
    """

    folder: Path
    rows: int
    sentence: str
    verified: tuple[bool, str]
    files: list[tuple[str, str]]
    command: str
    python: str


@dataclass
class Desk:
    """The state of one owner's work.

    Attributes:
        home: the folder that tables are looked for in, and that files are written to.
        file: of the project.
        table: the path of the table, as it was given.
        dataset, figures: the table, open; its figures, once they were read.
        project: what was decided so far.
        proposed: the project as it was before anything was decided here.
        known: whether the project file was there when the table was opened.
        revision: counts changes, so that a page that is older than another tab's change is seen.
        reached: the furthest step that was taken.
        language: that was chosen; empty: as the browser prefers.
        key: of the release that is looked at and published.
        key_file: that it was written to; None before something was published.
        published: what was published, where something was.
        said: what a search found, to be said once.
        notice: columns that the last step left out by itself, to be said once.
        kept: figures of pages that are looked at again and again.
    """

    home: Path
    file: Path | None = None
    table: str = ""
    dataset: Dataset | None = None
    figures: Figures | None = None
    project: Project | None = None
    known: bool = False
    revision: int = 0
    reached: int = 0
    language: str = ""
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    key_file: Path | None = None
    published: Published | None = None
    notice: list[str] | None = None
    said: str = ""
    kept: dict[Hashable, Any] = field(default_factory=dict)
    bench: Bench = field(default_factory=Bench)
    lock: threading.RLock = field(default_factory=threading.RLock)

    # -- The table -----------------------------------------------------------------------------------------------------

    def open(self, table: str) -> None:
        """Begin with a table; the project file beside it is taken up where it fits the table."""
        dataset = engine_named("local").open(table)
        for name in ("read", "changes", "alone", "compare", "look", "publish"):
            self.bench.forget(name)
        self.table, self.dataset, self.figures, self.project = table, dataset, None, None
        self.published, self.reached = None, 0
        self.key, self.key_file = secrets.token_bytes(32), None
        self.kept.clear()
        place = self.file or self._own_file(table)
        self.known = place.exists()
        if self.known:
            self.project = Project.read(place)
        self.file = place
        self.revision += 1
        self.read()

    def _own_file(self, table: str) -> Path:
        """The project file beside a table; one that is about another table stays as it is."""
        path = Path(table)
        folder = path.parent if path.parent.is_dir() else self.home
        usual = folder / PROJECT
        if not usual.exists():
            return usual
        try:
            known = {one.column for one in Project.read(usual).columns}
        except DeniableError:
            known = set()
        names = set(engine_named("local").open(table).names)
        stem = path.name.partition(".")[0] or "table"
        return usual if 2 * len(known & names) >= len(names | known) else folder / f"{stem}.{PROJECT}"

    def tables(self) -> list[str]:
        """Files of the home folder that look like tables, to choose from."""
        names = sorted(
            entry.name
            for entry in os.scandir(self.home)
            if entry.is_file() and Path(entry.name).suffix.lower() in TABLES and not entry.name.startswith(".")
        )
        return [os.path.relpath(self.home / name) for name in names[:MOST_FILES]]

    def preview(self) -> pa.Table:
        """The first rows."""
        assert self.dataset is not None
        names = [name for name in self.dataset.names if name]
        for batch in self.dataset.batches(names, 1024):
            return pa.Table.from_batches([batch.slice(0, PREVIEW)])
        return pa.table({name: [] for name in names})

    def read(self) -> Work:
        """Read the table's columns, as far as they are needed; propose roles where there are none."""
        dataset, project = self.dataset, self.project
        assert dataset is not None
        wanted = () if project is None else (*public_of(project), *project.sensitive)

        def run(progress: Progress) -> Figures:
            figures = self.figures or Figures.begun(dataset, progress)
            made = self.project
            if made is None:
                progress(0, None, "roles")
                made = Project(figures.sample.roles(), {"rho2": "1/3"})
            elif not self.is_fitting:
                made = made.completed(figures.sample.rows)
            names = [one.column for one in made.columns if one.role in ("public", "sensitive")]
            figures.read(dataset, [name for name in names if name in dataset.names], progress)
            if self.dataset is dataset:  # without the lock: a page may hold it while it waits for this
                self.figures = figures
                if self.project is None or not self.is_fitting:
                    self.project = made
            return figures

        return self.bench.start("read", (self.table, self.is_fitting, *sorted(wanted)), run)

    @property
    def is_fitting(self) -> bool:
        """Whether every column of the table has a role."""
        if self.project is None or self.dataset is None:
            return False
        known = {one.column for one in self.project.columns}
        return all(name in known for name in self.dataset.names)

    @property
    def is_read(self) -> bool:
        """Whether roles are known, and all that is to be published was read."""
        if self.figures is None or self.project is None or not self.is_fitting or self.dataset is None:
            return False
        names = [*public_of(self.project), *self.project.sensitive]
        return self.figures.has([name for name in names if name in self.dataset.names])

    # -- What was decided ----------------------------------------------------------------------------------------------

    @property
    def first_open(self) -> str:
        """The step to begin with."""
        return STEPS[self.reached if self.dataset is not None else 0]

    def decide(self, project: Project) -> None:
        """Take a decision, and write it down."""
        with self.lock:
            if project != self.project or self.file is None or not self.file.exists():
                if self.project is None or digest(project) != digest(self.project):  # what was published is another one
                    self.published = None
                    self.bench.forget("publish")
                self.project = project
                self.save()
                self.revision += 1

    def save(self) -> None:
        """Write the project file; without columns that the table has not."""
        assert self.project is not None
        assert self.file is not None
        self.project.write(self.file)

    @property
    def fitting(self) -> Project:
        """The project for this table."""
        assert self.project is not None
        assert self.dataset is not None
        return self.project.fitting(self.dataset.names)

    def privacy(self, project: Project) -> Privacy:
        """The requirement; refused where there is none."""
        privacy = project.privacy
        if privacy is None:
            raise OptionError("Nothing is required yet. Fix: the step 'promise'.")
        return privacy

    # -- What is computed ----------------------------------------------------------------------------------------------

    def histogram(self, project: Project) -> Histogram:
        """How many rows have each sensitive value, as it is published; of several columns each combination."""
        assert self.figures is not None
        own = [(one.column, one.recode) for one in project.columns if one.role == "sensitive"]
        key = (self.table, "histogram", tuple(own), project.rare)
        if key not in self.kept:
            self.kept[key] = self._counted(project)
        counts: Histogram = self.kept[key]
        return counts

    def _counted(self, project: Project) -> Histogram:
        assert self.figures is not None
        made = [self.figures.coarse_codes(project, name) for name in project.sensitive]
        values: list[list[Hashable]] = [[*encoded.values.to_pylist(), None] for encoded, _ in made]
        codes = made[0][1].astype("int64")
        for encoded, more in made[1:]:
            codes = codes * (len(encoded.values) + 1) + more
        counts: dict[Hashable, int] = {}
        if math.prod(map(len, values)) <= max(len(codes), FEW_CODES):  # no sort of all rows
            rows = np.bincount(codes)
            known = np.flatnonzero(rows)
            rows = rows[known]
        else:
            known, rows = np.unique(codes, return_counts=True)
        for code, number in zip(known.tolist(), rows.tolist(), strict=True):
            places = []
            for own in reversed(values):
                code, place = divmod(code, len(own))
                places.append(own[place])
            value = tuple(reversed(places)) if len(places) > 1 else places[0]
            counts[value] = number
        return Histogram.of(counts)

    def compared(self, project: Project) -> Work:
        """The mechanisms side by side, for this requirement."""
        key = (self.table, digest(project, "compare"))

        def run(progress: Progress) -> Any:
            progress(0, None, "counting")
            counts = self.histogram(project)
            privacy = self.privacy(project)
            limit, columns = limit_for(privacy, EPSILON_LIMIT), len(self.varying(project))
            side_by_side = compare(
                counts,
                privacy,
                selectivities=SHARES,
                limit=limit,
                columns=columns,
                declared=False,
                progress=progress,
            )
            outlook = Outlook(counts.rows, columns, privacy, limit, False, len(project.sensitive))
            return Compared(side_by_side, outlook)

        return self.soon(self.bench.start("compare", key, run))

    def varying(self, project: Project) -> list[str]:
        """Public columns that were read and have more than one value."""
        assert self.figures is not None
        known = self.figures.columns
        return [name for name in public_of(project) if name in known and len(known[name].values) > 1]

    def soon(self, work: Work) -> Work:
        """Work that is likely done in a moment: wait for it a little."""
        self.bench.wait(work, PATIENCE)
        return work


def digest(project: Project, *more: object) -> str:
    """What a result depends on: everything decided but what became of it."""
    plain = replace(project, decisions=(), approvals=(), published=())
    return hashlib.sha256(json.dumps([plain.to_toml(), *map(str, more)]).encode()).hexdigest()
