"""Every mechanism on five pools of SDR 10.9: each release is drawn once, and asked by all pools of all tables here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache

from deniable.core.privacy import Privacy
from deniable.lab.anatomy import Anatomized
from deniable.lab.experiments import Result, run_on_pools
from deniable.lab.rival import Setting
from deniable.lab.settings import STANDARD, Perturbed
from deniable.mechanisms import Designed, Identity, Lineup, Mechanism, SmallDomain, Uniform
from deniable.planning.pools import CodedTable, QuestionPool, sdr_pool
from reproduction.running import Part

DRAWS = 20
RHO1, RHO2 = Fraction(1, 13), Fraction(1, 6)
KNOWS, ANY_PRIOR = Privacy(RHO1, RHO2), Privacy(RHO1, RHO2, adversary="any-prior")
POOLS = (1, 2, 3, 4, 5)
LINE_UP, CELLS, DESIGNED = "line-up", "small-domain, bound", "designed, frequency"
# of 20 draws on five pools, one core
SECONDS = {LINE_UP: 20.0, "any prior: line-up": 15.0, "small-domain, bound": 10.0, "small-domain, default": 10.0}
OTHER_SECONDS = 5.0


def settings() -> list[Setting]:
    """All that is compared: with a shrunk estimate where the table of mathematics 5 has one."""
    shrunk: dict[str, Mechanism] = {
        "uniform": Uniform(),
        CELLS: SmallDomain(cost="bound", orders="band"),
        "small-domain, default": SmallDomain(),
        "identity": Identity(),
        DESIGNED: Designed(replacing="frequency"),
        "designed, optimised": Designed(replacing="optimised"),
        LINE_UP: Lineup(),
    }
    unshrunk: dict[str, Mechanism] = {
        "line-up, truth 4/5": Lineup(truth=Fraction(4, 5)),
        "line-up, truth 1": Lineup(truth=1),
        "line-up of 10, truth 1/2": Lineup(size=10),
        "line-up of 12, truth 1": Lineup(size=12, truth=1),
    }
    any_prior: dict[str, Mechanism] = {"any prior: uniform": Uniform(), "any prior: line-up": Lineup()}
    return [
        *(Perturbed(label, mechanism, KNOWS, STANDARD) for label, mechanism in shrunk.items()),
        *(Perturbed(label, mechanism, KNOWS, ("inverse", "calibrated")) for label, mechanism in unshrunk.items()),
        *(Perturbed(label, mechanism, ANY_PRIOR, ("inverse", "shrunk")) for label, mechanism in any_prior.items()),
        Anatomized(6),
    ]


def parts(table: CodedTable, draws: int) -> tuple[Part, ...]:
    """One setting each, drawn and asked; a process makes the pools once."""

    @cache
    def pools() -> tuple[QuestionPool, ...]:
        return tuple(sdr_pool(table, seed=seed) for seed in POOLS)

    def drawn(setting: Setting) -> tuple[Result, ...]:
        return run_on_pools(pools(), [setting], draws=draws)

    return tuple(
        Part(lambda setting=setting: drawn(setting), SECONDS.get(setting.label, OTHER_SECONDS))  # type: ignore[misc]
        for setting in settings()
    )


def joined(by_setting: Sequence[tuple[Result, ...]]) -> tuple[Result, ...]:
    """For each pool the rows of all settings, independence last and once."""
    return tuple(
        replace(
            of_pool[0],
            rows=(*(row for result in of_pool for row in result.rows[:-1]), of_pool[0].rows[-1]),
            refused={label: why for result in of_pool for label, why in result.refused.items()},
        )
        for of_pool in zip(*by_setting, strict=True)
    )


def only(result: Result, labels: Sequence[str]) -> Result:
    """The same with the rows of some settings."""
    return replace(result, rows=tuple(row for row in result.rows if row.setting in labels))
