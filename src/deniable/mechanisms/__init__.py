"""Mechanisms: histogram + requirement -> plan."""

from __future__ import annotations

from deniable.core.errors import OptionError
from deniable.mechanisms.base import Mechanism, PlansFromPublic, WithoutChannels
from deniable.mechanisms.decoys.mechanism import Decoys
from deniable.mechanisms.designed import Designed, Identity
from deniable.mechanisms.fine_grain import FineGrain
from deniable.mechanisms.pram import Pram
from deniable.mechanisms.redraw import Redraw
from deniable.mechanisms.requirement_file import read_requirements
from deniable.mechanisms.retention import Retention
from deniable.mechanisms.retention_spelling import spelled_retention
from deniable.mechanisms.small_domain import SmallDomain
from deniable.mechanisms.spelling import spelled
from deniable.mechanisms.tolerance import tolerance
from deniable.mechanisms.uniform import Uniform
from deniable.rivals.anatomy.mechanism import Anatomy
from deniable.rivals.generalize.mechanism import Generalize
from deniable.rivals.laplace.mechanism import Laplace

__all__ = [
    "MECHANISMS",
    "Anatomy",
    "Decoys",
    "Designed",
    "FineGrain",
    "Generalize",
    "Identity",
    "Laplace",
    "Mechanism",
    "PlansFromPublic",
    "Pram",
    "Redraw",
    "Retention",
    "SmallDomain",
    "Uniform",
    "WithoutChannels",
    "mechanism_named",
    "read_requirements",
    "tolerance",
]

MECHANISMS: dict[str, type[Mechanism]] = {
    mechanism.name: mechanism
    for mechanism in (
        *(Uniform, SmallDomain, FineGrain, Identity, Designed),
        *(Pram, Redraw, Decoys, Anatomy, Generalize, Laplace, Retention),
    )
}


def mechanism_named(mechanism: str | Mechanism) -> Mechanism:
    """A mechanism object, from its name (``"decoys"``, ``"decoys:c=5"``) or as it is."""
    if isinstance(mechanism, str):
        name, colon, columns = mechanism.partition(":")
        return spelled_retention(columns) if colon and name == Retention.name else spelled(mechanism, MECHANISMS)
    if isinstance(mechanism, type) or not isinstance(mechanism, Mechanism):
        raise OptionError(
            f"mechanism = {mechanism!r} is not a mechanism: give a name ({', '.join(MECHANISMS)}) "
            "or an object such as Uniform()."
        )
    return mechanism
