"""From a scanned table to parts that an engine can execute: one compound column, or many columns each on its own."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.core.errors import ColumnError, OptionError, RequirementError, did_you_mean, listing
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Histogram
from deniable.core.manifest import Marginal
from deniable.core.parts import Mixture
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.engines.base import PartJob
from deniable.engines.local.leaving import drawn_rows
from deniable.engines.local.ranges import RangeEncoder, scan_range
from deniable.engines.local.strata import scan_strata
from deniable.engines.randomness import Keystream, discrete_laplace, discrete_laplace_variance
from deniable.mechanisms import Decoys, Mechanism, PlansFromPublic, Pram
from deniable.mechanisms.decoys.columns import common_size, guarantee_of_columns, left_over, plans_of_columns
from deniable.mechanisms.retention import Retention
from deniable.mechanisms.retention_guarantee import Perturbed, guarantee, told_of
from deniable.planning.plan import chosen_mechanism
from deniable.publishing.request import Request
from deniable.release.hidden_channels import mixture_from

MARGINAL_EPSILON = 1.0


@dataclass(frozen=True)
class Planned:
    """Parts that are ready to be executed, with their published histograms, and what they promise together."""

    parts: tuple[PartJob, ...]
    marginals: tuple[Marginal | None, ...]
    mechanism: str
    options: Mapping[str, Any]
    privacy: Privacy | None
    guarantee: Guarantee


def planned_parts(mechanism: str | Mechanism, request: Request) -> Planned:
    """What an engine is to execute for this mechanism."""
    if isinstance(mechanism, Retention):
        return _retention_parts(mechanism, request)
    if isinstance(mechanism, Pram) and mechanism.strata:
        return _strata_part(mechanism, request)
    if isinstance(mechanism, Decoys):
        return _decoy_parts(mechanism, request)
    return _one_part(mechanism, request)


def _one_part(mechanism: str | Mechanism, request: Request) -> Planned:
    """All sensitive columns as one compound column."""
    names, privacy = request.sensitive, request.privacy
    scan = request.scan(names, request.domain)
    marginal = _marginal(request.keys, scan.histogram) if _histogram_wanted(request) else None
    plan = _plan(chosen_mechanism(mechanism, scan.histogram, privacy), scan.histogram, privacy, marginal)
    part = PartJob(names, scan.encoding, scan.rows, plan)
    guaranteed = plan.guarantee if marginal is None else _with_histogram(plan.guarantee, marginal)
    return Planned((part,), (marginal,), plan.mechanism, plan.options, plan.privacy, guaranteed)


def _strata_part(mechanism: Pram, request: Request) -> Planned:
    """All sensitive columns as one compound column, perturbed within strata of public columns."""
    public, keys = request.public, request.keys
    for column in mechanism.strata:
        if column not in public:
            raise ColumnError(
                f"strata names the column {column!r}, which is no public column of the release: strata are made of "
                f"columns that are published as they are.{did_you_mean(column, public)} "
                f"Fix: name some of {listing(public)}."
            )
    scan = request.scan(request.sensitive, request.domain)
    strata = scan_strata(request.engine.source, mechanism.strata, scan.encoding, request.progress)
    histograms = strata.histograms(scan.histogram.domain)
    noisy = [_marginal(keys.subkey("stratum", str(number)), each) for number, each in enumerate(histograms)]
    shown = [Histogram(each.domain, np.maximum(one.counts, 1)) for each, one in zip(histograms, noisy, strict=True)]
    plan = mechanism.plan_strata(histograms, request.privacy, domain=scan.histogram.domain, public=shown)
    marginal = None if request.marginals is False else _marginal(keys, scan.histogram)
    promised = dataclasses.replace(
        plan.guarantee,
        not_protected=(
            *plan.guarantee.not_protected,
            "It adds nothing for an attacker who knows how values are distributed in the strata; the odds of any other "
            f"belief can grow by a further factor of up to {math.exp(MARGINAL_EPSILON):.3g} (epsilon "
            f"{MARGINAL_EPSILON:g} for the histograms of all strata together).",
        ),
    )
    if marginal is not None:
        promised = _with_histogram(promised, marginal)
    part = PartJob(request.sensitive, scan.encoding, scan.rows, plan, strata=strata)
    return Planned((part,), (marginal,), plan.mechanism, plan.options, plan.privacy, promised)


def _decoy_parts(mechanism: Decoys, request: Request) -> Planned:
    """Every column a part of its own, grouped independently; the rows left over are left out of the source."""
    names, privacy, keys = request.sensitive, request.privacy, request.keys
    declared = domain_of_columns(request.domain, names)
    scans = {name: request.scan((name,), declared.get(name)) for name in names}
    histograms = {name: scan.histogram for name, scan in scans.items()}
    c = common_size(mechanism, histograms, privacy)
    left = left_over(mechanism, histograms, c, scans[names[0]].rows)
    if left:
        request.engine.leave_out(drawn_rows(keys.subkey("leftovers"), scans[names[0]].rows, left))
        # A value of which no row remains stays in the domain: the list of values is that of the table.
        scans = {name: request.scan((name,), histograms[name].domain) for name in names}
        histograms = {name: scan.histogram for name, scan in scans.items()}
    plans = plans_of_columns(mechanism, histograms, privacy, c)
    parts = tuple(PartJob((name,), scan.encoding, scan.rows, plans[name]) for name, scan in scans.items())
    wanted = _histogram_wanted(request)
    noisy = tuple(_marginal(keys.subkey(name), histograms[name]) if wanted else None for name in names)
    promised = guarantee_of_columns(plans, left)
    if noisy[0] is not None:
        promised = _with_histogram(promised, noisy[0], len(names))
    options = plans[names[0]].options
    return Planned(parts, noisy, mechanism.name, options, privacy, promised)


def _histogram_wanted(request: Request) -> bool:
    """By default where the adversary knows the distribution anyway, and no small sum must stay uncertain."""
    privacy = request.privacy
    knows = privacy is None or privacy.adversary == "frequency"
    uncertain = privacy is not None and privacy.small_sums is not None
    if request.marginals and not knows:
        raise RequirementError(
            "marginals = True does not go with adversary 'any-prior': the noisy histogram would let the odds of any "
            f"belief grow by a further factor of e^{MARGINAL_EPSILON:g}, beyond rho2. Fix: leave marginals out."
        )
    if request.marginals and uncertain:
        raise RequirementError(
            "marginals = True does not go with small_sums: the noisy histogram tells every count, small ones too, to "
            "within about two rows. Fix: leave marginals out."
        )
    return knows and not uncertain if request.marginals is None else request.marginals


def _with_histogram(promised: Guarantee, marginal: Marginal, columns: int = 1) -> Guarantee:
    """The frequency adversary knows the histogram anyway; to others the noisy one is evidence too, and we say so."""
    which = "the sensitive column" if columns == 1 else "every sensitive column"
    said = (
        f"A noisy histogram of {which} is published. It adds nothing for an attacker who knows the "
        "distribution; the odds of any other belief can grow by a further factor of up to "
        f"{math.exp(columns * marginal.epsilon):.3g} (epsilon {marginal.epsilon:g} for the whole histogram"
        f"{' of a column' * (columns > 1)})."
    )
    return dataclasses.replace(promised, not_protected=(*promised.not_protected, said))


def _retention_parts(mechanism: Retention, request: Request) -> Planned:
    """Every column a part of its own: a range of numbers or a channel over categories."""
    declared = domain_of_columns(request.domain, tuple(mechanism.columns))
    parts: list[PartJob] = []
    noisy: list[Marginal | None] = []
    perturbed: list[Perturbed] = []
    for column, replace in mechanism.columns.items():
        if replace.is_range:
            if column in declared:
                raise OptionError(
                    f"domain lists values of {column!r}, which is replaced within a range. Fix: leave it out."
                )
            found = scan_range(request.engine.source, column, replace, request.missing, request.progress)
            grid = mechanism.range_coin(column, found.grid)
            encoder = RangeEncoder(column, found.dtype, grid, exempt=request.missing == "exempt")
            parts.append(PartJob((column,), encoder, found.rows, range=grid))
            noisy.append(None)
            perturbed.append(mechanism.perturbed(column, grid))
            continue
        scan = request.scan((column,), declared.get(column))
        # Identity draws from the noisy histogram, so the manifest shows it anyway; others publish it when asked to.
        wanted = replace.replacing == "identity" or bool(request.marginals)
        marginal = _marginal(request.keys.subkey(column), scan.histogram) if wanted else None
        public = _public_histogram(scan.histogram, marginal)
        plan = mechanism.plan_column(column, scan.histogram, public)
        parts.append(PartJob((column,), scan.encoding, scan.rows, plan, swapped=replace.replacing == "swapping"))
        noisy.append(marginal)
        noise = 0.0 if marginal is None else marginal.epsilon
        relative = mechanism.relative_prior(column, scan.histogram, public)
        perturbed.append(mechanism.perturbed(column, plan.cells[0].channel, noise, relative))
    options = told_of(perturbed, mechanism.options)
    return Planned(tuple(parts), tuple(noisy), mechanism.name, options, None, guarantee(perturbed))


def domain_of_columns(domain: Any, columns: tuple[str, ...]) -> Mapping[str, Sequence[Hashable]]:
    """The declared values of each column: a mapping, or the list of the only column."""
    if domain is None:
        return {}
    if not isinstance(domain, Mapping):
        if len(columns) != 1:
            raise OptionError("domain: with several columns, declare values by column. Fix: domain={column: [values]}.")
        return {columns[0]: domain}
    for name in domain:
        if name not in columns:
            raise OptionError(f"domain names {name!r}, which is no sensitive column.{did_you_mean(name, columns)}")
    return domain


def _marginal(keys: Keystream, histogram: Histogram) -> Marginal:
    """The histogram with discrete Laplace noise; its draws depend on the counts, so a re-run repeats them and another
    table gets fresh ones."""
    stream = keys.subkey("marginal", hashlib.sha256(histogram.counts.tobytes()).hexdigest())
    noisy = histogram.counts + discrete_laplace(stream, histogram.m, MARGINAL_EPSILON)
    return Marginal(tuple(noisy.tolist()), MARGINAL_EPSILON, discrete_laplace_variance(MARGINAL_EPSILON))


def _public_histogram(histogram: Histogram, marginal: Marginal | None) -> Histogram | None:
    """The noisy histogram with every count at least one."""
    if marginal is None:
        return None
    return Histogram(histogram.domain, np.maximum(np.array(marginal.counts, dtype=np.int64), 1))


def _plan(mechanism: Mechanism, histogram: Histogram, privacy: Privacy | None, marginal: Marginal | None) -> Plan:
    """Plan; a mechanism whose parameters would give counts away plans with the noisy histogram that is published."""
    public = _public_histogram(histogram, marginal)
    if public is None or not isinstance(mechanism, PlansFromPublic):
        return mechanism.plan(histogram, privacy)
    return mechanism.plan(histogram, privacy, public=public)


def mixture_of(plan: Plan, marginal: Marginal | None) -> Mixture | None:
    """The channel of a table whose cells are not published, as its noisy histogram tells it; six digits."""
    public = _public_histogram(plan.histogram, marginal)
    return None if public is None else mixture_from(public, plan.options["c"], plan.options["grouping"])
