"""Every attack on every kind of release of one made-up census: who is right how often, beside the guess without it.

Everyone is promised 1/6. Keys are fixed, so that whoever repeats it gets the same table.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import Any

from deniable.core.privacy import Privacy
from deniable.lab.made_up import census
from deniable.mechanisms import Decoys, Designed, SmallDomain, Uniform
from deniable.owner.audit import audit
from deniable.publishing.publish import publish
from deniable.lab import Anatomy
from deniable.lab import Generalize

ROWS = 48_000
GROUP = 6
SENSITIVE = "occupation"


def attack_story(seed: int = 2010, rows: int = ROWS) -> list[dict[str, Any]]:
    """One line for each release and attack.

    Keys: ``method``, and those of ``AttackResult``: ``name``, ``success``, ``low``, ``high``, ``baseline``, ..
    """
    table = census(rows, seed=seed)
    privacy = Privacy(rho2=Fraction(1, GROUP))
    lines = []
    for mechanism, required in (
        (Uniform(), privacy),
        (SmallDomain(), privacy),
        (Designed(), privacy),
        (Decoys(c=GROUP), None),
        (Anatomy(GROUP), privacy),
        (Generalize(k=GROUP, l=GROUP), privacy),
    ):
        key = hashlib.sha256(f"attack story {seed} {mechanism.name}".encode()).digest()
        release = publish(table, sensitive=SENSITIVE, privacy=required, mechanism=mechanism, key=key)
        attacks = audit(table, release, attacks=True).attacks
        lines += [{"method": mechanism.name, **attack.to_dict()} for attack in attacks]
    return lines
