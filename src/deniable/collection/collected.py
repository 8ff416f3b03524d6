"""Rows that people perturbed where they were collected, as a release, and made-up ones before anyone is asked."""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.collection.client import code, sent
from deniable.collection.respond import row_local
from deniable.collection.sheet import Sheet, SheetColumn
from deniable.collection.survey import NO_ANSWER, Question
from deniable.collection.wire import Responses, value_at
from deniable.core import values
from deniable.core.errors import ColumnError, ManifestError, OptionError, TableError, listing, option
from deniable.core.manifest import Column, Manifest, Randomness, guarantee_dict, software, with_sentence
from deniable.core.part import Part
from deniable.core.privacy import worst_posterior
from deniable.core.promise import Guarantee, LineUps
from deniable.core.values import percent
from deniable.estimation.model.columns import PerturbedColumn
from deniable.estimation.predicates import between
from deniable.mechanisms.requirement import EVERY_RELEASE
from deniable.mechanisms.retention import guarantee
from deniable.release.combine import perturbed_of
from deniable.release.release import Release
from deniable.tables.encoding import arrow_type
from deniable.tables.keys import KEY_BYTES
from deniable.tables.lineups import list_type, states_shown

# -- What is counted of a column: every answer, or bands of a long range -----------------------------------------------


MOST_BARS = 30
BANDS = 10


@dataclass(frozen=True)
class Bar:
    """One count of a column.

    Attributes:
        label: for people.
        where: the condition that it stands for.
        codes: the answers that it stands for, as places among all of them.
    """

    label: str
    where: Mapping[str, Any]
    codes: range


def bars_of(column: SheetColumn) -> list[Bar]:
    """The counts of a column."""
    scope, name = column.question.range, column.name
    if scope is None:
        bars = [Bar(value, {name: value}, range(place, place + 1)) for place, value in enumerate(column.values)]
        missing = column.part is None
    else:
        bars, missing = [], True
        for first, last in _bands(scope.grid):
            low, high = (values.from_json(value_at(place, scope), column.type) for place in (first, last))
            label = str(low) if first == last else f"{low} to {high}"
            bars.append(Bar(label, {name: low if first == last else between(low, high)}, range(first, last + 1)))
    if column.question.optional and missing:
        after = len(column.values) if scope is None else scope.grid
        bars.append(Bar(NO_ANSWER, {name: None}, range(after, after + 1)))
    return bars


def _bands(grid: int) -> list[tuple[int, int]]:
    """Single points, or so many bands of about equal length."""
    if grid <= MOST_BARS:
        return [(place, place) for place in range(grid)]
    edges = [grid * band // BANDS for band in range(BANDS + 1)]
    return [(low, high - 1) for low, high in pairwise(edges)]


# -- Rows that people perturbed where they were collected, as a release: nobody ever held the originals ----------------
# (mathematics 6).


def collect(rows: Any, release: Release | Manifest) -> Release:
    """A release of rows that ``respond`` perturbed one by one; they are put in random order.

    Nothing is perturbed here, and nothing tells whether a row was: whoever sends in a row runs ``respond`` on it.

    Args:
        rows: mappings column -> value, or a table, with the columns of the release.
        release: the one that was given to ``respond``. Its columns must be replaced uniformly, or show line-ups
            against any prior: what is drawn like its own rows' values protects nobody else.

    >>> import pyarrow as pa
    >>> import deniable as dn
    >>> pilot = pa.table({"smokes": ["yes", "no", "no", "no"] * 25})
    >>> asked = dn.publish(pilot, sensitive="smokes", privacy=dn.Privacy("1/2", "3/4"), mechanism="uniform")
    >>> dn.collect([dn.respond({"smokes": "no"}, asked) for _ in range(20)], asked)
    <Release of 20 rows, smokes by uniform>
    """
    manifest = row_local(release)
    for part in manifest.parts:
        if part.lineups is not None:
            _require_any_prior(part)
        elif part.range is None and not part.channels[0].is_uniform:
            raise ColumnError(
                f"{listing(list(part.columns))} is replaced by values as frequent as in the release, which protects "
                "the people in it alone. Fix: replacing='uniform' for columns that people perturb themselves."
            )
    table = _table_of_rows(rows, manifest)
    for part in manifest.parts:
        if part.lineups is not None:
            _require_sets(table[part.columns[0]], part)
        else:
            _require_possible(table[part.columns[0]], PerturbedColumn.of(part, manifest.types[part.columns[0]]))
    parts = tuple(replace(part, marginal=None) for part in manifest.parts)  # of the release's rows, not of these
    collected = replace(
        manifest,
        rows=table.num_rows,
        parts=parts,
        randomness=Randomness("operating system", None, True, "row number"),
        data=None,
        lineups=None,
    )
    if manifest.privacy is None:  # columns promise each for itself; a histogram that is not published costs nothing
        promised = guarantee([perturbed_of(part, collected) for part in parts])
        collected = replace(collected, guarantee=guarantee_dict(promised))
    return Release(with_sentence(collected), table=table.take(np.random.default_rng().permutation(table.num_rows)))


def _table_of_rows(rows: Any, manifest: Manifest) -> pa.Table:
    wanted = pa.schema([(column.name, arrow_type(column.type)) for column in manifest.columns])
    if hasattr(rows, "__arrow_c_stream__"):
        table = pa.table(rows)
    else:
        several = [rows] if isinstance(rows, Mapping) else list(rows)
        if not all(isinstance(row, Mapping) for row in several):
            raise OptionError("collect needs rows as mappings column -> value, or a table.")
        names = list(dict.fromkeys(name for row in several for name in row))
        table = pa.table({name: [row.get(name) for row in several] for name in names})
    if table.num_rows == 0:
        raise TableError("There are no rows: nothing was collected.")
    off = sorted(set(table.column_names) ^ set(wanted.names))
    if off:
        raise ColumnError(
            f"The rows and the release differ in {listing(off)}. Fix: rows with the columns {listing(wanted.names)}."
        )
    try:
        return table.select(wanted.names).cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):  # its own words may hold a value
        types = ", ".join(f"{field.name} {field.type}" for field in wanted)
        raise TableError(f"The rows do not have the types of the release. Fix: {types}.") from None


