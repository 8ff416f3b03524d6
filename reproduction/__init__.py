"""The papers' tables and figures, repeated: a program that uses deniable, and no part of it.

``PAPERS`` maps a name to what is to be repeated of it; ``deniable reproduce`` runs them from a checkout.
"""

from __future__ import annotations

from collections.abc import Callable

from reproduction import fine_grain, olap, open_problems, planning, small_domain, splu
from reproduction.items import Item, Reproduction
from reproduction.running import Paper, Part, Step, repeated

__all__ = ["PAPERS", "Item", "Paper", "Part", "Reproduction", "Step", "page", "repeated"]

PAPERS: dict[str, Callable[..., Paper]] = {
    "small-domain": small_domain.paper,
    "fine-grain": fine_grain.paper,
    "splu": splu.paper,
    "olap": olap.paper,
    "planner": planning.paper,
    "open-problems": open_problems.paper,
}

NO_CHARTS = (
    "There are no charts on this page: drawing them needs the extra `report` (pip install 'deniable[report]').\n\n"
)


def page(reproductions: list[Reproduction], folder: str | None = None) -> str:
    """One page of documentation: verdicts first, then every table, with charts from a folder beside the page."""
    items = [item for paper in reproductions for item in paper.items]
    verdicts = "".join(
        f"| {item.name} | {item.verdict} | {'' if item.draws is None else item.draws} |\n" for item in items
    )
    names = " ".join(paper.name for paper in reproductions)
    return (
        "# The papers, repeated\n\n"
        f"Written by `deniable reproduce {names} --out FILE`; do not edit. Every item shows the paper's figure, "
        "ours, and whether they agree, by sentences, settings and limits that stand in `reproduction/criteria.toml` "
        "and were settled before. *Differs* is a result too, and comes with what is known about why; *depends*: it "
        "agrees in another reading of what the paper does not state; *ours* has no counterpart in a paper. "
        "Independence, N_R f_x / n, needs no release: it is the line to beat.\n\n"
        f"{'' if folder else NO_CHARTS}"
        f"| item | verdict | draws |\n|---|---|---|\n{verdicts}\n"
        + "\n".join(paper.markdown(folder) for paper in reproductions)
    )
