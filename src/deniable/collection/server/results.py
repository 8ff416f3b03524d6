"""Results for the researcher: counts with intervals from the responses so far, never the responses themselves."""

from __future__ import annotations

import io
import tempfile
import threading
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deniable.collection.bars import bars_of
from deniable.collection.checking import ERROR
from deniable.collection.collected import release_of
from deniable.collection.sheet import Sheet, SheetColumn
from deniable.collection.store.base import Store
from deniable.core import values
from deniable.core.errors import QuestionError, did_you_mean, warnings_heard
from deniable.estimation.predicates import Between
from deniable.release.release import Release

FRESH = 2.0  # seconds for which results are not computed again


class Results:
    """Answers from the responses in a store."""

    def __init__(self, sheet: Sheet, store: Store) -> None:
        self.sheet, self.store = sheet, store
        self._lock = threading.Lock()
        self._kept: tuple[float, Release] | None = None

    def release(self) -> Release:
        """The responses so far, as a release."""
        with self._lock:
            now = time.monotonic()
            if self._kept is None or now - self._kept[0] > FRESH:
                self._kept = (now, release_of(self.sheet, self.store.rows()))
            return self._kept[1]

    def progress(self) -> dict[str, Any]:
        """How many came, by day, and how many one-time codes are left."""
        made, used = self.store.codes()
        return {
            "responses": self.store.count(),
            "days": [{"day": day, "responses": count} for day, count in self.store.days()],
            "codes": {"made": made, "used": used} if self.sheet.survey.codes else None,
        }

    def summary(self) -> dict[str, Any]:
        """Every question: counts with intervals, how precise they are, how many more respondents are needed."""
        release = self.release()
        return {
            "responses": release.manifest.rows,
            "epsilon": self.sheet.epsilon,
            "columns": [self._column(release, column) for column in self.sheet.columns],
        }

    def _column(self, release: Release, column: SheetColumn) -> dict[str, Any]:
        rows = release.manifest.rows
        bars = {bar.label: _bar(release, bar.where) for bar in bars_of(column)}
        precise = max(bar["high"] - bar["low"] for bar in bars.values()) / 2 / rows
        needed = 0 if column.part is None else column.respondents_for(ERROR)
        return {
            "column": column.name,
            "question": dict(column.question.text),
            "option": column.option,
            "public": column.part is None,
            "bars": [{"label": label, **bar} for label, bar in bars.items()],
            "precise_to": precise,
            "needed_for": {"error": ERROR, "respondents": needed, "more": max(needed - rows, 0)},
        }

    def cross(self, one: str, other: str) -> dict[str, Any]:
        """Two questions against each other."""
        pair = [self._named(one), self._named(other)]
        if one == other:
            raise QuestionError("A question against itself tells nothing. Fix: name two columns.")
        release = self.release()
        rows, columns = bars_of(pair[0]), bars_of(pair[1])
        table = [[_bar(release, {**mine.where, **theirs.where}) for theirs in columns] for mine in rows]
        labels = {"rows": [bar.label for bar in rows], "columns": [bar.label for bar in columns]}
        return {"one": one, "other": other, **labels, "cells": table}

    def _named(self, name: str) -> SheetColumn:
        known = {column.name: column for column in self.sheet.columns}
        if name not in known:
            raise QuestionError(f"The survey has no column {name[:40]!r}.{did_you_mean(name, known)}")
        return known[name]

    def ask(self, sql: str) -> dict[str, Any]:
        """A question in SQL; what the estimator warns of is told with the answer."""
        with warnings_heard() as heard:
            table = self.release().sql(sql)
        rows = [[values.to_json(value) for value in row.values()] for row in table.to_pylist()]
        return {"columns": table.column_names, "rows": rows, "warnings": list(heard)}

    def export(self) -> bytes:
        """The release as a ZIP archive of its folder; ``deniable verify`` accepts it."""
        name = self.sheet.survey.name
        archive = io.BytesIO()
        with tempfile.TemporaryDirectory() as home:
            folder = Path(home) / name
            release_of(self.sheet, self.store.rows()).save(folder)
            with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
                for path in sorted(folder.iterdir()):
                    # A fixed time of day: when an export was made is not part of it.
                    entry = zipfile.ZipInfo(f"{name}/{path.name}")
                    zipped.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
        return archive.getvalue()


def _bar(release: Release, where: Mapping[str, Any]) -> dict[str, float]:
    if any(not _there(release, column, value) for column, value in where.items()):
        return {"count": 0.0, "low": 0.0, "high": 0.0}
    estimate = release.count(where)
    return {"count": estimate.value, "low": estimate.low, "high": estimate.high}


def _there(release: Release, column: str, value: Any) -> bool:
    """Whether anyone gave this public answer yet; of private ones every answer can be asked for."""
    if column not in release.manifest.public_columns or value is None or isinstance(value, Between):
        return True
    return value in release.counter().distinct(column).to_pylist()
