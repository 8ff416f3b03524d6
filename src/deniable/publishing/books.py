"""Who remembers what was published: a series, or the ledger beside a key file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from fractions import Fraction

from deniable.publishing.ledger import Ledger, noted
from deniable.publishing.series import Series


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
        """The ledger, which refuses people that were published before; ``draws`` names what decides the draws."""
        return noted(self.key_file, name, draws, gamma, self.again)

    def keep(self, ledger: Ledger | None) -> None:
        """Remember what is published."""
        for book in (self.log, ledger):
            if book is not None:
                book.save()
