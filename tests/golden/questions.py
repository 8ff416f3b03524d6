"""What every release is asked: counts, questions in SQL, models. The words name an answer in the files of answers."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import deniable as dn

PUBLIC: dict[str, dict[str, Any]] = {
    "everyone": {},
    "women": {"sex": "F"},
    "aged 25 to 45": {"age": dn.between(25, 45)},
    "not in the north": {"region": dn.not_("north")},
    "in two towns": {"town": ["town 00", "town 06"]},
    "no pay": {"pay": None},
    "paid 2500 to 4000, men": {"pay": dn.between(2500.0, 4000.0), "sex": "M"},
    "born in the sixties": {"born": dn.between(dt.date(1960, 1, 1), dt.date(1969, 12, 31))},
    "insured in the east": {"insured": True, "region": "east"},
    "not of two ages": {"age": dn.not_([30, 31]), "visits": dn.between(1, 3)},
}


def _of(column: str) -> dict[str, dict[str, Any]]:
    return {
        "hiv": {column: "hiv"},
        "flu": {column: "flu"},
        "tb, hiv or measles": {column: ["tb", "hiv", "measles"]},
        "not flu": {column: dn.not_("flu")},
        "not flu or cold": {column: dn.not_(["flu", "cold"])},
    }


SENSITIVE: dict[str, dict[str, dict[str, Any]]] = {
    "disease": _of("disease"),
    "ill": {**_of("ill"), "missing": {"ill": None}, "not missing": {"ill": dn.not_(None)}},
    "two": {
        "hiv": {"disease": "hiv"},
        "not flu": {"disease": dn.not_("flu")},
        "nurse": {"job": "nurse"},
        "gout, judge": {"disease": "gout", "job": "judge"},
        "two, two": {"disease": ["gout", "angina"], "job": ["cook", "clerk"]},
        "cold, not nurse": {"disease": "cold", "job": dn.not_("nurse")},
    },
    "numbers": {
        "flu": {"disease": "flu"},
        "salary 20000 to 40000": {"salary": dn.between(20_000, 40_000)},
        "salary 25000": {"salary": 25_000},
        "grade 1 or 2, gout": {"grade": [1, 2], "disease": "gout"},
        "grade not 1, cook": {"grade": dn.not_(1), "job": "cook"},
        "all four": {"salary": dn.between(0, 30_000), "grade": dn.between(2, 4), "disease": "cold", "job": "nurse"},
    },
    "ranges": {
        "birth in the fifties": {"birth": dn.between(dt.date(1950, 1, 1), dt.date(1959, 12, 31))},
        "income 2000 to 3000": {"income": dn.between(2_000, 3_000)},
        "income not 2000 to 3000": {"income": dn.not_(dn.between(2_000, 3_000))},
        "both": {"income": dn.between(0, 2_500.5), "birth": dn.between(dt.date(1940, 1, 1), dt.date(1959, 12, 31))},
    },
    "lists": {
        "E11": {"diagnoses": dn.contains("E11")},
        "both": {"diagnoses": dn.contains("I50", "N18")},
        "not both": {"diagnoses": dn.not_(dn.contains("E11", "I10"))},
        "without J45": {"diagnoses": dn.not_(dn.contains("J45"))},
        "three": {"diagnoses": dn.contains("E11", "I10", "I50")},
    },
    "bins": {
        "low": {"salary": "[20000, 30000)"},
        "middle": {"salary": ["[20000, 30000)", "[30000, 40000)"]},
        "not high": {"salary": dn.not_("[40000, 60000)")},
    },
    "quantiles": {
        "low": {"salary": "below 24400"},
        "middle": {"salary": ["[24400, 34000)", "[34000, 40800)"]},
        "not high": {"salary": dn.not_("56700 and above")},
    },
}
COLUMN = {
    "disease": "disease",
    "ill": "ill",
    "two": "disease",
    "numbers": "disease",
    "ranges": "income",
    "lists": "diagnoses=E11",
    "bins": "salary",
    "quantiles": "salary",
}
MODELLED = {  # two conditions for models: what is explained, or explains
    "disease": ("flu", "tb, hiv or measles"),
    "ill": ("flu", "missing"),
    "two": ("not flu", "nurse"),
    "numbers": ("flu", "salary 20000 to 40000"),
    "ranges": ("income 2000 to 3000", "birth in the fifties"),
    "lists": ("E11", "without J45"),
    "bins": ("low", "middle"),
    "quantiles": ("low", "middle"),
}
WAYS: dict[str, dict[str, Any]] = {
    "inverse": {},
    "not calibrated": {"calibrate": False},
    "mle": {"method": "mle"},
    "shrunk": {"method": "shrunk"},
}
FOUR_STATE: dict[str, dict[str, Any]] = {
    "four-state": {"method": "four-state"},
    "four-state exact": {"method": "four-state exact"},
}


@dataclass(frozen=True)
class Count:
    """A count: its name, the condition, and the options."""

    name: str
    where: dict[str, Any]
    options: dict[str, Any]


def ways_of(mechanism: str) -> dict[str, dict[str, Any]]:
    """How counts are estimated; redrawn values say nothing that could be shrunk, and how sure that is is not known."""
    ways = {**WAYS, **(FOUR_STATE if mechanism == "decoys" else {})}
    return {name: options for name, options in ways.items() if (mechanism, name) != ("redraw", "shrunk")}


def counts(kind: str, mechanism: str) -> Iterator[Count]:
    """Every sensitive condition with every public one, in every way: 200 or more."""
    ways = ways_of(mechanism)
    for what, sensitive in SENSITIVE[kind].items():
        for who, public in PUBLIC.items():
            for way, options in ways.items():
                yield Count(f"{what} | {who} | {way}", {**sensitive, **public}, options)
    for who, public in PUBLIC.items():
        yield Count(f"all | {who} | confidence 0.8", public, {"confidence": 0.8})


# Questions that every release answers, or refuses, about its public columns and one condition {c} on the sensitive one.
ABOUT_EVERYONE = [
    "SELECT COUNT(*) AS n FROM release",
    "SELECT COUNT(*) AS n FROM release WHERE {c}",
    "SELECT COUNT(*) AS n FROM release WHERE NOT ({c})",
    "SELECT COUNT(*) AS n FROM release WHERE {c} AND sex = 'F' AND age BETWEEN 30 AND 60",
    "SELECT COUNT(*) AS n FROM release WHERE {c} OR region = 'west'",
    "SELECT COUNT(*) AS n FROM release WHERE {c} AND (pay IS NULL OR pay > 3500.5)",
    "SELECT COUNT(pay) AS n, COUNT(*) AS all_rows FROM release WHERE {c}",
    "SELECT SUM(pay) AS s FROM release WHERE {c}",
    "SELECT AVG(age) AS a, AVG(pay) AS p FROM release WHERE {c}",
    "SELECT AVG(age) AS a FROM release WHERE {c} GROUP BY sex ORDER BY sex",
    "SELECT SUM(weight * visits) AS w FROM release WHERE {c}",
    "SELECT SUM(pay) / SUM(age) AS x, AVG(pay) - AVG(age) AS m FROM release WHERE {c}",
    "SELECT AVG(CASE WHEN {c} THEN 1 ELSE 0 END) AS share FROM release",
    "SELECT sex, AVG(CASE WHEN {c} THEN 1 ELSE 0 END) AS share FROM release GROUP BY sex ORDER BY share DESC",
    "SELECT region, COUNT(*) AS n FROM release WHERE {c} GROUP BY region ORDER BY region",
    "SELECT region, sex, COUNT(*) AS n, AVG(visits) AS v FROM release WHERE {c} GROUP BY ALL ORDER BY 1, 2",
    "SELECT town, COUNT(*) AS n FROM release WHERE {c} GROUP BY town ORDER BY n DESC, town LIMIT 4",
    "SELECT town, COUNT(*) AS n FROM release WHERE {c} GROUP BY town HAVING n > 30 ORDER BY town",
    "SELECT region, COUNT(*) FILTER (WHERE {c}) * 1.0 / COUNT(*) AS share FROM release GROUP BY region ORDER BY region",
    "SELECT region, COUNT(*) FILTER (WHERE {c}) AS n, COUNT(*) AS rows_in_all FROM release GROUP BY region ORDER BY 1",
    "SELECT STDDEV(age) AS s, VARIANCE(visits) AS v FROM release WHERE {c}",
    "SELECT STDDEV_POP(pay) AS s, VAR_POP(age) AS v FROM release WHERE {c}",
    "SELECT MEDIAN(age) AS m FROM release WHERE {c}",
    "SELECT sex, MEDIAN(pay) AS m FROM release WHERE {c} GROUP BY sex ORDER BY sex",
    "SELECT QUANTILE_CONT(pay, 0.9) AS q, QUANTILE_DISC(age, 0.25) AS d FROM release WHERE {c}",
    "SELECT MIN(age) AS low, MAX(pay) AS high, MEDIAN(pay) AS m FROM release WHERE sex = 'M'",
    "SELECT region, MIN(born) AS first, MAX(seen) AS last, COUNT(DISTINCT town) AS t FROM release "
    "GROUP BY region ORDER BY 1",
    "SELECT COUNT_IF(age >= 65) AS old, COUNT(*) AS n FROM release WHERE {c}",
    "SELECT age // 10 AS decade, COUNT(*) AS n FROM release WHERE {c} GROUP BY decade ORDER BY decade",
    "SELECT CASE WHEN age < 40 THEN 'young' WHEN age < 65 THEN 'middle' ELSE 'old' END AS life, COUNT(*) AS n "
    "FROM release WHERE {c} GROUP BY life ORDER BY life",
    "SELECT YEAR(born) // 10 AS decade, AVG(pay) AS p FROM release WHERE {c} GROUP BY decade ORDER BY decade",
    "SELECT EXTRACT(quarter FROM seen) AS q, COUNT(*) AS n FROM release WHERE {c} GROUP BY q ORDER BY q",
    "SELECT DATE_TRUNC('quarter', seen) AS q, COUNT(*) AS n FROM release WHERE {c} GROUP BY q ORDER BY q",
    "SELECT COUNT(*) AS n FROM release WHERE {c} AND born < DATE '1960-01-01' AND MONTH(seen) IN (1, 2, 3)",
    "SELECT COUNT(*) AS n FROM release WHERE {c} AND town LIKE 'town 0%' AND UPPER(region) <> 'NORTH'",
    "SELECT COUNT(*) AS n FROM release WHERE {c} AND LENGTH(region) = 4 AND SUBSTR(town, 6, 1) = '0'",
    "SELECT COUNT(*) AS n FROM release WHERE {c} AND ROUND(pay / 1000) = 3 AND ABS(age - 50) < 10",
    "SELECT LEFT(region, 1) || '-' || sex AS who, COUNT(*) AS n FROM release WHERE {c} GROUP BY who ORDER BY who",
    "SELECT SUM(COALESCE(pay, 0)) AS s, AVG(SQRT(age)) AS r, SUM(GREATEST(visits, 2)) AS g FROM release WHERE {c}",
    "SELECT COUNT(*) AS n FROM release WHERE {c} AND region IS DISTINCT FROM 'north' AND insured",
    "SELECT sex, region, COUNT(*) AS n FROM release WHERE {c} GROUP BY ROLLUP (sex, region) ORDER BY 1, 2",
    "SELECT capital, COUNT(*) AS n, AVG(people) AS p FROM release JOIN places USING (region) WHERE {c} "
    "GROUP BY capital ORDER BY capital",
    "SELECT COUNT(*) AS n FROM release AS r LEFT JOIN places AS p ON r.region = p.region WHERE {c} AND p.people > 15",
    "WITH old AS (SELECT *, age - 60 AS over FROM release WHERE age >= 60) "
    "SELECT region, COUNT(*) AS n, AVG(over) AS o FROM old WHERE {c} GROUP BY region ORDER BY region",
    "SELECT town, COUNT(*) AS n FROM release WHERE {c} AND region IN (SELECT region FROM places WHERE people > 15) "
    "GROUP BY town ORDER BY town",
    "SELECT x.region, AVG(x.pay) AS p FROM (SELECT region, pay FROM release WHERE {c}) AS x "
    "GROUP BY x.region ORDER BY 1",
    "SELECT DISTINCT region FROM release ORDER BY region",
]
OF_DISEASES = [
    "SELECT {d}, COUNT(*) AS n FROM release GROUP BY {d} ORDER BY {d}",
    "SELECT {d}, COUNT(*) AS n, AVG(age) AS a FROM release WHERE sex = 'F' GROUP BY {d} ORDER BY n DESC",
    "SELECT sex, {d}, COUNT(*) AS n FROM release WHERE age < 60 GROUP BY sex, {d} ORDER BY sex, {d}",
    "SELECT {d}, COUNT(*) AS n FROM release GROUP BY {d} HAVING COUNT(*) > 300 ORDER BY n DESC LIMIT 3",
    "SELECT {d}, AVG(CASE WHEN sex = 'F' THEN 1 ELSE 0 END) AS share FROM release GROUP BY {d} ORDER BY {d}",
    "SELECT {d} IN ('tb', 'hiv') AS grave, COUNT(*) AS n, AVG(pay) AS p FROM release GROUP BY grave ORDER BY grave",
    "SELECT CASE WHEN {d} IN ('flu', 'cold') THEN 'light' ELSE 'other' END AS kind, COUNT(*) AS n FROM release "
    "GROUP BY kind ORDER BY kind",
    "SELECT COUNT(*) AS n FROM release WHERE {d} LIKE 'm%'",
    "SELECT COUNT(*) AS n FROM release WHERE UPPER({d}) = 'HIV' OR LENGTH({d}) = 2",
    "SELECT chapter, COUNT(*) AS n FROM release JOIN chapters ON {d} = code GROUP BY chapter ORDER BY chapter",
    "SELECT AVG(grave) AS g, SUM(grave) AS s FROM release JOIN chapters ON {d} = code WHERE sex = 'M'",
    "SELECT region, COUNT(*) AS n FROM release LEFT JOIN chapters ON {d} = code WHERE chapter = 'child' "
    "GROUP BY region ORDER BY region",
    "SELECT SUM(CASE WHEN {d} = 'hiv' THEN pay ELSE 0 END) AS s, "
    "AVG(CASE WHEN {d} = 'flu' THEN age END) AS a FROM release",
]
OF_LISTS = [
    "SELECT list_contains(diagnoses, 'E11') AS has, COUNT(*) AS n FROM release GROUP BY has ORDER BY has",
    "SELECT sex, list_contains(diagnoses, 'I10') AS has, COUNT(*) AS n FROM release GROUP BY sex, has "
    "ORDER BY sex, has",
    "SELECT COUNT(*) AS n FROM release WHERE list_has_all(diagnoses, ['I50', 'N18'])",
    "SELECT COUNT(*) AS n FROM release WHERE list_has_any(diagnoses, ['I50', 'N18']) AND age > 50",
    "SELECT COUNT(*) AS n FROM release WHERE diagnoses @> ['E11', 'I10']",
    "SELECT AVG(age) AS a FROM release WHERE list_contains(diagnoses, 'J45') AND NOT list_contains(diagnoses, 'E11')",
    "SELECT AVG(CASE WHEN list_contains(diagnoses, 'I10') THEN 1 ELSE 0 END) AS share FROM release",
    'SELECT "diagnoses=E11" AS e, COUNT(*) AS n FROM release GROUP BY e ORDER BY e',
    "SELECT COUNT(*) AS n FROM release WHERE len(diagnoses) > 1",
    "SELECT region, COUNT(*) FILTER (WHERE list_contains(diagnoses, 'I50')) AS n FROM release "
    "GROUP BY region ORDER BY region",
    "SELECT COUNT(*) AS n FROM release WHERE list_contains(diagnoses, 'E12')",
    "SELECT diagnoses, COUNT(*) AS n FROM release GROUP BY diagnoses",
    "SELECT MEDIAN(pay) AS m FROM release WHERE list_contains(diagnoses, 'E11')",
]
OF_SALARIES = [
    "SELECT SUM(salary) AS s, AVG(salary) AS a FROM release",
    "SELECT sex, AVG(salary) AS a FROM release GROUP BY sex ORDER BY sex",
    "SELECT COUNT(*) AS n FROM release WHERE salary BETWEEN 20000 AND 40000",
    "SELECT COUNT(*) AS n FROM release WHERE salary >= 60000 AND sex = 'F'",
    "SELECT MEDIAN(salary) AS m FROM release",
    "SELECT QUANTILE_DISC(salary, 0.8) AS q FROM release WHERE region = 'north'",
    "SELECT STDDEV(salary) AS s FROM release",
]
OF_RANGES = [
    "SELECT AVG(income) AS a, SUM(income) AS s FROM release",
    "SELECT sex, MEDIAN(income) AS m FROM release GROUP BY sex ORDER BY sex",
    "SELECT QUANTILE_DISC(income, 0.75) AS q FROM release WHERE region = 'north'",
    "SELECT STDDEV(income) AS s FROM release WHERE birth >= DATE '1950-01-01'",
    "SELECT YEAR(birth) // 10 AS decade, COUNT(*) AS n FROM release GROUP BY decade ORDER BY decade",
    "SELECT FLOOR(income / 1000) AS k, COUNT(*) AS n FROM release GROUP BY k ORDER BY k",
]
OF_TWO = [
    "SELECT job, COUNT(*) AS n FROM release GROUP BY job ORDER BY job",
    "SELECT disease, job, COUNT(*) AS n FROM release GROUP BY disease, job ORDER BY disease, job",
    "SELECT job, AVG(CASE WHEN disease = 'gout' THEN 1 ELSE 0 END) AS share FROM release GROUP BY job ORDER BY job",
    "SELECT COUNT(*) AS n FROM release WHERE disease = 'gout' OR job = 'judge'",
    "SELECT sex, COUNT(*) AS n, AVG(age) AS a FROM release WHERE disease = 'gout' AND job <> 'none' "
    "GROUP BY sex ORDER BY sex",
]
CONDITION = {
    "disease": ("disease = 'gout'", "disease IN ('tb', 'hiv', 'flu')"),
    "ill": ("ill = 'gout'", "ill IS NULL"),
    "two": ("disease = 'gout'", "disease IN ('flu', 'cold') AND job = 'nurse'"),
    "numbers": ("disease = 'gout'", "salary BETWEEN 20000 AND 40000"),
    "ranges": ("income < 2500", "birth < DATE '1955-01-01' AND income > 3000"),
    "lists": ("list_contains(diagnoses, 'I10')", "list_contains(diagnoses, 'E11')"),
    "bins": ("salary < 30000", "salary >= 40000"),
    "quantiles": ("salary < 24400", "salary >= 34000"),
}
_OWN = {
    "disease": OF_DISEASES,
    "ill": OF_DISEASES,
    "two": [*OF_DISEASES, *OF_TWO],
    "numbers": [*OF_DISEASES, *OF_TWO, *OF_SALARIES],
    "ranges": OF_RANGES,
    "lists": OF_LISTS,
    "bins": OF_SALARIES,
    "quantiles": OF_SALARIES,
}


def questions(kind: str) -> Iterator[tuple[str, str]]:
    """(name, SQL): 60 or so; those about everyone take the one condition and the other by turns."""
    for place, text in enumerate(ABOUT_EVERYONE):
        sql = text.format(c=CONDITION[kind][place % 3 == 2])
        yield sql, sql
    for text in _OWN[kind]:
        sql = text.format(d=COLUMN[kind])
        yield sql, sql