def _require_any_prior(part: Part) -> None:
    if not isinstance(part.promise, LineUps) or part.promise.adversary != "any-prior":
        raise ColumnError(
            f"{listing(list(part.columns))} shows line-ups that were made for the frequencies of the release's own "
            "rows, which protects the people in it alone. Fix: ask with a release against 'any-prior'."
        )


def _require_sets(column: pa.ChunkedArray, part: Part) -> None:
    """Refuse what is no line-up of the design."""
    assert part.lineups is not None
    try:
        states = states_shown(column, part.lineups, pa.array(list(part.domain), arrow_type(part.types[0])))
    except ManifestError:
        raise _no_answer(part.columns[0]) from None
    if (states < 0).any() and not part.exempt:
        raise TableError(f"The column {part.columns[0]!r} has missing values, which the release does not know.")


def _no_answer(name: str) -> TableError:
    return TableError(
        f"The column {name!r} holds values that no row can have after `respond`. Fix: perturb every row with respond "
        "before it is sent."
    )


def _require_possible(values: pa.ChunkedArray, column: PerturbedColumn) -> None:
    """Refuse what ``respond`` cannot have given: it would be an original at sight."""
    seen = values.unique()
    try:
        column.states(seen.drop_null())
    except ManifestError:
        raise _no_answer(column.name) from None
    if seen.null_count and not column.exempt and len(column.masses) == len(column.values):
        raise TableError(f"The column {column.name!r} has missing values, which the release does not know.")


# -- Collected responses as a release: the same questions, intervals and checks as for a table that was published ------


MECHANISM = "collected"
BELIEFS = (1, 10)  # percent, that the guarantee is told for


def release_of(sheet: Sheet, rows: Sequence[str]) -> Release:
    """A release of responses as they are stored (answers as JSON, in the order of the columns), in random order."""
    if not sheet.private:
        raise TableError(
            "The survey asks nothing in private: there is nothing to reconstruct. Fix: a private question."
        )
    if not rows:
        raise TableError("There are no responses yet.")
    table = _table(sheet, rows)
    table = table.take(np.random.default_rng(secrets.randbits(128)).permutation(table.num_rows))
    columns = [*sheet.public, *sheet.private]
    manifest = Manifest(
        name=sheet.survey.name,
        software=software(),
        mechanism=MECHANISM,
        options={"columns": {column.name: {"question": column.question.name} for column in sheet.private}},
        rows=table.num_rows,
        columns=tuple(
            Column(column.name, str(_kind(column)), "public" if column.part is None else "sensitive")
            for column in columns
        ),
        parts=tuple(column.part for column in sheet.private if column.part is not None),
        privacy=None,
        guarantee=guarantee_dict(sheet_guarantee(sheet)),
        randomness=Randomness("operating system", None, True, "row number"),
    )
    return Release(with_sentence(manifest), table=table)


def _kind(column: SheetColumn) -> pa.DataType:
    own = arrow_type(column.type)
    return list_type(own) if column.part is not None and column.part.lineups is not None else own


def _table(sheet: Sheet, rows: Sequence[str]) -> pa.Table:
    by_column: Sequence[Sequence[Any]] = list(zip(*map(json.loads, rows), strict=True))
    arrays = {}
    for column, drawn in zip(sheet.columns, by_column, strict=True):
        if column.question.range is not None and column.question.range.kind == "date":
            drawn = [None if day is None else datetime.date.fromisoformat(day) for day in drawn]
        arrays[column.name] = pa.array(drawn, _kind(column))
    return pa.table({column.name: arrays[column.name] for column in (*sheet.public, *sheet.private)})


