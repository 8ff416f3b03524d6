"""What an informed attacker gains from each setting of an experiment that publishes perturbed rows."""

from __future__ import annotations

from collections.abc import Sequence

from deniable.audit.attacks.informed import Informed
from deniable.core.errors import DeniableError
from deniable.evaluation.answered import Setting
from deniable.planning.informed import against, informed_attacker
from deniable.planning.tables import CodedTable


def informed_by_setting(settings: Sequence[Setting], table: CodedTable) -> dict[str, Informed]:
    """Setting -> what someone gains who has learnt from half of the table; none without public columns."""
    attacker = informed_attacker(table)
    gained: dict[str, Informed] = {}
    for setting in settings:
        if attacker is None:
            break
        try:
            plan = setting.plan(table.histogram)
        except DeniableError:  # a mechanism that refuses says why when it is run
            continue
        if plan is not None:
            gained[setting.label] = against(attacker, plan)
    return gained
