"""What an experiment should find, before it is run: each setting's errors on a pool, in closed form."""

from __future__ import annotations

from collections.abc import Sequence

from deniable.core.errors import DeniableError
from deniable.evaluation.answered import Setting
from deniable.evaluation.metrics import SELECTIVITIES
from deniable.evaluation.pools import QuestionPool
from deniable.evaluation.rivals import Anatomized, DecoyGroups, Laplace, Noisy, Redrawn
from deniable.evaluation.settings import Independent, Perturbed
from deniable.mechanisms import Decoys
from deniable.planning.candidates import MARGINAL_VARIANCE
from deniable.planning.profiles import ByPool, Errors


def predicted(
    setting: Setting, pool: QuestionPool, selectivities: Sequence[float] = SELECTIVITIES
) -> dict[str, Errors]:
    """Estimator -> mean relative errors; without those that have no closed form (shrunk, mle, four states)."""
    asked = ByPool(pool, tuple(selectivities))
    try:
        return _of(setting, asked)
    except DeniableError:  # a mechanism that refuses says why when it is run
        return {}


def _of(setting: Setting, asked: ByPool) -> dict[str, Errors]:
    histogram = asked.pool.table.histogram
    match setting:
        case Perturbed():
            return _channels(setting, asked)
        case Anatomized():
            return {"": asked.anatomy(setting.l)}
        case DecoyGroups():
            plan = Decoys(c=setting.c, leftovers="drop").plan(histogram, None)
            return {"full channel": asked.channels(plan, None)}
        case Redrawn():
            return {"": asked.redraw()}
        case Noisy():
            return {"": asked.noise(1 / setting.epsilon)}
        case Laplace():
            return {name: asked.noise(1 / epsilon) for name, epsilon in setting.epsilons(asked.pool).items()}
        case Independent():
            return {"": asked.independence()}
    return {}


def _channels(setting: Perturbed, asked: ByPool) -> dict[str, Errors]:
    plan = setting.mechanism.plan(asked.pool.table.histogram, setting.privacy)
    knows = setting.privacy is None or setting.privacy.adversary == "frequency"
    noise = {"inverse": None, "calibrated": MARGINAL_VARIANCE if knows else None}
    return {name: asked.channels(plan, noise[name]) for name in setting.estimators if name in noise}
