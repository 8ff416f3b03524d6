"""Values that need no protection, from words of a shell."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import pyarrow as pa

from deniable.core.errors import OptionError
from deniable.engines import Engine, engine_named


def exempted(
    values: list[str] | None,
    table: str | list[str],
    sensitive: Sequence[str],
    *,
    binned: bool,
    engine: str | Engine = "local",
) -> list[Hashable]:
    """Exempt values, which a shell has as words, in the type of the sensitive column; of a binned column they are the
    texts of intervals."""
    if not values or binned:
        return list(values or [])
    if len(sensitive) > 1:
        raise OptionError(
            "--exempt goes with one sensitive column; with several, Fix: exempt= of deniable.Privacy, in Python."
        )
    schema = engine_named(engine).open(table).schema
    if sensitive[0] not in schema.names:  # whoever reads the column says it better
        return list(values)
    kind: Any = schema.field(sensitive[0]).type
    try:
        return [pa.scalar(value).cast(kind).as_py() for value in values]
    except pa.ArrowInvalid:
        raise OptionError(
            f"--exempt {' '.join(values)} does not fit the column {sensitive[0]!r} ({kind}). Fix: values of that kind."
        ) from None
