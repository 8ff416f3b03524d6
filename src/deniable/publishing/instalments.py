"""A series of learned releases: one budget for a stated number of publications, spent in equal parts (mathematics
14.1).

A learned release draws no row by its person, so a table that has changed is learned anew, which costs. The budget is
that of all publications together; each may spend its part, and the file of the series holds the key and who was told
what: of each publication a digest of the table and all choices. A table that was published before has the same digest,
so it gets the same draws, date and words: the same release once more, which costs nothing.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from deniable.core.errors import ManifestError, OptionError, RequirementError, option
from deniable.mechanisms import Mechanism
from deniable.mechanisms.synthetic import Instalment
from deniable.publishing.parts import Prepared, prepared
from deniable.publishing.request import Publication, canonical
from deniable.publishing.series import digest_of, require_own_file
from deniable.release.commit import Commit
from deniable.tables.keys import Keystream, Secret

KIND = "instalments"
MOST = 10_000  # publications


@dataclass
class Instalments:
    """The file of such a series, read or about to be made.

    Attributes:
        publications: how many there may be.
        fixed: what all of them have in common, as text: the requirement, the sensitive columns, whose rows belong
            together.
        done: of each publication its number, date, digest, and what it cost.
    """

    path: Path
    secret: Secret
    publications: int
    fixed: str = ""
    done: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def open(cls, path: Path, publications: int | None) -> Instalments:
        """The series in this file, or a new one where there is no file."""
        if publications is not None and not (type(publications) is int and 1 <= publications <= MOST):
            raise OptionError(
                f"publications = {publications!r} is not allowed: it is a whole number from 1 to {MOST:,}. Fix: "
                f"{option('publications', 12)}."
            )
        if not path.exists():
            if publications is None:
                raise OptionError(
                    "A series of learned releases has one budget for all of them, and needs to know how many there "
                    f"may be. Fix: {option('publications', 12)}, one a month for a year."
                )
            return cls(path, Secret(Secret.generate().key, "series"), publications)
        require_own_file(path)
        series = cls._read(path)
        if publications not in (None, series.publications):
            raise OptionError(
                f"publications = {publications}, and the series in {path} was begun for {series.publications}: its "
                "budget is divided by that. Fix: leave publications out, or begin a new series, whose budget adds up "
                "with this one's."
            )
        return series

    @classmethod
    def _read(cls, path: Path) -> Instalments:
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
            if raw["kind"] != KIND or raw["digest"] != digest_of(raw):
                raise ValueError
            secret = Secret(bytes.fromhex(raw["key"]), "series")
            return cls(path, secret, raw["publications"], raw["fixed"], raw["done"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError, zlib.error):
            raise ManifestError(
                f"{path} is no file of a series of learned releases, or was changed or damaged after it was written: "
                "what was spent cannot be trusted. Fix: put a copy of it back; a new file name begins a new series, "
                "whose budget adds up with this one's."
            ) from None

    def save(self, commit: Commit) -> None:
        """Write the file, readable by its owner only, whole or not at all."""
        raw = {
            "kind": KIND,
            "key": self.secret.key.hex(),
            "publications": self.publications,
            "fixed": self.fixed,
            "done": self.done,
        }
        raw["digest"] = digest_of(raw)
        commit.write(self.path, json.dumps(raw, indent=1) + "\n", private=True)

    @property
    def keys(self) -> Keystream:
        """The randomness that belongs to no publication."""
        return Keystream(self.secret, KIND)

    @property
    def name(self) -> str:
        """What its publications say that they belong to: a word of the key that tells nothing else of it."""
        return self.keys.subkey("name").words(0, 2).astype("<u8").tobytes().hex()

    def admitted(self, publication: Publication) -> Publication:
        """The publication with its number and, where it was published before, its date; refused where it does not
        belong to the series, or where nothing is left to spend."""
        request = publication.request
        fixed = canonical([request.required, publication.sensitive, request.person, request.group])
        if self.done and fixed != self.fixed:
            raise OptionError(
                f"The series in {self.path} was begun with another requirement, other sensitive columns, or another "
                "person or group: its budget is for these. Fix: the same as then; or a new series, whose budget adds "
                "up with this one's."
            )
        self.fixed = fixed
        entry = next((one for one in self.done if one["table"] == self._table(publication)), None)
        if entry is None and len(self.done) == self.publications:
            raise RequirementError(
                f"The budget of the series in {self.path} is spent: {self.publications:,} tables were published, the "
                "last on " + self.done[-1]["date"] + ". A table that was published can be published once more as it "
                "was; another one is a further look at everyone. Fix: a new series, if that look is meant: both "
                "budgets add up, and the factors of the odds multiply."
            )
        number = len(self.done) + 1 if entry is None else entry["number"]
        if entry is not None and not _dated(request.about):
            publication = replace(publication, about=replace(publication.about, date=entry["date"]))
        return replace(publication, instalment=Instalment(number, self.publications))

    def prepared(self, mechanism: str | Mechanism, publication: Publication) -> Prepared:
        """What is to be executed, noted as spent. Nothing is written yet."""
        assert publication.instalment is not None
        ready = prepared(mechanism, publication)
        if publication.instalment.number > len(self.done):
            (promise,) = ready.plan.guarantee.promises
            spent: Fraction = getattr(promise, "epsilon", Fraction(0)) * getattr(promise, "together", 1)
            self.done.append(
                {
                    "number": publication.instalment.number,
                    "date": publication.about.date,
                    "table": self._table(publication),
                    "epsilon": str(spent),
                }
            )
        return ready

    def _table(self, publication: Publication) -> str:
        """A digest of the table and all choices that tells nothing of them to whoever has not got the key."""
        whole = canonical([publication.request.name, publication.context])
        return hashlib.sha256(self.secret.key + whole.encode()).hexdigest()


def _dated(about: Any) -> bool:
    return bool(about.get("date") if isinstance(about, dict) else getattr(about, "date", None))
