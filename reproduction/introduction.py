"""The introduction of SDR as a table: Anatomy falls to an attacker who knows some members, randomization does not."""

from __future__ import annotations

from deniable.planning.candidates import Chart, line
from reproduction.corruption_story import GROUP, ROWS, corruption_story
from reproduction.items import Item, per_cent

METHODS = {
    "anatomy": f"Anatomy, l = {GROUP}",
    "generalize": f"generalization, k = l = {GROUP}",
    "perturbed-generalization": f"perturbed generalization, k = {GROUP}",
    "uniform": "uniform",
    "small-domain": "small-domain",
    "lineup": "line-up",
}
RANDOMIZED = ("perturbed-generalization", "uniform", "small-domain", "lineup")


def introduction(rows: int = ROWS) -> Item:
    """How often an attacker is right who knows 0, 1, .., 5 of every five other members of a person's group."""
    story = corruption_story(rows=rows)
    by_method = {name: [line for line in story if line["method"] == name] for name in METHODS}  # known: 0, 1, ..
    table = tuple(
        (str(known), *(per_cent(by_method[name][known]["success"]) for name in METHODS)) for known in range(GROUP)
    )
    falls = by_method["anatomy"][-1]["success"] == 1 and by_method["generalize"][-1]["success"] == 1
    holds = all(line["low"] <= 1 / GROUP for name in RANDOMIZED for line in by_method[name])
    least = min(line["trials"] for line in story)
    return Item(
        "SDR introduction",
        f"Right guesses of an attacker who knows 0 to {GROUP - 1} of every {GROUP - 1} other members of a person's "
        f"group; everyone is promised 1/{GROUP}. A made-up census of {rows:,} people; at least {least:,} are attacked "
        "per entry. The paper argues, and shows no figures.",
        (f"known of every {GROUP - 1}", *METHODS.values()),
        table,
        falls and holds,
        "The paper: each known member takes a value out of the group, and the last one is certain"
        + (" (so here). " if falls else " (not here). ")
        + "Randomization is independent of the others: the promise holds whomever the attacker knows"
        + (" (so here, within the intervals)." if holds else " (not here)."),
        Chart(
            "What knowing other members of a group is worth",
            f"known of every {GROUP - 1} other members",
            "right guesses",
            tuple(
                line(shown, {attack["known"]: attack["success"] for attack in by_method[name]})
                for name, shown in METHODS.items()
            ),
            percent=True,
        ),
    )
