"""Where responses are kept: SQLite by default, PostgreSQL by its address."""

from __future__ import annotations

from deniable.collection.store.base import Store
from deniable.collection.store.sqlite import SqliteStore
from deniable.core.errors import OptionError, extra_missing


def store_at(address: str) -> Store:
    """The store at a path, or at an address ``postgresql://...``."""
    scheme, separator, _ = address.partition("://")
    if not separator:
        return SqliteStore(address)
    if scheme not in ("postgresql", "postgres"):
        raise OptionError(
            f"The store {scheme + '://..'!r} is not known. Fix: a path for SQLite, or postgresql://user@host/database."
        )
    try:
        from deniable.collection.store.postgres import PostgresStore
    except ImportError:
        raise extra_missing("psycopg", "collect") from None
    return PostgresStore(address)
