"""The steps of the desk: what each page shows, and what its form decides. A form decides a project and nothing else;
what it would decide is shown before it is saved, by the same function."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.core.errors import ColumnError, DeniableError, OptionError
from deniable.core.values import to_json
from deniable.desk import pictures
from deniable.desk.choosing import (
    act_on_promise,
    decide_compare,
    decide_promise,
    show_compare,
    show_promise,
    within_reach,
)
from deniable.desk.desk import STEPS, Desk, Form, StaleError, digest
from deniable.desk.figures import Alone, Bar, public_of
from deniable.desk.looking import act_on_look, show_look
from deniable.desk.releasing import act_on_publish, show_publish, since_last
from deniable.desk.texts import LANGUAGES, Words
from deniable.desk.work import Work, shown_work
from deniable.owner.project import TEMPLATES, Project
from deniable.owner.proposals import coarser
from deniable.owner.roles import ROLES
from deniable.tables.base import Progress
from deniable.tables.encoding import is_number, is_text, plain_type

CLASSES = (40, 20, 10, 5)  # of numbers, that bands are offered for
LONGEST_PREFIX = 8
SHOWN_COLUMNS = 60  # of a preview
Context = dict[str, Any]


# -- Every page --------------------------------------------------------------------------------------------------------


def page_of(desk: Desk, step: str, words: Words, form: Form | None, problem: str) -> Context:
    """Everything that the page of a step shows."""
    with desk.lock:
        project, sketch_problem = desk.project, ""
        if form is not None and project is not None:  # what the form would decide, without deciding it
            try:
                project = decided(desk, step, form)
            except DeniableError as refusal:
                sketch_problem = str(refusal)
        context: Context = {
            "t": words,
            "step": step,
            "steps": [_in_nav(desk, words, number, name, step) for number, name in enumerate(STEPS)],
            "number": STEPS.index(step) + 1,
            "languages": LANGUAGES,
            "revision": desk.revision,
            "problem": problem or sketch_problem,
            "notice": "" if desk.notice is None else words("columns.alike", names=words.listing(desk.notice)),
            "said": desk.said,
            "summary": summary(desk, words),
            "form": form,
            "work": None,
            "ready": True,
            "shown": True,
            "on_enter": "open" if step == "table" and desk.dataset is None else "stay" if step == "promise" else "next",
        }
        desk.notice, desk.said = None, ""
        context["previous"] = STEPS[STEPS.index(step) - 1] if step != STEPS[0] else ""
        if step != "table" and desk.dataset is not None and not desk.is_read:
            context["work"] = shown_work(words, desk.soon(desk.read()))
        if step != "table" and not desk.is_read:
            return {**context, "ready": False, "shown": False}
        if project is not None and not project.sensitive and STEPS.index(step) > 1:
            return {**context, "problem": words("columns.choose_one"), "ready": False, "shown": False}
        try:
            context |= SHOWN[step](desk, words, project, form)
        except DeniableError as refusal:
            context |= {"problem": context["problem"] or str(refusal), "ready": False, "shown": False}
        return context


def _in_nav(desk: Desk, words: Words, number: int, name: str, step: str) -> Context:
    open_ = number <= max(desk.reached, STEPS.index(step))
    return {"name": name, "title": words(f"{name}.short"), "open": open_, "current": name == step, "number": number + 1}


def summary(desk: Desk, words: Words) -> list[tuple[str, str, str]]:
    """What was decided so far: (step, what, words)."""
    if desk.dataset is None:
        return []
    rows = desk.dataset.rows if desk.figures is None else desk.figures.rows
    name = Path(desk.table).name
    listed = [
        ("table", words("table.short"), name if rows is None else f"{name}, {words('page.rows', n=words.count(rows))}")
    ]
    project = desk.project
    if project is None or desk.reached < 1:
        return listed
    sensitive = words.listing(project.sensitive) or words("columns.none")
    public = public_of(project)
    listed.append(("columns", words("columns.short"), words("columns.so_far", sensitive=sensitive, public=len(public))))
    if desk.reached > 2:
        coarser = [one.column for one in project.columns if one.recode and one.role == "public"]
        listed.append(("coarsen", words("coarsen.short"), words.listing(coarser) or words("coarsen.nothing")))
    if desk.reached > 3:
        listed.append(("promise", words("promise.short"), promise_in_words(words, project)))
    if desk.reached > 4:
        listed.append(("compare", words("compare.short"), mechanism_in_words(words, project)))
    if desk.published is not None:
        listed.append(("publish", words("publish.short"), str(desk.published.folder)))
    return listed


def promise_in_words(words: Words, project: Project) -> str:
    """The requirement, shortly."""
    required = project.requirement
    if required.get("epsilon"):
        return f"epsilon {required['epsilon']}"
    if required.get("rho2"):
        return words("promise.so_far", sure=words.percent(Fraction(str(required["rho2"]))))
    return words("promise.nothing")


def mechanism_in_words(words: Words, project: Project) -> str:
    """How rows are made, shortly."""
    return words("compare.auto") if project.mechanism == "auto" else project.mechanism


def taken(desk: Desk, step: str, form: Form) -> str:
    """Decide what a form says, and name the page that follows."""
    with desk.lock:
        if step == "table" and form.get("go") == "open":
            given = form.get("path") or form.get("file")
            if not given:
                raise OptionError(Words(desk.language)("table.choose_one"))
            desk.open(given)
            return "table"
        if form.get("revision") != str(desk.revision):
            raise StaleError
        place, go = STEPS.index(step), form.get("go", "next")
        if step != "table" and desk.is_read:
            decide = decided(desk, step, form)
            stay = _changed_by_columns(desk, decide, form) if step == "columns" else None
            before = {one.column: one.role for one in decide.columns}
            desk.decide(stay or decide)
            if stay is not None:
                desk.notice = [one.column for one in stay.columns if one.role != before[one.column]]
                return step
            if step == "columns" and desk.is_read and desk.project is not None:
                desk.decide(within_reach(desk, desk.project))
        if step in ACTED:
            following = ACTED[step](desk, form, go)
            if following:
                return following
        if go in STEPS:
            return go
        following = STEPS[max(place - 1, 0)] if go == "back" else STEPS[min(place + 1, len(STEPS) - 1)]
        if go not in ("back", "next"):
            return step
        desk.reached = max(desk.reached, STEPS.index(following))
        return following


def decided(desk: Desk, step: str, form: Form) -> Project:
    """The project with what a form says; refused where that is not allowed."""
    assert desk.project is not None
    return DECIDED[step](desk, desk.project, form) if step in DECIDED else desk.project


# -- 1. The table ------------------------------------------------------------------------------------------------------


def show_table(desk: Desk, words: Words, project: Project | None, form: Form | None) -> Context:
    """Which files there are; or the table's size, types and first rows, and what changed since the project was made."""
    if desk.dataset is None:
        given = "" if form is None else form.get("path")
        return {"files": desk.tables(), "given": given, "open": False}
    work = None if desk.is_read else shown_work(words, desk.soon(desk.read()))
    changes = changed(desk, words) if desk.known and desk.is_read else None
    dataset, rows = desk.dataset, desk.preview()
    names = [name for name in dataset.names if name][:SHOWN_COLUMNS]
    size = Path(desk.table).stat().st_size if Path(desk.table).is_file() else 0
    known = dataset.rows if desk.figures is None else desk.figures.rows
    facts = [
        (words("table.rows"), words("table.counting") if known is None else words.count(known)),
        (words("table.columns"), words.count(len(dataset.names))),
        (words("table.size"), words("table.mb", n=words.plain(size / 2**20)) if size else "–"),
        (words("table.project"), str(desk.file)),
    ]
    preview = [[_cell(value) for value in row.values()] for row in rows.select(names).to_pylist()]
    return {
        "open": True,
        "facts": facts,
        "names": [(name, str(plain_type(dataset.schema.field(name).type))) for name in names],
        "preview": preview,
        "hidden": len(dataset.names) - len(names),
        "work": work or (None if changes is None else shown_work(words, changes)),
        "changes": None if changes is None else changes.result,
        "files": desk.tables(),
        "given": desk.table,
        "ready": work is None,
    }


