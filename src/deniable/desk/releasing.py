"""The last step of the desk: publish the release that was looked at, with everything that its owner keeps, and say what
makes the same release again. And the next time: what changed since then.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from deniable import report
from deniable.analyst.evidence import from_release
from deniable.core.about import FIELDS, About
from deniable.core.errors import DeniableError, OptionError, OutputError
from deniable.desk.desk import Desk, Form, Published
from deniable.desk.figures import public_of, texts_of
from deniable.desk.looking import decided_on, looking, shown_decision
from deniable.desk.texts import Words
from deniable.desk.work import shown_work
from deniable.mechanisms import mechanism_named
from deniable.mechanisms.registry import AUTO
from deniable.owner.audit import audit
from deniable.owner.decision import MUST_NOT, Decision
from deniable.owner.project import Project
from deniable.owner.report import Origin, record_section
from deniable.owner.statement import statement
from deniable.publishing.publish import publish
from deniable.publishing.request import files_of
from deniable.publishing.series import Series
from deniable.release.folder import MANIFEST, write_file
from deniable.release.release import Release, open_release
from deniable.release.sign import new_signing_key
from deniable.release.verify import verify
from deniable.report.page import to_html
from deniable.tables.base import Progress
from deniable.tables.encoding import is_number

SERIES = "series.json"
MOST_FOLDERS, MOST_VALUES = 500, 500  # beside the project file; of a column, that are compared
PIECE_ROWS = 2**17  # of a release, that are read at once


# -- Publish -----------------------------------------------------------------------------------------------------------


def _beside(desk: Desk, name: str) -> Path:
    """A file beside the project file."""
    assert desk.file is not None
    return desk.file.parent / name


def _free(path: Path) -> Path:
    """A name that no file has yet."""
    number, made = 2, path
    while made.exists():
        made = path.with_name(f"{path.stem}-{number}{path.suffix}")
        number += 1
    return made


def places_of(desk: Desk, out: Path) -> dict[str, Path]:
    """Where what the owner keeps is written, by the name of the release's folder."""
    stem = out.name or "release"
    return {
        "key": desk.key_file or _free(_beside(desk, f"{stem}.key")),
        "record": _beside(desk, f"{stem}-record.html"),
        "series": _beside(desk, SERIES),
        "signing": _beside(desk, "signing-key"),
    }


def show_publish(desk: Desk, words: Words, project: Project | None, form: Form | None) -> dict[str, Any]:
    """Where to, from whom, signed by what; then what was written, and what makes it again."""
    assert project is not None
    work = desk.bench.get("publish")
    usual_out = _beside(desk, "release")
    given: dict[str, Any] = {
        "out": form.get("out") if form is not None else _shown(_free(usual_out) if project.published else usual_out),
        "publisher": "" if form is None else form.get("publisher"),
        "contact": "" if form is None else form.get("contact"),
        "sign": "own" if form is None else form.get("sign", "own"),
        "sign_file": "" if form is None else form.get("sign_file"),
        "series": form is not None and form.has("series"),
        "overwrite": form is not None and form.has("overwrite"),
        "again": form is not None and form.has("again"),
        "approved_by": "" if form is None else form.get("approved_by"),
        "despite": "" if form is None else form.get("despite"),
    }
    places = places_of(desk, Path(given["out"] or "release"))
    done = None
    if desk.published is not None:
        made = desk.published
        done = {
            "folder": _shown(made.folder),
            "rows": words.count(made.rows),
            "sentence": made.sentence,
            "holds": made.verified[0],
            "verified": made.verified[1].splitlines(),
            "files": [(path, words(f"publish.file_{what}")) for path, what in made.files],
            "command": made.command,
            "python": made.python,
        }
    look = desk.bench.get("look")
    decision = None if look is None or look.state != "done" else decided_on(look.result.decision, project)
    return {
        "computing": None if done else shown_work(words, work),
        "done": done,
        "given": given,
        "dictionary": [
            (one.column, place, "" if form is None else form.get(f"means.{place}"))
            for place, one in enumerate(project.columns)
            if one.role in ("public", "sensitive")
        ],
        "has_signing_key": places["signing"].exists(),
        "signing_key": _shown(places["signing"]),
        "key_file": _shown(places["key"]),
        "record_file": _shown(places["record"]),
        "series_file": _shown(places["series"]),
        "project_file": _shown(desk.file or Path()),
        "series": series_of(project),
        "learns": project.mechanism != AUTO and mechanism_named(project.mechanism).learns,
        "verdict": None if decision is None else shown_decision(words, decision),
    }


