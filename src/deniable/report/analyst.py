"""The analyst's report: how to use a release. It holds nothing that the release does not hold."""

from __future__ import annotations

from deniable.core.html import shown
from deniable.core.recode import said
from deniable.report import sections
from deniable.report.evidence import Evidence
from deniable.report.page import Block, Bullets, Code, Document, Facts, Heading, Note, Section, Text
from deniable.report.tables import Kind, Table

HERE = "."  # the analyst stands in the folder of the release, wherever that is
ROLES = {
    "public": "as it was",
    "sensitive": "perturbed: ask, do not count",
    "cell": "which cell the row fell into; deniable uses it by itself",
}
_OPEN = f'import deniable as dn\n\nrelease = dn.open_release("{HERE}")\n'


def analyst_report(evidence: Evidence) -> Document:
    """Questions and answers, intervals, errors, values, columns, the promise, the certificate."""
    listed = (
        _in_short(evidence),
        _ask(evidence),
        _intervals(evidence),
        _errors(evidence),
        _values(evidence),
        _columns(evidence),
        sections.cells(evidence),
        sections.promise(evidence),
        sections.not_protected(evidence),
        sections.verification(evidence, HERE),
    )
    return Document(
        "analyst",
        f"Release '{shown(evidence.manifest.name)}': how to use it",
        f"{_what(evidence)}{_published(evidence)}",
        tuple(section for section in listed if section is not None),
        "Written by deniable from the release alone: it may be passed on with it.",
    )


def _in_short(evidence: Evidence) -> Section:
    names = sections.sensitive_names(evidence)
    histogram = any(part.marginal is not None for part in evidence.manifest.parts)
    facts = (
        ("Rows", f"{evidence.manifest.rows:,}", ""),
        ("Sensitive", names, f"perturbed by the mechanism {evidence.manifest.mechanism}"),
        *sections.coins(evidence),
        ("Noisy histogram", "yes", "makes answers more accurate")
        if histogram
        else ("Noisy histogram", "no", "one would make answers more accurate"),
    )
    return Section(
        "short",
        "In short",
        (
            *sections.seed_warning(evidence),
            Text(
                f"The values of {names} were perturbed at random, row by row. No row says what a person's value was, "
                "but counts over many rows can be reconstructed, with intervals. All other columns are as they were."
            ),
            Facts(facts),
            Note(
                "caution",
                f"do not count {names} directly",
                "Replaced values distort every count, and a filter on the published values picks the wrong rows.",
                "Ask through deniable, as below.",
            ),
        ),
    )


def _ask(evidence: Evidence) -> Section:
    blocks: list[Block] = [
        Code("pip install deniable", "sh"),
        Text("The table is called release. Every number comes with the ends of its interval, _low and _high."),
    ]
    for example in evidence.examples:
        blocks += [Heading(example.question), Code(example.sql, "sql"), example.answer]
    first = evidence.examples[0] if evidence.examples else None
    sql = "SELECT COUNT(*) AS n FROM release" if first is None else first.sql.replace("\n", " ")
    python = "release.count()" if first is None else first.python
    blocks += [
        Heading("On the command line"),
        Text("In the folder of the release:"),
        Code(f"deniable query {HERE} {_shell(sql)}", "sh"),
        Heading("In Python"),
        Code(_OPEN + f"print({python})", "python"),
    ]
    return Section("ask", "Ask questions", tuple(blocks))


def _intervals(evidence: Evidence) -> Section:
    items = [
        "The interval covers the randomness of the perturbation: of 100 releases of the same table, 95 have an "
        "interval that contains the count of the original table.",
        "It does not cover what the table itself is: a sample of a population, or a table with mistakes.",
        "Questions about public columns alone are counted exactly.",
        "Intervals need rows: for true counts below 10 they cover a little less than they say.",
        "Estimates are unbiased and may be negative; intervals are cut to what is possible.",
        "Do not add up answers about different values of the same rows: ask for the set of values in one question, "
        "with IN (...).",
    ]
    if any(part.marginal is not None for part in evidence.manifest.parts):
        items.append(
            "The release carries a noisy histogram, and answers are calibrated to it: the more of the table a question "
            "is about, the narrower its interval."
        )
    return Section("intervals", "What an interval covers", (Bullets(tuple(items)),))


def _errors(evidence: Evidence) -> Section | None:
    blocks = [block for one in evidence.estimates for block in sections.error_blocks(one)]
    return Section("errors", "How far off answers are", tuple(blocks)) if blocks else None


def _values(evidence: Evidence) -> Section | None:
    blocks = [block for one in evidence.estimates for block in sections.histogram_blocks(one)]
    return Section("values", "Sensitive values", tuple(blocks)) if blocks else None


def _columns(evidence: Evidence) -> Section:
    manifest = evidence.manifest
    public = {row[0]: row for row in evidence.public}
    rows: list[tuple[object, ...]] = []
    for column in manifest.columns:
        _, _, many, which = public.get(column.name, (None, None, None, ""))
        if column.role == "sensitive":
            domain = manifest.column_domains.get(column.name, ())
            many, which = len(domain) or None, "listed above" if domain else _range(evidence, column.name)
        steps = manifest.recoded.get(column.name, ())
        became = said(steps) if steps and column.role == "public" else ROLES[column.role]
        became += f"; before that {said(steps)}" if steps and column.role == "sensitive" else ""
        rows.append((column.name, column.type, became, many, which or "not listed"))
    described = {} if manifest.about is None else manifest.about.columns
    columns: dict[str, Kind] = {
        "column": "text",
        "type": "text",
        "in this release": "text",
        "different values": "count",
        "which": "text",
    }
    if described:
        columns["meaning"] = "text"
        rows = [(*row, described.get(str(row[0]), "not described")) for row in rows]
    return Section("columns", "Columns", (Table.of("The columns of the release.", columns, rows),))


def _what(evidence: Evidence) -> str:
    rows = f"{evidence.manifest.rows:,} rows"
    return f"{rows} in which every value of {sections.sensitive_names(evidence)} is deniable."


def _published(evidence: Evidence) -> str:
    """When, by whom, and where questions go, as the release says."""
    about = evidence.manifest.about
    if about is None:
        return ""
    by = "" if about.publisher is None else f" by {shown(about.publisher, 200)}"
    contact = "" if about.contact is None else f" Questions go to {shown(about.contact, 200)}."
    return f" Published on {about.date}{by}.{contact}"


def _range(evidence: Evidence, name: str) -> str:
    for part in evidence.manifest.parts:
        if name in part.columns and part.range is not None:
            return f"{part.range.low} to {part.range.high}"
    return ""


def _shell(text: str) -> str:
    """A word for a POSIX shell.

    >>> print(_shell("a 'b'"))
    "a 'b'"
    """
    quoted = "".join("\\" + c if c in '\\"$`' else c for c in text)
    return f'"{quoted}"'
