"""What a plan and its parts promise, as data: against whom, in numbers, and what for."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from deniable.core.errors import InternalError, ManifestError, RequirementError
from deniable.core.privacy import Adversary, LargeSums, SmallSums
from deniable.core.registry import Registry
from deniable.core.values import LARGEST_FACTOR, Ints, percent

# -- The numbers of promises, read from JSON: exact fractions as text, whole numbers, places in a domain ---------------


Limit = tuple[int, Fraction, Fraction]  # position, rho1, rho2
Single = tuple[int, int]  # a column, and a place among its values


def _fraction(value: Any) -> Fraction:
    if not isinstance(value, str) or not _FRACTION.fullmatch(value):
        raise TypeError
    number = Fraction(value)
    if abs(number) >= LARGEST_FACTOR:
        raise ValueError
    return number


def _optional(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else read(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    return value


def _items(read: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    return lambda value: tuple(read(item) for item in _exactly(list)(value))


def _limit(value: Any) -> Limit:
    place, rho1, rho2 = _exactly(list)(value)
    return _whole(place), _fraction(rho1), _fraction(rho2)


def _single(value: Any) -> Single:
    column, place = _exactly(list)(value)
    return _whole(column), _whole(place)


def _sums(kind: type[SmallSums | LargeSums]) -> Callable[[Any], SmallSums | LargeSums]:
    def read(value: Any) -> SmallSums | LargeSums:
        try:
            wanted = kind(**value)
        except RequirementError:
            raise ValueError from None
        if wanted.to_dict() != value:  # a number that is missing is not the default
            raise ValueError
        return wanted

    return read


def _exactly(kind: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise TypeError
        return value

    return read


_FRACTION = re.compile(r"-?[0-9]+(/[0-9]+)?")  # Fraction itself reads 1e999999999, too, and takes all memory for it
READERS: dict[str, Callable[[Any], Any]] = {
    "Fraction": _fraction,
    "Fraction | None": _optional(_fraction),
    "tuple[Fraction | None, ...]": _items(_optional(_fraction)),
    "tuple[int, ...]": _items(_whole),
    "tuple[Limit, ...]": _items(_limit),
    "tuple[Single, ...]": _items(_single),
    "SmallSums | None": _optional(_sums(SmallSums)),
    "LargeSums | None": _optional(_sums(LargeSums)),
    "bool": _exactly(bool),
    "int": _whole,
    "str": _exactly(str),
}


# -- What a part of a release promises, as data: the kind of promise says how it is recomputed, the numbers say what
# for. A promise of an unknown kind cannot be read, and ``verify`` rechecks every kind. Positions are places in the
# domain.


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
    """P(row | list) / P(row | list') <= gamma for any two lists of at most ``most`` items (mathematics 15).

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


# What a mechanism's own chapter, or another package, promises: frozen dataclasses with a ``kind``, fields that
# ``READERS`` knows, a method ``sentence(part, adversary)``, and a recheck of that kind for the verifier.
OTHER_KINDS: Mapping[str, type[Any]] = Registry(
    "deniable.promises", {"odds": "deniable.mechanisms.synthetic:OddsOfAnyone"}
)


def require_promise(promise: Any) -> None:
    """Refuse what is no promise of a known kind."""
    kind = getattr(promise, "kind", "")
    if type(promise) not in KINDS.values() and not (kind in OTHER_KINDS and type(promise) is OTHER_KINDS[kind]):
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
    name = str(stated.pop("kind", None))
    kind: type[Any] | None = KINDS.get(name) or OTHER_KINDS.get(name)
    if kind is None:
        raise ManifestError(f"manifest.json states a promise of an unknown kind: {str(raw.get('kind'))[:40]!r}.")
    fields = {field.name: READERS[str(field.type)] for field in dataclasses.fields(kind)}
    if set(stated) != set(fields):
        off = ", ".join(sorted(set(stated) ^ set(fields)))
        raise ManifestError(
            f"manifest.json is damaged: a promise of kind {kind.kind!r} has other numbers ({off[:80]})."
        )
    try:
        promise: Promise = kind(**{name: fields[name](value) for name, value in stated.items()})
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


# -- What a plan promises: against whom, in numbers, and in one sentence -----------------------------------------------


@dataclass(frozen=True, kw_only=True, repr=False)
class Guarantee:
    """A promise about every protected value, computed from the integers that the sampler uses.

    Attributes:
        promises: what each part promises, for ``verify`` to recompute; there is no guarantee without one.
        adversary: who it holds against.
        rho1: the strongest belief beforehand that is covered (None: each value's own frequency, or per value).
        rho2: how sure an attacker can become (None: per value).
        worst: the largest posterior of a protected value, computed for the adversary; at most rho2.
        gamma: the amplification of the whole release; None when it is unbounded.
        also: stronger or additional promises, in words.
        not_protected: what the release gives away or does not promise, in words.
        sentence: the promise in one sentence; left out: computed from the parts of the plan or release.

    >>> import deniable as dn
    >>> asked = dn.Privacy(rho1="1/2", rho2="3/4", adversary="any-prior")
    >>> promised = dn.plan({"flu": 60, "cold": 40}, asked, "uniform").guarantee
    >>> print(promised.sentence.split(". ")[0])
    No attacker who believed a value at up to 50 % beforehand becomes surer of it than 75 %
    >>> round(promised.epsilon, 4), promised.adversary
    (1.0986, 'any-prior')
    """

    promises: tuple[Promise, ...]
    adversary: Adversary
    rho1: Fraction | None
    rho2: Fraction | None
    worst: Fraction
    gamma: Fraction | None
    also: tuple[str, ...] = ()
    not_protected: tuple[str, ...] = ()
    sentence: str = field(default="")

    def __post_init__(self) -> None:
        if not self.promises:
            raise InternalError("a guarantee was made without a promise")
        for promise in self.promises:
            require_promise(promise)
        if self.rho2 is not None and any(isinstance(promise, Nothing) for promise in self.promises):
            raise InternalError("a guarantee states a rho2, and one of its parts promises nothing")

    @property
    def epsilon(self) -> float:
        """ln gamma; infinite when the amplification is unbounded."""
        return math.inf if self.gamma is None else math.log(self.gamma)

    def __repr__(self) -> str:
        kinds = ", ".join(dict.fromkeys(promise.kind for promise in self.promises))
        return f"<Guarantee by {kinds}, adversary {self.adversary!r}: at most {percent(self.worst)} sure>"

    def __str__(self) -> str:
        return self.sentence


# -- Single values of columns that are perturbed together: a bound for the tuple is none for each of its entries -------


@dataclass(frozen=True, eq=False)
class SingleValues:
    """The values of one of several columns, in the order of the domain, and which of them every tuple holds."""

    column: int
    values: tuple[Hashable, ...]
    codes: Ints


def single_values(domain: Sequence[Hashable]) -> list[SingleValues]:
    """The single values of each column of a domain of tuples; none where values are single anyway.

    >>> [column.values for column in single_values([("hiv", "cook"), ("hiv", "nurse"), ("flu", "cook")])]
    [('hiv', 'flu'), ('cook', 'nurse')]
    >>> single_values(["hiv", "flu"])
    []
    """
    tuples = [value for value in domain if isinstance(value, tuple)]
    if not tuples or len(tuples) < len(domain):
        return []
    columns = []
    for place in range(len(tuples[0])):
        entries = [value[place] for value in tuples]
        codes = {value: code for code, value in enumerate(dict.fromkeys(entries))}
        columns.append(SingleValues(place, tuple(codes), np.array([codes[entry] for entry in entries], dtype=np.int64)))
    return columns
