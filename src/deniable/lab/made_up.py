"""A made-up census: the shape of the table that the papers evaluate on, and nobody's data.

Eight columns with the domain sizes of CENSUS (mathematics 10): age 77, gender 2, education 14, marital 6, race 9,
workclass 7, country 70, occupation 50. Rows are drawn independently, column by column:

    gender, age      independent; ages thin out after 60
    education        given age: the young are still at school, the old left it earlier
    marital          given age: single, then married, then widowed
    occupation       given education and gender: demand * closeness of level * share of the gender, fitted so that
                     the whole column follows the demand exactly in expectation (iterative proportional fitting);
                     the most frequent occupation is 7 % of the rows
    workclass        given occupation: teachers work for a government, farmers for themselves
    country, race    race given the country's part of the world

So questions have answers worth finding: who the nurses are, where a degree leads, when people marry.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from deniable.core.errors import OptionError
from deniable.core.values import Floats, Ints

ROWS = 50_000
SEED = 2010
FIRST_AGE, AGES = 17, 77
GENDERS = ("Female", "Male")
EDUCATION = (
    *("No schooling", "Grade 1-4", "Grade 5-6", "Grade 7-8", "Grade 9", "Grade 10", "Grade 11", "Grade 12, no diploma"),
    *("High school diploma", "Some college", "Associate degree", "Bachelor's degree", "Master's degree", "Doctorate"),
)
EDUCATION_SHARE = (0.8, 0.7, 1.2, 2.0, 1.6, 2.4, 2.6, 1.5, 29.0, 21.0, 8.0, 18.5, 8.7, 2.0)
MARITAL = ("Never married", "Married", "Married, spouse absent", "Separated", "Divorced", "Widowed")
RACES = (
    *("White", "Black", "American Indian", "Chinese", "Japanese", "Other Asian", "Pacific Islander", "Other race"),
    "Two or more races",
)
WORKCLASS = (
    *("Private company", "Non-profit", "Local government", "State government", "Federal government"),
    *("Self-employed", "Family business, unpaid"),
)

# Occupation: level of schooling it asks for (a position in EDUCATION), share of women in percent, who employs.
# Listed from the most to the least frequent.
OCCUPATIONS: tuple[tuple[str, float, int, str], ...] = (
    ("Secretary", 9, 93, "mixed"),
    ("Retail salesperson", 8.5, 52, "private"),
    ("Truck driver", 8, 6, "private"),
    ("School teacher", 12, 76, "public"),
    ("Cashier", 8, 74, "private"),
    ("Registered nurse", 10.8, 91, "mixed"),
    ("Cleaner", 7, 45, "private"),
    ("Office manager", 10.5, 60, "private"),
    ("Cook", 7, 42, "private"),
    ("Bookkeeper", 9.5, 89, "private"),
    ("Construction labourer", 7, 4, "private"),
    ("Waiter", 8.5, 72, "private"),
    ("Accountant", 11.2, 60, "private"),
    ("Sales manager", 10.8, 41, "private"),
    ("Nursing aide", 8, 88, "mixed"),
    ("Machine operator", 7.5, 30, "private"),
    ("Software developer", 11.5, 20, "private"),
    ("Carpenter", 8, 2, "self"),
    ("Warehouse worker", 8, 20, "private"),
    ("Customer service agent", 9, 68, "private"),
    ("Electrician", 8.8, 2, "private"),
    ("Car mechanic", 8, 2, "self"),
    ("Child-care worker", 8.5, 95, "self"),
    ("Assembler", 7.5, 40, "private"),
    ("Police officer", 9.8, 15, "public"),
    ("Gardener", 6.5, 8, "self"),
    ("Lawyer", 12.7, 34, "self"),
    ("Farmer", 8, 22, "self"),
    ("Physician", 13, 33, "self"),
    ("Engineer", 11.6, 13, "private"),
    ("Hairdresser", 8.8, 91, "self"),
    ("Farm worker", 4, 20, "private"),
    ("Social worker", 11.6, 81, "public"),
    ("Security guard", 8.5, 23, "private"),
    ("University teacher", 13, 47, "public"),
    ("Plumber", 8.3, 2, "self"),
    ("Estate agent", 10.3, 55, "self"),
    ("Designer", 11, 55, "self"),
    ("Postal carrier", 8.8, 38, "federal"),
    ("Insurance agent", 10.2, 48, "private"),
    ("Welder", 7.8, 4, "private"),
    ("Laboratory technician", 10.8, 73, "mixed"),
    ("Bus driver", 8.3, 48, "public"),
    ("Pharmacist", 12.6, 54, "private"),
    ("Firefighter", 9.6, 4, "public"),
    ("Dental assistant", 9.6, 95, "private"),
    ("Tailor", 6, 75, "self"),
    ("Librarian", 12, 83, "public"),
    ("Musician", 10.8, 35, "self"),
    ("Soldier", 9.2, 12, "federal"),
)
EMPLOYERS = {
    "private": (88, 3, 1, 1, 1, 5.5, 0.5),
    "mixed": (55, 22, 8, 9, 4, 1.8, 0.2),
    "public": (8, 7, 55, 26, 3, 1, 0.05),
    "federal": (0.5, 0.5, 1, 2, 96, 0.1, 0.02),
    "self": (42, 2, 1, 1, 0.5, 50, 3.5),
}

# Country of birth, by part of the world; the first country is home. Listed from the most to the least frequent.
COUNTRIES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("home", ("United States",)),
    (
        "latin",
        (
            *("Mexico", "El Salvador", "Cuba", "Dominican Republic", "Guatemala", "Colombia", "Honduras", "Ecuador"),
            *("Peru", "Brazil", "Nicaragua", "Venezuela", "Argentina", "Chile", "Costa Rica", "Panama", "Bolivia"),
        ),
    ),
    ("china", ("China", "Taiwan", "Hong Kong")),
    ("japan", ("Japan",)),
    (
        "asia",
        (
            *("Philippines", "India", "Vietnam", "South Korea", "Pakistan", "Thailand", "Cambodia", "Laos"),
            *("Bangladesh", "Indonesia", "Malaysia", "Sri Lanka", "Nepal", "Myanmar"),
        ),
    ),
    (
        "europe",
        (
            *("Canada", "Germany", "United Kingdom", "Italy", "Poland", "Russia", "Ukraine", "Ireland", "Portugal"),
            *("France", "Greece", "Romania", "Iran", "Israel", "Netherlands", "Hungary", "Spain", "Turkey", "Lebanon"),
            *("Australia", "Sweden", "Austria"),
        ),
    ),
    (
        "africa",
        (
            *("Jamaica", "Haiti", "Nigeria", "Trinidad and Tobago", "Guyana", "Ethiopia", "Ghana", "Barbados"),
            *("Kenya", "South Africa"),
        ),
    ),
    ("pacific", ("Fiji", "Samoa")),
)
REGION_SHARE = {
    "home": 82.0,
    "latin": 8.0,
    "china": 1.1,
    "japan": 0.3,
    "asia": 4.0,
    "europe": 3.0,
    "africa": 1.4,
    "pacific": 0.2,
}
REGION_RACES = {
    "home": (78, 13, 1.2, 0.6, 0.4, 1, 0.2, 2.4, 3.2),
    "latin": (50, 4, 2, 0.1, 0.1, 0.2, 0.1, 36, 7.5),
    "china": (1, 0.1, 0.02, 95, 0.3, 2, 0.1, 0.2, 1.3),
    "japan": (4, 0.5, 0.02, 0.8, 90, 1, 0.2, 0.3, 3.2),
    "asia": (4, 0.4, 0.1, 3, 0.3, 87, 0.7, 1.5, 3),
    "europe": (94, 1.5, 0.1, 0.3, 0.1, 0.8, 0.1, 1.1, 2),
    "africa": (6, 86, 0.1, 0.2, 0.05, 1, 0.1, 2.5, 4),
    "pacific": (5, 0.5, 0.1, 1, 0.5, 30, 55, 2, 6),
}


def census(rows: int = ROWS, *, seed: int = SEED) -> pa.Table:
    """A made-up census of ``rows`` people; the same seed gives the same table.

    >>> census(3, seed=1).column_names
    ['age', 'gender', 'education', 'marital', 'race', 'workclass', 'country', 'occupation']
    """
    if rows < 1:
        raise OptionError(f"rows = {rows} is not allowed: a table needs at least one row.")
    rng = np.random.default_rng(seed)
    age = rng.choice(AGES, size=rows, p=_shares(_age_weights()))
    gender = rng.choice(2, size=rows, p=[0.48, 0.52])
    education = _draw(rng, _education_given_age(), age)
    marital = _draw(rng, _marital_given_age(), age)
    occupation = _draw(rng, _occupation_given_education_and_gender(), education * 2 + gender)
    workclass = _draw(rng, np.array([EMPLOYERS[employer] for *_, employer in OCCUPATIONS]), occupation)
    countries, share, races = _countries()
    country = rng.choice(len(countries), size=rows, p=share)
    race = _draw(rng, races, country)
    return pa.table(
        {
            "age": pa.array((age + FIRST_AGE).astype(np.int64)),
            "gender": _words(GENDERS, gender),
            "education": _words(EDUCATION, education),
            "marital": _words(MARITAL, marital),
            "race": _words(RACES, race),
            "workclass": _words(WORKCLASS, workclass),
            "country": _words(countries, country),
            "occupation": _words([name for name, *_ in OCCUPATIONS], occupation),
        }
    )


def occupation_shares() -> Floats:
    """The expected share of each occupation, in their order: k-th demand ~ 1 / (k + 6.3), 7 % at the top."""
    return _shares(1 / (np.arange(len(OCCUPATIONS)) + 6.3))


def _age_weights() -> Floats:
    years = np.arange(AGES) + FIRST_AGE
    return np.clip((years - 14) / 8, 0.3, 1) / (1 + np.exp((years - 60) / 6)) + 0.002


def _education_given_age() -> Floats:
    """Under 22 nobody has finished a degree; every decade of age leans a little to less schooling."""
    years = (np.arange(AGES) + FIRST_AGE)[:, None]
    level = np.arange(len(EDUCATION))[None, :]
    earliest = np.array([0, 0, 0, 0, 0, 0, 0, 0, 17, 18, 20, 22, 24, 27])[None, :]
    lean = np.exp(-0.012 * (years - 40) * (level - 8) / 3)
    return np.asarray(EDUCATION_SHARE)[None, :] * lean * np.where(years >= earliest, 1.0, 1e-4)


def _marital_given_age() -> Floats:
    years = np.arange(AGES) + FIRST_AGE
    single = 0.07 + 0.92 / (1 + np.exp((years - 27) / 4))
    widowed = 0.5 / (1 + np.exp((78 - years) / 6))
    divorced = np.clip((years - 22) / 130, 0.001, 0.16)
    married = np.clip(1 - single - widowed - divorced, 0.005, None) * 0.95
    apart = married * 0.025
    return np.stack([single, married, apart, apart, divorced, widowed], axis=1)


def _occupation_given_education_and_gender() -> Floats:
    """Rows are (education, gender); fitted to the margins of the table in both directions."""
    level = np.array([asks for _, asks, *_ in OCCUPATIONS])
    women = np.array([share for _, _, share, _ in OCCUPATIONS]) / 100
    near = np.exp(-(((np.arange(len(EDUCATION))[:, None] - level[None, :]) / 2.2) ** 2)) + 1e-3
    joint = np.stack([near * women, near * (1 - women)], axis=1).reshape(-1, len(OCCUPATIONS))
    by_age = _education_given_age()
    by_age = by_age / by_age.sum(1, keepdims=True)
    education = _shares(_age_weights()) @ by_age
    people = np.stack([education * 0.48, education * 0.52], axis=1).reshape(-1)
    demand = occupation_shares()
    for _ in range(200):
        joint *= (demand / joint.sum(0))[None, :]
        joint *= (people / joint.sum(1))[:, None]
    return joint


def _countries() -> tuple[list[str], Floats, Floats]:
    """Names, shares and the races of each; within a part of the world the k-th country has a share ~ k^-1."""
    names: list[str] = []
    share: list[float] = []
    races: list[tuple[float, ...]] = []
    for region, countries in COUNTRIES:
        weights = _shares(1 / np.arange(1, len(countries) + 1)) * REGION_SHARE[region]
        names += countries
        share += weights.tolist()
        races += [REGION_RACES[region]] * len(countries)
    return names, _shares(np.array(share)), np.array(races)


def _shares(weights: Floats) -> Floats:
    return weights / weights.sum()


def _draw(rng: np.random.Generator, weights: Floats, given: Ints) -> Ints:
    """One draw per row from the distribution in row ``given`` of ``weights``, by inverting its running sum.

    Row g of the running sums is raised by g, so that one sorted array serves all of them.
    """
    rows, values = weights.shape
    running = np.cumsum(weights / weights.sum(1, keepdims=True), axis=1) + np.arange(rows)[:, None]
    place = np.searchsorted(running.reshape(-1), rng.random(len(given)) + given, side="right")
    return np.clip(place - given * values, 0, values - 1)  # sums that round past a whole number


def _words(names: Sequence[str], codes: Ints) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(names)).cast(pa.string())
