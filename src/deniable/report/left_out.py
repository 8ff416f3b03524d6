"""What a report leaves out because it would be too much, said instead of dropped."""

from __future__ import annotations

from deniable.report.evidence import COMPARED, DRAWN, Evidence
from deniable.report.page import Section, Text


def not_compared(evidence: Evidence) -> Section | None:
    """Why other mechanisms are not planned for the same table; None where there is no table to plan for."""
    manifest = evidence.manifest
    required = manifest.privacy
    if evidence.audit is None or required is None:
        return None
    values = max((len(part.domain) for part in manifest.parts), default=0)
    if len(manifest.parts) > 1:
        why = "several columns are perturbed, each by itself"
    elif values > COMPARED:
        why = f"the column has {values:,} values, and a report plans for up to {COMPARED}"
    elif required["per_value"] or required["exempt"]:
        why = "values have requirements of their own, or are exempt"
    else:
        why = "no other mechanism can be planned for this table and requirement"
    return Section("alternatives", "Other mechanisms", (Text(f"Not compared here: {why}. `deniable plan` compares."),))


def not_drawn(evidence: Evidence) -> list[Text]:
    """Why errors for other requirements are not drawn, where that is for their number."""
    values = len(evidence.manifest.parts[0].domain)
    if evidence.curve or values <= DRAWN:
        return []
    text = (
        f"Errors for other requirements than yours are not drawn: the column has {values:,} values, and they are for "
        f"up to {DRAWN}. `deniable plan --chart FILE` draws them."
    )
    return [Text(text)]
