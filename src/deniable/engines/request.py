"""What a user asked to publish, in the terms that every publisher shares."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from deniable.core.arrays import Ints
from deniable.core.manifest import ROW_NUMBER
from deniable.core.privacy import Privacy
from deniable.engines.base import Dataset, Domain, Progress, Scan
from deniable.engines.randomness import Keystream, Secret


@dataclass(frozen=True)
class Request:
    """A table, its columns' roles, and what is required of the release. The attributes are those of ``publish``.

    ``context`` is a digest of the table's content and of all choices: what makes a release another one.
    ``drawn_by`` says what a row's draws depend on, beside the key; ``unnamed`` are columns that are left out because
    they are labels of rows.
    """

    dataset: Dataset
    sensitive: tuple[str, ...]
    public: tuple[str, ...]
    privacy: Privacy | None
    secret: Secret
    name: str
    context: str
    missing: str
    domain: Domain
    shuffle: bool
    marginals: bool | None
    progress: Progress
    drawn_by: str = ROW_NUMBER
    unnamed: tuple[str, ...] = ()

    @cached_property
    def keys(self) -> Keystream:
        """The randomness of everything that is not drawn row by row."""
        return Keystream(self.secret, "release", self.name, self.context, *self.sensitive)

    def scan(self, columns: tuple[str, ...], domain: Domain = None) -> Scan:
        """Count some columns as one."""
        return self.dataset.scan(columns, self.missing, domain, self.progress)

    def without(self, rows: Ints) -> Request:
        """The same for a table without these rows."""
        return replace(self, dataset=self.dataset.without(rows))
