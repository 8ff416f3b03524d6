"""The classes of hostile inputs, by name."""

from __future__ import annotations

from fuzz import files, manifests, options, questions
from fuzz.case import Cases

CLASSES: dict[str, Cases] = {
    "manifests": manifests.cases,
    "parquet": files.parquet,
    "csv": files.csv,
    "sql": questions.cases,
    "options": options.cases,
}
