"""Attacks on releases: each plays one adversary against any mechanism, and says how often it is right."""

from deniable.audit.attacks.classifier import classifier
from deniable.audit.attacks.corruption import corruption, sample_corruption
from deniable.audit.attacks.decoy_reconstruction import decoy_reconstruction, minimality
from deniable.audit.attacks.duplicates import duplicates
from deniable.audit.attacks.evidence import Evidence, views_of
from deniable.audit.attacks.homogeneity import homogeneity
from deniable.audit.attacks.linking import linking
from deniable.audit.attacks.repeated import repeated
from deniable.audit.attacks.result import AttackResult

__all__ = [
    "AttackResult",
    "Evidence",
    "classifier",
    "corruption",
    "decoy_reconstruction",
    "duplicates",
    "homogeneity",
    "linking",
    "minimality",
    "repeated",
    "sample_corruption",
    "views_of",
]
