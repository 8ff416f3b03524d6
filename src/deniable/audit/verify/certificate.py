"""The certificate: a release's promises, recomputed from its manifest alone.

Nothing here uses the code that planned the release. Probabilities are rebuilt from the manifest's integers, and each
part's promise is rechecked in exact arithmetic, by its kind. A promise of a kind that has no recheck does not hold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from deniable.audit.verify import lineups
from deniable.audit.verify.checks import FULL, Certificate, Check, part_amplification, points
from deniable.audit.verify.items import row_amplification
from deniable.audit.verify.rechecks import RECHECKS
from deniable.audit.verify.statements import KINDS_OF, stated_check
from deniable.core import promise
from deniable.core.errors import ManifestError
from deniable.core.transforms import Bins

MOST_POOLED = 1000  # releases whose noise may have been added up


def certificate(manifest: Mapping[str, Any]) -> Certificate:
    """Check everything that a manifest (as JSON of the present format) promises."""
    checks = _mechanism(manifest)
    for part in manifest["parts"]:
        checks += [*_channels(part), *_marginal(part), *_bins(part)]
    sound = all(check.holds for check in checks)
    if sound:  # numbers that are no channels cannot be computed with
        for part in manifest["parts"]:
            checks += _promise(part, manifest)
        checks += _amplification(manifest)
    return Certificate((*checks, *_epsilon(manifest), *_requirement(manifest), *_randomness(manifest)))


def _mechanism(manifest: Mapping[str, Any]) -> list[Check]:
    """What mechanisms from elsewhere promise is recomputed, too; what their names stand for is not known here."""
    name = manifest["mechanism"]["name"]
    detail = f"NOT CHECKED: what {name!r} stands for, which is no mechanism of this package; its promises are checked"
    return [] if name in KINDS_OF else [Check("mechanism", True, detail)]


def _randomness(manifest: Mapping[str, Any]) -> list[Check]:
    """A seed is told exactly where the draws came from one."""
    stated = manifest["randomness"]
    if (stated["source"] == "seed") == (stated["seed"] is not None):
        return []
    return [Check("randomness", False, f"a seed and the source {stated['source']!r} contradict each other")]


def _channels(part: Mapping[str, Any]) -> list[Check]:
    m = len(part["domain"])
    if part["range"] is not None:
        number = points(part["range"])
        holds = not part["cells"] and 0 <= part["range"]["keep"] <= FULL and 1 < number <= FULL
        return [Check("range", holds, f"{number:,} points, coin {part['range']['keep'] / FULL:.6g}")]
    if part.get("lineups") is not None:
        sound = not part["cells"] and lineups.is_design(part["lineups"], m)
        return [Check("line-ups", sound, f"{m} arcs that add up to whole line-ups, {part['lineups']['orders']} orders")]
    for number, cell in enumerate(part["cells"]):
        sizes = {len(cell["values"]), len(cell["keep"]), len(cell["replace"])}
        places = cell["values"]
        sound = (
            len(sizes) == 1
            and len(set(places)) == len(places) > 0
            and all(0 <= place < m for place in places)
            and all(0 <= keep <= FULL for keep in cell["keep"])
            and all(weight >= 0 for weight in cell["replace"])
            and sum(cell["replace"]) == FULL
        )
        if not sound:
            return [Check("channels", False, f"cell {number} is not a channel: its numbers do not add up")]
    count = len(part["cells"])
    if not count:
        return []
    return [Check("channels", True, f"{count} cell{'s' * (count != 1)}, columns add up to 1 exactly")]


def _marginal(part: Mapping[str, Any]) -> list[Check]:
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


def _bins(part: Mapping[str, Any]) -> list[Check]:
    """Averages are computed from edges, counts from labels: both must speak of the same intervals."""
    checks = []
    for place, name in enumerate(part["columns"]):
        if name in part["bins"]:
            made, shown = part["bins"][name], {entry[place] for entry in part["domain"]} - {None}
            known = {*Bins(tuple(made["edges"]), made["open_ends"]).labels} if len(made["edges"]) > 2 else set()
            checks.append(
                Check("bins", shown <= known, f"{name}: {len(shown - known)} values are none of its intervals")
            )
    return [check for check in checks if not check.holds]


def _promise(part: Mapping[str, Any], manifest: Mapping[str, Any]) -> list[Check]:
    """The part's promise, by its kind, and whether it is what the manifest speaks of."""
    columns = ", ".join(part["columns"])
    try:
        stated = promise.from_dict(part["promise"])
    except ManifestError as unknown:
        return [Check("promise", False, str(unknown))]
    recheck = RECHECKS.get(stated.kind)
    if recheck is None:
        return [Check("promise", False, f"{columns}: no recheck is known for a promise of kind {stated.kind!r}")]
    return [*recheck(stated, part, manifest), *_own_requirement(stated, part), stated_check(stated, part, manifest)]


