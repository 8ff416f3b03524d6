"""What papers leave open, reading by reading: a verdict is about the paper only where no reading agrees with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.lab.draws import draw_plan, stream_of
from deniable.lab.experiments import reconstruction_error
from deniable.lab.rival import estimated
from deniable.mechanisms import SmallDomain, Uniform
from deniable.planning.pools import CodedTable, sized_pool
from deniable.planning.prediction import Spread, relative_error, spread
from reproduction.criteria import limit
from reproduction.fine_grain_channels import THETA, utilities
from reproduction.items import Item, per_cent, with_spread
from reproduction.splu_pairs import intervals
from reproduction.splu_settings import PUBLISHED, AsPublished, at_most
from reproduction.zipf import RHO1, RHO2, ROWS, ZIPF, largest_protected, table_of, zipf

SHAPES = {
    "THESIS Table 5": [(50, 1), (75, 1), (100, 1), (150, 1)],
    "THESIS Table 6": [(50, 1), (50, 2), (50, 3)],
}
AS_PRINTED = Privacy(RHO1, RHO2)


@dataclass(frozen=True)
class Reading:
    """One way to read an experiment, what it gives, and whether that is the paper's figure."""

    item: str
    words: str
    figures: str
    agrees: bool


# -- Zipf tables -------------------------------------------------------------------------------------------------------


def _with_empty(m: int, skew: float) -> Histogram:
    """Cut to 0.1 %, and values without rows stay in the domain."""
    cut = zipf(m, skew)
    counts = np.concatenate([cut.counts, np.zeros(m - cut.m, np.int64)])
    return Histogram(tuple(range(1, m + 1)), counts)


Made = Callable[[int, float], Histogram]
# words: the table, whether rho1 is the largest protected share, the estimator, and whether negative counts become 0
ZIPF_READINGS: Mapping[str, tuple[Made, bool, str, bool]] = {
    "cut to 0.1 %": (zipf, True, "inverse", False),
    "cut, rho1 = 1/13 as printed": (zipf, False, "inverse", False),
    "rounded to 0.1 %": (lambda m, skew: zipf(m, skew, rounded=True), True, "inverse", False),
    "not cut": (lambda m, skew: zipf(m, skew, grid=ROWS), True, "inverse", False),
    "cut, values without rows kept": (_with_empty, True, "inverse", False),
    "cut, negative estimates are 0": (zipf, True, "inverse", True),
    "cut, maximum likelihood": (zipf, True, "mle", False),
}


def _plan_error(plan: Plan, draws: int, estimator: str, clipped: bool) -> Spread:
    table, single = table_of(plan.histogram), np.eye(plan.histogram.m, dtype=bool)
    errors = []
    for number in range(draws):
        draw = draw_plan(table, plan, stream_of(1, number, plan.mechanism), None)
        counts = estimated(draw.asking, draw.asking.total[None, :], single, estimator)[0]
        errors.append(reconstruction_error(np.maximum(counts, 0) if clipped else counts, plan.histogram.counts))
    return spread(errors)


def zipf_readings(words: str, draws: int) -> list[Reading]:
    """Tables 5 and 6 in one reading."""
    made, protected, estimator, clipped = ZIPF_READINGS[words]
    readings = []
    for item, shapes in SHAPES.items():
        shown, inside = [], True
        for m, skew in shapes:
            histogram = made(m, skew)
            privacy = largest_protected(histogram) if protected else AS_PRINTED
            plans = (Uniform(), SmallDomain(cost="bound", orders="band"))
            uniform, cells = (_plan_error(one.plan(histogram, privacy), draws, estimator, clipped) for one in plans)
            for ours, paper in zip((cells, uniform), ZIPF[m, skew], strict=True):
                inside &= abs(100 * ours.mean - paper) <= 100 * limit(item, "deviations") * ours.deviation
            shown.append(f"{with_spread(uniform)} and {with_spread(cells)}")
        readings.append(Reading(item, words, "; ".join(shown), inside))
    return readings


# -- Figures 24 and 28 of THESIS ---------------------------------------------------------------------------------------


