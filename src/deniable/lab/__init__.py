"""The lab: rivals, which are compared, evaluated and attacked on a table in memory and never published; experiments."""

from __future__ import annotations

from deniable.lab.anatomy import Anatomy
from deniable.lab.attacks import attack
from deniable.lab.experiments import run_experiment
from deniable.lab.generalize import Generalize
from deniable.lab.laplace import Laplace
from deniable.lab.optrr import OptRR
from deniable.lab.perturbed_generalization import PerturbedGeneralization
from deniable.lab.settings import rival_candidates, setting_named

__all__ = [
    "Anatomy",
    "Generalize",
    "Laplace",
    "OptRR",
    "PerturbedGeneralization",
    "attack",
    "rival_candidates",
    "run_experiment",
    "setting_named",
]
