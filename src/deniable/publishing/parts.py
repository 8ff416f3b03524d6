"""From a table to a plan and what an engine is to execute: scan what the mechanism's layout asks for, then plan."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deniable.core.errors import OptionError, RequirementError, option
from deniable.core.part import Marginal, Part
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.core.recode import Snap, Step
from deniable.core.replace import Replace
from deniable.engines.base import Dataset, PartJob, items_of
from deniable.engines.batch.values import require_sensitive
from deniable.engines.randomness import drawn_rows
from deniable.mechanisms.base import Mechanism, Need, Scanned
from deniable.publishing.choosing import compared_for
from deniable.publishing.marginal import (
    NOT_WITH_ANY_PRIOR,
    is_wanted,
    noisy_marginal,
    public_histogram,
    said_of,
    said_of_unpublished,
)
from deniable.publishing.request import Publication


@dataclass(frozen=True)
class Prepared:
    """A plan, the table that it is for, the jobs that execute its parts, and their published histograms.

    ``chosen`` says why the planner took this mechanism; nothing where the owner named it.
    """

    plan: Plan
    dataset: Dataset
    jobs: tuple[PartJob, ...]
    marginals: tuple[Marginal | None, ...]
    chosen: str = ""

    def published(self, missing: str) -> tuple[Part, ...]:
        """What a release says of its parts. Cells that nobody sees stay unsaid: what is published of them is their
        mixture, by the noisy histogram."""
        return tuple(
            Part(
                columns=job.part.columns,
                types=tuple(str(kind) for kind in job.encoder.types),
                missing=missing,
                promise=promise,
                domain=() if job.part.histogram is None else job.part.histogram.domain,
                range=job.part.grid,
                channels=() if job.part.hidden else tuple(cell.channel for cell in job.part.cells),
                cell_positions=() if job.part.hidden else tuple(job.part.positions(cell) for cell in job.part.cells),
                cells_published=job.part.cells_published,
                marginal=noisy,
                mixture=job.part.mixture,
                swapped=job.part.histogram.rows if job.part.swapped and job.part.histogram is not None else None,
                groups=job.part.groups,
                bins={name: bins for name, bins in self.dataset.bins.items() if name in job.part.columns},
                requirement=job.part.requirement,
                lineups=job.part.lineups,
                item=items_of(self.dataset).get(job.part.columns[0]),
            )
            for job, promise, noisy in zip(self.jobs, self.plan.guarantee.promises, self.marginals, strict=True)
        )


@dataclass(frozen=True)
class _Examined:
    """One part as it was scanned: for the mechanism, for the engine, and its noisy histogram."""

    scan: Scanned
    encoder: Any
    marginal: Marginal | None = None


def prepared(mechanism: str | Mechanism, publication: Publication) -> Prepared:
    """What an engine is to execute for this mechanism, or for the planner's choice."""
    if isinstance(mechanism, Mechanism):
        return _prepared(mechanism, publication)
    compared = compared_for(publication)
    refused: RequirementError | None = None
    for one in compared.usable:
        try:
            ready = _prepared(one.mechanism, publication)
        except RequirementError as problem:  # noisy counts allow it, exact ones do not
            refused = refused or problem
            continue
        return dataclasses.replace(ready, chosen=compared.in_one_line(one, ready.plan))
    assert refused is not None
    raise refused


def _prepared(mechanism: Mechanism, publication: Publication) -> Prepared:
    needs = mechanism.layout(publication.sensitive)
    domains = _domains(publication.domain, needs)
    scanned = [
        _scanned(need, domain, publication, several=len(needs) > 1) for need, domain in zip(needs, domains, strict=True)
    ]
    left_out = mechanism.left_over([one.scan for one in scanned], publication.privacy)
    if left_out:
        rows = drawn_rows(publication.keys.subkey("leftovers"), scanned[0].scan.rows, left_out)
        publication = publication.without(rows)
        # A value of which no row remains stays in the domain: the list of values is that of the table.
        kept = [one.scan.values.domain for one in scanned]
        scanned = [
            _scanned(need, domain, publication, several=len(needs) > 1)
            for need, domain in zip(needs, kept, strict=True)
        ]
    plan = mechanism.plan_scanned([one.scan for one in scanned], publication.privacy, left_out)
    for need, domain in zip(needs, domains, strict=True):
        require_declared(need, domain, publication.privacy, plan.guarantee.adversary)
    jobs = tuple(
        PartJob(part, one.encoder if part.grid is None else one.encoder.with_range(part.grid), one.scan.rows)
        for part, one in zip(plan.parts, scanned, strict=True)
    )
    marginals = tuple(one.marginal for one in scanned)
    noisily = any(one.scan.public is not None for one in scanned)
    return Prepared(_said(plan, needs, marginals, noisily), publication.dataset, jobs, marginals)


