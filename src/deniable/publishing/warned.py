"""What an owner should know before anyone sees the release: identifiers, order, columns that tell, heaped numbers."""

from __future__ import annotations

from deniable.engines.request import Request
from deniable.publishing.giveaways import giveaway_warnings
from deniable.publishing.heaping import heaping_warnings
from deniable.publishing.parts import Prepared


def warned(ready: Prepared, request: Request) -> list[str]:
    """The warnings about a table that is about to be published."""
    dataset, jobs = ready.dataset, ready.jobs
    return [
        *dataset.inspect(request.public, () if request.shuffle else jobs),
        *giveaway_warnings(dataset, jobs, request),
        *heaping_warnings(dataset, jobs),
    ]