def _cell(value: object) -> str:
    if value is None:
        return "–"
    text = str(value if isinstance(value, str) else to_json(value) if isinstance(value, Hashable) else value)
    return text if len(text) <= 40 else f"{text[:39]}…"


def changed(desk: Desk, words: Words) -> Work:
    """The work that finds what changed since the project was made."""
    key = (desk.revision, words.language)
    return desk.soon(desk.bench.start("changes", key, lambda progress: what_changed(desk, words, progress)))


def what_changed(desk: Desk, words: Words, progress: Progress) -> list[tuple[str, str]]:
    """A table beside the project that was made for an earlier one: columns, and values that were not there."""
    assert desk.dataset is not None
    assert desk.project is not None
    before = [one.column for one in Project.read(desk.file).columns] if desk.file is not None else []
    now = desk.dataset.names
    listed = [
        (words("table.new_columns"), words.listing([name for name in now if name not in before], 12)),
        (words("table.gone_columns"), words.listing([name for name in before if name not in now], 12)),
    ]
    return [*listed, *since_last(desk, words, progress)]


# -- 2. Columns --------------------------------------------------------------------------------------------------------


def show_columns(desk: Desk, words: Words, project: Project | None, form: Form | None) -> Context:
    """Each column with what it holds, what is proposed and why."""
    assert project is not None
    assert desk.figures is not None
    assert desk.dataset is not None
    sample = desk.figures.sample
    rows = []
    for place, one in enumerate(project.columns):
        if one.column not in desk.dataset.names:
            continue
        kind = plain_type(desk.dataset.schema.field(one.column).type)
        rows.append(
            {
                "place": place,
                "name": one.column,
                "kind": words(f"kind.{_key(one.kind)}") if words.has(f"kind.{_key(one.kind)}") else one.kind,
                "type": str(kind),
                "distinct": _distinct(desk, words, one.column),
                "role": form.get(f"role.{place}", one.role) if form is not None else one.role,
                "reason": one.reason,
            }
        )
    return {
        "rows": rows,
        "roles": [(role, words(f"role.{role}")) for role in ROLES],
        "templates": [(name, words(f"template.{name}")) for name in TEMPLATES],
        "template": project.template,
        "sampled": words.count(sample.rows.num_rows) if sample.rows.num_rows < desk.figures.rows else "",
    }