def series_of(project: Project) -> bool:
    """Whether it can be published again and again: by a named mechanism that learns, or where rows or people have a
    name."""
    named = any(one.role in ("person", "row_id") for one in project.columns)
    return project.mechanism != AUTO and (named or mechanism_named(project.mechanism).learns)


def _shown(path: Path) -> str:
    """A path as one types it here."""
    with contextlib.suppress(ValueError):
        return str(path.relative_to(Path.cwd()))
    return str(path)


@dataclass(frozen=True)
class Order:
    """What is to be published, and how; everything that the command needs, too."""

    table: str
    project_file: Path
    out: Path
    key_file: Path | None
    series: Path | None
    publications: int | None
    sign: Path | None
    publisher: str
    contact: str
    columns: Mapping[str, str]
    dictionary: Path | None
    overwrite: bool
    again: bool
    despite: str

    @property
    def about(self) -> About | None:
        made = About(self.publisher or None, self.contact or None, columns=self.columns)
        return made if self.publisher or self.contact or self.columns else None

    def command(self) -> str:
        """The command that makes the same release."""
        words = ["deniable", "publish", self.table, "--project", _shown(self.project_file), "--out", _shown(self.out)]
        words += ["--key-file", _shown(self.key_file)] if self.key_file is not None else []
        words += ["--series", _shown(self.series)] if self.series is not None else []
        words += [] if self.publications is None else ["--publications", str(self.publications)]
        words += ["--sign", _shown(self.sign)] if self.sign is not None else []
        words += ["--publisher", self.publisher] if self.publisher else []
        words += ["--contact", self.contact] if self.contact else []
        words += ["--dictionary", _shown(self.dictionary)] if self.dictionary is not None else []
        words += ["--despite", self.despite] if self.despite else []
        words += ["--again"] if self.again else []
        return shlex.join([*words, "--overwrite"])

    def python(self) -> str:
        """The same in Python."""
        named = {"key_file": self.key_file, "series": self.series, "sign": self.sign}
        lines = [f"    {name}={_shown(path)!r}," for name, path in named.items() if path is not None]
        lines += [] if self.publications is None else [f"    publications={self.publications},"]
        about = [f"publisher={self.publisher!r}"] if self.publisher else []
        about += [f"contact={self.contact!r}"] if self.contact else []
        about += [f"columns=dn.dictionary({_shown(self.dictionary)!r})"] if self.dictionary is not None else []
        lines += [f"    about=dn.About({', '.join(about)}),"] if about else []
        lines += ["    again=True,"] if self.again else []
        return "\n".join(
            [
                "import deniable as dn",
                "",
                f"project = dn.Project.read({_shown(self.project_file)!r})",
                "dn.publish(",
                f"    {self.table!r},",
                "    **project.arguments(),",
                f"    out={_shown(self.out)!r},",
                *lines,
                "    overwrite=True,",
                ")",
            ]
        )


def _publications(form: Form, project: Project) -> int | None:
    """How many publications share the budget of a series; None where its rows are drawn one by one."""
    given = form.get("publications", "12")
    if not mechanism_named(project.mechanism).learns:
        return None
    return int(given) if given.isdecimal() else 12


