"""How an owner makes columns coarser before they are published: checked against the table, as steps for an engine."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from deniable.core.errors import ColumnError, OptionError, no_column, option, shortened
from deniable.core.recode import Rare, Step, Steps
from deniable.engines.batch.recoding import recoded_type
from deniable.engines.batch.values import is_text
from deniable.publishing.recode_spelling import as_steps, read_recode_file

RecodeLike = Mapping[str, Step | Sequence[Step] | str] | str | os.PathLike[str]
Rows = int | Mapping[str, int]


@dataclass(frozen=True)
class Recoding:
    """What is asked for.

    Attributes:
        columns: the steps of each column.
        rare: public values of fewer rows are merged: one number for all columns of text, or one for each column named.
        suppress: sensitive values of fewer rows become missing: one number, or one for each column named.
    """

    columns: Steps = field(default_factory=dict)
    rare: Rows | None = None
    suppress: Rows | None = None

    @classmethod
    def of(cls, recode: RecodeLike | None = None, rare: Rows | None = None, suppress: Rows | None = None) -> Recoding:
        """From the arguments of ``publish``; a path names a file that may hold all three."""
        if recode is None or isinstance(recode, Mapping):
            return cls({column: as_steps(given) for column, given in (recode or {}).items()}, rare, suppress)
        if not isinstance(recode, str | os.PathLike):
            raise OptionError(
                f"recode = {shortened(recode)} names no columns. Fix: column -> how, as in {{'age': 'bands:10'}}, or "
                "the path of a TOML file."
            )
        read = read_recode_file(recode)
        for name, given in (("rare", rare), ("suppress", suppress)):
            if given is not None and name in read:
                raise OptionError(
                    f"{name} is in {os.fspath(recode)!r} and given once more. Fix: leave one of them out."
                )
        return cls(read["recode"], read.get("rare", rare), read.get("suppress", suppress))

    def __bool__(self) -> bool:
        return bool(self.columns) or self.rare is not None or self.suppress is not None

    def steps(self, schema: pa.Schema, public: Sequence[str], sensitive: Sequence[str]) -> Steps:
        """The steps of each column of a table, in the order of its columns."""
        for column in self.columns:
            self._require_published(column, "recode", schema, [*public, *sensitive])
        steps = {name: self.columns[name] for name in (*public, *sensitive) if name in self.columns}
        for column, below in self._rare(schema, public).items():
            text = is_text(self._type(schema, column))
            steps[column] = (*steps.get(column, ()), Rare(below) if text else Rare(below, None))
        for column, below in self._suppressed(schema, sensitive).items():
            steps[column] = (*steps.get(column, ()), Rare(below, None))
        return {name: steps[name] for name in schema.names if name in steps}

    def _rare(self, schema: pa.Schema, public: Sequence[str]) -> Mapping[str, int]:
        if not isinstance(self.rare, Mapping):
            texts = [name for name in public if is_text(self._type(schema, name))] if self.rare is not None else []
            return dict.fromkeys(texts, self.rare or 0)
        for column in self.rare:
            self._require_published(column, "rare", schema, public)
        return self.rare

    def _suppressed(self, schema: pa.Schema, sensitive: Sequence[str]) -> Mapping[str, int]:
        if not isinstance(self.suppress, Mapping):
            return {} if self.suppress is None else dict.fromkeys(sensitive, self.suppress)
        for column in self.suppress:
            self._require_published(column, "suppress", schema, sensitive)
        return self.suppress

    def _type(self, schema: pa.Schema, column: str) -> pa.DataType:
        kind = schema.field(column).type
        for step in self.columns.get(column, ()):
            kind = recoded_type(column, kind, step)
        return kind

    @staticmethod
    def _require_published(column: str, what: str, schema: pa.Schema, allowed: Sequence[str]) -> None:
        if column in allowed:
            return
        if column not in schema.names:
            raise ColumnError(no_column(what, column, schema.names))
        role = {"rare": "no public column", "suppress": "no sensitive column"}.get(what, "not published")
        raise ColumnError(
            f"{option(what)} names the column {column!r}, which is {role}. Fix: leave it out of {option(what)}."
        )

    def fitting(self, sensitive: Sequence[str], missing: str, domain: Any, bins: Mapping[str, Any]) -> Recoding:
        """Itself; refused where it contradicts other options, or does something twice."""
        twice = [column for column in bins if column in self.columns]
        if twice:
            raise OptionError(f"{twice[0]!r} is recoded, and has bins. Fix: leave one of them out.")
        if self.suppress is None:
            return self
        if missing != "value":
            raise OptionError(
                "suppress makes rare values missing, which must then be perturbed like any value: missing = "
                f"{missing!r} does not do that. Fix: {option('missing', 'value')}."
            )
        if domain is not None:
            raise OptionError("suppress leaves rare values out, and domain declares all values. Fix: leave one out.")
        columns = self.suppress if isinstance(self.suppress, Mapping) else sensitive
        if any(column in bins for column in columns):
            raise OptionError(
                "suppress counts values before they have bins. Fix: widen the bins, or leave suppress out."
            )
        return self
