"""The manifest by itself: that it does not contradict itself, and what it states of the whole release."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

from deniable_verify import lineups
from deniable_verify.checks import Check, guarded
from deniable_verify.learned import ledger_problems
from deniable_verify.numbers import (
    FULL,
    LARGEST_GRID,
    Json,
    cell_amplification,
    fraction,
    grid,
    optional,
    points,
    probability,
    range_amplification,
    value_of,
)
from deniable_verify.promises.items import row_amplification

VERSIONS = ("0.1.0",)  # of the software whose releases are understood
FORMAT_VERSION = 2
MOST_ROWS, MOST_COLUMNS, LARGEST_MIXTURE, LARGEST_GROUP, LARGEST_COUNT = 2**48, 10_000, 4_096, 2**20, 2**53
MOST_POOLED = 1000  # releases whose noise may have been added up
FIELDS_OF_STEPS = {
    "bands": {"width", "start"},
    "edges": {"edges"},
    "prefix": {"length", "pad"},
    "top": {"limit"},
    "bottom": {"limit"},
    "snap": {"grid"},
    "calendar": {"unit"},
    "hierarchy": {"map", "other"},
    "rare": {"below", "into"},
}


def files_of(raw: Json) -> dict[str, Json]:
    """The files that a manifest names, by what they are."""
    return {name: raw[name] for name in ("data", "lineups", "tables", "weights") if raw.get(name) is not None}


def problems(raw: Json) -> Iterator[str]:
    """What is wrong with a manifest that fits its schema, the first thing first: later checks rely on earlier ones."""
    if raw["rows"] > MOST_ROWS or len(raw["columns"]) > MOST_COLUMNS or len(raw["parts"]) > MOST_COLUMNS:
        yield "it speaks of more rows or columns than a release can have"
    roles = {column["name"]: column["role"] for column in raw["columns"]}
    covered = [name for part in raw["parts"] for name in part["columns"]]
    if len(roles) != len(raw["columns"]) or len(set(covered)) != len(covered):
        yield "a column is named twice, or belongs to two parts"
    if set(covered) != {name for name, role in roles.items() if role == "sensitive"}:
        yield "its parts are not about its sensitive columns"
    by_cell = any(part["cells_published"] for part in raw["parts"])
    if by_cell and (roles.get("cell") != "cell" or len(raw["parts"]) != 1):
        yield "cells are published, and no column 'cell' of one part says which"
    if not by_cell and ("cell" in roles.values() or any(len(part["cells"]) > 1 for part in raw["parts"])):
        yield "rows are of several cells, and it says that these are not published"
    files = [file["file"] for file in files_of(raw).values()]
    if any(not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", file) for file in files):
        yield "it names a data file outside the release"
    if len(set(files)) < len(files) or set(files) & {"manifest.json", "README.md", "signature.json"}:
        yield "one of its files is two things"
    yield from _numbers(raw)
    for part in raw["parts"]:
        yield from _part(part, raw)
    yield from _items(raw)
    yield from _columns(raw, set(roles) | set(covered))


def _numbers(raw: Json) -> Iterator[str]:
    """Fractions that no reader of fractions reads."""
    stated, required = raw["guarantee"], raw["privacy"]
    try:
        for bounds in (stated, required or {}):
            optional(probability)(bounds.get("rho1"))
            optional(probability)(bounds.get("rho2"))
        if (gamma := optional(fraction)(stated["gamma"])) is not None and gamma < 1:
            raise ValueError("gamma")
        if required is not None:
            fraction(required.get("epsilon", "0"))
            for _, rho1, rho2 in required["per_value"]:
                probability(rho1), probability(rho2)
            for sums in filter(None, (required["small_sums"], required["large_sums"])):
                [probability(number) for number in sums.values() if isinstance(number, str)]
    except (ValueError, TypeError, ZeroDivisionError):
        yield "a number of the guarantee or of the requirement is no probability, or no ratio of probabilities"


def _part(part: Json, raw: Json) -> Iterator[str]:
    columns, kinds, m = part["columns"], part["types"], len(part["domain"])
    if len(kinds) != len(columns):
        yield "a part does not have one type per column"
        return
    described = [part["range"], part["cells"] or None, part.get("lineups"), part.get("learned"), part["groups"]]
    described += [part["mixture"] if part["groups"] is None else None]
    if sum(one is not None for one in described) != 1:
        yield f"nothing, or more than one thing, says how {columns[0]!r} was perturbed"
    yield from _domain(part)
    if part["range"] is not None:
        yield from _range(part)
    elif m < 1 or m > LARGEST_GRID:
        yield "a domain is empty, or larger than any"
    noisy = part["marginal"]
    if noisy is not None and (len(noisy["counts"]) != m or max(map(abs, noisy["counts"]), default=0) > LARGEST_COUNT):
        yield "the noisy histogram does not have one count per value"
    if noisy is not None and not (1e-6 <= noisy["epsilon"] <= 1e6 and noisy["variance"] <= 1e15):
        yield "the noise of the histogram is none that a release can have"
    mixture = part["mixture"]
    if mixture is not None and (m > LARGEST_MIXTURE or len(mixture) != m or any(len(row) != m for row in mixture)):
        yield "the channel of the whole table does not have a row and a column per value"
    elif mixture is not None and any(abs(sum(column) - 1) > 1e-4 for column in zip(*mixture, strict=True)):
        yield "the channel of the whole table is not a probability distribution"
    if part["swapped"] is not None and len(part["cells"]) != 1:
        yield "values are swapped without a channel"
    if part["groups"] is not None and (part["groups"]["c"] > LARGEST_GROUP or m < 2):
        yield "a group of decoys is larger than any table, or of too few values"
    if not set(part["bins"]) <= set(columns):
        yield "bins are of a column that was not perturbed"
    if any(low >= high for bins in part["bins"].values() for low, high in pairwise(bins["edges"])):
        yield "bins do not rise"
    own = part["requirement"]
    try:
        if own is not None:
            probability(own["rho1"]), probability(own["rho2"]), optional(fraction)(own["s"])
    except (ValueError, TypeError, ZeroDivisionError):
        yield "a column's own requirement is no probability"
    if part.get("lineups") is not None and len(columns) != 1:
        yield "line-ups are of one column"
    if part.get("learned") is not None:
        yield from ledger_problems(part["learned"], raw)
        if noisy is not None:
            yield "values are dealt from a model, and a histogram stands beside it"


def _domain(part: Json) -> Iterator[str]:
    """A value has one entry for each column, of the column's type, and stands in the domain once."""
    if part["range"] is not None and part["domain"]:
        yield "a range of numbers lists values, too"
    seen = set()
    for entry in part["domain"]:
        try:
            read = value_of(entry, part["types"])
        except (ValueError, TypeError, ArithmeticError):
            yield "the domain holds a value that is not of its column's type, or lacks an entry for a column"
            return
        seen.add(tuple((type(item) is bool, item) for item in read))
    if len(seen) < len(part["domain"]):
        yield "a value stands in the domain twice"


