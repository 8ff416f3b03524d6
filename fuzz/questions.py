"""Questions in SQL put together from words at random, and real ones with a word changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import deniable as dn
from fuzz.case import Case
from fuzz.releases import make

WORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "HAVING", "LIMIT", "OFFSET", "AND", "OR", "NOT", "IN", "AS"),
    *("BETWEEN", "LIKE", "ILIKE", "IS", "NULL", "CASE", "WHEN", "THEN", "ELSE", "END", "FILTER", "DISTINCT", "CAST"),
    *(
        "COUNT(*)",
        "COUNT(",
        "SUM(",
        "AVG(",
        "MIN(",
        "MAX(",
        ")",
        "(",
        ",",
        "=",
        "<",
        ">=",
        "<>",
        "+",
        "-",
        "*",
        "/",
        "%",
    ),
    *("release", "sex", "age", "born", "disease", "cell", "n", '"age"', "'a'", "'F'", "''", "40", "-1", "0", "1e308"),
    *("99999999999999999999", "DATE '2024-01-01'", "INTERVAL 1 DAY", "::int", "TRUE", "~", "^", "||", ";", "--", "/*"),
    *("OVER ()", "UNION", "JOIN", "WITH", "EXISTS", "ANY", "ARRAY[1]", "{'a': 1}", "x -> x", "?", "$1", "\x00", "é"),
)
SOUND = (
    "SELECT sex, COUNT(*) AS n, AVG(age) AS a FROM release WHERE disease IN ('a', 'b') GROUP BY sex ORDER BY n LIMIT 3",
    "SELECT disease, COUNT(*) FILTER (WHERE age > 40) AS n FROM release GROUP BY disease HAVING COUNT(*) > 10",
    "SELECT COUNT(*) AS n FROM release WHERE age BETWEEN 20 AND 40 OR NOT (sex = 'F' AND disease LIKE 'a%')",
    "SELECT SUM(age) / COUNT(*) AS a, AVG(CASE WHEN disease = 'a' THEN 1 ELSE 0 END) AS s FROM release",
    "SELECT COUNT(*) AS n FROM release WHERE list_contains(disease, 'a') AND NOT list_has_any(disease, ['b', 'c'])",
    "SELECT SUM(age) FILTER (WHERE disease = 'a') / SUM(age) AS s, SUM(age * age) AS w FROM release GROUP BY sex",
    "SELECT born, COUNT(*) AS n FROM release WHERE born >= DATE '1990-01-01' GROUP BY born ORDER BY born DESC LIMIT 5",
)


def cases(draw: Random, home: Path) -> Iterator[Case]:
    """Questions to releases of every mechanism."""
    folders = make(home)
    releases = {name: dn.open_release(folder) for name, folder in folders.items()}
    while True:
        name, text = draw.choice(list(releases)), question(draw)
        method = draw.choice(("inverse", "inverse", "mle", "shrunk", "four-state"))
        release = releases[name]
        yield Case(f"{name}, {method}: {text[:200]}", (lambda r=release, t=text, m=method: r.sql(t, method=m),))


def question(draw: Random) -> str:
    """A question: near a sound one, of many parts, or of words at random."""
    kind = draw.random()
    if kind < 0.6:
        words = draw.choice(SOUND).split(" ")
        for _ in range(draw.choice((1, 1, 2, 4))):
            place = draw.randrange(len(words))
            change = draw.random()
            if change < 0.4:
                words[place] = draw.choice(WORDS)
            elif change < 0.6:
                words.insert(place, draw.choice(WORDS))
            elif change < 0.8 and len(words) > 1:
                del words[place]
            else:
                words[place] = draw.choice(words)
        return " ".join(words)
    if kind < 0.7:
        joined = draw.choice((" OR ", " AND ")).join(["age = 1"] * draw.choice((10, 100, 4_000)))
        return f"SELECT COUNT(*) AS n FROM release WHERE {joined}"
    if kind < 0.8:
        depth = draw.choice((5, 50, 5_000))
        return f"SELECT COUNT(*) AS n FROM release WHERE {'(' * depth}age = 1{')' * depth}"
    return " ".join(["SELECT", *(draw.choice(WORDS) for _ in range(draw.randint(1, 20)))])