def act_on_publish(desk: Desk, form: Form, go: str) -> str:
    """Begin to publish what the form says."""
    if go != "publish":
        return ""
    words, project = Words(desk.language), desk.fitting
    look = looking(desk, project)
    if look.state != "done":
        raise OptionError(words("publish.not_looked"))
    decision = decided_on(look.result.decision, project)
    despite = form.get("despite")
    if decision.verdict == MUST_NOT and not despite:
        raise OptionError(f"{decision.headline} {words('publish.no_despite')}")
    if not form.get("out"):
        raise OptionError(words("publish.no_folder"))
    out = Path(form.get("out"))
    places = places_of(desk, out)
    sign: Path | None = places["signing"]
    if form.get("sign") == "file":
        if not form.get("sign_file"):
            raise OptionError(words("publish.no_key"))
        sign = Path(form.get("sign_file"))
    elif form.get("sign") == "no":
        sign = None
    columns = {
        one.column: form.get(f"means.{place}")
        for place, one in enumerate(project.columns)
        if form.get(f"means.{place}") and one.role in ("public", "sensitive")
    }
    series = places["series"] if form.has("series") else None
    assert desk.file is not None
    order = Order(
        table=desk.table,
        project_file=desk.file,
        out=out,
        key_file=None if series is not None else places["key"],
        series=series,
        publications=_publications(form, project) if series is not None else None,
        sign=sign,
        publisher=form.get("publisher"),
        contact=form.get("contact"),
        columns=columns,
        dictionary=_beside(desk, f"{out.name}-columns.csv") if columns else None,
        overwrite=form.has("overwrite"),
        again=form.has("again"),
        despite=despite,
    )
    approved_by = form.get("approved_by")
    work = desk.bench.start(
        "publish", desk.revision, lambda progress: published(desk, project, order, decision, approved_by, progress)
    )
    if desk.soon(work).state == "failed":
        problem = work.problem
        desk.bench.forget("publish")
        raise OutputError(problem)
    return "publish"


def published(
    desk: Desk, project: Project, order: Order, decision: Decision, approved_by: str, progress: Progress
) -> Published:
    """Write the release and what its owner keeps; where that fails or is stopped, nothing of it stays."""
    made: list[Path] = []
    try:
        files = _keys_made(desk, order, made)
        release = publish(
            order.table,
            **project.arguments(),
            out=order.out,
            overwrite=order.overwrite,
            key_file=order.key_file,
            series=order.series,
            publications=order.publications,
            sign=order.sign,
            about=order.about,
            again=order.again,
            progress=progress,
        )
    except BaseException:
        for path in made:
            path.unlink(missing_ok=True)
        raise
    progress(0, None, "recording")  # the last time that it can be stopped: the release is there now
    checked = verify(order.out)
    manifest = hashlib.sha256((order.out / MANIFEST).read_bytes()).hexdigest()
    after = project.recorded(decision.verdict, release=manifest, despite=order.despite)
    after = after.approved(approved_by, release=manifest) if approved_by else after
    record = _record(desk, after, release, order)
    with desk.lock:
        desk.decide(after)
        desk.key_file = order.key_file
        desk.published = Published(
            folder=order.out,
            rows=release.manifest.rows,
            sentence=release.manifest.guarantee["sentence"],
            verified=(True, str(checked)),
            files=[
                (_shown(order.out), "release"),
                (_shown(record), "record"),
                *files,
                (_shown(order.project_file), "project"),
            ],
            command=order.command(),
            python=order.python(),
        )
    return desk.published


def _keys_made(desk: Desk, order: Order, made: list[Path]) -> list[tuple[str, str]]:
    """Write the key of the release, a new signing key and the data dictionary, where they are wanted."""
    files = []
    if order.key_file is not None and order.key_file != desk.key_file:
        made.append(order.key_file)
        write_file(order.key_file, f"{desk.key.hex()}\n", private=True)
    if order.key_file is not None:
        files.append((_shown(order.key_file), "key"))
    if order.series is not None:
        files.append((_shown(order.series), "series"))
    if order.sign is not None and not order.sign.exists() and order.sign == places_of(desk, order.out)["signing"]:
        public = new_signing_key(order.sign)
        made += [order.sign, public]
        files += [(_shown(order.sign), "signing"), (_shown(public), "public")]
    if order.dictionary is not None:
        text = io.StringIO()
        csv.writer(text).writerows([FIELDS, *order.columns.items()])
        write_file(order.dictionary, text.getvalue(), table=True)
    return files


def _record(desk: Desk, project: Project, release: Release, order: Order) -> Path:
    """The page for the data protection officer, with the record of how it was published, readable by its owner
    alone."""
    audited = audit(order.table, release)
    page = statement(order.table, release.manifest, audited, project)
    origin = Origin.of(files_of(order.table), shlex.split(order.command()))
    place = places_of(desk, order.out)["record"]
    report.refuse_inside(place, order.out)
    sections = (*page.sections, record_section(from_release(release), origin))
    write_file(place, to_html(replace(page, sections=sections)), private=True)
    return place