def _range(part: Json) -> Iterator[str]:
    scope = part["range"]
    try:
        low, step, number = grid(scope)
        numbers = [scope["low"], scope["high"]] if scope["kind"] != "date" else []
        if len(part["columns"]) != 1 or any(type(one) not in (int, float) for one in numbers) or low.denominator < 1:
            raise TypeError("ends")
        if scope["kind"] != "number" and (low.denominator != 1 or step.denominator != 1):
            raise ValueError("steps")
    except (ValueError, TypeError, ArithmeticError):
        yield "a range does not go from a number to a number, or from a date to a date, in whole steps"
        return
    if not 2 <= number <= LARGEST_GRID:
        yield "a range has fewer points than two, or more than a release can have"


def _items(raw: Json) -> Iterator[str]:
    """All parts are items of one list, or none is; each has a column of its own name, of yes and no."""
    items = [part["item"] for part in raw["parts"] if part.get("item") is not None]
    if not items:
        return
    if len(items) != len(raw["parts"]) or any({**item, "item": ""} != {**items[0], "item": ""} for item in items):
        yield "some of its parts are items of one list, and others are not"
        return
    for part, item in zip(raw["parts"], items, strict=True):
        named = part["columns"] == [f"{item['list']}={item['item']}"] and part["types"] == ["bool"]
        if not named or part["domain"] != [[False], [True]] or [c["values"] for c in part["cells"]] != [[0, 1]]:
            yield "an item of a list is something else than a column of its name, of yes or no"
    if items[0]["most"] > len(items):
        yield "more items of a list count than there are"


