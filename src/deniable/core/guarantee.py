"""What a plan promises: against whom, in numbers, and in one sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from deniable.core.errors import InternalError
from deniable.core.privacy import Adversary
from deniable.core.probability import percent
from deniable.core.promise import Nothing, Promise, require_promise


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
    >>> promised = dn.plan({"flu": 60, "cold": 40}, dn.Privacy(rho1="1/2", rho2="3/4", adversary="any-prior")).guarantee
    >>> print(promised)
    No attacker who believed a value at up to 50 % beforehand becomes surer of it than 75 %.
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
