"""From a table to a plan and what an engine is to execute: scan what the mechanism's layout asks for, then plan."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, cast

import numpy as np

from deniable.core.channels import Replace
from deniable.core.errors import OptionError, RequirementError, option
from deniable.core.histogram import Histogram
from deniable.core.lineups import surest_in_lineups
from deniable.core.manifest import ROW_ID
from deniable.core.part import COUNT_EPSILON, Marginal, Part
from deniable.core.plan import Plan, PlannedPart
from deniable.core.privacy import Privacy
from deniable.core.promise import Amplification, Guarantee, Nothing, PerValue, Promise, RelativePrior
from deniable.core.transforms import Snap, Step
from deniable.mechanisms import Lineup, SmallDomain
from deniable.mechanisms.base import Mechanism, Need, Scanned
from deniable.mechanisms.one_cell import covered_by_promise, keeps_singles
from deniable.mechanisms.requirement import matched_requirements, own_limits
from deniable.mechanisms.small_domain import surest_in_cells
from deniable.mechanisms.synthetic import Synthetic
from deniable.planning.comparison import Comparison
from deniable.planning.outlook import Outlook, limit_for
from deniable.planning.planner import planners_choice, require_something
from deniable.publishing.learned import Look, learned_from, look_at, unfit
from deniable.publishing.paid_histogram import PaidHistogram
from deniable.publishing.request import Publication
from deniable.tables.base import Dataset, PartJob, items_of
from deniable.tables.encoding import require_sensitive
from deniable.tables.keys import Keystream, discrete_laplace, discrete_laplace_variance, drawn_rows

# -- The noisy histogram of a release: one rule for when it is published, how it is drawn, and what is said of it ------


COST = 2 * COUNT_EPSILON  # of a whole histogram
NOT_WITH_ANY_PRIOR = (
    "marginals = True does not go with adversary 'any-prior': the noisy histogram would let the odds of any belief "
    f"grow by a further factor of e^{COST:g}, beyond rho2. Fix: leave marginals out."
)


def is_wanted(
    wish: bool | None, privacy: Privacy | None, rule: Literal["default", "always", "asked"] = "default"
) -> bool:
    """Whether a part publishes it; by default where the adversary knows the distribution anyway, and no small sum must
    stay uncertain."""
    if rule != "default":
        return rule == "always" or bool(wish)
    knows = privacy is None or privacy.adversary == "frequency"
    uncertain = privacy is not None and privacy.small_sums is not None
    if wish and uncertain:
        raise RequirementError(
            f"marginals = True does not go with {option('small_sums')}: the noisy histogram tells every count, small "
            "ones too, to within about two rows. Fix: leave marginals out."
        )
    return knows and not uncertain if wish is None else wish


def noisy_marginal(keys: Keystream, histogram: Histogram) -> Marginal:
    """The histogram with discrete Laplace noise; its draws depend on the counts, so a re-run repeats them and another
    table gets fresh ones."""
    stream = keys.subkey("marginal", hashlib.sha256(histogram.counts.tobytes()).hexdigest())
    counts = histogram.counts + discrete_laplace(stream, histogram.m, COUNT_EPSILON)
    return Marginal(tuple(counts.tolist()), COUNT_EPSILON, discrete_laplace_variance(COUNT_EPSILON))


def public_histogram(histogram: Histogram, marginal: Marginal | None) -> Histogram | None:
    """The noisy histogram with every count at least one."""
    if marginal is None:
        return None
    return Histogram(histogram.domain, np.maximum(np.array(marginal.counts, dtype=np.int64), 1))


def said_of(promised: Guarantee, marginals: list[Marginal]) -> Guarantee:
    """The frequency adversary knows the histogram anyway; to others the noisy one is evidence too, and we say so."""
    if not marginals:
        return promised
    columns, epsilon = len(marginals), marginals[0].cost
    which = "the sensitive column" if columns == 1 else "every sensitive column"
    sentence = (
        f"A noisy histogram of {which} is published. It adds nothing for an attacker who knows the "
        "distribution; the odds of any other belief can grow by a further factor of up to "
        f"{math.exp(columns * epsilon):.3g} (epsilon {epsilon:g} for the whole histogram"
        f"{' of a column' * (columns > 1)})."
    )
    return dataclasses.replace(promised, not_protected=(*promised.not_protected, sentence))


def said_of_unpublished(promised: Guarantee) -> Guarantee:
    """Coins that are computed from a noisy histogram tell of it, published or not."""
    sentence = (
        "Coins are computed from a histogram with noise, which is not published: they add nothing for an attacker who "
        f"knows the distribution, and as much as that histogram would to others (epsilon {COST:g})."
    )
    return dataclasses.replace(promised, not_protected=(*promised.not_protected, sentence))


# -- The planner's choice for a table: it is published, so it may tell no more of the rows than the release says -------


def compared_for(publication: Publication, counts: Histogram, limit: float) -> Comparison:
    """What perturbs row by row, compared by all sensitive columns together. What is taken is published, so it is no
    more than noisy counts tell; no row is looked at."""
    privacy = require_something(publication.privacy)
    drawn_by = publication.request.drawn_by
    without: tuple[str, ...] = (SmallDomain.name,) if drawn_by == ROW_ID else ()  # it deals rows by number
    without += (Lineup.name,) if len(publication.sensitive) > 1 else ()  # it promises nothing of columns together
    known = _known_counts(publication, counts)
    return planners_choice(known, privacy, without=(*without, Synthetic.name), noisy=True, limit=limit)


def _known_counts(publication: Publication, counts: Histogram) -> Histogram:
    """What the release tells of the counts: with the noise that it has, and of all values alike where it tells none."""
    privacy = publication.privacy
    if privacy is not None and privacy.sums:
        return counts  # decoys alone promise sums: there is nothing to choose
    if is_wanted(None, privacy):
        known = public_histogram(counts, noisy_marginal(publication.keys, counts))
        assert known is not None
        return known
    return Histogram(counts.domain, np.full(counts.m, max(counts.rows // max(counts.m, 1), 1), dtype=np.int64))


# -- A plan that must keep its promise for a table that grows: it is made for a little more than is required, and
# whether it still keeps what is required is looked at each time.


ROOM = Fraction(9, 10)  # of the way to rho2 is planned for at first; the rest is for a table that grows


def with_room(privacy: Privacy | None) -> Privacy | None:
    """A little more than is required, so that the plan still keeps the promise when the table has grown."""
    if privacy is None or privacy.adversary != "frequency":
        return privacy
    own = {value: (rho1, _nearer(rho1, rho2)) for value, (rho1, rho2) in privacy.per_value.items()}
    rho2 = None if privacy.rho2 is None else _nearer(privacy.rho1, privacy.rho2)
    return replace(privacy, rho2=rho2, per_value=own)


def _nearer(rho1: Fraction | None, rho2: Fraction) -> Fraction:
    before = rho1 or Fraction(0)
    return before + ROOM * (rho2 - before)


def as_required(plan: Plan, privacy: Privacy | None) -> Plan:
    """The plan, promising what is required and not more: the rest is room."""
    if privacy is None:
        return plan
    promises = tuple(
        _required(promise, part, privacy) for promise, part in zip(plan.guarantee.promises, plan.parts, strict=True)
    )
    promised = replace(plan.guarantee, promises=promises, rho2=privacy.rho2, sentence="")
    return replace(plan, guarantee=promised, privacy=privacy)


def _required(promise: Promise, part: PlannedPart, privacy: Privacy) -> Promise:
    stated: Any = promise
    if getattr(stated, "rho2", None) is not None:
        stated = replace(stated, rho2=privacy.rho2)
    own = next((name for name in ("per_value", "limits") if getattr(stated, name, ())), None)
    if own is not None and part.histogram is not None and privacy.per_value:
        stated = replace(stated, **{own: own_limits(part.histogram, matched_requirements(part.histogram, privacy))})
    return cast(Promise, stated)


def require_kept(part: Part, planned: PlannedPart) -> None:
    """Refuse a table for which the promise of a part does not hold any more, by its exact counts."""
    if planned.grid is None and any(_broken(part, planned)):
        raise RequirementError(
            "The table has changed so much that the plan of the series does not keep its promise any more: values are "
            "more frequent than they were when it began. Fix: begin a new series; everyone is then looked at a second "
            "time, and the bounds of both add up."
        )


def _broken(part: Part, planned: PlannedPart) -> Iterator[bool]:
    """Whether a bound is exceeded, for each that the promise states."""
    promise: Any = part.promise
    by_belief = isinstance(promise, Amplification) and promise.rho1 is None
    if by_belief or isinstance(promise, PerValue | RelativePrior | Nothing):
        return  # it holds for beliefs, whatever the counts are
    own = {place: (rho1, rho2) for place, rho1, rho2 in getattr(promise, "per_value", ())}
    left_out = {*getattr(promise, "exempt", ()), *getattr(promise, "above", ())}
    for place, belief in enumerate(_surest(planned)):
        rho1, rho2 = own.get(place, (None, None if own else promise.rho2))
        share = Fraction(int(planned.values.counts[place]), max(planned.values.rows, 1))
        if rho2 is not None and place not in left_out and (rho1 is None or share <= rho1):
            yield belief > rho2
    if promise.rho2 is not None and hasattr(promise, "loose"):
        covered = covered_by_promise(part.domain, promise.loose)
        for cell in planned.cells:
            yield not keeps_singles(cell.channel, cell.rows.counts, planned.positions(cell), covered, promise.rho2)


def _surest(planned: PlannedPart) -> list[Fraction]:
    """How sure an attacker who knows the frequencies becomes of each value at most."""
    if planned.lineups is not None:
        return surest_in_lineups(planned.lineups, planned.values.counts)
    return surest_in_cells(planned.values, planned.cells)


# -- From a table to a plan and what an engine is to execute: scan what the mechanism's layout asks for, then plan -----


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

    @property
    def by_rank(self) -> bool:
        """Whether rows are dealt values by where they stand: no id of a row or a person decides anything."""
        return all(job.part.dealt is not None for job in self.jobs)

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
                learned=job.part.learned,
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
    privacy = require_something(publication.privacy)
    limit = limit_for(privacy, publication.request.limit)
    counts: Histogram | None = None
    why = ""
    if not (unfit(publication) or privacy.sums):
        mechanism = Synthetic()
        (need,) = mechanism.layout(publication.sensitive)
        (domain,) = _domains(publication.domain, [need])
        look = look_at(need, domain, publication)
        counts = look.scan.histogram
        undeclared = len(look.declared) - sum(look.declared)
        outlook = Outlook(counts.rows, look.varying, privacy, limit, not undeclared, undeclared, look.together)
        if outlook.learns:
            ready = _crossed(mechanism, need, publication, look, limit)
            return dataclasses.replace(ready, chosen=outlook.in_words)
        why = f"; not synthetic: {outlook.unlearned}" if outlook.unlearned else ""
    if counts is None:
        counts = publication.scan(publication.sensitive, publication.domain).histogram
    compared = compared_for(publication, counts, limit)
    refused: RequirementError | None = None
    for one in compared.usable:
        try:
            ready = _prepared(one.mechanism, publication)
        except RequirementError as problem:  # noisy counts allow it, exact ones do not
            refused = refused or problem
            continue
        return dataclasses.replace(ready, chosen=f"{compared.in_one_line(one, ready.plan)}{why}")
    assert refused is not None
    raise refused


def _prepared(mechanism: Mechanism, publication: Publication) -> Prepared:
    needs = mechanism.layout(publication.sensitive)
    domains = _domains(publication.domain, needs)
    if any(need.crossed for need in needs):
        (need,), (domain,) = needs, domains
        return _crossed(mechanism, need, publication, look_at(need, domain, publication))
    if publication.request.group is not None:
        raise OptionError(
            f"mechanism {mechanism.name!r} perturbs row by row, and values that follow from each other speak for each "
            f"other. Fix: {option('mechanism', 'synthetic')}, whose promise covers a whole group, or leave "
            f"{option('group')} out."
        )
    paid, required = None, publication.privacy
    if publication.request.marginals and required is not None and required.adversary == "any-prior":
        paid = PaidHistogram.of(required, needs)
        publication = replace(publication, privacy=paid.rows)
    scanned = [
        _scanned(need, domain, publication, several=len(needs) > 1, paid=paid)
        for need, domain in zip(needs, domains, strict=True)
    ]
    left_out = mechanism.left_over([one.scan for one in scanned], publication.privacy)
    if left_out:
        rows = drawn_rows(publication.keys.subkey("leftovers"), scanned[0].scan.rows, left_out)
        publication = publication.without(rows)
        # A value of which no row remains stays in the domain: the list of values is that of the table.
        kept = [one.scan.values.domain for one in scanned]
        scanned = [
            _scanned(need, domain, publication, several=len(needs) > 1, paid=paid)
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
    said = paid.promised(plan) if paid is not None else _said(plan, needs, marginals, noisily)
    return Prepared(said, publication.dataset, jobs, marginals)


def _crossed(
    mechanism: Mechanism,
    need: Need,
    publication: Publication,
    look: Look,
    limit: float = math.inf,
) -> Prepared:
    """What is to be executed where public columns are counted by value."""
    plan, dataset, job = learned_from(cast(Synthetic, mechanism), need, publication, look, limit)
    return Prepared(plan, dataset, (job,), (None,))


def _said(plan: Plan, needs: Sequence[Need], marginals: Sequence[Marginal | None], planned_noisily: bool) -> Plan:
    """The plan, saying what its histograms give away; columns with promises of their own say it there."""
    promised = plan.guarantee
    if all(need.noisy == "default" for need in needs):
        promised = said_of(promised, [one for one in marginals if one is not None])
    if not any(marginals) and planned_noisily:
        promised = said_of_unpublished(promised)
    return dataclasses.replace(plan, guarantee=promised)


def _scanned(
    need: Need, domain: Any, publication: Publication, *, several: bool, paid: PaidHistogram | None = None
) -> _Examined:
    if need.range is not None:
        return _scanned_range(need, domain, publication)
    wish, privacy = publication.request.marginals, publication.privacy
    scan = publication.scan(need.columns, [False, True] if need.yes_or_no else domain)
    keys = publication.keys.subkey(*need.columns) if several or need.noisy != "default" else publication.keys
    if paid is not None:
        bought = paid.marginal(keys, scan.histogram)
        known = Scanned(need.columns, scan.rows, scan.histogram, declared=_is_declared(need, domain))
        return _Examined(known, scan.encoder, bought)
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
