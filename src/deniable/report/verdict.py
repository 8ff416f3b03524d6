"""The verdict of the owner's report: publish, decide, or do not publish, and for which reasons."""

from __future__ import annotations

from deniable.audit.columns import requirement_of
from deniable.core.errors import counted
from deniable.core.sentence import not_covered
from deniable.report.evidence import Evidence
from deniable.report.page import Block, Bullets, Grade, Note, Section

DO_NOT, DECIDE, PUBLISH = "Do not publish this release", "Decide before you publish", "Publish"


def verdict_section(evidence: Evidence) -> Section:
    """One sentence, then its reasons."""
    grade, sentence, reasons = verdict(evidence)
    head, _, why = sentence.partition(": ")
    note = Note(grade, head, f"{why[:1].upper()}{why[1:]}.")
    listed: tuple[Block, ...] = (Bullets(tuple(reasons)),) if reasons else ()
    return Section("verdict", "Verdict", (note, *listed))


def verdict(evidence: Evidence) -> tuple[Grade, str, list[str]]:
    """How bad the worst is, the verdict in a sentence, and its reasons."""
    against, open_ones = _against(evidence), _to_decide(evidence)
    if against:
        return "serious", f"{DO_NOT}: {counted(len(against), 'reason')} below", [*against, *open_ones]
    if open_ones:
        return "caution", f"{DECIDE}: {counted(len(open_ones), 'point')} below", open_ones
    return "good", f"{PUBLISH}: the certificate holds, and the audit found nothing that speaks against it", []


def _against(evidence: Evidence) -> list[str]:
    reasons = []
    if not evidence.certificate["holds"]:
        reasons.append("The release does not hold what it promises: its certificate fails.")
    if evidence.manifest.randomness.source == "seed":
        reasons.append("It was made from a seed, which the manifest shows: whoever has it can undo the release.")
    return [*reasons, *_findings(evidence, "serious")]


def _to_decide(evidence: Evidence) -> list[str]:
    guarantee, parts = evidence.manifest.guarantee, evidence.manifest.parts
    reasons = []
    if evidence.audit is None:
        reasons.append("It was not audited: this report was written without the original table (--original FILE).")
    if guarantee["rho2"] is None and all(requirement_of(evidence.manifest, part) is None for part in parts):
        reasons.append("Nothing is promised about how sure an attacker can become (no rho2 is stated).")
    uncovered = not_covered(parts[0], guarantee["adversary"]).strip() if len(parts) == 1 else ""
    return [*reasons, *([uncovered] if uncovered else []), *_findings(evidence, "caution")]


def _findings(evidence: Evidence, grade: str) -> list[str]:
    findings = [] if evidence.audit is None else evidence.audit["findings"]
    return [f"{one['what'][:1].upper()}{one['what'][1:]}: {one['detail']}" for one in findings if one["grade"] == grade]
