"""What each column of a table holds, how that is told, and what is proposed to become of it."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.errors import TableError, no_column, shortened
from deniable.core.values import Bools, Codes, Ints, percent
from deniable.tables import Engine, engine_named
from deniable.tables.base import Dataset, Progress, no_progress
from deniable.tables.encoding import Encoded, encode, is_askable, is_number, is_text, plain_type
from deniable.tables.inspection import all_different, is_day, what_people

# What may become of a column. The first is perturbed, the second published as it is or coarser; none of the others is
# published: they name a person who has several rows, a household, a row, or are left out.
ROLES = ("sensitive", "public", "person", "group", "row_id", "drop")

SAMPLE, RUN = 100_000, 4096  # rows that are looked at, in runs of consecutive ones: rows of one person stand together
FEWEST = 50  # rows, of which anything is said
FEW = 20  # values of a weight, at the least
MOST_AGES = 130
SHARED = 0.8  # of the rows hold values that another column holds, too
VOCABULARY = 5  # values, of which two columns have no five in common by chance
SPARSE = 0.5  # of the whole numbers between the least and the greatest are used: more are counts, and no codes
CODED = 0.9  # of the rows look like codes of diagnoses
MOST_IN_GROUP, LEAST_GROUPS = 60, 0.05  # rows of one person or household; and different ones for each row
AGREE, VARIED = 0.97, 0.8  # rows of a group agree in a column that is not nearly always the same
PURE, COVERED, FEWEST_TOGETHER = 0.995, 0.3, 20  # rows of another column's value that are all not applicable
WIDTHS = 100  # steps of a weight, at most
DIFFERENT = 0.9  # of the values of an identifier are different
NO_CHANCE = 13.8  # -log of the probability by which chance makes all rows of a value alike: 1e-6

# Words of a column's name, by what they say that it holds. One of them is enough; names of people have their own list.
_NAMED = {
    "weight": "fnlwgt wgt wt pwgt pwgtp pweight finalwgt finalwt hhwt perwt wtfa gewicht poids ponderacion",
    "household": "household hh hhid family famid famille haushalt haushaltsnummer haushaltid foyer menage hogar "
    "familia dwelling serial serialno houseid",
    "diagnosis": "diagnosis diagnoses diag dx icd disease illness condition comorbidity symptom krankheit diagnose "
    "maladie diagnostic enfermedad malattia diagnosi pathology hiv cancer",
    "income": "income salary salaries wage wages wagp pincp hincp earnings earned gehalt lohn einkommen salaire revenu "
    "revenus sueldo ingreso ingresos stipendio reddito inkomen dividends debt wealth bonus",
    "conviction, belief or the like": "religion religious faith denomination konfession union gewerkschaft party vote "
    "voted political sexual orientation criminal conviction offence disability handicap addiction",
    "place": "zip zipcode postcode postal postalcode plz city town municipality commune gemeinde ort county district "
    "kreis region state province country land canton kanton puma tract neighbourhood neighborhood village ward "
    "location lat lon latitude longitude cp codigopostal ciudad ville ansi fips residence street",
    "age": "age agep alter edad eta leeftijd idade ageyears",
    "sex": "sex gender geschlecht sexe sexo sesso geslacht",
}
_WORDS = {word: kind for kind, words in _NAMED.items() for word in words.split()}
_TWO_WORDS: dict[tuple[str, ...], str] = {
    ("capital", "gain"): "income",
    ("capital", "gains"): "income",
    ("capital", "loss"): "income",
    ("capital", "losses"): "income",
    ("cause", "of", "death"): "diagnosis",
    **{
        (of, weight): "weight"
        for of in ("survey", "sample", "sampling", "instance", "person", "final", "design", "case")
        for weight in ("weight", "weights")
    },
}
_NUMBERS_OF = {"number", "num", "count", "anzahl", "nombre", "numero", "total", "has"}  # of diagnoses, of incomes
_SPLIT = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_ICD = (
    r"^([A-TV-Z][0-9][0-9A-B](\.?[0-9A-Z]{1,4})?|(V[0-9]{2}|E[0-9]{3}|[0-9]{3})(\.[0-9]{1,2})?|[0-9]{1,3}\.[0-9]{1,2})$"
)
_LETTERED = r"^[A-Z][0-9]{2}"  # what no plain number looks like
_NOT_APPLICABLE = re.compile(
    r"(n/?a|n\.a\.|n\.?i\.?u\.?|not applicable.*|not in universe.*|does not apply|inapplicable|legitimate skip|"
    r"entf(ä|ae)llt|trifft nicht zu|nicht zutreffend|sans objet|non applicable|no aplica|no aplicable|"
    r"non applicabile|niet van toepassing|nvt|n/a .*)",
    re.IGNORECASE,
)
_CODES_OF_NOTHING = {"", "n", "x", "z", "0", "-1", "-2", "-7", "-8", "-9", "8", "9", "97", "98", "99", "997", "998",
                     "999", "9997", "9998", "9999", "00", "000", "bb", "bbb", "bbbb"}  # fmt: skip
_GENERIC = {"yes", "no", "y", "n", "true", "false", "unknown", "other", "none", "ja", "nein", "oui", "non", "missing"}


@dataclass(frozen=True)
class Role:
    """What a column holds, and what is proposed to become of it.

    Attributes:
        column: its name.
        kind: what it holds: ``"identifier"``, ``"date of birth"``, ``"date"``, ``"place"``, ``"age"``, ``"weight"``,
            ``"income"``, ``"diagnosis"``, ``"free text"``, ``"person"``, ``"household"``, ``"same vocabulary"``, ..
        role: one of ``ROLES``.
        reason: how that is told, in a sentence.
        recode: how it should become coarser, as ``--recode`` has it; empty where as it is.
        not_applicable: its values that say that a question was not for this person; None is missing.
    """

    column: str
    kind: str
    role: str
    reason: str
    recode: str = ""
    not_applicable: tuple[Hashable, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {**vars(self), "not_applicable": list(self.not_applicable)}


def roles(table: Any, sensitive: str | Sequence[str] = (), *, engine: str | Engine = "local") -> tuple[Role, ...]:
    """What each column of a table holds, how that is told, and what is proposed to become of it; for its owner.

    Runs of rows are looked at, 100,000 in all. A proposal is no promise: a surname in a column ``x17`` is not noticed.

    Args:
        table: as for ``publish``.
        sensitive: columns that are to be perturbed. Left out, the first column of diagnoses is proposed, or of incomes.
        engine: what reads the table: a name, or an object.

    >>> import pyarrow as pa
    >>> import deniable as dn
    >>> table = pa.table({"zip": ["8001", "8002"] * 500, "salary": [50_000 + 10 * i for i in range(1000)]})
    >>> [(one.column, one.kind, one.role) for one in dn.roles(table)]
    [('zip', 'place', 'public'), ('salary', 'income', 'sensitive')]
    """
    dataset = engine_named(engine).open(table)
    named = (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
    for name in named:
        if name not in dataset.names:
            raise TableError(no_column("sensitive", name, dataset.names))
    return roles_of(dataset, named)


def roles_of(dataset: Dataset, sensitive: Sequence[str] = ()) -> tuple[Role, ...]:
    """The same of a table that is open."""
    return Columns(runs_of(dataset, [name for name in dataset.names if name])).roles(sensitive)


def runs_of(dataset: Dataset, columns: Sequence[str], most: int = SAMPLE, progress: Progress = no_progress) -> pa.Table:
    """Some rows of a table, in runs of consecutive ones that are spread evenly over it."""
    rows = dataset.rows
    share = 1.0 if rows is None else min(1.0, most / max(rows, 1))
    taken, start, kept = [], 0, 0
    for batch in dataset.batches(list(columns)):
        for first in range(0, batch.num_rows, RUN):
            run = batch.slice(first, RUN)
            number = (start + first) // RUN
            if int((number + 1) * share) > int(number * share) and kept < most:
                taken.append(run)
                kept += run.num_rows
        start += batch.num_rows
        progress(start, rows, "rows")
    schema = pa.schema([dataset.schema.field(name) for name in columns])
    return pa.Table.from_batches(taken, schema)


def words_of(name: str) -> list[str]:
    """The words of a column's name.

    >>> words_of("capitalGain_2020"), words_of("PLZ"), words_of("Straße")
    (['capital', 'gain'], ['plz'], ['strasse'])
    """
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss")).encode("ascii", "ignore").decode()
    return [word.lower() for word in _SPLIT.findall(plain)]


def kind_by_name(name: str) -> str | None:
    """What the name of a column says that it holds; None where it says nothing.

    >>> kind_by_name("capital_gain"), kind_by_name("hours_per_week"), kind_by_name("household_income")
    ('income', None, 'income')
    """
    words = words_of(name)
    if set(words) & _NUMBERS_OF:
        return None
    for several, kind in _TWO_WORDS.items():
        if any(tuple(words[place : place + len(several)]) == several for place in range(len(words))):
            return kind
    kinds = [_WORDS[word] for word in words if word in _WORDS]
    return next((kind for kind in kinds if kind != "household"), kinds[0] if kinds else None)


class Columns:
    """Some rows of a table, each column of which is read as codes once."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows
        self._encoded: dict[str, Encoded] = {}

    def encoded(self, name: str) -> Encoded:
        """A column as codes."""
        if name not in self._encoded:
            self._encoded[name] = encode(self.rows[name])
        return self._encoded[name]

    def values(self, name: str) -> list[Hashable]:
        """The values of a column, in the order of their codes; missing is None, and comes last."""
        values = self.encoded(name).values
        if pa.types.is_temporal(values.type):
            values = values.cast(pa.string()) if not pa.types.is_time(values.type) else values
        return [*values.to_pylist(), None]

    def counts(self, name: str) -> Ints:
        """How many rows have each value."""
        encoded = self.encoded(name)
        return np.bincount(encoded.codes, minlength=encoded.size)

    def roles(self, sensitive: Sequence[str] = ()) -> tuple[Role, ...]:
        """A role for each column."""
        comparable = [name for name in self.rows.column_names if is_askable(self.rows[name].type)]
        nothing = not_applicable(self, comparable)
        proposed = [self._role(name, comparable, nothing.get(name, ())) for name in self.rows.column_names]
        named = tuple(sensitive) or _most_sensitive(proposed)
        return tuple(self._beside(one, named) for one in proposed)

    def _role(self, name: str, comparable: Sequence[str], nothing: tuple[Hashable, ...]) -> Role:
        column = self.rows[name]
        kind = plain_type(column.type)
        if name not in comparable:
            return Role(name, "lists", "drop", "It holds lists or the like, by which a release could not be asked.")
        values = len(column) - column.null_count
        distinct = int((self.counts(name)[:-1] > 0).sum())
        if distinct < 2:
            return Role(name, "constant", "public", "All of its rows have one value.", not_applicable=nothing)
        what = what_people(name, column.cast(kind))
        if what is not None and "birth" in what:
            return self._day(name, "date of birth", f"It holds {what}.", "year")
        if what is not None and "free text" in what:
            return Role(name, "free text", "drop", "It holds free text, in which people may be named.")
        different = all_different(column.cast(kind), "")
        if different is not None and kind_by_name(name) not in ("weight", "income"):
            return Role(name, "identifier", "drop", f"It looks like {different}.")
        group = self._group(name, comparable, distinct, values)
        if group is not None:
            return group
        if what is not None:
            if "numbers of people" in what and distinct < DIFFERENT * values:
                return Role(name, "person", "person", f"It holds {what}: {values / distinct:.1f} rows each.")
            return Role(name, "identifier", "drop", f"It holds {what}.")
        if values >= FEWEST and is_day(column.cast(kind)):
            return self._day(name, "date", "It holds exact days.", "month")
        if pa.types.is_timestamp(kind) and distinct > FEWEST:
            return self._day(name, "date", "It holds exact moments.", "month")
        return self._by_name(name, kind, distinct, nothing)

    def _day(self, name: str, what: str, reason: str, unit: str) -> Role:
        """Days: in years or months, however they are written; left out where no recoding fits them."""
        kind = plain_type(self.rows[name].type)
        if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
            return Role(name, what, "public", reason, unit)
        if pa.types.is_integer(kind):  # 20240131
            return Role(name, what, "public", reason, {"year": "bands:10000", "month": "bands:100"}[unit])
        first = next(value for value in self.values(name) if value is not None)
        if re.match(r"^[12][0-9]{3}-", str(first)):
            return Role(name, what, "public", reason, {"year": "prefix:4", "month": "prefix:7"}[unit])
        return Role(name, what, "drop", f"{reason} They are texts, of which no part is a month.")

    def _by_name(self, name: str, kind: pa.DataType, distinct: int, nothing: tuple[Hashable, ...]) -> Role:
        """By what the column is called, where its values may be that, or by what they look like."""
        called = kind_by_name(name)
        number = is_number(kind)
        reason = "Its name says so."
        if called == "weight" and number and distinct >= FEW:
            step = self._step(name)
            return Role(name, "weight", "public", f"{reason} {distinct:,} different weights find rows again.", step)
        if called == "age" and number and distinct <= MOST_AGES:
            return Role(name, "age", "public", reason)
        if called == "household":
            called = None  # a relationship, or how many live in one: whoever names a household was looked for before
        if called == "diagnosis" or self._are_diagnoses(name, kind):
            reason = reason if called == "diagnosis" else "Its values look like codes of diagnoses (ICD)."
            return Role(name, "diagnosis", "public", reason, not_applicable=nothing)
        if called in ("income", "place", "sex", "conviction, belief or the like"):
            return Role(name, called, "public", reason, not_applicable=nothing)
        if number and not pa.types.is_integer(kind):
            return Role(name, "number", "public", f"It holds numbers, {distinct:,} different ones.")
        return Role(name, "category", "public", f"It has {distinct:,} values.", not_applicable=nothing)

    def _are_diagnoses(self, name: str, kind: pa.DataType) -> bool:
        """Whether texts are codes of the International Classification of Diseases, with some that no number is."""
        if not is_text(kind):
            return False
        values, rows = self.encoded(name).values, self.counts(name)[:-1]
        if len(values) < VOCABULARY:
            return False
        like, lettered = (
            pc.match_substring_regex(values, pattern).to_numpy(zero_copy_only=False) for pattern in (_ICD, _LETTERED)
        )
        return bool(rows[like].sum() >= CODED * rows.sum() and lettered.sum() >= VOCABULARY)

    def _step(self, name: str) -> str:
        """A weight in so many steps that it finds nobody, as ``--recode`` has it."""
        values = np.asarray(pc.drop_null(self.rows[name].combine_chunks()).cast(pa.float64()))
        low, high = np.quantile(values[np.isfinite(values)], [0.01, 0.99])
        return "" if high <= low else f"snap:{round_number((high - low) / WIDTHS):.15g}"

    def _group(self, name: str, comparable: Sequence[str], distinct: int, values: int) -> Role | None:
        """A column that names people, or households, of several rows: rows of one value agree in what stays the same.

        Of people that is the sex, too, where there is such a column.
        """
        counts = self.counts(name)[:-1]
        kind = plain_type(self.rows[name].type)
        few = values < FEWEST or distinct < LEAST_GROUPS * values or distinct > DIFFERENT * values
        if few or counts.max() > MOST_IN_GROUP or not (pa.types.is_integer(kind) or is_text(kind)):
            return None
        if kind_by_name(name) in ("place", "diagnosis", "weight", "income"):
            return None
        others = [other for other in comparable if other != name and self.encoded(other).size <= values // 10]
        agreeing = {other: self._agreement(name, other) for other in others}
        constant = [other for other, (same, base) in agreeing.items() if base <= VARIED and same >= AGREE]
        named = (
            "household"
            if "household" in {_WORDS.get(word) for word in words_of(name)}
            else what_people(name, self.rows[name].cast(kind))
        )
        sex = [other for other in others if kind_by_name(other) == "sex"]
        if not constant or (len(constant) < 2 and named is None):
            return None
        same = all(other in constant for other in sex) if sex else named != "household"
        how = f"{values / distinct:.1f} rows each, which agree in {', '.join(map(repr, constant[:3]))}"
        if same:
            return Role(name, "person", "person", f"It seems to name people: {how}.")
        return Role(name, "household", "drop", f"It seems to name households or the like: {how}.")

    def _agreement(self, name: str, other: str) -> tuple[float, float]:
        """How far rows of one value of a column agree in another one, of 1, and how often two rows do by chance."""
        groups, codes = self.encoded(name).codes.astype(np.int64), self.encoded(other).codes
        known = groups < self.encoded(name).size - 1
        order = np.argsort(groups[known], kind="stable")
        group, code = groups[known][order], codes[known][order]
        beside = group[1:] == group[:-1]
        share = self.counts(other) / max(len(codes), 1)
        base = float((share**2).sum())
        if beside.sum() < FEWEST_TOGETHER or base == 1:
            return 0.0, 1.0
        return float(((code[1:] == code[:-1])[beside].mean() - base) / (1 - base)), base

    def _beside(self, proposed: Role, sensitive: Sequence[str]) -> Role:
        """The role of a column beside the sensitive ones: itself one of them, or one that holds their values."""
        name = proposed.column
        if name in sensitive:
            return Role(name, proposed.kind, "sensitive", proposed.reason, "", proposed.not_applicable)
        if proposed.role != "public":
            return proposed
        for other in sensitive:
            if not is_askable(self.rows[other].type):
                continue
            share = shared_vocabulary(self, name, other)
            if share is not None:
                return Role(
                    name,
                    "same vocabulary",
                    "drop",
                    f"{percent(share)} of its rows hold values of the sensitive column {other!r}, in clear.",
                )
        return proposed


def _most_sensitive(proposed: Iterable[Role]) -> tuple[str, ...]:
    """The column to perturb where none is named."""
    for kind in ("diagnosis", "income", "conviction, belief or the like"):
        first = next((one.column for one in proposed if one.kind == kind), None)
        if first is not None:
            return (first,)
    return ()


def shared_vocabulary(columns: Columns, name: str, sensitive: str) -> float | None:
    """The share of a column's rows that hold values of the sensitive one, where that is no chance; else None.

    Texts share a vocabulary by five values that mean something. Whole numbers are codes only where they leave gaps, or
    where the columns are called alike but for a number: ages and codes of occupations have numbers in common, too.
    """
    one, other = (plain_type(columns.rows[column].type) for column in (name, sensitive))
    if is_text(one) != is_text(other) or not (
        is_text(one) or (pa.types.is_integer(one) and pa.types.is_integer(other))
    ):
        return None
    wanted = {value for value in columns.values(sensitive) if _means_something(value)}
    values, rows = columns.values(name), columns.counts(name)
    meant = np.array([_means_something(value) for value in values])
    there = np.array([value in wanted for value in values])
    common = int((there & (rows > 0)).sum())
    if not rows[meant].sum() or common < min(VOCABULARY, max(len(wanted), 2)):
        return None
    if not is_text(one):
        alike = words_of(name) == words_of(sensitive) or set(words_of(name)) & set(words_of(sensitive)) - {"code"}
        numbers = sorted(value for value in wanted if isinstance(value, int))
        gaps = len(numbers) < SPARSE * (numbers[-1] - numbers[0] + 1)
        if not (gaps and common >= 4 * VOCABULARY) and not (alike and _same_stem(name, sensitive)):
            return None
    share = float(rows[there].sum() / rows[meant].sum())
    return share if share >= SHARED else None


def _same_stem(one: str, other: str) -> bool:
    """Whether two names differ in a number only.

    >>> _same_stem("diag_1", "diag_2"), _same_stem("age", "stage")
    (True, False)
    """
    stems = [re.sub(r"[^a-z]+", "", name.lower()) for name in (one, other)]
    return stems[0] == stems[1]


def _means_something(value: Hashable) -> bool:
    """Whether a value belongs to a vocabulary of its own: yes, no and not applicable are everybody's."""
    if value is None:
        return False
    text = str(value).strip().lower()
    return bool(text) and text not in _GENERIC and _NOT_APPLICABLE.fullmatch(text) is None


# -- Not applicable: a question was not for this person ----------------------------------------------------------------
# A value says so by its words ("not in universe"), or it is one of the codes that stand for nothing, or missing, and
# follows from another column: all rows of that column's values that have it at all, have it (occupations of children).


def not_applicable(columns: Columns, names: Sequence[str]) -> dict[str, tuple[Hashable, ...]]:
    """The values of each column that say that a question was not for this person; None is missing."""
    kinds: dict[str, tuple[Hashable, ...]] = {}
    for name in names:
        values, rows = columns.values(name), columns.counts(name)
        by_words = [value for value in values if isinstance(value, str) and _NOT_APPLICABLE.fullmatch(value.strip())]
        coded = [
            place
            for place, value in enumerate(values)
            if rows[place] >= FEWEST_TOGETHER
            and value not in by_words
            and (value is None or (str(value).strip().lower() in _CODES_OF_NOTHING and _at_the_edge(value, values)))
        ]
        mine = [values[place] for place in coded if _follows(columns, name, place, names)]
        if by_words or mine:
            kinds[name] = tuple(dict.fromkeys([*by_words, *mine]))
    return kinds


def _at_the_edge(value: Hashable, values: Sequence[Hashable]) -> bool:
    """Whether a number is beyond those that mean something: none or less, or the greatest but one at the most."""
    if not isinstance(value, int | float):
        return True
    return value <= 0 or sum(isinstance(other, int | float) and other > value for other in values) < 2 < len(values)


def _follows(columns: Columns, name: str, place: int, names: Sequence[str]) -> bool:
    """Whether a third of the rows with a value have it because of another column, which has other values, too."""
    has: Bools = columns.encoded(name).codes == place
    if has.all():
        return False
    for other in names:
        encoded = columns.encoded(other)
        if other == name or encoded.size > len(has) // FEWEST_TOGETHER:
            continue
        if forced(encoded.codes, has).sum() >= COVERED * has.sum():
            return True
    return False


def forced(codes: Codes, has: Bools) -> Bools:
    """The rows that have something because of another column's value: whoever has that value, has it.

    As many rows of a value must have it as no chance would make of one in two.
    """
    size = int(codes.max(initial=0)) + 1
    rows, with_it = np.bincount(codes, minlength=size), np.bincount(codes[has], minlength=size)
    usual = max(0.5, has.mean())
    pure = (with_it >= PURE * rows) & (rows * -np.log(usual) > NO_CHANCE) if usual < 1 else np.zeros(size, bool)
    result: Bools = has & pure[codes]
    return result


def round_number(number: float) -> float:
    """The next of 1, 2, 5, 10, .. that is no smaller.

    >>> round_number(0.03), round_number(170), round_number(6.1)
    (0.05, 200.0, 10.0)
    """
    size = 10.0 ** np.floor(np.log10(number))
    return float(next(size * step for step in (1, 2, 5, 10) if size * step >= number * (1 - 1e-12)))


def summary(proposed: Sequence[Role]) -> list[str]:
    """The proposals for people, a line for each that does not stay as it is, and one that counts the others."""
    shown = [one for one in proposed if one.role != "public" or one.recode]
    lines = []
    for one in shown:
        becomes = one.role if not one.recode else f"{one.role}, {one.recode}"
        lines.append(f"{shortened(one.column, 30)}: {becomes}. {one.reason}")
    kept = Counter(one.kind for one in proposed if one not in shown)
    if kept:
        kinds = ", ".join(f"{number} {kind}" for kind, number in kept.most_common())
        lines.append(f"Published as they are: {sum(kept.values())} ({kinds}).")
    return lines


def by_role(proposed: Iterable[Role] | Mapping[str, Role], role: str) -> tuple[str, ...]:
    """The columns that have a role."""
    every = proposed.values() if isinstance(proposed, Mapping) else proposed
    return tuple(one.column for one in every if one.role == role)