def utility_readings(census: pa.Table) -> list[Reading]:
    """The most that fine-grain keeps at theta up to 20 and 30; both trends of Figure 28, cut and not cut."""
    low, high = limit("THESIS Figure 24", "almost_60")
    occupation = CodedTable.of(census, "occupation").histogram
    readings = []
    for theta in (20, 30):
        kept = utilities(occupation, theta)[0]
        readings.append(Reading("THESIS Figure 24", f"theta up to {theta}", per_cent(kept), low <= kept < high))
    for words, grid in (("cut to 0.1 %", 1000), ("not cut", ROWS)):
        fine, uniform = zip(*(utilities(zipf(20, skew, grid=grid), THETA) for skew in (1, 2, 3, 4)), strict=True)
        both = list(fine) == sorted(fine) and list(uniform) == sorted(uniform, reverse=True)
        figures = f"{' / '.join(map(per_cent, fine))} and {' / '.join(map(per_cent, uniform))}"
        readings.append(Reading("THESIS Figure 28", words, figures, both))
    return readings


# -- SPLU 6.2.1 --------------------------------------------------------------------------------------------------------


def larger_sums(census: pa.Table, draws: int) -> list[Reading]:
    """Sums of 5 to 8 % of the rows, c = 5, by which questions are meant."""
    item = "SPLU section 6.2.1, larger sums"
    place = census.schema.get_field_index("age")
    ages = pa.array(intervals(census["age"].to_numpy(), 12))
    table = CodedTable.of(census.set_column(place, "age", ages), "occupation")
    low, high = (int(np.ceil(share * table.rows)) for share in (0.05, 0.08))
    pool = sized_pool("splu-larger", table, low, high - 1)
    conditioned = [set() if mask is None else set(mask) for mask in pool.masks]
    kinds = {
        "all with public conditions": np.ones(len(pool), bool),
        "a condition on age among them": np.array([("age" in conditioned[one]) for one in pool.condition]),
    }
    errors: dict[str, list[float]] = {words: [] for words in kinds}
    alone: list[float] = []
    counts = table.histogram.counts
    wanted = (counts >= low) & (counts < high)
    for draw in range(draws):
        answered = AsPublished(5).run(pool, stream_of(1, draw, PUBLISHED))
        off = relative_error(pool.pick(answered.answers[""]), pool.truth)
        for words, chosen in kinds.items():
            if chosen.any():
                errors[words].append(float(off[chosen].mean()))
        alone.append(float(relative_error(answered.histogram[""], counts)[wanted].mean()))
    errors |= {f"an occupation alone ({int(wanted.sum())} of them)": alone}
    most = limit(item, "about")
    return [
        Reading(item, words, with_spread(spread(off)), at_most(spread(off), most))
        if off
        else Reading(item, words, "no such question", False)
        for words, off in errors.items()
    ]


# -- The item ----------------------------------------------------------------------------------------------------------


def readings_item(name: str, about: str, readings: Sequence[Reading]) -> Item:
    """All of them in one table."""
    by_item: dict[str, list[Reading]] = {}
    for reading in readings:
        by_item.setdefault(reading.item, []).append(reading)
    agreeing = [item for item, some in by_item.items() if any(reading.agrees for reading in some)]
    never = [item for item in by_item if item not in agreeing]
    return Item(
        name,
        f"What the paper does not state, in every reading that was tried; the one that is judged stands first. {about}",
        ("item", "reading", "ours", "as in the paper"),
        tuple(
            (one.item, one.words, one.figures, "yes" if one.agrees else "no")
            for some in by_item.values()
            for one in some
        ),
        None,
        " ".join(
            [f"{item}: in some reading the paper's figures come out." for item in agreeing]
            + [f"{item}: in none of these do they come out." for item in never]
        ),
    )


def with_readings(name: str, about: str, items: Sequence[Item], readings: Sequence[Reading]) -> list[Item]:
    """Items, which say in which reading they agree if not in the one that is judged, and all readings."""
    agreeing = {one.item: one.words for one in reversed(readings) if one.agrees}
    said = [
        replace(item, reading=agreeing[item.name]) if item.agrees is False and item.name in agreeing else item
        for item in items
    ]
    return [*said, readings_item(name, about, readings)]
