"""What a decision is made from: some rows of the table as it is published, what its columns hold, and what a row of
the release shows. Each part of the decision is looked at once, here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from deniable.core.errors import TableError, listing, shortened
from deniable.core.manifest import Manifest
from deniable.core.part import Part
from deniable.core.values import Bools, Floats, Ints, percent
from deniable.owner.decision import Change, Decision, Grade, Point, decision_of
from deniable.owner.findings import Finding
from deniable.owner.parts import requirement_of
from deniable.owner.proposals import exact_alone, proposal
from deniable.owner.public import (
    ALL,
    CARRIED,
    DETERMINES,
    NEARLY_DETERMINES,
    WITH,
    Dependence,
    Giveaway,
    carriers,
    combined,
    dependence,
    functions_of,
)
from deniable.owner.roles import Columns, Role, runs_of
from deniable.planning.attackers import Shown
from deniable.planning.informed import classes_of
from deniable.publishing.learned import OTHER
from deniable.tables.base import Dataset
from deniable.tables.encoding import Encoded, is_askable

ENTRIES = 2**20  # beliefs at once: people x values
INFORMED, MOST_OF = 0.05, 0.5  # of the people, more than without the release: to decide on, and too many
ALONE = 0.05  # of the rows
SAID = 4  # columns of one kind that are named
EQUAL_PAIRS, EQUAL = 20, 0.8  # of rows that are equal in public columns: how much more than chance they agree
ALIKE = 0.05  # of households: the same


@dataclass(frozen=True, eq=False)
class Sensitive:
    """A sensitive column, or several as one, beside what a row of the release shows of it.

    Attributes:
        part: of the release.
        encoder: how its values become codes; None where they are dealt from a model, over the values that it lists.
        shown: what a published row shows of it; of values that are dealt from a model nothing of the person's.
        rho2: how sure an attacker may become.
        hidden: over how many cells someone has to sum who sees a row.
        prior: the frequencies that attackers know; None: they learn them from some rows.
    """

    part: Part
    encoder: Any
    shown: Shown
    rho2: float | None
    hidden: int = 1
    prior: Floats | None = None

    @property
    def name(self) -> str:
        """Of its columns."""
        return ", ".join(self.part.columns)

    @property
    def m(self) -> int:
        """How many values there are."""
        return len(self.part.domain)


@dataclass(frozen=True, eq=False)
class Grounds:
    """What a decision is made from.

    Attributes:
        dataset: the table as it is published, with the columns that are not.
        manifest: of the release, as it is or will be.
        sensitive: its sensitive columns.
        grouped: whether a column was named for households.
        broken: what speaks against the release that no column of the table says: a broken promise, another table, ..
        looks: other releases of the same people, as far as they are remembered.
    """

    dataset: Dataset
    manifest: Manifest
    sensitive: tuple[Sensitive, ...]
    grouped: bool = False
    broken: tuple[Finding, ...] = ()
    looks: tuple[Point, ...] = ()

    @cached_property
    def columns(self) -> Columns:
        """Some rows, in runs; of the columns of the release alone where another one cannot be read."""
        try:
            return Columns(runs_of(self.dataset, [name for name in self.dataset.names if name]))
        except TableError:
            published = {*self.manifest.public_columns, *self.manifest.sensitive_columns}
            return Columns(runs_of(self.dataset, [name for name in self.dataset.names if name in published]))

    @cached_property
    def roles(self) -> Mapping[str, Role]:
        """What each column holds."""
        named = [name for name in self.manifest.sensitive_columns if name in self.columns.rows.column_names]
        return {one.column: one for one in self.columns.roles(named)}

    @cached_property
    def public(self) -> tuple[str, ...]:
        """Public columns whose values can be compared."""
        rows = self.columns.rows
        return tuple(name for name in self.manifest.public_columns if is_askable(rows[name].type))

    @property
    def rows(self) -> int:
        """How many rows were looked at."""
        return int(self.columns.rows.num_rows)

    @property
    def of_rows(self) -> str:
        """From how many rows a figure is, where not from all."""
        return "" if self.rows >= self.manifest.rows else f" (in {self.rows:,} of {self.manifest.rows:,} rows)"

    @property
    def is_learned(self) -> bool:
        """Whether values are dealt from a model, so that no row shows anything of its person."""
        return all(one.part.learned is not None for one in self.sensitive)

    def codes(self, one: Sensitive) -> Ints:
        """Where each row's value stands; after the last where it is exempt."""
        if one.encoder is None:
            return _listed(self.columns, one.part)
        table = self.columns.rows.select(list(one.encoder.columns)).combine_chunks()
        pieces = [one.encoder.encode(batch).astype(np.int64) for batch in table.to_batches()]
        return np.concatenate(pieces) if pieces else np.zeros(0, np.int64)

    def covered(self, one: Sensitive) -> Bools:
        """The values whose people count: those that the promise protects, and that are an answer at all."""
        promise: Any = one.part.promise
        kept = np.ones(one.m, bool)
        places = {place for place, _, _ in getattr(promise, "per_value", ())}
        if places:
            kept[[place for place in range(one.m) if place not in places]] = False
        kept[[*getattr(promise, "exempt", ()), *getattr(promise, "above", ())]] = False
        kept[self.no_answers(one)] = False
        return kept

    def no_answers(self, one: Sensitive) -> list[int]:
        """The values that say that a question was not for this person."""
        role = self.roles.get(one.part.columns[0]) if len(one.part.columns) == 1 else None
        nothing = () if role is None else role.not_applicable
        return [place for place, value in enumerate(one.part.domain) if value in nothing]

    @cached_property
    def dependence(self) -> tuple[tuple[Sensitive, Dependence], ...]:
        """What public columns say about each sensitive one."""
        seen = []
        for one in self.sensitive:
            codes = self.codes(one)
            kept = self.of_people[codes[self.of_people] < one.m]
            encoded = {name: _of_rows(self.columns.encoded(name), kept) for name in self.public}
            known = {name: column.codes for name, column in encoded.items()}
            covered = self.covered(one)
            counts = covered[codes[kept]]
            said = dependence(
                one.name,
                known,
                codes[kept],
                one.m,
                one.shown,
                one.rho2,
                functions=functions_of({name: codes[counts] for name, codes in known.items()}, codes[kept][counts]),
                classes=classes_of(encoded),
                of=self.manifest.rows,
                entries=max(ENTRIES // one.hidden, 2**16),
                prior=one.prior,
                counted=covered,
            )
            if said is not None:
                seen.append((one, said))
        return tuple(seen)

    @cached_property
    def person(self) -> str | None:
        """The column that seems to name people."""
        return next((one.column for one in self.roles.values() if one.kind == "person"), None)

    @cached_property
    def equal(self) -> tuple[Ints, Ints] | None:
        """Which row each is equal to in every column, and how many rows are; None where nothing says that equal rows
        are one person's: where rows that share their public columns agree in the sensitive one no more than by chance.
        """
        if not self.public or not self.sensitive:
            return None
        group = combined([self.columns.encoded(name).codes for name in self.public], self.rows)
        codes = self.codes(self.sensitive[0])
        if agreement(group, codes) < EQUAL:
            return None
        known = (self.columns.encoded(name).codes.astype(np.int64) for name in self.public)
        if any(agreement(column, codes) > EQUAL / 2 for column in known):  # a column tells the value: that is why
            return None
        whole = combined([group, codes], self.rows)
        return whole, np.bincount(whole)

    @cached_property
    def of_people(self) -> Ints:
        """One row of each person, where rows of one person are known or stand out; what a column says of others would
        otherwise be learnt from the same people."""
        if self.person is not None:
            groups = self.columns.encoded(self.person).codes
        elif self.equal is not None:
            groups = self.equal[0]
        else:
            return np.arange(self.rows)
        return np.sort(np.unique(groups, return_index=True)[1])

    @property
    def said(self) -> tuple[Dependence, ...]:
        """The same, without what is looked at."""
        return tuple(said for _, said in self.dependence)


def _of_rows(column: Encoded, rows: Ints) -> Encoded:
    return Encoded(column.values, column.codes[rows])


def _listed(columns: Columns, part: Part) -> Ints:
    """Where each row's value stands among those that a learned release lists; others stand where all others do."""
    codes = np.zeros(columns.rows.num_rows, np.int64)
    for name in part.columns:
        listed = {value: place for place, value in enumerate(dict.fromkeys(part.column_values(name)))}
        others = listed.get(OTHER, listed.get(None, 0))
        encoded = columns.encoded(name)
        places = [listed.get(value, others) for value in (*encoded.values.to_pylist(), None)]
        codes = codes * len(listed) + np.array(places, np.int64)[encoded.codes]
    return codes


def decide(grounds: Grounds) -> Decision:
    """The decision: each of its parts is looked at."""
    points = [*(point for part in PARTS for point in part(grounds)), *grounds.looks]
    return decision_of(points, grounds.manifest.guarantee.get("sentence", "") or "")


# -- The promise -------------------------------------------------------------------------------------------------------


def _promise(grounds: Grounds) -> list[Point]:
    """Whether one is made, for whom it holds, and what breaks it."""
    manifest, guarantee = grounds.manifest, grounds.manifest.guarantee
    points = [
        Point(one.what, "never", f"{one.what[:1].upper()}{one.what[1:]}: {one.detail} {one.advice}".strip(), weight=2)
        for one in grounds.broken
    ]
    stated = guarantee["rho2"] is not None or any(requirement_of(manifest, part) for part in manifest.parts)
    if not stated and not grounds.is_learned:
        says = "Nothing is promised about how sure someone can become of a person's value."
        return [*points, Point("promise", "decide", says, "no rho2", fix=_STRONGEST, weight=1)]
    if points:
        return points
    against = "whatever anyone knows" if guarantee["adversary"] == "any-prior" else "for who knows the frequencies only"
    return [Point("promise", "fine", f"The promise holds {against}.", against)]


_STRONGEST: tuple[Change, ...] = (("mechanism", "synthetic"),)


def _uncovered(grounds: Grounds) -> list[Point]:
    """People whose value is too frequent to be promised anything about it."""
    points = []
    for one in grounds.sensitive:
        above = np.zeros(one.m, bool)
        above[list(getattr(one.part.promise, "above", ()))] = True
        above[grounds.no_answers(one)] = False
        codes = grounds.codes(one)
        share = float(above[codes[codes < one.m]].mean()) if len(codes) else 0.0
        if share < CARRIED:
            continue
        named = listing([one.part.domain[place] for place in np.flatnonzero(above)], 4)
        says = (
            f"{percent(share)} of the people have a value of {shortened(one.name)} that nothing is promised about, as "
            f"it is more frequent than rho1: {named}."
        )
        points.append(Point("not covered", "decide", says, percent(share), (one.name,), _STRONGEST, share))
    return points


def _informed(grounds: Grounds) -> list[Point]:
    """People above rho2 for who has learnt from other people, beside what is known without the release."""
    if grounds.is_learned:
        says = "Who has learnt from the file learns no more about a person than the promise says: no row shows a value."
        return [Point("learnt from the file", "fine", says)]
    points = []
    for one, said in grounds.dependence:
        together = said.columns[-1].informed
        if one.rho2 is None or np.isnan(together.after.above_rho2):
            continue
        after, before = together.after.above_rho2, together.before.above_rho2
        more = after - before
        grade: Grade = "never" if more >= MOST_OF else "decide" if more >= INFORMED else "fine"
        says = (
            f"Who has learnt from other people what goes with the public columns, and sees a person's row, is surer "
            f"than {percent(one.rho2)} of {shortened(one.name)} for {percent(after)} of the people; without the row "
            f"for {percent(before)}."
        )
        fix = _STRONGEST if grade != "fine" else ()
        points.append(Point("learnt from the file", grade, says, percent(after), (one.name,), fix, more))
    return points


def _carried(grounds: Grounds) -> list[Point]:
    """Public columns that hold the sensitive value, or nearly."""
    points = []
    for one, said in grounds.dependence:
        named = [*carriers(said)]
        if not named:
            continue
        worst = named[0]
        exact = worst.function in (DETERMINES, NEARLY_DETERMINES)
        grade: Grade = "never" if exact or worst.carried >= MOST_OF else "decide"
        columns = tuple(dict.fromkeys(name for giveaway in named for name in _of(giveaway, said)))
        fix = tuple(("drop", name) for name in dict.fromkeys(_of(giveaway, said)[-1] for giveaway in named))
        points.append(
            Point(
                "values in public columns",
                grade,
                _says_of_carrier(one, worst, named, said),
                percent(max(worst.carried, worst.informed.after.above_rho2 if one.rho2 is not None else 0)),
                columns,
                fix,
                1 + worst.carried,
            )
        )
    if not points:
        says = "No public column holds the sensitive values under another name."
        return [Point("values in public columns", "fine", says)]
    first, *others = sorted(points, key=lambda point: (point.grade != "never", -point.weight))
    if not others:
        return [first]
    every = (first, *others)
    return [
        replace(
            first,
            says=f"{first.says} The same goes for {len(others)} more of the sensitive columns.",
            columns=tuple(dict.fromkeys(name for point in every for name in point.columns)),
            fix=tuple(dict.fromkeys(change for point in every for change in point.fix)),
        )
    ]


def _of(one: Giveaway, said: Dependence) -> list[str]:
    """The columns that a finding about them is about; of all together the most telling one."""
    if one.column != ALL:
        return one.column.split(WITH)
    single = [other.column for other in said.columns if other.column != ALL and WITH not in other.column]
    return single[:1] or [ALL]


def _says_of_carrier(one: Sensitive, worst: Giveaway, named: Sequence[Giveaway], said: Dependence) -> str:
    columns = [giveaway.column for giveaway in named]
    others = f" So do {listing(columns[1:], 4)}." if len(columns) > 2 else ""
    others = f" So does {shortened(columns[1])}." if len(columns) == 2 else others
    name = "All public columns together" if worst.column == ALL else shortened(worst.column)
    verb = "tell" if worst.column == ALL or WITH in worst.column else "tells"
    if worst.carried - said.carried >= CARRIED:
        return (
            f"{name} {verb} the value of {shortened(one.name)} for {percent(worst.carried)} of the people before "
            f"anything is perturbed ({percent(said.carried)} by how frequent values are).{others}"
        )
    above, by_frequency = worst.informed.after.above_rho2, said.frequencies.after.above_rho2
    return (
        f"{name} {verb} part of {shortened(one.name)} ({worst.function}): with it {percent(above)} of the people are "
        f"above rho2, without it {percent(by_frequency)}.{others}"
    )


# -- What columns hold -------------------------------------------------------------------------------------------------


def _identifiers(grounds: Grounds) -> list[Point]:
    """Public columns that name people, rows or their numbers."""
    seen = _public_roles(grounds, ("identifier", "free text", "person"))
    if not seen:
        return [Point("identifiers", "fine", "No public column seems to name people.")]
    named = [one for one in seen if one.kind == "identifier" and "looks like an identifier" not in one.reason]
    fix = tuple(("person" if one.kind == "person" else "drop", one.column) for one in seen)
    if grounds.manifest.randomness.by_person:
        fix = tuple(("drop", one.column) for one in seen)
    says = f"Public columns may name people: {_with_reasons(seen)}."
    grade: Grade = "never" if named else "decide"
    return [Point("identifiers", grade, says, _numbers(len(seen)), tuple(one.column for one in seen), fix, 3)]


def _dates(grounds: Grounds) -> list[Point]:
    """Exact days of birth, or of events."""
    seen = _public_roles(grounds, ("date of birth", "date"))
    if not seen:
        return [Point("exact dates", "fine", "No public column holds exact days.")]
    names = tuple(one.column for one in seen)
    alone = _alone(grounds, names)
    says = (
        f"Exact days are published: {listing(names)}. {percent(alone)} of the rows are alone with "
        f"{'theirs' if len(names) == 1 else 'these alone'}{grounds.of_rows}."
    )
    fix: tuple[Change, ...] = tuple(
        ("recode", f"{one.column}={one.recode}") if one.recode else ("drop", one.column) for one in seen
    )
    return [Point("exact dates", "decide", says, percent(alone), names, fix, 0.5 + alone)]


def _weights(grounds: Grounds) -> list[Point]:
    """Weights of a survey, by which a row is found again."""
    points = []
    for one in _public_roles(grounds, ("weight",)):
        alone = _alone(grounds, [one.column])
        if alone <= ALONE:
            continue
        found_again = f"{percent(alone)} of the rows are alone with theirs{grounds.of_rows}"
        says = f"{shortened(one.column)} holds weights: {found_again}."
        fix: Change = ("recode", f"{one.column}={one.recode}") if one.recode else ("drop", one.column)
        points.append(Point("weights", "decide", says, percent(alone), (one.column,), (fix,), 0.5))
    return points or [Point("weights", "fine", "No public column holds weights that find rows again.")]


def _vocabulary(grounds: Grounds) -> list[Point]:
    """Columns with the values of a sensitive one, in clear."""
    seen = _public_roles(grounds, ("same vocabulary",))
    if not seen:
        return [Point("same values in clear", "fine", "No public column holds values of a sensitive one.")]
    names = tuple(one.column for one in seen)
    said = [f"{shortened(one.column, 30)} ({one.reason.partition(' of its rows')[0]} of its rows)" for one in seen]
    more = f" and {len(said) - SAID} more" if len(said) > SAID else ""
    held = listing(grounds.manifest.sensitive_columns)
    says = f"Columns hold values of {held} in clear: {', '.join(said[:SAID])}{more}."
    fix = tuple(("drop", name) for name in names)
    return [Point("same values in clear", "decide", says, _numbers(len(names)), names, fix, 1.5)]


def _sensitive_looking(grounds: Grounds) -> list[Point]:
    """Incomes, diagnoses and convictions that are published as they are."""
    kinds = ("income", "diagnosis", "conviction, belief or the like")
    seen = _public_roles(grounds, kinds)
    if not seen:
        return [Point("other sensitive columns", "fine", "No public column looks sensitive itself.")]
    held = {kind: [one.column for one in seen if one.kind == kind] for kind in kinds}
    said = "; ".join(f"{kind} in {listing(names, 6)}" for kind, names in held.items() if names)
    names = tuple(one.column for one in seen)
    says = f"Other columns look sensitive themselves and are published as they are: {said}."
    fix = tuple(("drop", name) for name in names)
    return [Point("other sensitive columns", "decide", says, _numbers(len(names)), names, fix, 0.6)]


def _public_roles(grounds: Grounds, kinds: Sequence[str]) -> list[Role]:
    return [grounds.roles[name] for name in grounds.manifest.public_columns if grounds.roles[name].kind in kinds]


def _with_reasons(seen: Sequence[Role]) -> str:
    """Columns with how that is told."""
    said = [f"{shortened(one.column, 30)} ({one.reason[:1].lower()}{one.reason[1:].rstrip('.')})" for one in seen[:3]]
    rest = [one.column for one in seen[3:]]
    return ", ".join([*said, *([f"{len(rest)} more: {listing(rest, 4)}"] if rest else [])])


def _numbers(number: int) -> str:
    return f"{number} column{'s' * (number != 1)}"


# -- Rows, people and households ---------------------------------------------------------------------------------------


def _alone(grounds: Grounds, names: Sequence[str]) -> float:
    """The share of the rows that are alone in these columns."""
    return exact_alone([grounds.columns.encoded(name).codes for name in names])


def _rows_alone(grounds: Grounds) -> list[Point]:
    if not grounds.public:
        return [Point("rows alone", "fine", "There are no public columns by which somebody finds a row.")]
    alone = _alone(grounds, grounds.public)
    names = grounds.public
    grade: Grade = "decide" if alone > ALONE else "fine"
    says = (
        f"{percent(alone)} of the rows are alone in their {_numbers(len(names)).replace('column', 'public column')}"
        f"{grounds.of_rows}: who knows them finds the person's row and reads the rest of it, though not the sensitive "
        "value."
    )
    if grade == "fine":
        return [Point("rows alone", grade, says, percent(alone), names)]
    kept = [name for name in names if grounds.roles[name].role == "public"]
    rest = _alone(grounds, kept) if kept else 0.0
    if len(kept) < len(names) and rest <= ALONE:
        says = f"Without columns that are to be left out anyway {percent(rest)} of the rows are alone{grounds.of_rows}."
        return [Point("rows alone", "fine", says, percent(alone), names)]
    made = proposal(grounds.columns, kept, grounds.roles, ALONE, grounds.manifest.rows, [*grounds.dataset.recodes])
    says += f" {made}"
    return [Point("rows alone", grade, says, percent(alone), names, made.changes, 0.4 * alone)]


def _people(grounds: Grounds) -> list[Point]:
    """Several rows of one person, seen by a column that names people, or by rows that are equal."""
    if grounds.manifest.randomness.by_person or any(
        getattr(one.part.promise, "together", 1) > 1 for one in grounds.sensitive
    ):
        return [Point("rows of one person", "fine", "Rows of one person count together.")]
    person = grounds.person
    if person is not None:
        codes = grounds.columns.encoded(person).codes
        sizes = np.bincount(codes)
        several, most = float((sizes[codes] > 1).mean()), int(sizes.max())
        if several < 0.01:
            return [Point("rows of one person", "fine", "Hardly anyone has several rows.")]
        says = (
            f"{shortened(person)} seems to name people, of whom {percent(several)} of the rows are one of "
            f"several, up to {most:,}{grounds.of_rows}; the promise is about each row alone."
        )
        fix: tuple[Change, ...] = (("person", person),)
        return [Point("rows of one person", "decide", says, percent(several), (person,), fix, 0.8)]
    if grounds.equal is None or any(carriers(said) for said in grounds.said):  # a column that tells makes rows agree
        return [Point("rows of one person", "fine", "Nothing shows that people have several rows.")]
    whole, sizes = grounds.equal
    rows, most = int((sizes[whole] > 1).sum()), int(sizes.max())
    says = (
        f"{rows:,} rows{grounds.of_rows} stand in groups of up to {most:,} that are equal in every column: if those of "
        "a group are one person, the promise about each row is not one about the person."
    )
    return [Point("rows of one person", "decide", says, f"{rows:,} rows", weight=0.8)]


def _households(grounds: Grounds) -> list[Point]:
    """Relatives, whose values follow from each other."""
    if grounds.grouped:
        return [Point("relatives", "fine", "The promise covers whole households.")]
    points = []
    for role in grounds.roles.values():
        if role.kind != "household":
            continue
        published = role.column in grounds.manifest.public_columns
        for one in grounds.sensitive[:1]:
            alike = agreement(grounds.columns.encoded(role.column).codes.astype(np.int64), grounds.codes(one))
            if alike < ALIKE and not published:
                continue
            says = (
                f"{shortened(role.column)} seems to name households, in which {shortened(one.name)} agrees "
                f"{percent(alike)} more than by chance: a row speaks for relatives, too"
                f"{', and the column is published' if published else ''}."
            )
            fix: tuple[Change, ...] = (("mechanism", "synthetic"), ("group", role.column))
            if alike < ALIKE:
                fix = (("drop", role.column),)
            points.append(Point("relatives", "decide", says, percent(alike), (role.column,), fix, 0.7))
    return points or [Point("relatives", "fine", "No column seems to name households whose members agree.")]


def agreement(groups: Ints, codes: Ints) -> float:
    """How far rows of one group agree in their values, of 1, beyond chance; 0 where too few stand together."""
    order = np.argsort(groups, kind="stable")
    beside = groups[order][1:] == groups[order][:-1]
    share = np.bincount(codes) / max(len(codes), 1)
    chance = float((share**2).sum())
    if beside.sum() < EQUAL_PAIRS or chance > 1 - ALIKE:
        return 0.0
    agree = float((codes[order][1:] == codes[order][:-1])[beside].mean())
    return max(0.0, (agree - chance) / (1 - chance))


PARTS: Sequence[Callable[[Grounds], list[Point]]] = (
    *(
        _promise,
        _uncovered,
        _informed,
        _carried,
        _identifiers,
        _dates,
        _weights,
        _vocabulary,
        _sensitive_looking,
        _rows_alone,
    ),
    *(_people, _households),
)
