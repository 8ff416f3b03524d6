"""What a store of responses does. It never sees an original answer, an address or a time of day."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, Protocol

from deniable.core.errors import DeniableError, OptionError

Outcome = Literal["new", "known", "code"]  # stored; was there already; its one-time code is unknown or used


class StoreError(DeniableError):
    """A store that cannot be opened, or that fails."""


class Entry(NamedTuple):
    """A response to be stored: its id, the perturbed answers as text, the hash of its one-time code, the day."""

    id: str
    answers: str
    code: str | None
    day: str


class Store(Protocol):
    """Where responses are kept. Any thread may call it, one at a time."""

    def open_for(self, fingerprint: str) -> None:
        """Refuse to mix responses to different surveys, or to different noise."""
        known = self.setting("survey")
        if known is not None and known != fingerprint:
            raise OptionError(
                f"The store holds responses to another version of this survey ({known[:12]}..; this one is "
                f"{fingerprint[:12]}..): words or noise were changed. Fix: the survey file that it was started with, "
                "or another --store for the new version."
            )
        self.setting("survey", fingerprint)

    def add(self, entries: Sequence[Entry]) -> list[Outcome]:
        """Store responses, durably and all at once; an id that is there is left as it is."""
        ...

    def rows(self) -> list[str]:
        """The answers of all responses, in no order that tells when they came."""
        ...

    def days(self) -> list[tuple[str, int]]:
        """How many came on each day."""
        ...

    def count(self) -> int: ...

    def add_codes(self, hashes: Iterable[str]) -> None:
        """Keep the hashes of one-time codes; one that is used is forgotten, so that nothing ties it to a response."""
        ...

    def codes(self) -> tuple[int, int]:
        """How many one-time codes there are, and how many of them were used."""
        ...

    def setting(self, name: str, value: str | None = None) -> str | None:
        """A setting; with a value, it is set first."""
        ...

    def close(self) -> None: ...