def _own_requirement(stated: promise.Promise, part: Mapping[str, Any]) -> list[Check]:
    """What was required of the part itself against what it promises."""
    required = part["requirement"]
    if required is None:
        return []
    rho1, rho2 = Fraction(required["rho1"]), Fraction(required["rho2"])
    before, after = getattr(stated, "rho1", None), getattr(stated, "rho2", None)
    holds = before is not None and after is not None and before >= rho1 and after <= rho2
    if required["s"] is not None and not getattr(stated, "like_column", False):
        holds = holds and getattr(stated, "s", 0) >= Fraction(required["s"])
    return [Check(f"requirement of {', '.join(part['columns'])!r}", holds, f"rho1 = {rho1}, rho2 = {rho2}")]


def _amplification(manifest: Mapping[str, Any]) -> list[Check]:
    """The whole release's gamma: parts are perturbed independently, so theirs multiply."""
    stated = manifest["guarantee"]["gamma"]
    if stated is None:
        return []
    parts = manifest["parts"]
    if any(part.get("learned") is not None for part in parts):  # which its ledger bounds, and no channel
        own = [Fraction(part["promise"]["gamma"]) for part in parts if part["promise"]["kind"] == "odds"]
        holds = len(own) == len(parts) and math.prod(own, start=Fraction(1)) <= Fraction(stated)
        return [Check("amplification", holds, f"as the ledger has it, promised {float(Fraction(stated)):.6g}")]
    listed = all(part.get("item") is not None for part in parts)  # two lists differ in some of their items only
    gammas = [row_amplification(parts)] if listed else [part_amplification(part) for part in parts]
    whole = _product(gammas)
    holds = whole is not None and whole <= Fraction(stated)
    gamma_text = "unbounded" if whole is None else f"{float(whole):.6g}"
    by_part = ", ".join("unbounded" if gamma is None else f"{math.log(gamma):.3g}" for gamma in gammas[:16])
    detail = f"gamma is {gamma_text}, promised {float(Fraction(stated)):.6g}; epsilon {by_part}"
    return [Check("amplification", holds, detail)]


def _epsilon(manifest: Mapping[str, Any]) -> list[Check]:
    """epsilon is ln gamma; whoever reads only the one must not be told less than the other says."""
    gamma, epsilon = manifest["guarantee"]["gamma"], manifest["guarantee"]["epsilon"]
    if gamma is None or epsilon is None:
        return [] if gamma is epsilon else [Check("epsilon", False, "it is ln gamma, and only one of them is stated")]
    exact = math.log(Fraction(gamma)) if Fraction(gamma) > 0 else math.inf
    holds = math.isclose(epsilon, exact, rel_tol=1e-9, abs_tol=1e-12)
    return [] if holds else [Check("epsilon", False, f"{epsilon:.6g} is stated, and ln gamma is {exact:.6g}")]


def _product(gammas: Sequence[Fraction | None]) -> Fraction | None:
    known = [gamma for gamma in gammas if gamma is not None]
    return math.prod(known, start=Fraction(1)) if len(known) == len(gammas) else None


def _requirement(manifest: Mapping[str, Any]) -> list[Check]:
    """What was required against what is promised."""
    promised, required = manifest["guarantee"], manifest["privacy"]
    if required is None:
        return []
    weaker = promised["adversary"] != required["adversary"] and required["adversary"] == "any-prior"
    checks = [Check("adversary", not weaker, f"required {required['adversary']}, promised {promised['adversary']}")]
    for name in ("rho1", "rho2"):
        if required[name] is None:
            continue
        if promised[name] is not None:
            said, needed = Fraction(promised[name]), Fraction(required[name])
            holds = said >= needed if name == "rho1" else said <= needed
            checks.append(Check(name, holds, f"required {needed}, promised {said}"))
        elif name == "rho2" or promised["adversary"] == "any-prior":  # without rho1, values have their frequencies
            checks.append(Check(name, False, f"required {required[name]}, and none is promised"))
    for name in ("small_sums", "large_sums"):
        if required[name] is not None:
            holds = all(part["promise"].get(name) == required[name] for part in manifest["parts"])
            detail = "as promised" if holds else "not what is promised"
            checks.append(Check(f"required {name.replace('_', ' ')}", holds, detail))
    return checks
