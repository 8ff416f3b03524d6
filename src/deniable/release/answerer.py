"""Who answers for a release, by what it publishes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deniable.core.errors import QuestionError
from deniable.estimation.answering import RowsAnswerer
from deniable.estimation.question import Answerer
from deniable.release.hidden_channels import with_channels
from deniable.rivals.anatomy.answerer import BucketsAnswerer
from deniable.rivals.generalize.answerer import BoxesAnswerer
from deniable.rivals.perturbed_generalization.answerer import SamplesAnswerer

if TYPE_CHECKING:
    from deniable.release.release import Release


def answerer_of(release: Release) -> Answerer:
    """The answerer of a release that was opened or made."""
    manifest = release.manifest
    if manifest.form == "rows":
        return RowsAnswerer(with_channels(release))
    if manifest.form == "buckets":
        return BucketsAnswerer(manifest, release.table, release.groups)
    if manifest.form == "samples":
        return SamplesAnswerer(manifest, release.table, release.groups)
    if manifest.form == "boxes":
        return BoxesAnswerer(manifest, release.table, release.groups)
    raise QuestionError(
        "Answers can be asked of the object that publish returned only: the table stays with its owner."
    )