def _key(text: str) -> str:
    return text.replace(" ", "_").replace(",", "")


def _distinct(desk: Desk, words: Words, name: str) -> str:
    """How many different values a column has; of one that was not read whole, in the sample."""
    assert desk.figures is not None
    if name in desk.figures.columns:
        return words.count(len(desk.figures.columns[name].values))
    kind = desk.figures.sample.rows.schema.field(name).type
    if pa.types.is_nested(kind):
        return "–"
    return f"≥ {words.count(len(desk.figures.sample.encoded(name).values))}"


def decide_columns(desk: Desk, project: Project, form: Form) -> Project:
    """Roles as the form says; or proposals for a kind of table."""
    assert desk.figures is not None
    template = form.get("go").removeprefix("template:") if form.get("go").startswith("template:") else ""
    if template:
        made = Project.proposed(desk.figures.sample.rows, template=template)
        return replace(made, decisions=project.decisions, approvals=project.approvals, published=project.published)
    changed = []
    for place, one in enumerate(project.columns):
        role = form.get(f"role.{place}", one.role)
        changed.append(
            one
            if role == one.role
            else replace(one, role=role, recode=one.recode if role in ("public", "sensitive") else "")
        )
    made = replace(project, columns=tuple(changed))
    if form.get("go") in ("next", "preview", "") and not made.sensitive:
        raise ColumnError(Words(desk.language)("columns.choose_one"))
    return made


def _changed_by_columns(desk: Desk, project: Project, form: Form) -> Project | None:
    """The project once more where another sensitive column makes others leave: they hold its values in clear."""
    assert desk.project is not None
    assert desk.figures is not None
    if set(project.sensitive) <= set(desk.project.sensitive) or not project.sensitive:
        return None
    proposed = {one.column: one for one in desk.figures.sample.roles(project.sensitive)}
    alike = [
        one
        for one in project.columns
        if one.role == "public" and one.column in proposed and proposed[one.column].kind == "same vocabulary"
    ]
    if not alike:
        return None
    leaving = {one.column: proposed[one.column] for one in alike}
    return replace(project, columns=tuple(leaving.get(one.column, one) for one in project.columns))


# -- 3. Coarsen --------------------------------------------------------------------------------------------------------


ALONE = ("0.01", "0.02", "0.05", "0.1", "0.2")  # shares of the rows that may be alone, to choose from


def act_on_coarsen(desk: Desk, form: Form, go: str) -> str:
    """Take up what is proposed: as coarse as it must be so that few are alone, for the least that is lost."""
    if go != "propose" or desk.figures is None or desk.project is None:
        return ""
    wanted = form.get("wanted")
    made, search = coarser(desk.figures.sample.rows, desk.project, float(wanted if wanted in ALONE else "0.05"))
    desk.decide(made)
    desk.said = str(replace(search, of=desk.figures.rows))
    return "coarsen"


