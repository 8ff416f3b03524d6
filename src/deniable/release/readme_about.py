"""What the README of a release says of the release itself: who and when, columns, accuracy, how to cite it."""

from __future__ import annotations

from deniable.core import markdown
from deniable.core.html import shown
from deniable.core.manifest import Column, Manifest
from deniable.core.probability import percent

NOT_NAMED, NOT_DESCRIBED = "a publisher who is not named", "not described"
DIGITS = 16  # of the digest in a citation: enough to tell any two releases apart


def head(manifest: Manifest) -> str:
    """A paragraph below the title: when, by whom, and where questions go; nothing where nothing is said."""
    about = manifest.about
    if about is None:
        return ""
    publisher = NOT_NAMED if about.publisher is None else markdown.line(about.publisher)
    contact = "" if about.contact is None else f" Questions go to {markdown.line(about.contact)}."
    return f"\nPublished on {about.date} by {publisher}.{contact}\n"


def accuracy(manifest: Manifest) -> str:
    """A section with the errors of typical counts."""
    if manifest.about is None:
        return ""
    listed = [
        f"- a count of {round(share * manifest.rows):,} people ({percent(share, 2)} of the rows): off by "
        f"{percent(error, 2)} on average"
        for share, error in manifest.about.expected
    ]
    if not listed:
        text = "Every answer comes with an interval; `deniable report .` shows errors by the size of a count."
        return f"\n## How accurate answers are\n\n{text}\n"
    lines = "\n".join(listed)
    return f"""
## How accurate answers are

Expected relative errors of counts of one value, where public columns say nothing about it:

{lines}

Every answer comes with an interval that says how far off it may be.
"""


def columns(manifest: Manifest) -> str:
    """A section with every column: its role, its type, and what it means."""
    about = manifest.about
    if about is None:
        return ""
    rows = [_row(one.name, one.role, one.type, about.columns.get(one.name)) for one in _listed(manifest)]
    rows += [_row(name, "sensitive", "list", about.columns.get(name)) for name in _lists(manifest)]
    lines = "\n".join(["| column | role | type | description |", "|---|---|---|---|", *rows])
    return f"\n## Columns\n\n{lines}\n"


def citation(manifest: Manifest) -> str:
    """A section that says how to cite the release: publisher, year, name, version and digest of the data."""
    about = manifest.about
    if about is None:
        return ""
    publisher = "Publisher not named" if about.publisher is None else markdown.line(about.publisher.rstrip(". "))
    year = "" if about.date is None else f" ({about.date[:4]})"
    digest = "" if manifest.data is None else f" SHA-256 of {manifest.data.file}: {manifest.data.sha256[:DIGITS]}."
    made = f"{manifest.software.get('name', 'deniable')} {manifest.software.get('version', '')}".strip()
    return f"""
## How to cite

> {publisher}{year}. {markdown.line(manifest.name)}: {manifest.rows:,} rows with deniable values. Published on
> {about.date}, made with {markdown.line(made)}.{digest}
"""


def _listed(manifest: Manifest) -> list[Column]:
    """Columns to describe; of lists not the column of each item."""
    items = {name for part in manifest.parts if part.item is not None for name in part.columns}
    return [one for one in manifest.columns if one.name not in items]


def _lists(manifest: Manifest) -> list[str]:
    return list(dict.fromkeys(part.item.list for part in manifest.parts if part.item is not None))


def _row(name: str, role: str, kind: str, description: str | None) -> str:
    text = NOT_DESCRIBED if description is None else markdown.line(description)
    return f"| {markdown.line(shown(name))} | {role} | {markdown.line(kind)} | {text} |"
