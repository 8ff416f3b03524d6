"""What one user published, whatever the key: a second look at the same people is noticed by default.

A file of the user, for the user alone, keeps of each publication its name, day and amplification, and a keyed sketch of
the table (``tables.content``), by which the same people are known again although columns were renamed, recoded, added
or left out and rows came and went. Draws of one series, and the same draws once more, are no second look.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from deniable.core.about import today
from deniable.core.errors import ManifestError, OutputError, TableError
from deniable.core.privacy import Privacy
from deniable.publishing.ledger import composed, grown, packed_sketch, product_of, unpacked_sketch
from deniable.publishing.request import Publication
from deniable.release.commit import PATIENCE, Commit
from deniable.tables.content import Sketch
from deniable.tables.keys import KEY_BYTES, Keystream, Secret

SAID = 3  # other publications that are named
VARIABLE = "DENIABLE_MEMORY"  # of the environment: another file, or none where it is empty


_forgotten: ContextVar[bool] = ContextVar("_forgotten", default=False)


@contextmanager
def nothing_remembered() -> Iterator[None]:
    """For people who are made up."""
    before = _forgotten.set(True)
    try:
        yield
    finally:
        _forgotten.reset(before)


def remembered_in(out: Path) -> Path | None:
    """The file that remembers a release in this folder; None where nothing is to be remembered."""
    named = "" if _forgotten.get() else os.environ.get(VARIABLE)
    if named is not None:
        return Path(named).absolute() if named else None
    if out.resolve().is_relative_to(Path(tempfile.gettempdir()).resolve()):  # of an experiment, which nobody gets
        return None
    home = os.path.expanduser("~")
    if home == "~":  # nobody's; a file that cannot be is said to be none
        return Path(os.devnull) / "memory.json"
    homes = {
        "win32": os.environ.get("LOCALAPPDATA") or Path(home, "AppData", "Local"),
        "darwin": Path(home, "Library", "Application Support"),
    }
    usual = os.environ.get("XDG_DATA_HOME") or Path(home, ".local", "share")
    return Path(homes.get(sys.platform, usual)) / "deniable" / "memory.json"


@dataclass(frozen=True)
class Look:
    """A publication, as it is remembered.

    Attributes:
        name: of the release.
        day: of the publication.
        out: its folder.
        draws: a digest of what decided the draws.
        gamma: by how much it multiplies odds; None where that has no bound.
        series: it belongs to; empty where it is in none.
        table: a sketch of it.
    """

    name: str
    day: str
    out: str
    draws: str
    gamma: Fraction | None
    series: str
    table: Sketch

    def is_another_of(self, other: Look) -> bool:
        """Whether the same people were drawn for once more."""
        once_more = self.draws == other.draws or (self.series != "" and self.series == other.series)
        return not once_more and self.table.same_people(other.table, numbers=False)


@dataclass
class Memory:
    """All that one user published."""

    path: Path
    key: bytes
    looks: list[Look]

    @classmethod
    def opened(cls, path: Path) -> Memory:
        """The one in a file, which is begun, with a key of its own, where there is none yet."""
        if not path.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with Commit() as commit:
                commit.hold(path, PATIENCE)
                if not path.exists():  # another run was not faster
                    commit.write(path, cls(path, secrets.token_bytes(KEY_BYTES), []).text(), private=True)
        return cls.read(path)

    @classmethod
    def read(cls, path: Path) -> Memory:
        """What ``text`` wrote."""
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
            tables = {digest: unpacked_sketch(table) for digest, table in raw["tables"].items()}
            looks = [
                Look(**{**one, "gamma": one["gamma"] and Fraction(one["gamma"]), "table": tables[one["table"]]})
                for one in raw["looks"]
            ]
            return cls(path, bytes.fromhex(raw["key"]), looks)
        except (ValueError, TypeError, KeyError, zlib.error):
            raise ManifestError(
                f"{path} is damaged: it remembers what was published. Fix: move it away to begin anew; or "
                f"{VARIABLE}=FILE for another one."
            ) from None

    def text(self) -> str:
        """For the file; what was published of one table again and again is there once."""
        tables, looks = {}, []
        for look in self.looks:
            packed = packed_sketch(look.table)
            digest = hashlib.sha256(json.dumps(packed).encode()).hexdigest()
            tables[digest] = packed
            looks.append({**vars(look), "gamma": look.gamma and str(look.gamma), "table": digest})
        return json.dumps({"key": self.key.hex(), "tables": tables, "looks": looks}) + "\n"


@dataclass(frozen=True, eq=False)
class Recall:
    """A publication beside what is remembered.

    Attributes:
        memory: as it was before.
        look: this publication.
        before: publications of the same people that are somewhere else.
        replaced: those in the folder that this one is written over.
    """

    memory: Memory
    look: Look
    before: tuple[Look, ...]
    replaced: tuple[Look, ...]

    @classmethod
    def of(
        cls, publication: Publication, draws: str, gamma: Fraction | None, out: Path | None, series: str
    ) -> Recall | None:
        """What is remembered of the people of a publication; None where nothing is to be, or can be, or where draws
        have a seed. What is not written yet begins no memory."""
        path = remembered_in(out or Path())
        if path is None or publication.secret.seed is not None or (out is None and not path.exists()):
            return None
        try:
            memory, folder = Memory.opened(path), "" if out is None else str(out.resolve())
            table = publication.source.sketch(Keystream(Secret(memory.key), "memory"))
        except (OSError, OutputError, TableError):  # of a release that is saved, the table may be gone
            return None
        look = Look(publication.request.name, today(), folder, draws, gamma, series, table)
        again = [one for one in memory.looks if look.is_another_of(one)]
        before = {
            one.series or one.draws: one for one in again if one.out != folder
        }  # a series is one look: so it says
        replaced = {one.draws: one for one in again if one.out == folder and (one.series or one.draws) not in before}
        return cls(memory, look, tuple(before.values()), tuple(replaced.values()))

    def save(self, commit: Commit) -> None:
        """Write it down, beside what other runs have written meanwhile."""
        path = self.memory.path
        commit.hold(path, PATIENCE)
        looks = [one for one in Memory.read(path).looks if (one.draws, one.out) != (self.look.draws, self.look.out)]
        commit.write(path, replace(self.memory, looks=[*looks, self.look]).text(), private=True)

    def together(self, looks: Sequence[Look], privacy: Privacy | None) -> str:
        """What this release and others come to, in words."""
        gammas = [*(one.gamma for one in looks), self.look.gamma]
        total = product_of(gammas)
        return composed(gammas) if total is None else grown(total, None if privacy is None else privacy.rho1)

    @staticmethod
    def named(looks: Sequence[Look], places: bool = True) -> str:
        """Other publications, the last ones; their folders for who made them only."""
        said = ", ".join(f"{one.name!r} of {one.day}" + f" in {one.out}" * places for one in looks[-SAID:])
        return said if len(looks) <= SAID else f"{said} and {len(looks) - SAID:,} more"

    def said(self, privacy: Privacy | None) -> str:
        """For everyone."""
        named = self.named(self.before, places=False)
        return f"The same people are in other releases ({named}). Together {self.together(self.before, privacy)}."
