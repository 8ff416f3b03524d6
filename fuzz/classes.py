"""The classes of hostile inputs, by name."""

from __future__ import annotations

from fuzz import again, exports, files, machines, manifests, options, questions, recoding, samples
from fuzz.case import Cases

CLASSES: dict[str, Cases] = {
    "manifests": manifests.cases,
    "parquet": files.parquet,
    "csv": files.csv,
    "sql": questions.cases,
    "options": options.cases,
    "recode": recoding.recode,
    "risk": recoding.risk,
    "series": again.cases,
    "lineups": samples.lineups,
    "lists": samples.lists,
    "weights": samples.weights,
    "export": exports.cases,
    "doctor": machines.cases,
}