def date_of(release: Release) -> str:
    """When a release was published, as it says itself."""
    about = release.manifest.about
    return "" if about is None or about.date is None else about.date


# -- The next time: what changed since the last publication ------------------------------------------------------------


def last_release(desk: Desk) -> Release | None:
    """The release that the project published last, where its folder stands beside the project file."""
    assert desk.file is not None
    project = Project.read(desk.file) if desk.file.exists() else None
    wanted = {one.release for one in project.published} if project is not None else set()
    folders = []
    for folder in sorted(desk.file.parent.iterdir())[:MOST_FOLDERS] if wanted else ():
        manifest = folder / MANIFEST
        if folder.is_dir() and manifest.is_file() and hashlib.sha256(manifest.read_bytes()).hexdigest() in wanted:
            folders.append((manifest.stat().st_mtime, folder))
    return open_release(max(folders)[1]) if folders else None


def since_last(desk: Desk, words: Words, progress: Progress) -> list[tuple[str, str]]:
    """What is different in this table: rows, values of public columns, people; as far as what was published tells."""
    assert desk.dataset is not None
    if desk.project is None or not desk.is_read or desk.figures is None:
        return []
    if desk.file not in desk.kept:
        desk.kept[desk.file] = last_release(desk)
    release: Release | None = desk.kept[desk.file]
    listed = []
    if release is not None:
        listed.append((words("table.published"), f"{release.manifest.name}, {date_of(release)}"))
        then_now = words(
            "table.then_now", before=words.count(release.manifest.rows), now=words.count(desk.figures.rows)
        )
        listed.append((words("table.rows_changed"), then_now))
        listed += _values_changed(desk, words, release, progress)
    return [*listed, *_people_changed(desk, words, progress)]


def _values_changed(desk: Desk, words: Words, release: Release, progress: Progress) -> list[tuple[str, str]]:
    """Values of columns of categories that are new, or gone."""
    assert desk.project is not None
    assert desk.figures is not None
    now: dict[str, set[str]] = {}
    for name in public_of(desk.project):
        if name in release.manifest.public_columns and name in desk.figures.columns:
            made = desk.figures.coarse_of(desk.project, name)
            there = np.unique(made.codes)
            if not is_number(made.values.type) and len(there) <= MOST_VALUES:
                texts = texts_of(made.values)
                now[name] = {texts[place] for place in there if place < len(texts)}
    key = (desk.file, "values", *now)
    if key not in desk.kept:
        desk.kept[key] = _values_of(release, list(now), progress)
    changes = [
        (key, name, some)
        for name, before in desk.kept[key].items()
        if len(before) <= MOST_VALUES
        for key, some in (("new_values", now[name] - before), ("gone_values", before - now[name]))
    ]
    return [(words(f"table.{key}", column=name), words.listing(sorted(some))) for key, name, some in changes if some]


def _values_of(release: Release, names: Sequence[str], progress: Progress) -> dict[str, set[str]]:
    """Which values columns of a release have: public ones are read as they stand there, and nothing is estimated."""
    values: dict[str, set[str]] = {name: set() for name in names}
    rows = 0
    for batch in release.batches(names, PIECE_ROWS) if names else ():
        for name in names:
            values[name].update(text for text in texts_of(batch.column(name).unique().drop_null()))
        rows += batch.num_rows
        progress(rows, release.manifest.rows, "comparing")
    return values


def _people_changed(desk: Desk, words: Words, progress: Progress) -> list[tuple[str, str]]:
    """Who is known, new and gone, where the last publication was of a series."""
    assert desk.project is not None
    assert desk.dataset is not None
    place = _beside(desk, SERIES)
    who = next((one.column for one in desk.project.columns if one.role in ("person", "row_id")), "")
    if not place.exists() or who not in desk.dataset.names:
        return []
    try:
        now = Series.open(place, None, False).compared(desk.dataset, who, progress)
    except DeniableError:  # a series of learned releases knows a budget, and nobody
        return []
    said = words(
        "table.people_changed", known=words.count(now.kept), new=words.count(now.new), gone=words.count(now.gone)
    )
    return [(words("table.people"), said)]