def show_coarsen(desk: Desk, words: Words, project: Project | None, form: Form | None) -> Context:
    """Who is alone in public columns, before and now; what each column adds; a column's values before and after."""
    assert project is not None
    assert desk.figures is not None
    figures = desk.figures
    public = [name for name in public_of(project) if name in figures.columns]
    recodes = {one.column: one.recode for one in project.columns}
    listed = [one.column for one in project.columns if one.role in ("public", "drop") and one.column in figures.columns]
    coarser_now = {name: recodes[name] for name in public}
    work = alone(desk, dict.fromkeys(listed, ""), coarser_now, project.rare)
    if work.state == "failed":
        raise OptionError(work.problem)
    before, now = work.result if work.state == "done" else (None, None)
    rows = []
    for place, one in enumerate(project.columns):
        if one.column not in listed:
            continue
        offered = offers(desk, one.column)
        if one.recode and one.recode not in offered:
            offered = [one.recode, *offered]
        coarse = figures.coarse(one.column, one.recode, project.rare)
        rows.append(
            {
                "place": place,
                "name": one.column,
                "role": one.role,
                "recode": one.recode,
                "offers": [(how, recode_in_words(words, how)) for how in offered],
                "before": words.count(len(figures.columns[one.column].values)),
                "after": words.count(int((np.bincount(coarse.codes) > 0).sum()) - 1 + _has_missing(desk, one.column)),
                "without": words.percent(now.without[one.column], 2) if now and one.column in now.without else "",
            }
        )
    shown = form.get("shown") if form is not None else ""
    if shown not in figures.columns:
        shown = next((name for name in public if recodes[name]), public[0] if public else "")
    return {
        "computing": shown_work(words, work),
        "rows": rows,
        "rare": project.rare or "",
        "wanted": [(share, words.percent(float(share))) for share in ALONE],
        "facts": _alone_facts(words, before, now) if before and now else [],
        "among": words("coarsen.among", share=words.percent(now.among, 2), n=words.count(now.rows))
        if now and now.rows < now.of
        else "",
        "given": _given_away(desk, words, project),
        "shown": shown,
        "choices": public,
        "histogram": _histogram(desk, words, shown, recodes.get(shown, ""), project.rare) if shown else None,
        "whole": figures.complete,
    }


def _has_missing(desk: Desk, name: str) -> int:
    assert desk.figures is not None
    column = desk.figures.columns[name]
    return int(bool((column.codes == len(column.values)).any()))


def alone(desk: Desk, before: Mapping[str, str], now: Mapping[str, str], rare: int | None) -> Work:
    """The work that looks for people who are alone, as the table is and as it would be published: among all rows, for
    in a sample of them many more are. Kept for the last few questions: the same page is looked at again and again."""
    figures, questions = desk.figures, ((tuple(before.items()), None), (tuple(now.items()), rare))
    assert figures is not None

    def run(progress: Progress) -> list[Alone]:
        results = []
        for recodes, fewest in questions:
            made = desk.kept.get((desk.table, recodes, fewest))
            if made is None:
                while len(desk.kept) > 50:
                    desk.kept.pop(next(iter(desk.kept)))
                maps = {name: figures.coarse(name, how, fewest).codes for name, how in recodes}
                made = desk.kept[desk.table, recodes, fewest] = figures.alone(maps, progress)
            results.append(made)
        return results

    return desk.soon(desk.bench.start("alone", (desk.table, questions), run))


def _alone_facts(words: Words, before: Alone, now: Alone) -> list[tuple[str, str, str, str]]:
    def off(one: Alone) -> str:
        return words("coarsen.within", error=words.percent(one.error, 1)) if one.error else words("coarsen.exact")

    return [
        (words("coarsen.alone"), words.percent(before.share, 3), words.percent(now.share, 3), off(now)),
        (words("coarsen.few"), words.percent(before.few, 3), words.percent(now.few, 3), off(now)),
    ]


def _given_away(desk: Desk, words: Words, project: Project) -> Context | None:
    """What public columns tell of the sensitive one without a release, by column."""
    assert desk.figures is not None
    key = (desk.table, "given", digest(replace(project, requirement={}, mechanism="auto")))
    if key not in desk.kept:
        desk.kept[key] = desk.figures.given_away(project)
    given = desk.kept[key]
    if given is None:
        return None
    rows = []
    sides = [given["before"], given["after"]]
    named = [{one["column"]: one["without"] for one in side["columns"]} if side else {} for side in sides]
    for column in dict.fromkeys([*named[0], *named[1]]):
        cells = [words.percent(side[column]["above_nearly"], 2) if column in side else "–" for side in named]
        right = [words.percent(side[column]["right"], 2) if column in side else "–" for side in named]
        label = words("coarsen.all_columns") if column == "all public columns together" else column
        rows.append((label, *right, *cells))
    alone = next((side["frequencies"]["without"]["right"] for side in sides if side), None)
    return {
        "rows": rows,
        "sample": words("coarsen.told_sample", n=words.count(given["rows"]), of=words.count(given["of"])),
        "frequencies": "" if alone is None else words("coarsen.by_frequencies", share=words.percent(alone, 2)),
    }