def _columns(raw: Json, known: set[str]) -> Iterator[str]:
    """What is said of columns is said of columns that there are, and in a form that there is."""
    lists = {part["item"]["list"] for part in raw["parts"] if part.get("item")}
    if not {*raw.get("labels", {}), *raw.get("recoded", {})} <= known or "cell" in raw.get("recoded", {}):
        yield "it labels or recodes a column that it does not publish"
    if not set(raw.get("about", {}).get("columns", {})) <= known | lists:
        yield "it describes a column that it does not publish"
    if any(len({repr(code) for code, _ in pairs}) < len(pairs) for pairs in raw.get("labels", {}).values()):
        yield "it labels one code twice"
    for steps in raw.get("recoded", {}).values():
        if any(set(step) != {"kind", *FIELDS_OF_STEPS[step["kind"]]} for step in steps):
            yield "a recoding has other fields than its kind"
        if any(not (step.get("width", 1) > 0 and step.get("grid", 1) > 0) for step in steps):
            yield "a recoding has a width of nothing"
    try:
        if (date := raw.get("about", {}).get("date")) is not None:
            datetime.date.fromisoformat(date)
    except ValueError:
        yield "it was published on a day that there was not"


# -- The integers of each part -----------------------------------------------------------------------------------------


def software_check(raw: Json) -> list[Check]:
    """What wrote a release decides what its words mean, and switches no check off."""
    made = raw["software"]
    if made["name"] == "deniable" and made["version"] in VERSIONS and set(made) == {"name", "version"}:
        return []
    said = f"{made['name'][:40]} {made['version'][:40]} is not known here"
    return [
        Check("software", False, f"{said}: known are releases of deniable {', '.join(VERSIONS)}. Get a newer verifier")
    ]


def channels_check(part: Json) -> list[Check]:
    """Probabilities that are probabilities: whole numbers that add up."""
    m = len(part["domain"])
    if part["range"] is not None:
        number = points(part["range"])
        return [Check("range", 1 < number <= FULL, f"{number:,} points, coin {part['range']['keep'] / FULL:.6g}")]
    if part.get("lineups") is not None:
        sound = lineups.is_design(part["lineups"], m)
        return [Check("line-ups", sound, f"{m} arcs that add up to whole line-ups, {part['lineups']['orders']} orders")]
    for number, cell in enumerate(part["cells"]):
        sizes, places = {len(cell["values"]), len(cell["keep"]), len(cell["replace"])}, cell["values"]
        sound = len(sizes) == 1 and len(set(places)) == len(places) > 0 and max(places) < m
        if not sound or sum(cell["replace"]) != FULL:
            return [Check("channels", False, f"cell {number} is not a channel: its numbers do not add up")]
    count = len(part["cells"])
    return [Check("channels", True, f"{count} cell{'s' * (count != 1)}, columns add up to 1 exactly")] if count else []


def noise_check(part: Json) -> list[Check]:
    """Counts and rows are judged by the variance of the noise, so it must be that of its epsilon: 2q / (1 - q)^2 with
    q = e^-epsilon, once for each release that was pooled."""
    noisy = part["marginal"]
    if noisy is None:
        return []
    q = math.exp(-noisy["epsilon"])
    times = noisy["variance"] * (1 - q) ** 2 / (2 * q) if 0 < q < 1 else 0.0
    pooled = round(times)
    holds = 1 <= pooled <= MOST_POOLED and math.isclose(times, pooled, rel_tol=1e-9)
    together = f" of {pooled} releases" if holds and pooled > 1 else ""
    noise = f"noise{together} of epsilon {noisy['epsilon']:g} and variance {noisy['variance']:.4g}"
    return [Check("noisy histogram", holds, f"{len(noisy['counts'])} counts with {noise}")]


def bins_check(part: Json) -> list[Check]:
    """Averages are computed from edges, counts from labels: both must speak of the same intervals."""
    checks = []
    for name, made in part["bins"].items():
        shown = {entry[part["columns"].index(name)] for entry in part["domain"]} - {None}
        strange = shown - bin_labels(made)
        if strange:
            checks.append(Check("bins", False, f"{name}: {len(strange)} values are none of its intervals"))
    return checks


def bin_labels(made: Json) -> set[str]:
    """The intervals [e, f) between edges as texts; the last is closed, and open ends hold everything beyond."""
    edges = [f"{float(edge):.15g}" for edge in made["edges"]]
    labels = [f"[{low}, {high})" for low, high in pairwise(edges)]
    labels[-1] = f"{labels[-1][:-1]}]"
    if made["open_ends"]:
        labels[0], labels[-1] = f"below {edges[1]}", f"{edges[-2]} and above"
    return set(labels)


# -- What is stated of the whole release -------------------------------------------------------------------------------


