"""Mechanisms by name: a line for each. A module is imported when its mechanism is first asked for."""

from __future__ import annotations

from collections.abc import Mapping

from deniable.core.errors import OptionError, option
from deniable.core.registry import Registry
from deniable.mechanisms.base import Mechanism, spelled

AUTO = "auto"
PLACES = {
    "uniform": "deniable.mechanisms.uniform:Uniform",
    "small-domain": "deniable.mechanisms.small_domain:SmallDomain",
    "fine-grain": "deniable.mechanisms.fine_grain:FineGrain",
    "identity": "deniable.mechanisms.designed:Identity",
    "designed": "deniable.mechanisms.designed:Designed",
    "lineup": "deniable.mechanisms.lineup:Lineup",
    "pram": "deniable.mechanisms.pram:Pram",
    "redraw": "deniable.mechanisms.redraw:Redraw",
    "decoys": "deniable.mechanisms.decoys:Decoys",
    "retention": "deniable.mechanisms.retention:Retention",
    "items": "deniable.mechanisms.items:Items",
    "synthetic": "deniable.mechanisms.synthetic:Synthetic",
}
RIVALS = ("anatomy", "generalize", "laplace", "optrr", "perturbed-generalization")  # in ``deniable.lab``


# Name -> class, of every mechanism that this package has or another one brings
MECHANISMS: Mapping[str, type[Mechanism]] = Registry("deniable.mechanisms", PLACES)


def mechanism_named(mechanism: str | Mechanism) -> Mechanism:
    """A mechanism object, from its name or as it is.

    Args:
        mechanism: ``"decoys"``, ``"decoys:c=5"`` or an object.

    >>> from deniable.mechanisms import mechanism_named
    >>> mechanism_named("decoys:c=5,leftovers=drop")
    Decoys(c=5, leftovers='drop', grouping='mixed')
    """
    name = mechanism.partition(":")[0] if isinstance(mechanism, str) else getattr(mechanism, "name", None)
    if name in RIVALS:
        raise OptionError(
            f"mechanism {name!r} is a rival, here to be compared with: a release is rows, and nobody publishes it. "
            f"Fix: {option('mechanism', 'uniform')}, or compare it by `deniable evaluate --mechanism {name}` "
            "or `deniable plan --rivals`; in Python it is in deniable.lab."
        )
    if isinstance(mechanism, str):
        return spelled(mechanism, MECHANISMS)
    if not isinstance(mechanism, Mechanism):
        raise OptionError(
            f"mechanism = {mechanism!r} is not a mechanism: give a name ({', '.join(MECHANISMS)}) "
            "or an object such as Uniform()."
        )
    return mechanism