def _histogram(desk: Desk, words: Words, name: str, recode: str, rare: int | None) -> Context:
    assert desk.figures is not None
    before, after = desk.figures.bars(name, recode, rare)
    return {
        "before": _one_histogram(words, before, "before", words("coarsen.before_of", column=name)),
        "after": _one_histogram(words, after, "after", words("coarsen.after_of", column=name)),
    }


def _one_histogram(words: Words, bars: Sequence[Bar], kind: str, title: str) -> Context:
    pairs = [
        pictures.Pair(bar.label, bar.rows if kind == "before" else None, bar.rows if kind == "after" else None)
        for bar in bars
    ]
    rows = [(bar.label, words.count(bar.rows)) for bar in bars]
    return {"svg": pictures.pairs(pairs, f"histogram-{kind}", title), "rows": rows, "title": title}


def offers(desk: Desk, name: str) -> list[str]:
    """How a column could be made coarser, by its type and values."""
    assert desk.figures is not None
    values = desk.figures.columns[name].values
    kind = values.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return ["month", "quarter", "year"]
    if is_number(kind) and len(values) > 2:
        numbers = np.asarray(values.cast(pa.float64()))
        numbers = numbers[np.isfinite(numbers)]
        span = float(numbers.max() - numbers.min()) if len(numbers) else 0.0
        widths = [_nice(span / classes) for classes in CLASSES] if span > 0 else []
        whole = pa.types.is_integer(kind)
        kept = [width for width in dict.fromkeys(widths) if width > 1 or not whole]
        return [f"bands:{width:.15g}" for width in kept]
    if is_text(kind) and len(values) > 2:
        lengths = {len(str(value)) for value in values[:2000].to_pylist()}
        if 1 < max(lengths) <= LONGEST_PREFIX:
            return [f"prefix:{length}" for length in range(max(lengths) - 1, 0, -1)]
    return []


def _nice(number: float) -> float:
    size = 10.0 ** math.floor(math.log10(number))
    return next(size * step for step in (1, 2, 5, 10) if size * step >= number * (1 - 1e-12))


def recode_in_words(words: Words, how: str) -> str:
    """A recoding for people; one that is not of the usual kinds as it is written."""
    kind, _, rest = how.partition(":")
    return words(f"recode.{kind}", n=words.number(rest)) if words.has(f"recode.{kind}") and "," not in how else how


def decide_coarsen(desk: Desk, project: Project, form: Form) -> Project:
    """Recodings as the form says; ``drop`` leaves a column out."""
    made = project
    for place, one in enumerate(project.columns):
        if not form.has(f"recode.{place}"):
            continue
        how = form.get(f"own.{place}") or form.get(f"recode.{place}")
        if how == "drop":
            made = made.with_role(one.column, "drop", "")
        else:
            made = made.with_role(one.column, "public", how)
            if how and desk.figures is not None and one.column in desk.figures.columns:
                desk.figures.coarse(one.column, how)  # refused where it does not fit the column
    rare = form.get("rare")
    if rare and not (rare.isdecimal() and int(rare) > 1):
        raise OptionError(Words(desk.language)("coarsen.rare_wrong", given=rare[:20]))
    return replace(made, rare=int(rare) if rare else None)


# -- What is shown, decided and done, by step --------------------------------------------------------------------------

SHOWN: dict[str, Callable[[Desk, Words, Project | None, Form | None], Context]] = {
    "table": show_table,
    "columns": show_columns,
    "coarsen": show_coarsen,
    "promise": show_promise,
    "compare": show_compare,
    "look": show_look,
    "publish": show_publish,
}
DECIDED: dict[str, Callable[[Desk, Project, Form], Project]] = {
    "columns": decide_columns,
    "coarsen": decide_coarsen,
    "promise": decide_promise,
    "compare": decide_compare,
}
ACTED: dict[str, Callable[[Desk, Form, str], str]] = {
    "coarsen": act_on_coarsen,
    "promise": act_on_promise,
    "look": act_on_look,
    "publish": act_on_publish,
}
