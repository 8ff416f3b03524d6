"""A sensitive column of lists, as a mechanism that perturbs its items needs it; what does not go with it is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deniable.core.errors import OptionError, RequirementError, listing, option
from deniable.core.privacy import Privacy
from deniable.engines.base import Dataset, Domain, Unfolds
from deniable.mechanisms import Mechanism
from deniable.publishing.recoding import Recoding


@dataclass(frozen=True)
class Refused:
    """Options of ``publish`` that do not go with lists, each with whether it was given and why it does not go."""

    missing: str
    marginals: bool | None
    series: Any
    bins: Mapping[str, Any] | None
    recoding: Recoding

    def check(self, column: str) -> None:
        """Refuse the first that was given."""
        given = {
            f"{option('missing', self.missing)} (a missing list is an empty one, and is perturbed like any "
            "other)": self.missing != "value",
            "marginals=True (a noisy count of every item would cost as much as the rows do, once for every item that a "
            "person has)": bool(self.marginals),
            f"{option('series', '')} (a list that changes by one item would be published again in all of its "
            "items)": self.series is not None,
            f"{option('bins', '')} (items are no numbers)": bool(self.bins),
            f"{option('recode', '')} of {column!r} (a list is no value to make coarser; recode its items "
            "beforehand)": column in self.recoding.columns,
            f"{option('suppress', '')} (it makes rare values missing; leave rare items out "
            "beforehand)": self.recoding.suppress is not None,
        }
        for what, there in given.items():
            if there:
                raise OptionError(f"The lists of {column!r} do not go with {what}. Fix: leave it out.")


def unfolded(
    opened: Dataset,
    mechanism: str | Mechanism,
    names: tuple[str, ...],
    domain: Domain,
    person: str | None,
    privacy: Privacy | None,
    refused: Refused,
) -> tuple[Dataset, tuple[str, ...], Domain]:
    """The table, its sensitive columns and their domain: with a column for each item where the mechanism asks so."""
    how = mechanism.unfolding if isinstance(mechanism, Mechanism) else None
    if how is None:
        return opened, names, domain
    if len(names) != 1:
        raise OptionError(
            f"mechanism 'items' perturbs the items of one column of lists; sensitive names {listing(list(names))}. "
            "Fix: name one, and drop the others or put their items into its lists."
        )
    (column,) = names
    refused.check(column)
    items = _declared(column, domain)
    if items is None and privacy is not None and privacy.adversary == "any-prior":
        raise RequirementError(
            f"The items of {column!r} are not declared: adversary 'any-prior' covers whatever was believed, and that "
            f"an item is listed because someone has it is evidence. Fix: {option('domain', '[..]', 'COLUMN=FILE')} "
            "with every item that a list may hold, whether or not the table shows it."
        )
    if not isinstance(opened, Unfolds):
        raise OptionError(
            f"This engine cannot read the lists of {column!r} item by item. Fix: publish on one machine "
            f"({option('engine', 'local')}), or make a column of each item first and publish them with Retention(.., "
            "budget=..)."
        )
    dataset = opened.unfolded(column, how, items, person)
    columns = tuple(dataset.items)
    return dataset, columns, None if items is None else {name: [False, True] for name in columns}


def _declared(column: str, domain: Domain) -> Sequence[Any] | None:
    if not isinstance(domain, Mapping):
        return domain
    strange = [name for name in domain if name != column]
    if strange:
        declared = option("domain", "[items]", f"{column}=FILE")
        raise OptionError(f"{option('domain')} names {strange[0]!r}, which is no sensitive column. Fix: {declared}.")
    return domain.get(column)
