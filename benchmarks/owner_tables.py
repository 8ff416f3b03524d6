"""Tables with planted traps, and harmless ones, for the check of what an owner is told (``owner_check``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 6_000
REAL_ROWS = 20_000  # of a real table, evenly spread
CODES = [f"{chapter}{number}" for chapter in "ABCDE" for number in "1234"]
VALUES, CLEAR, LOOK = "values in public columns", "same values in clear", "other sensitive columns"
NAMES, DATES, PEOPLE, HOMES = "identifiers", "exact dates", "rows of one person", "relatives"
ALONE, WEIGHTS, LEARNT = "rows alone", "weights", "learnt from the file"


@dataclass(frozen=True)
class Case:
    """A table, and what has to be said of it.

    Attributes:
        name: of the case.
        table: makes it.
        traps: part of the decision -> the columns that it must name; of none of its other columns is anything said.
        sensitive, options: how it is published.
        may: columns that may be named: whoever made the table did not plant them, and they are no error.
    """

    name: str
    table: Callable[[], pa.Table]
    traps: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sensitive: str = "code"
    options: tuple[str, ...] = ("--rho2", "1/3", "--mechanism", "uniform")
    may: tuple[str, ...] = ()


Draw = np.random.Generator
Planted = Callable[[np.ndarray, Draw], Mapping[str, Any]]


def made_up(seed: int, planted: Planted = lambda code, draw: {}, rows: int = ROWS) -> pa.Table:
    """People with a code of 20 values, a few harmless columns, and what is planted beside them."""
    draw = np.random.default_rng(seed)
    code = draw.choice(len(CODES), rows, p=draw.dirichlet(np.full(len(CODES), 20.0)))
    plain = {
        "sex": draw.choice(["F", "M"], rows),
        "decade": draw.integers(2, 9, rows) * 10,
        "shift": draw.choice(["early", "late", "night"], rows),
    }
    return pa.table({**plain, **planted(code, draw), "code": [CODES[place] for place in code]})


def _days(draw: Draw, rows: int, first: str = "2021-01-01", number: int = 700) -> np.ndarray:
    return np.datetime64(first) + draw.integers(0, number, rows)


def _texts(draw: Draw, rows: int) -> list[str]:
    words = ["was", "seen", "by", "a", "doctor", "and", "sent", "home", "with", "pills", "after", "the", "ward"]
    return [" ".join(draw.choice(words, 12)) + f" {number}" for number in range(rows)]


def _people(draw: Draw, rows: int) -> list[str]:
    first = ["Anna", "Urs", "Lea", "Noah", "Mia", "Ben", "Zoe", "Tim", "Eva", "Max", "Ida", "Jan", "Lia", "Leo", "Emma",
             "Luca", "Nina", "Finn", "Sara", "Paul", "Elin", "Nico", "Maya", "Levin", "Alma"]  # fmt: skip
    last = [f"{one}{two}" for one in ("Mei", "Kel", "Wei", "Bau", "Fre") for two in ("er", "ler", "ss", "mann", "den")]
    return [f"{draw.choice(first)} {draw.choice(first)} {draw.choice(last)}" for _ in range(rows)]


def _vocabulary(code: np.ndarray, draw: Draw) -> dict[str, Any]:
    return {name: draw.choice(CODES, len(code)) for name in ("second", "third")}


def _children(code: np.ndarray, draw: Draw) -> dict[str, Any]:
    return {"years": draw.integers(0, 8, len(code)) * 10}


def _with_children(seed: int) -> pa.Table:
    """Nobody under 20 has an occupation, and the column of ages says so."""
    table = made_up(seed, _children)
    young = np.asarray(table["years"]) < 20
    code = np.where(young, "Not in universe", np.asarray(table["code"].to_pylist()))
    return table.set_column(table.column_names.index("code"), "code", pa.array(code))


def _visits(seed: int, with_id: bool) -> pa.Table:
    """Everyone three times, equal in all columns."""

    def planted(code: np.ndarray, draw: Draw) -> dict[str, Any]:
        more = {f"trait{place}": draw.choice(list("abc"), len(code)) for place in range(6)}
        return {**more, "patient_id": np.arange(len(code))} if with_id else more

    return pa.concat_tables([made_up(seed, planted, ROWS // 3)] * 3)


def _homes(seed: int) -> pa.Table:
    """Households of three, of whom most share a value."""
    draw = np.random.default_rng(seed)
    home = np.arange(4 * ROWS) // 3
    shared = draw.choice(CODES, len(home) // 3)[home]
    own = np.where(draw.random(len(home)) < 0.6, shared, draw.choice(CODES, len(home)))
    columns = {
        "household_id": home,
        "canton": draw.choice(["ZH", "BE", "GE"], len(home) // 3)[home],
        "rooms": draw.integers(1, 6, len(home) // 3)[home],
        "sex": draw.choice(["F", "M"], len(home)),
    }
    return pa.table({**columns, "code": own})


def health(rows: int = ROWS) -> pa.Table:
    """A health table of 41 columns with traps of all kinds."""
    draw = np.random.default_rng(41)
    code = draw.choice(len(CODES), rows, p=draw.dirichlet(np.full(len(CODES), 20.0)))
    onset = _days(draw, rows)
    columns: dict[str, Any] = {
        "encounter_id": draw.permutation(rows) + 10**6,
        "sex": draw.choice(["F", "M"], rows),
        "birth_date": _days(draw, rows, "1930-01-01", 30_000),
        "zip": [f"{number:04}" for number in draw.integers(1000, 9658, rows)],
        "vaccinated_on": onset - draw.integers(10, 200, rows),
        "onset_on": onset,
        "insurance": draw.choice(["basic", "half private", "private"], rows),
        **{f"other_code_{place}": draw.choice(CODES, rows) for place in (2, 3, 4, 5)},
        "chapter": [CODES[place][0] for place in code],
        "household_income": draw.integers(20, 200, rows) * 1000,
    }
    traits = 40 - len(columns)
    columns |= {f"finding_{place:02}": draw.choice(["yes", "no"], rows, p=[0.1, 0.9]) for place in range(traits)}
    return pa.table({**columns, "code": [CODES[place] for place in code]})


def of_made_up() -> Iterator[Case]:
    """One trap each, and harmless tables."""
    noise: Planted = lambda code, draw: {  # noqa: E731
        "random_7": draw.integers(0, 7, len(code)),
        "size": draw.integers(150, 200, len(code)) // 10 * 10,
    }
    plain: dict[str, tuple[Planted, dict[str, tuple[str, ...]]]] = {
        "nothing planted": (lambda code, draw: {}, {}),
        "random columns": (noise, {}),
        "a chapter of the code": (lambda code, draw: {"chapter": code // 4}, {VALUES: ("chapter",)}),
        "a finer code": (lambda code, draw: {"finer": code * 3 + draw.integers(0, 3, len(code))}, {VALUES: ("finer",)}),
        "two that tell together": (_xor, {VALUES: ("one", "other")}),
        "a copy, right in 9 of 10": (_copied, {VALUES: ("copy",)}),
        "a score by code": (lambda code, draw: {"score": 100.0 * code + draw.normal(0, 10, len(code))},
                            {VALUES: ("score",), ALONE: ()}),
        "record numbers": (lambda code, draw: {"record": [f"r{one:06}" for one in draw.permutation(len(code))]},
                           {NAMES: ("record",)}),
        "names": (lambda code, draw: {"contact": _people(draw, len(code))}, {NAMES: ("contact",)}),
        "e-mail addresses": (lambda code, draw: {"reach": [f"p{one}@mail.example" for one in range(len(code))]},
                             {NAMES: ("reach",)}),
        "free text": (lambda code, draw: {"remarks": _texts(draw, len(code))}, {NAMES: ("remarks",)}),
        "days": (lambda code, draw: {"seen_on": _days(draw, len(code))}, {DATES: ("seen_on",)}),
        "days as text": (lambda code, draw: {"seen_on": _days(draw, len(code)).astype(str)}, {DATES: ("seen_on",)}),
        "days as numbers": (
            lambda code, draw: {"seen_on": [int(str(one).replace("-", "")) for one in _days(draw, len(code))]},
            {DATES: ("seen_on",)},
        ),
        "dates of birth": (lambda code, draw: {"dob": _days(draw, len(code), "1940-01-01", 20_000)}, {DATES: ("dob",)}),
        "moments": (lambda code, draw: {"at": _days(draw, len(code)).astype("datetime64[s]")
                                        + draw.integers(0, 86_400, len(code))}, {DATES: ("at",)}),
        "the same vocabulary": (_vocabulary, {CLEAR: ("second", "third")}),
        "incomes": (lambda code, draw: {"salary": draw.integers(2, 12, len(code)) * 10_000}, {LOOK: ("salary",)}),
        "religions": (lambda code, draw: {"religion": draw.choice(["a", "b", "none"], len(code))},
                      {LOOK: ("religion",)}),
        "diagnoses": (lambda code, draw: {"diagnosis": draw.choice(["flu", "hiv", "none"], len(code))},
                      {LOOK: ("diagnosis",)}),
        "weights": (lambda code, draw: {"survey_weight": draw.gamma(4, 1, len(code))}, {WEIGHTS: ("survey_weight",)}),
        "places and sizes": (lambda code, draw: {"zip": [f"{one:04}" for one in draw.integers(1000, 1900, len(code))],
                                                 "height": draw.integers(150, 200, len(code))}, {ALONE: ()}),
    }  # fmt: skip
    for seed, (name, (planted, traps)) in enumerate(plain.items(), 1):
        yield Case(name, lambda planted=planted, seed=seed: made_up(seed, planted), traps)  # type: ignore[misc]
    yield Case("not applicable", lambda: _with_children(31), {}, may=())
    exempt = ("--rho2", "1/3", "--mechanism", "uniform", "--exempt", "Not in universe")
    yield Case("not applicable, exempt", lambda: _with_children(32), {}, options=exempt)
    visits = ("--rho2", "1/3", "--mechanism", "uniform", "--drop", "patient_id")
    yield Case("three visits of everyone", lambda: _visits(33, True), {PEOPLE: ("patient_id",)}, options=visits)
    yield Case("three equal rows of everyone", lambda: _visits(34, False), {PEOPLE: ()})
    yield Case("households", lambda: _homes(35), {HOMES: ("household_id",)}, may=("household_id",))
    traps = {
        NAMES: ("encounter_id",),
        DATES: ("birth_date", "vaccinated_on", "onset_on"),
        CLEAR: tuple(f"other_code_{place}" for place in (2, 3, 4, 5)),
        VALUES: ("chapter",),
        LOOK: ("household_income",),
        ALONE: (),
    }
    yield Case("a health table of 41 columns", health, traps)


def _xor(code: np.ndarray, draw: Draw) -> dict[str, Any]:
    one = draw.integers(0, 20, len(code))
    return {"one": one, "other": (code + one) % 20}


def _copied(code: np.ndarray, draw: Draw) -> dict[str, Any]:
    return {"copy": np.where(draw.random(len(code)) < 0.9, code, draw.integers(0, 20, len(code)))}


def of_real(home: Path) -> Iterator[Case]:
    """Tables that nobody made up; what is said of their own columns was read through, column by column."""

    def read(name: str, chapter: str = "", whole: bool = False) -> Callable[[], pa.Table]:
        def made() -> pa.Table:
            table = pq.read_table(home / f"{name}.parquet")
            if not whole:
                table = table.take(np.arange(REAL_ROWS) * table.num_rows // REAL_ROWS)
            if not chapter:
                return table
            codes = [None if value is None else str(value)[:1] for value in table[chapter].to_pylist()]
            return table.append_column("chapter", pa.array(codes))

        return made

    incomes = ("capital_gain", "capital_loss", "income")
    usual = ("--rho2", "1/3", "--mechanism", "uniform")
    yield Case(
        "adult: occupation", read("adult"), {LOOK: incomes, WEIGHTS: ("fnlwgt",), ALONE: ()}, "occupation", usual
    )
    traps = {VALUES: ("education_num",), LOOK: incomes, WEIGHTS: ("fnlwgt",), ALONE: ()}
    yield Case("adult: education", read("adult"), traps, "education", ("--rho2", "1/2", "--mechanism", "uniform"))
    yield Case("census: occupation", read("census_occ100k"), {ALONE: ()}, "occupation", usual)
    chapter = read("census_occ100k", "occupation")
    yield Case("census: with a chapter", chapter, {VALUES: ("chapter",), ALONE: ()}, "occupation", usual)
    ids = (*usual, "--drop", "encounter_id", "--drop", "patient_nbr")
    traps = {CLEAR: ("diag_2", "diag_3"), PEOPLE: ("patient_nbr",), ALONE: ()}
    yield Case("diabetes: diagnosis", read("diabetes130", whole=True), traps, "diag_1", ids)
    incomes = ("wage_per_hour", "capital_gains", "capital_losses", "dividends_from_stocks", "income_class")
    traps = {VALUES: ("major_industry_code",), LOOK: (*incomes, "member_of_a_labor_union"),
             WEIGHTS: ("instance_weight",), ALONE: ()}  # fmt: skip
    others = ("detailed_occupation_recode", "major_occupation_code")
    industry = "detailed_industry_recode"
    yield Case(
        "census-income: industry", read("census_income_kdd"), traps, industry, (*usual, "--exempt", "0"), may=others
    )