def _said(plan: Plan, needs: Sequence[Need], marginals: Sequence[Marginal | None], planned_noisily: bool) -> Plan:
    """The plan, saying what its histograms give away; columns with promises of their own say it there."""
    promised = plan.guarantee
    if all(need.noisy == "default" for need in needs):
        promised = said_of(promised, [one for one in marginals if one is not None])
    if not any(marginals) and planned_noisily:
        promised = said_of_unpublished(promised)
    return dataclasses.replace(plan, guarantee=promised)


def _scanned(need: Need, domain: Any, publication: Publication, *, several: bool) -> _Examined:
    if need.range is not None:
        return _scanned_range(need, domain, publication)
    wish, privacy = publication.request.marginals, publication.privacy
    scan = publication.scan(need.columns, [False, True] if need.yes_or_no else domain)
    keys = publication.keys.subkey(*need.columns) if several or need.noisy != "default" else publication.keys
    wanted = is_wanted(wish, privacy, need.noisy)
    if wanted and need.any_prior:
        raise RequirementError(NOT_WITH_ANY_PRIOR)
    # Plans are made from noisy counts, whether or not these are published (mathematics 13.4).
    planned = wanted or is_wanted(None, privacy, need.noisy)
    drawn = noisy_marginal(keys, scan.histogram) if planned else None
    scanned = Scanned(
        columns=need.columns,
        rows=scan.rows,
        histogram=scan.histogram,
        public=public_histogram(scan.histogram, drawn),
        noise=0.0 if drawn is None or not wanted else drawn.cost,
        declared=_is_declared(need, domain),
    )
    return _Examined(scanned, scan.encoder, drawn if wanted else None)


def _scanned_range(need: Need, domain: Any, publication: Publication) -> _Examined:
    (column,) = need.columns
    assert need.range is not None
    if domain is not None:
        raise OptionError(f"domain lists values of {column!r}, which is replaced within a range. Fix: leave it out.")
    wanted = _on_its_grid(need.range, publication.dataset.recodes.get(column, ()))
    request = publication.request
    scan = publication.dataset.scan_range(column, wanted, request.missing, request.progress)
    return _Examined(Scanned(need.columns, scan.rows, grid=scan.grid, declared=True), scan.encoder)


def _on_its_grid(wanted: Replace, steps: Sequence[Step]) -> Replace:
    """A column that was rounded before has its multiples as its grid, unless another one is asked for."""
    grids = [step.grid for step in steps if isinstance(step, Snap)]
    if wanted.step is not None or not grids:
        return wanted
    return Replace(wanted.coin, wanted.low, wanted.high, wanted.replacing, wanted.privacy, step=grids[-1])


def require_declared(need: Need, domain: Any, privacy: Privacy | None, adversary: str) -> None:
    """Refuse values that are read off the table where that alone would break what is promised (mathematics 13.3,
    13.12)."""
    any_prior = need.any_prior or adversary == "any-prior"
    small_sums = privacy is not None and privacy.small_sums is not None
    if not (any_prior or small_sums) or need.range is not None or _is_declared(need, domain):
        return
    which = " and ".join(repr(column) for column in need.columns)
    why = (
        "adversary 'any-prior' covers whatever was believed, and that a value is listed because someone holds it is "
        "evidence"
        if any_prior
        else f"{option('small_sums')} keeps small counts uncertain, and a value that is listed because someone holds "
        "it has one row at least"
    )
    raise RequirementError(
        f"The values of {which} are not declared: {why}. Fix: {option('domain', '[..]', 'COLUMN=FILE')} with every "
        "value that the column may hold, whether or not the table shows it."
    )


def _is_declared(need: Need, domain: Any) -> bool:
    """Whether every column of a part has its values, or its range, declared."""
    if isinstance(domain, Mapping):
        return all(domain.get(column) is not None for column in need.columns)
    return domain is not None or need.range is not None


def _domains(domain: Any, needs: Sequence[Need]) -> list[Any]:
    """The declared values of each part: as given where there is one, else by column."""
    if len(needs) == 1 and len(needs[0].columns) > 1:
        return [domain]
    declared = domain_of_columns(domain, tuple(need.columns[0] for need in needs))
    return [declared.get(need.columns[0]) for need in needs]


def domain_of_columns(domain: Any, columns: tuple[str, ...]) -> Mapping[str, Sequence[Hashable]]:
    """The declared values of each column: a mapping, or the list of the only column."""
    if domain is None:
        return {}
    if not isinstance(domain, Mapping):
        if len(columns) != 1:
            raise OptionError(
                "domain: with several columns, declare values by column. Fix: "
                f"{option('domain', '{column: [values]}', 'COLUMN=FILE')}."
            )
        return {columns[0]: domain}
    require_sensitive(domain, columns)
    return domain