def sheet_guarantee(sheet: Sheet) -> Guarantee:
    """What a sheet promises to whoever fills it in, whatever anyone believed before."""
    private = sheet.private
    gamma = sheet.gamma
    epsilons = " + ".join(f"{math.log(column.gamma):.4g} ({column.name})" for column in private)
    return Guarantee(
        promises=tuple(column.part.promise for column in private if column.part is not None),
        adversary="any-prior",
        rho1=None,
        rho2=None,
        worst=Fraction(1),  # without a rho1, a belief that was certain beforehand stays so
        gamma=gamma,
        also=(
            "Every private answer was changed at random by the respondent's own device before it was sent: nobody ever "
            "held the originals.",
            f"Each respondent's sheet satisfies epsilon-local differential privacy with epsilon = {sheet.epsilon:.4g}"
            + (f": {epsilons}" if private[1:] else "")
            + ", whatever anyone believed and however the answers are correlated.",
            *(believed(column) for column in private),
        ),
        not_protected=(
            *EVERY_RELEASE,
            *(
                (
                    "Answers that are correlated speak for each other: whoever combines all answers of a sheet can "
                    "become surer, up to the sum of their epsilons.",
                )
                if private[1:]
                else ()
            ),
            *((f"Sent as they are: {', '.join(column.name for column in sheet.public)}.",) if sheet.public else ()),
        ),
    )


def believed(column: SheetColumn) -> str:
    """What one answer can teach, for people."""
    grown = ", ".join(
        f"{share} % to {percent(worst_posterior(Fraction(share, 100), column.gamma))}" for share in BELIEFS
    )
    return f"{column.name!r}: a belief about the answer can grow from {grown} at most, and fall no further."


# -- Made-up respondents: what a survey would give, before anyone is asked ---------------------------------------------


OFTEN = 0.3  # how often a made-up respondent ticks one of several choices
SKIPPED = 0.1


@dataclass(frozen=True)
class Compared:
    """One count of a simulation: what is true of the made-up respondents, and what the survey tells."""

    column: str
    value: str
    truth: int
    count: float
    low: float
    high: float

    @property
    def covered(self) -> bool:
        return self.low <= self.truth <= self.high


class Respondents:
    """Made-up people who answer a survey: a few answers are frequent, most are rare.

    Args:
        responses: the survey.
        number: how many.
        seed: the same one gives the same people and the same draws: for experiments, never for a real survey.
    """

    def __init__(self, responses: Responses, number: int, seed: int | None = None) -> None:
        self.responses = responses
        if seed is not None and seed < 0:
            raise OptionError(f"seed = {seed} is below 0. Fix: {option('seed', 1)}, say.")
        draw = np.random.default_rng(seed)
        columns = {question.name: _answers(question, number, draw) for question in responses.sheet.survey.questions}
        self.answers = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        fresh = draw.bytes(KEY_BYTES)
        self.keys = [hashlib.shake_256(fresh + place.to_bytes(8, "big")).digest(KEY_BYTES) for place in range(number)]

    def sent(self) -> list[dict[str, Any]]:
        """What they send."""
        return sent(self.responses.sheet, self.responses.fingerprint, self.answers, self.keys)

    def compared(self, release: Release) -> Iterator[Compared]:
        """Every count of every private column beside the truth; ``release`` is of what they sent."""
        for column in self.responses.sheet.private:
            held = Counter(code(column, given[column.question.name]) for given in self.answers)
            for bar in bars_of(column):
                estimate = release.count(bar.where)
                truth = sum(held[place] for place in bar.codes)
                yield Compared(column.name, bar.label, truth, estimate.value, estimate.low, estimate.high)


def _answers(question: Question, number: int, draw: np.random.Generator) -> Sequence[Any]:
    if question.kind == "several":
        ticks = draw.random((number, len(question.choices))) < OFTEN
        names = [choice.value for choice in question.choices]
        return [[name for name, tick in zip(names, row, strict=True) if tick] for row in ticks.tolist()]
    size = len(question.choices) if question.range is None else question.range.grid
    weights = 1 / np.arange(1.0, size + 1)  # Zipf
    places = draw.choice(size, number, p=weights / weights.sum()).tolist()
    skipped = (draw.random(number) < SKIPPED * question.optional).tolist()
    if question.range is None:
        values: list[Any] = [choice.value for choice in question.choices]
    else:
        values = [value_at(place, question.range) for place in range(size)]
    return [None if skip else values[place] for place, skip in zip(places, skipped, strict=True)]
