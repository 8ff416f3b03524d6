"""Who remembers what was published: a series, or the ledger beside a key, which says what releases were drawn under it,
so that a second look at the same people is no accident.

Draws depend on the key, the content and all choices. The same ones give the same release, and nothing new; anything
else is drawn afresh, and whoever has both releases has two looks (mathematics 13.1).
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from deniable.core.errors import ManifestError, RequirementError, listing, option
from deniable.engines.batch.sketch import Sketch
from deniable.engines.randomness import Keystream
from deniable.publishing.looks import composed, packed, unpacked
from deniable.publishing.request import Publication
from deniable.release.folder import write_file

FIELDS = {"name", "draws", "gamma"}


@dataclass
class Ledger:
    """What was published under a key: by name, a digest of what decided the draws, the amplification, and a sketch of
    the table's rows. Older entries have no sketch."""

    path: Path
    entries: list[dict[str, Any]] = field(default_factory=list)
    changed: bool = False

    @classmethod
    def beside(cls, key_file: Path) -> Ledger:
        """The ledger of a key file; empty where there is none yet."""
        path = key_file.with_name(key_file.name + ".ledger")
        if not path.exists():
            return cls(path)
        try:
            entries = json.loads(path.read_text(encoding="utf-8"))
            if not all(FIELDS <= set(entry) <= {*FIELDS, "rows"} for entry in entries):
                raise ValueError
            for entry in entries:
                _sketch(entry)
        except (OSError, ValueError, TypeError, KeyError, zlib.error):
            raise ManifestError(
                f"{path} is damaged: it is the ledger of a key. Fix: move it away to begin anew."
            ) from None
        return cls(path, entries)

    @classmethod
    def of(cls, publication: Publication, draws: tuple[str, ...], gamma: Fraction | None) -> Ledger | None:
        """The ledger with what is about to be published in it, which refuses people that were published before; None
        where there is no key file. ``draws`` names what decides the draws."""
        request = publication.request
        if request.key_file is None:
            return None
        ledger = cls.beside(Path(request.key_file))
        sketched = partial(publication.source.sketch, Keystream(publication.secret, "ledger"))
        ledger.note(request.name, draws, gamma, sketched, again=request.again)
        return ledger

    def note(
        self,
        name: str,
        draws: tuple[str, ...],
        gamma: Fraction | None,
        sketched: Callable[[], Sketch],
        *,
        again: bool,
    ) -> None:
        """Take a release in; a second look at what has this name, or at rows that were published under another one, is
        refused, unless the owner insists."""
        digest = hashlib.sha256("\n".join(draws).encode()).hexdigest()
        if any((entry["name"], entry["draws"]) == (name, digest) for entry in self.entries):
            return  # the same release once more
        rows = sketched()
        alike = [entry for entry in self.entries if _alike(rows, _sketch(entry))]
        looked = [entry for entry in self.entries if entry["name"] == name or entry in alike]
        if looked and not again:
            looks = [None if entry["gamma"] is None else Fraction(entry["gamma"]) for entry in looked] + [gamma]
            named = listing(list(dict.fromkeys(entry["name"] for entry in alike or looked)))
            if alike:
                raise RequirementError(
                    f"Rows of this table were published under this key before, as {named}: this is a second look at "
                    f"the same people, {composed(looks)}. Fix: {option('series', '')} to publish them again as they "
                    f"were; {option('again', True)} to insist, or if they are other people whose rows are alike."
                )
            raise RequirementError(
                f"Another release named {named} was published under this key: of another table, or with other choices. "
                f"If it was about the same people, this is a second look at them: {composed(looks)}. Fix: "
                f"{option('series', '')} to publish them again as they were; {option('name', '')} if this is about "
                f"other people; {option('again', True)} to insist."
            )
        entry = {"name": name, "draws": digest, "gamma": None if gamma is None else str(gamma)}
        self.entries.append({**entry, "rows": _packed(rows)})
        self.changed = True

    def save(self) -> None:
        """Write it down, if there is something new."""
        if self.changed:
            write_file(self.path, json.dumps(self.entries, indent=1) + "\n", private=True)


def _packed(rows: Sketch) -> dict[str, Any]:
    words = {"once": packed(rows.once), "repeated": packed(rows.repeated)}
    return {**words, "limit": rows.limit, "rows": rows.rows, "content": rows.content}


def _sketch(entry: Mapping[str, Any]) -> Sketch | None:
    if "rows" not in entry:
        return None
    raw = entry["rows"]
    numbers = (int(raw[name]) for name in ("limit", "rows", "content"))
    return Sketch(unpacked(raw["once"]), unpacked(raw["repeated"]), *numbers)


def _alike(one: Sketch, other: Sketch | None) -> bool:
    return other is not None and one.same_people(other)
