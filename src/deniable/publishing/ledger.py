"""Who remembers what was published: a series, or the ledger beside a key, which says what releases were drawn under it,
so that a second look at the same people is no accident.

Draws depend on the key, the content and all choices. The same ones give the same release, and nothing new; anything
else is drawn afresh, and whoever has both releases has two looks (mathematics 13.1).
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from deniable.core.errors import ManifestError, RequirementError
from deniable.publishing.looks import composed
from deniable.publishing.series import Series
from deniable.release.folder import write_file


@dataclass
class Ledger:
    """What was published under a key: by name, a digest of what decided the draws, and the amplification."""

    path: Path
    entries: list[dict[str, str | None]] = field(default_factory=list)
    changed: bool = False

    @classmethod
    def beside(cls, key_file: Path) -> Ledger:
        """The ledger of a key file; empty where there is none yet."""
        path = key_file.with_name(key_file.name + ".ledger")
        if not path.exists():
            return cls(path)
        try:
            entries = json.loads(path.read_text(encoding="utf-8"))
            if not all(set(entry) == {"name", "draws", "gamma"} for entry in entries):
                raise ValueError
        except (OSError, ValueError, TypeError):
            raise ManifestError(
                f"{path} is damaged: it is the ledger of a key. Fix: move it away to begin anew."
            ) from None
        return cls(path, entries)

    def note(self, name: str, draws: tuple[str, ...], gamma: Fraction | None, *, again: bool) -> None:
        """Take a release in; a second look at what has this name is refused, unless the owner insists."""
        digest = hashlib.sha256("\n".join(draws).encode()).hexdigest()
        mine = [entry for entry in self.entries if entry["name"] == name]
        if any(entry["draws"] == digest for entry in mine):
            return  # the same release once more
        if mine and not again:
            looks = [None if entry["gamma"] is None else Fraction(entry["gamma"]) for entry in mine] + [gamma]
            raise RequirementError(
                f"Another release named {name!r} was published under this key: of another table, or with other choices."
                f" If it was about the same people, this is a second look at them: {composed(looks)}. Fix: series= to "
                "publish them again as they were; name= if this is another table; again=True to insist."
            )
        self.entries.append({"name": name, "draws": digest, "gamma": None if gamma is None else str(gamma)})
        self.changed = True

    def save(self) -> None:
        """Write it down, if there is something new."""
        if self.changed:
            write_file(self.path, json.dumps(self.entries, indent=1) + "\n", private=True)


@dataclass(frozen=True)
class Books:
    """What a publication is entered into.

    Attributes:
        log: the series, if it is one of a series.
        key_file: the ledger lies beside it.
        again: whether people that were published before are published once more.
    """

    log: Series | None
    key_file: str | os.PathLike[str] | None
    again: bool

    def opened(self, name: str, draws: tuple[str, ...], gamma: Fraction | None) -> Ledger | None:
        """The ledger with what is about to be published in it, which refuses people that were published before; None
        where there is no key file. ``draws`` names what decides the draws."""
        if self.key_file is None:
            return None
        ledger = Ledger.beside(Path(self.key_file))
        ledger.note(name, draws, gamma, again=self.again)
        return ledger

    def keep(self, ledger: Ledger | None) -> None:
        """Remember what is published."""
        for book in (self.log, ledger):
            if book is not None:
                book.save()
