"""Every attack on every kind of release of one made-up census, and on the groups of rivals: who is right how often.

Beside it stands the guess without a release.

Everyone is promised 1/6. Keys are fixed, so that whoever repeats it gets the same table.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import Any

from deniable.core.privacy import Privacy
from deniable.lab import Anatomy, Generalize, attack
from deniable.lab.made_up import census
from deniable.mechanisms import Decoys, Designed, SmallDomain, Uniform
from deniable.owner.audit import audit
from deniable.planning.pools import CodedTable
from deniable.publishing.publish import publish
from deniable.tables.keys import Keystream, Secret

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
    ):
        release = publish(
            table, sensitive=SENSITIVE, privacy=required, mechanism=mechanism, key=_key(seed, mechanism.name)
        )
        played = audit(table, release, attacks=True).attacks
        lines += [{"method": mechanism.name, **result.to_dict()} for result in played]
    coded = CodedTable.of(table, SENSITIVE)
    for rival in (Anatomy(GROUP), Generalize(k=GROUP, l=GROUP)):
        stream = Keystream(Secret.from_key(_key(seed, rival.name)), "groups")
        lines += [
            {"method": rival.name, **attack.to_dict()} for attack in attack(rival, coded, stream, privacy=privacy)
        ]
    return lines


def _key(seed: int, method: str) -> bytes:
    return hashlib.sha256(f"attack story {seed} {method}".encode()).digest()
