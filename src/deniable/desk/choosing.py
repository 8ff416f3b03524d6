"""Two steps of the desk that choose: how sure anyone may become, and by which mechanism. Beside each choice stands what
it costs, predicted for this table."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.core.errors import OptionError
from deniable.desk import pictures
from deniable.desk.desk import SHARES, Compared, Desk, Form, option_of
from deniable.desk.texts import Words
from deniable.desk.work import shown_work
from deniable.mechanisms import FineGrain, Synthetic, Uniform, mechanism_named
from deniable.mechanisms.registry import AUTO
from deniable.owner.project import Project
from deniable.planning.candidates import ANY, KNOWS, Candidate
from deniable.planning.planner import strongest_rho2

RHO2 = ("1/20", "1/10", "1/8", "1/6", "1/5", "1/4", "1/3", "2/5", "1/2", "3/5", "2/3", "3/4", "4/5", "9/10", "19/20")
BELIEFS = (0.01, 0.1, 0.5)
MOST_EXEMPT = 40
USUAL = {"rho2": "1/3"}  # of a new project
QUICK = (Synthetic(), Uniform(), FineGrain())  # planned in a moment, again and again: what is taken is no less accurate
ROOM = 1.5  # times the share of the most frequent value
Context = dict[str, Any]

# -- The promise ----------------------------------------------------------------------------------------------------


def show_promise(desk: Desk, words: Words, project: Project | None, form: Form | None) -> Context:
    """How sure may anyone become; beside it, how far off counts will be."""
    assert project is not None
    required = project.requirement
    steps = rho2_steps(project)
    now = str(required.get("rho2", "1/3"))
    context: Context = {
        "steps_of_rho2": [words.percent(Fraction(step)) for step in steps],
        "place": steps.index(now) if now in steps else 0,
        "sure": words.percent(Fraction(now)),
        "sentence": words("promise.wanted_sentence", sure=words.percent(Fraction(now))),
        "rho1": required.get("rho1", ""),
        "epsilon": required.get("epsilon", ""),
        "wanted": "" if form is None else form.get("wanted"),
        "wanted_share": "0.01" if form is None else form.get("wanted_share", "0.01"),
        "shares": [(str(share), words.percent(share)) for share in SHARES],
        "exempt": exempt_choices(desk, words, project),
        "largest": largest_share(desk, words, project),
        "beliefs": [],
        "errors": [],
        "refused": "",
    }
    work = desk.compared(project)
    context["computing"] = shown_work(words, work)
    if work.state == "failed":
        context["refused"] = work.problem
    if work.state == "done":
        best = work.result.chosen(project.mechanism)
        context |= {"beliefs": belief_rows(words, best), "errors": error_rows(words, best), "how": best.label}
        if best.guarantee is not None and best.beliefs is not None and required.get("rho2"):
            figures = {"sure": words.percent(Fraction(now)), "before": words.percent(best.beliefs.rho1)}
            context["sentence"] = words(f"promise.sentence_{best.guarantee.adversary.replace('-', '_')}", **figures)
    return context


def rho2_steps(project: Project) -> list[str]:
    """What the slider offers, with what is required now."""
    now = str(project.requirement.get("rho2", "") or "1/3")
    return sorted({*RHO2, now} if not any(Fraction(one) == Fraction(now) for one in RHO2) else {*RHO2}, key=Fraction)


def within_reach(desk: Desk, project: Project) -> Project:
    """A requirement that nobody has changed yet is no smaller than what the most frequent value allows."""
    if project.requirement != USUAL or not project.sensitive:
        return project
    largest = float(desk.histogram(project).relative.max(initial=0.0))
    if ROOM * largest <= float(Fraction(USUAL["rho2"])):
        return project
    wide = next((step for step in RHO2 if float(Fraction(step)) >= ROOM * largest), RHO2[-1])
    return replace(project, requirement={"rho2": wide})


def act_on_promise(desk: Desk, form: Form, go: str) -> str:
    """What no mechanism can promise is said here, where it can be changed."""
    if go == "next":
        work = desk.compared(desk.fitting)
        if work.state == "failed":
            raise OptionError(work.problem)
    return ""


def belief_rows(words: Words, best: Candidate) -> list[tuple[str, str, str]]:
    """What beliefs become, for who knows the frequencies and for anyone."""
    if best.beliefs is None:
        return []
    return [
        (
            words.percent(point["before"]),
            "–" if math.isnan(point[KNOWS]) else words.percent(point[KNOWS]),
            words.percent(point[ANY]),
        )
        for point in best.beliefs.curve(BELIEFS)
    ]


def error_rows(words: Words, best: Candidate) -> list[tuple[str, str]]:
    """How far off counts of shares of the rows are."""
    return [
        (
            words.percent(share),
            words("promise.no_value") if math.isnan(error) else words("promise.off", error=words.percent(error, 2)),
        )
        for share, error in zip(SHARES, best.errors, strict=True)
    ]


def largest_share(desk: Desk, words: Words, project: Project) -> str:
    """How frequent the most frequent value is: surer than that someone is without any release."""
    counts = desk.histogram(project)
    return words.percent(float(counts.relative.max(initial=0.0)))


def exempt_choices(desk: Desk, words: Words, project: Project) -> list[tuple[str, str, bool]]:
    """Values that may be published without protection: those that say that a question was not for someone come first,
    then the most frequent ones. (form value, label, whether it is exempt)."""
    exempt = [str(value) for value in project.requirement.get("exempt", ())]
    if len(project.sensitive) != 1:
        return []
    counts = desk.histogram(project)
    nothing = next(one.not_applicable for one in project.columns if one.column == project.sensitive[0])
    order = np.argsort(-counts.counts, kind="stable")
    texts = [counts.domain[place] for place in order if isinstance(counts.domain[place], str)]
    listed = dict.fromkeys([*exempt, *(value for value in nothing if isinstance(value, str)), *texts[:8]])
    return [(value, value, value in exempt) for value in list(listed)[:MOST_EXEMPT]]


def decide_promise(desk: Desk, project: Project, form: Form) -> Project:
    """The requirement as the form says: rho2 by the slider, or epsilon; or from the accuracy that is wanted."""
    steps = rho2_steps(project)
    required: dict[str, Any] = {name: value for name, value in project.requirement.items() if name == "adversary"}
    exempt = form.all("exempt")
    if exempt:
        required["exempt"] = exempt
    rho1, epsilon = form.get("rho1"), form.get("epsilon")
    if epsilon:
        required["epsilon"] = epsilon
    else:
        place = form.get("rho2", "0")
        required["rho2"] = steps[min(int(place), len(steps) - 1)] if place.isdecimal() else steps[0]
        if rho1:
            required["rho1"] = rho1
    made = replace(project, requirement=required)
    if form.get("go") == "find":
        made = replace(made, requirement={**required, "rho2": _rho2_for(desk, made, form)})
    _ = made.privacy  # refused here, where it can be mended
    return made


def _rho2_for(desk: Desk, project: Project, form: Form) -> str:
    """The smallest rho2 at which counts are as accurate as wanted."""
    words = Words(desk.language)
    try:
        wanted, share = float(form.get("wanted").rstrip(" %").replace(",", ".")) / 100, float(form.get("wanted_share"))
    except ValueError:
        raise OptionError(words("promise.wanted_wrong", given=form.get("wanted")[:20])) from None
    privacy = desk.privacy(project)
    named = QUICK if project.mechanism == AUTO else (mechanism_named(project.mechanism),)
    strongest = strongest_rho2(
        desk.histogram(project),
        wanted,
        share,
        rho1=privacy.rho1,
        exempt=project.requirement.get("exempt", ()),
        mechanisms=named,
    )
    if strongest[0].rho2 is None:
        raise OptionError(
            words("promise.never", error=words.percent(wanted), best=words.percent(strongest[0].error, 2))
        )
    return str(strongest[0].rho2)


# -- Compare --------------------------------------------------------------------------------------------------------


def show_compare(desk: Desk, words: Words, project: Project | None, form: Form | None) -> Context:
    """Every mechanism a point: how far off counts are, and what anyone could learn at the worst."""
    assert project is not None
    work = desk.compared(project)
    computing = shown_work(words, work)
    if work.state != "done":
        return {"computing": computing, "rows": [], "svg": "", "reason": "", "refused": []}
    compared: Compared = work.result
    comparison = compared.comparison
    usable = [one for one in comparison.candidates if one.guarantee is not None]
    best = compared.chosen(project.mechanism)
    names: set[str] = set()
    rows = []
    for number, one in enumerate(usable):
        rows.append(
            {
                "number": number + 1,
                "label": one.label,
                "name": "" if option_of(one) in names else option_of(one),
                "epsilon": words.plain(one.epsilon),
                "errors": [
                    words("promise.none") if math.isnan(error) else words.percent(error, 2) for error in one.errors
                ],
                "reveals": one.withheld or one.mechanism.reveals,
                "chosen": one is best,
            }
        )
        names.add(option_of(one))
    points = [
        pictures.Dot(one.label, one.epsilon, one.score[0], one is best) for one in usable if 0 < one.score[0] < math.inf
    ]
    return {
        "computing": None,
        "rows": rows,
        "mechanism": project.mechanism,
        "recommended": compared.auto.label,
        "reason": compared.reason,
        "svg": pictures.dots(
            points,
            "compared",
            words("compare.chart"),
            words("compare.across"),
            words("compare.up"),
            lambda share: words.percent(share, 2),
        ),
        "shares": [words.percent(share) for share in SHARES],
        "refused": [(one.name, one.refusal) for one in comparison.refused],
    }


def decide_compare(desk: Desk, project: Project, form: Form) -> Project:
    """The mechanism that was chosen."""
    return replace(project, mechanism=form.get("mechanism", project.mechanism) or project.mechanism)
