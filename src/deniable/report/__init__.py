"""Reports: one page about a release that a person wants to read, for its owner or for an analyst."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from deniable.core.errors import OptionError, OutputError
from deniable.publishing.request import check_choice
from deniable.release.folder import MANIFEST, write_file
from deniable.release.release import Release, open_release
from deniable.report import charts, page
from deniable.report.page import as_json, markdown

if (
    TYPE_CHECKING
):  # the houses whose reports these are draw with this room, so they are imported when a report is written
    from deniable.owner.evaluation import evaluation_report
    from deniable.owner.report import Origin

__all__ = ["AUDIENCES", "FORMATS", "Origin", "document", "evaluation_report", "render", "write"]

Audience = Literal["owner", "analyst"]
AUDIENCES = ("owner", "analyst")
FORMATS = ("html", "md", "json")


def __getattr__(name: str) -> Any:
    if name not in ("Origin", "evaluation_report"):
        raise AttributeError(f"module 'deniable.report' has no attribute {name!r}")
    return getattr(import_module(f"deniable.owner.{'report' if name == 'Origin' else 'evaluation'}"), name)


def document(
    release: Release | str | os.PathLike[str],
    *,
    audience: Audience = "analyst",
    audit: Mapping[str, Any] | None = None,
    evaluation: Mapping[str, Any] | None = None,
    origin: Origin | None = None,
) -> page.Document:
    """The content of a report.

    Args:
        release: a release, or its folder.
        audience: ``"owner"`` (privacy first) or ``"analyst"`` (how to use it; nothing but what the release holds).
        audit: for the owner: ``deniable.owner.audit.audit(original, release).to_dict()``.
        evaluation: for the owner, measured errors: what ``deniable evaluate --json`` prints (``{"results": [...]}``,
            with charts), or a table of your own, ``{"caption": str, "columns": [...], "rows": [[...]]}``.
        origin: for the owner's record: the original files with their digests, the command, the date.
    """
    from deniable.analyst.evidence import from_release, plans_from_audit
    from deniable.analyst.report import analyst_report
    from deniable.owner.report import owner_report

    check_choice("for", audience, AUDIENCES)
    if audience == "analyst" and (audit is not None or evaluation is not None):
        raise OptionError(
            "An analyst's report holds only what the release holds, so it takes no original, audit or evaluation. "
            "Fix: write it for the owner, or leave the original out."
        )
    opened = release if isinstance(release, Release) else open_release(release)
    evidence = from_release(opened)
    folder = "." if opened.folder is None else str(opened.folder)
    if audience == "analyst":
        return analyst_report(evidence)
    if audit is not None:
        comparison, curve = plans_from_audit(evidence.manifest, audit)
        evidence = replace(evidence, audit=audit, comparison=comparison, curve=curve)
    return owner_report(replace(evidence, evaluation=evaluation), folder, origin)


def render(content: page.Document, form: str = "html") -> str:
    """A report as text: ``"html"`` (needs the extra ``report``), ``"md"`` or ``"json"``."""
    check_choice("format", form, FORMATS)
    if form == "html":
        charts.require()
        return page.to_html(content)
    return markdown(content) if form == "md" else as_json(content)


def write(
    content: page.Document, out: Path, form: str, release: Path | None, *, inputs: Sequence[str | Path] = ()
) -> None:
    """Write a report; one for the owner is readable by its owner alone, and never stands inside the release."""
    private = content.audience == "owner"
    if private:
        refuse_inside(out, release)
    write_file(out, render(content, form), inputs=inputs, private=private)


def refuse_inside(out: Path, release: Path | None = None) -> None:
    """What is for the owner would be published with the release if it stood in its folder, or in that of another."""
    place = out.resolve()
    named = set() if release is None else {release.resolve()}
    if any(folder in named or is_release(folder) for folder in (place, *place.parents)):
        raise OutputError(
            f"out = {str(out)!r} is inside {'the' if named else 'a'} release, and what is for the owner must never be "
            "published. Fix: choose a file outside of the release folder."
        )


def is_release(folder: Path) -> bool:
    """Whether a folder holds a release, a broken one too: its manifest says so at its beginning."""
    manifest = folder / MANIFEST
    if not manifest.is_file():
        return False
    with manifest.open("rb") as file:
        return b"deniable-release" in file.read(200)
