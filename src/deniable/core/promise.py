"""What a part of a release promises, as data: the kind of promise says how it is recomputed, the numbers say what for.

A promise of an unknown kind cannot be read, and ``verify`` rechecks every kind. Positions are places in the domain.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from deniable.core.errors import InternalError, ManifestError, RequirementError
from deniable.core.promise_numbers import READERS, Limit, Single
from deniable.core.sums import LargeSums, SmallSums


@dataclass(frozen=True)
class Amplification:
    """P[y][x] / P[y][x'] <= gamma, so a belief of up to rho1 grows to at most rho2 (THESIS Thm 1).

    ``above`` are positions that to who knows the frequencies are not covered: they are more frequent than rho1.
    """

    kind: ClassVar[str] = "amplification"

    gamma: Fraction
    rho1: Fraction | None = None
    rho2: Fraction | None = None
    above: tuple[int, ...] = ()


@dataclass(frozen=True)
class Frequency:
    """Pr[x | y] <= rho2 for who knows how frequent each value is (mathematics 2).

    Attributes:
        rho1: values more frequent than this are not covered; None: all are.
        rho2: of every covered value; None where each has its own.
        exempt: positions that are not covered, whatever their frequency.
        per_value: each value's own (rho1, rho2); values that it does not name are not covered.
        above: positions that are not covered, being more frequent than rho1.
        loose: of columns that are perturbed together, the single values (column, place among its values) that are not
            covered: exempt ones, those as frequent as rho1, or rho2, does not allow, and all where nothing is required.
    """

    kind: ClassVar[str] = "frequency"

    rho1: Fraction | None
    rho2: Fraction | None
    exempt: tuple[int, ...] = ()
    per_value: tuple[Limit, ...] = ()
    above: tuple[int, ...] = ()
    loose: tuple[Single, ...] = ()


@dataclass(frozen=True)
class PerValue:
    """P[i][i] / P[i][k] <= gamma_i for all k, gamma_i from value i's own (rho1, rho2) (THESIS Thm 7)."""

    kind: ClassVar[str] = "per-value"

    limits: tuple[Limit, ...]


@dataclass(frozen=True)
class Cells:
    """Inside each published cell the amplification is at most its gamma, and posteriors at most rho2 (SDR Cor. 1).

    The share of a cell that values in ``exempt`` and ``above`` have is not bounded; ``loose`` as for ``Frequency``.
    """

    kind: ClassVar[str] = "cells"

    rho2: Fraction
    gammas: tuple[Fraction | None, ...]
    rho1: Fraction | None = None
    exempt: tuple[int, ...] = ()
    above: tuple[int, ...] = ()
    loose: tuple[Single, ...] = ()


@dataclass(frozen=True)
class RelativePrior:
    """A set believed at up to rho1, each value less than s times likelier than its replacements, stays below rho2.

    OLAP Thm 4 asks that of the set as a whole, and bounds what Y in S says; whoever sees y needs it of y.

    ``like_column`` says that replacements are drawn like the column itself, and no value is s times likelier (Lemma 1).
    """

    kind: ClassVar[str] = "relative-prior"

    s: Fraction
    rho1: Fraction
    rho2: Fraction
    like_column: bool = False


@dataclass(frozen=True)
class LineUps:
    """Pr[x | S] <= rho2 for every set S of values that a row may publish, and >= ``stays`` of what it was before.

    Attributes:
        adversary: ``frequency``: who knows how frequent each value is; ``any-prior``: whoever believed up to rho1.
        rho1, rho2, exempt, per_value, above: as for ``Frequency``.
        gamma: P(S | x) / P(S | x') is at most this; None where a set rules values out.
        stays: the share of a belief that no line-up takes away: 1/gamma of any, or less than that is left of one that
            follows the frequencies.
    """

    kind: ClassVar[str] = "line-ups"

    adversary: str
    rho1: Fraction | None
    rho2: Fraction | None
    gamma: Fraction | None
    stays: Fraction
    exempt: tuple[int, ...] = ()
    per_value: tuple[Limit, ...] = ()
    above: tuple[int, ...] = ()


@dataclass(frozen=True)
class OneOfItems:
    """P(row | list) / P(row | list') <= gamma for any two lists of at most ``most`` items (mathematics 14).

    It is about the whole list, and stands with each of its items. So anything about a person's list that was believed
    at up to rho1 is believed at up to rho2 afterwards.
    """

    kind: ClassVar[str] = "items"

    gamma: Fraction
    most: int
    rho1: Fraction | None = None
    rho2: Fraction | None = None


@dataclass(frozen=True)
class DecoyGroups:
    """Every published value speaks for no value with more than 1/c; sums as required (mathematics 7)."""

    kind: ClassVar[str] = "decoys"

    c: int
    rho2: Fraction | None = None
    small_sums: SmallSums | None = None
    large_sums: LargeSums | None = None


@dataclass(frozen=True)
class Nothing:
    """No bound is promised, and why; a release that says so may state no rho2."""

    kind: ClassVar[str] = "nothing"

    why: str


Bound = Amplification | Frequency | PerValue | Cells
OfRows = Bound | RelativePrior | LineUps | OneOfItems | DecoyGroups
Promise = OfRows | Nothing
KINDS: dict[str, type[Promise]] = {
    promise.kind: promise
    for promise in (
        *(Amplification, Frequency, PerValue, Cells),
        *(RelativePrior, LineUps, OneOfItems, DecoyGroups, Nothing),
    )
}


def require_promise(promise: Any) -> None:
    """Refuse what is no promise of a known kind."""
    if type(promise) not in KINDS.values():
        raise InternalError(
            f"a guarantee was made with {promise!r}, which is no promise that can be rechecked; a mechanism states one "
            f"of {', '.join(kind.__name__ for kind in KINDS.values())}"
        )


def to_dict(promise: Promise) -> dict[str, Any]:
    """A promise as JSON: its kind and its numbers, exact fractions as text.

    >>> to_dict(Amplification(Fraction(12, 5)))
    {'kind': 'amplification', 'gamma': '12/5', 'rho1': None, 'rho2': None, 'above': []}
    """
    fields = {field.name: _plain(getattr(promise, field.name)) for field in dataclasses.fields(promise)}
    return {"kind": promise.kind, **fields}


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.to_dict() if isinstance(value, SmallSums | LargeSums) else value


def from_dict(raw: Mapping[str, Any]) -> Promise:
    """The promise that ``to_dict`` wrote; refused where its kind or a number of it is not known."""
    stated = dict(raw)
    kind = KINDS.get(str(stated.pop("kind", None)))
    if kind is None:
        raise ManifestError(f"manifest.json states a promise of an unknown kind: {str(raw.get('kind'))[:40]!r}.")
    fields = {field.name: READERS[str(field.type)] for field in dataclasses.fields(kind)}
    if set(stated) != set(fields):
        off = ", ".join(sorted(set(stated) ^ set(fields)))
        raise ManifestError(
            f"manifest.json is damaged: a promise of kind {kind.kind!r} has other numbers ({off[:80]})."
        )
    try:
        promise = kind(**{name: fields[name](value) for name, value in stated.items()})
        if not all(0 < probability <= 1 for probability in _probabilities(promise)):
            raise ValueError
    except (TypeError, ValueError, KeyError, ZeroDivisionError, OverflowError, RequirementError):
        raise ManifestError(f"manifest.json is damaged: a promise of kind {kind.kind!r} cannot be read.") from None
    return promise


def _probabilities(promise: Promise) -> list[Fraction]:
    """Every rho1 and rho2 of a promise."""
    limits: tuple[Limit, ...] = getattr(promise, "limits", getattr(promise, "per_value", ()))
    pairs = [(getattr(promise, "rho1", None), getattr(promise, "rho2", None)), *((low, up) for _, low, up in limits)]
    return [probability for pair in pairs for probability in pair if probability is not None]