def part_amplification(part: Json) -> Fraction | None:
    """The amplification of a part's only channel or range; None when it is unbounded, or there is not one channel.

    Swapped values are not drawn independently: no amplification is claimed of them. Odds that a ledger bounds are those
    of its promise, which is held to the ledger elsewhere.
    """
    if part["swapped"] is not None:
        return None
    if part["range"] is not None:
        return range_amplification(part["range"]["keep"], points(part["range"]))
    if part.get("lineups") is not None:
        return lineups.amplification(part["lineups"])
    if part.get("learned") is not None:
        return fraction(part["promise"]["gamma"]) if part["promise"]["kind"] == "odds" else None
    cells = part["cells"]
    return cell_amplification(cells[0]["keep"], cells[0]["replace"]) if len(cells) == 1 else None


def amplification_check(raw: Json) -> list[Check]:
    """The whole release's gamma: parts are perturbed independently, so theirs multiply. Its epsilon is ln gamma:
    whoever reads only the one must not be told less than the other says."""
    stated, epsilon, parts = raw["guarantee"]["gamma"], raw["guarantee"]["epsilon"], raw["parts"]
    if stated is None or epsilon is None:
        alone = Check("epsilon", False, "it is ln gamma, and only one of them is stated")
        return [] if stated is epsilon else [alone]
    exact = math.log(fraction(stated))
    same = math.isclose(epsilon, exact, rel_tol=1e-9, abs_tol=1e-12)
    listed = all(part.get("item") is not None for part in parts)  # two lists differ in some of their items only
    gammas = [row_amplification(parts)] if listed else [part_amplification(part) for part in parts]
    known = [gamma for gamma in gammas if gamma is not None]
    together = math.prod(known, start=Fraction(1)) if len(known) == len(gammas) else None
    shown = "unbounded" if together is None else f"{float(together):.6g}"
    detail = f"gamma is {shown}, promised {float(fraction(stated)):.6g}"
    return [
        Check("amplification", together is not None and together <= fraction(stated), detail),
        *([] if same else [Check("epsilon", False, f"{epsilon:.6g} is stated, and ln gamma is {exact:.6g}")]),
    ]


def requirement_check(raw: Json) -> list[Check]:
    """What was required against what is promised."""
    promised, required = raw["guarantee"], raw["privacy"]
    if required is None:
        return []
    weaker = promised["adversary"] != required["adversary"] and required["adversary"] == "any-prior"
    checks = [Check("adversary", not weaker, f"required {required['adversary']}, promised {promised['adversary']}")]
    for name in ("rho1", "rho2"):
        if required[name] is None:
            continue
        if promised[name] is not None:
            said, needed = fraction(promised[name]), fraction(required[name])
            holds = said >= needed if name == "rho1" else said <= needed
            checks.append(Check(name, holds, f"required {needed}, promised {said}"))
        elif name == "rho2" or promised["adversary"] == "any-prior":  # without rho1, values have their frequencies
            checks.append(Check(name, False, f"required {required[name]}, and none is promised"))
    budget = required.get("epsilon")
    if budget is not None:
        epsilon = promised["epsilon"]
        holds = epsilon is not None and epsilon <= float(fraction(budget)) + 1e-12
        checks.append(Check("budget", holds, f"required epsilon {float(fraction(budget)):.6g}, promised {epsilon}"))
    for name in ("small_sums", "large_sums"):
        if required[name] is not None:
            holds = all(part["promise"].get(name) == required[name] for part in raw["parts"])
            detail = "as promised" if holds else "not what is promised"
            checks.append(Check(f"required {name.replace('_', ' ')}", holds, detail))
    return checks


def seed_check(raw: Json) -> list[Check]:
    """A seed is told exactly where the draws came from one."""
    stated = raw["randomness"]
    if (stated["source"] == "seed") == (stated["seed"] is not None):
        return []
    return [Check("randomness", False, f"a seed and the source {stated['source']!r} contradict each other")]


OF_PARTS = (channels_check, noise_check, bins_check)
OF_RELEASES = (amplification_check, requirement_check, seed_check)


def sound_checks(raw: Json) -> list[Check]:
    """Everything that other checks rely on."""
    found = guarded("manifest", lambda: (Check("manifest", False, problem) for problem in problems(raw)))
    if found:
        return found[:1]
    checks = software_check(raw)
    for part in raw["parts"]:
        for check in OF_PARTS:
            checks += guarded("channels", lambda check=check, part=part: check(part))  # type: ignore[misc]
    return checks
