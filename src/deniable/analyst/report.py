"""The analyst's report: how to use a release. It holds nothing that the release does not hold."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from deniable.analyst.evidence import Estimates, Evidence, labels
from deniable.core.text import shown
from deniable.core.transforms import said
from deniable.core.values import percent
from deniable.estimation.limits import UNKNOWN
from deniable.report import charts
from deniable.report.page import Block, Bullets, Code, Document, Facts, Figure, Heading, Note, Section, Text
from deniable.report.tables import Kind, Table, share
from deniable_verify import Check

# -- Sections that both readers get: the promise, its limits, the estimates, how far off answers are, the certificate.


BARS = 25
HUNCH = 0.1  # what someone may believe who knows a person a little
SAID = {"holds": "yes", "not checked": "not checked", "FAILS": "NO"}


def sensitive_names(evidence: Evidence) -> str:
    """The sensitive columns in words."""
    apart = [name for part in evidence.manifest.parts for name in part.columns]  # as where they stand in a second table
    names = [shown(name) for name in evidence.manifest.sensitive_columns or apart]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def stated_rho2(evidence: Evidence) -> float | None:
    """How sure an attacker may become, where one number says it for all values."""
    stated = evidence.manifest.guarantee["rho2"]
    return None if stated is None else float(Fraction(stated))


def coins(evidence: Evidence) -> tuple[tuple[str, str, str], ...]:
    """A key figure: how often a value is kept by its coin, over all values and cells; none where no coin is thrown."""
    kept = [float(coin) for part in evidence.manifest.parts for channel in part.channels for coin in channel.coins]
    kept += [part.range.coin for part in evidence.manifest.parts if part.range is not None]
    if not kept:
        return ()
    low, high = percent(min(kept)), percent(max(kept))
    return (("Kept by the coin", low if low == high else f"{low} to {high}", "all other values are drawn anew"),)


def other_attackers(evidence: Evidence) -> list[tuple[str, str, str]]:
    """Key figures beside the promise: who has learnt from the public columns, and who has a hunch."""
    items = []
    if evidence.audit is not None and evidence.audit["informed"]:
        surest = max(evidence.audit["informed"], key=lambda one: one["after"]["right"] or 0.0)
        before, above = surest["without"]["right"], surest["after"]["above_rho2"]
        also = "" if above is None else f"; surer of the truth than rho2 about {percent(above)}"
        meaning = f"is right about so many people from their row, {percent(before or 0.0)} without it{also}"
        items.append(("An informed attacker", percent(surest["after"]["right"] or 0.0), meaning))
    gamma = evidence.manifest.guarantee["gamma"]
    most = "up to 100 %" if gamma is None else percent(grown(HUNCH, Fraction(gamma)))
    meaning = f"what a belief of {percent(HUNCH)} in a value can become, at most, whatever else is believed"
    return [*items, (f"From a hunch of {percent(HUNCH)}", most, meaning)]


def grown(belief: float, gamma: Fraction) -> float:
    """b gamma / (1 - b + b gamma): what a belief b grows to at the amplification gamma (mathematics 2)."""
    return belief * float(gamma) / (1 - belief + belief * float(gamma))


def seed_warning(evidence: Evidence) -> tuple[Block, ...]:
    """A release made from a seed protects nobody from those who have it."""
    if evidence.manifest.randomness.source != "seed":
        return ()
    text = "Whoever knows the seed can undo the release, and the manifest shows it."
    return (Note("serious", "made from a seed", text, "Use it for experiments with tables that hold no secrets."),)


def promise(evidence: Evidence) -> Section:
    """The guarantee in words."""
    guarantee = evidence.manifest.guarantee
    blocks: list[Block] = [Text(guarantee["sentence"], "promise")]
    if guarantee["also"]:
        blocks.append(Bullets(tuple(guarantee["also"])))
    return Section("promise", "What is promised", tuple(blocks))


def not_protected(evidence: Evidence) -> Section:
    """What the release gives away, in words."""
    return Section("limits", "What is not protected", (Bullets(tuple(evidence.manifest.guarantee["not_protected"])),))


def cells(evidence: Evidence) -> Section | None:
    """The cells that rows fell into, where there are several; their rows are not in the manifest."""
    columns: dict[str, Kind] = {
        "cell": "number",
        "values": "count",
        "least kept": "share",
        "most kept": "share",
        "gamma": "number",
        "first values": "text",
    }
    blocks: list[Block] = []
    for part in evidence.manifest.parts:
        if len(part.channels) < 2:
            continue
        rows = [
            (
                number,
                channel.m,
                float(channel.coins.min()),
                float(channel.coins.max()),
                channel.gamma,
                "; ".join(labels(channel.values[:5], 24)),
            )
            for number, channel in enumerate(part.channels)
        ]
        known = (
            "Each row says which cell it fell into, so its value is one of the cell's."
            if part.cells_published
            else "Rows do not say which cell they fell into."
        )
        blocks.append(Text(f"Rows were dealt to {len(rows):,} cells, each with its own values and coins. {known}"))
        blocks.append(Table.of(f"The cells of {', '.join(map(shown, part.columns))}.", columns, rows))
    return Section("cells", "Cells", tuple(blocks)) if blocks else None


def histogram_blocks(one: Estimates, truth: Sequence[int] = ()) -> list[Block]:
    """How many rows hold each value, as a chart and as a table; with the truth beside it, where it may be shown."""
    drawn = [
        {"value": label, **{key: row[key] for key in ("estimate", "low", "high")}}
        for label, row in zip(labels([row["value"] for row in one.rows[:BARS]]), one.rows[:BARS], strict=True)
    ]
    columns: dict[str, Kind] = {one.name or "value": "text", "estimate": "count", "from": "count", "to": "count"}
    body: list[tuple[Any, ...]] = [(row["value"], row["estimate"], row["low"], row["high"]) for row in one.rows]
    if truth:
        columns["true rows"] = "count"
        body = [(*row, true) for row, true in zip(body, truth, strict=True)]
    table = Table.of("Estimated rows of each value, with 95 % intervals, as the release answers them.", columns, body)
    more = f" The {BARS} most frequent of {len(one.rows):,} values." if len(one.rows) > BARS else ""
    hopeless = Note(
        "caution",
        "hopeless",
        f"Of {one.lost:,} of {len(one.rows):,} values of {one.name} nothing was learned: {UNKNOWN}. Their intervals "
        "hold everything that is possible.",
    )
    return [
        *([hopeless] if one.lost else []),
        Figure(
            f"How many rows hold each value of {one.name}",
            f"Estimated from the release; the lines are 95 % intervals.{more}",
            partial(charts.histogram_with_intervals, drawn, "estimated rows"),
            table,
        ),
    ]


def error_blocks(one: Estimates) -> list[Block]:
    """How far off answers are, by the size of the question."""
    if not one.errors:
        return [Text(f"The error of answers about {one.name} cannot be predicted: {one.unpredicted}.")]
    columns: dict[str, Kind] = {"rows counted": "share", "how": "text", "relative error": "share"}
    rows = [(row["share"], row["line"], row["error"]) for row in one.errors]
    caption = (
        "The mean relative error of a count, by the share of all rows that it counts, where public columns say nothing "
        "about the value. Small counts are noisy; counts over many rows are not."
    )
    best = [row for row in one.errors if row["line"] == one.errors[0]["line"]]
    middle = min(best, key=lambda row: abs(row["share"] - 0.01))
    sentence = (
        f"Take a question whose true answer is {percent(middle['share'])} of the rows, about one value of {one.name}: "
        f"the answer is {share(middle['error'], 2)} off on average."
    )
    return [
        Text(sentence),
        Figure(
            f"How far off answers about {one.name} are",
            caption,
            partial(charts.error_against_size, one.errors),
            Table.of("Predicted relative errors.", columns, rows),
        ),
    ]


def verification(evidence: Evidence, folder: str) -> Section:
    """The certificate, and how to compute it again."""
    checks = evidence.certificate["checks"]
    holds = evidence.certificate["holds"] is not False
    failures = "; ".join(f"{check['what']}: {check['detail']}" for check in checks if check["holds"] is False)
    words = [Check(**check).word for check in checks]
    without = words.count("not checked")
    made = len(checks) - without
    unmade = f" {without:,} more cannot be made from them alone." if without else ""
    verdict = (
        Note(
            "good", "The release holds what it promises", f"{made:,} checks, all computed from its own numbers.{unmade}"
        )
        if holds
        else Note("serious", "the release does not hold what it promises", failures, "Do not use or publish it.")
    )
    columns: dict[str, Kind] = {"check": "text", "holds": "text", "numbers": "text"}
    rows = [(check["what"], SAID[word], check["detail"]) for word, check in zip(words, checks, strict=True)]
    manifest = evidence.manifest
    how = [
        f"Mechanism: {manifest.mechanism}. Randomness: {manifest.randomness.source}; rows "
        f"{'in random order' if manifest.randomness.shuffled else 'in their original order'}.",
        f"Made with {manifest.software.get('name', 'deniable')} {manifest.software.get('version', '')}.",
    ]
    if manifest.data is not None:
        how.append(f"SHA-256 of {manifest.data.file}: {manifest.data.sha256}")
    return Section(
        "verify",
        "Verify",
        (
            verdict,
            Text("Anyone can recompute this, from the release alone:"),
            Code(f"deniable verify {shlex.quote(folder)}", "sh"),
            Table.of("The certificate.", columns, rows),
            Bullets(tuple(how)),
        ),
    )


# -- The analyst's report: how to use a release. It holds nothing that the release does not hold -----------------------


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
        cells(evidence),
        promise(evidence),
        not_protected(evidence),
        verification(evidence, HERE),
    )
    return Document(
        "analyst",
        f"Release '{shown(evidence.manifest.name)}': how to use it",
        f"{_what(evidence)}{_published(evidence)}",
        tuple(section for section in listed if section is not None),
        "Written by deniable from the release alone: it may be passed on with it.",
    )


def _in_short(evidence: Evidence) -> Section:
    names = sensitive_names(evidence)
    histogram = any(part.marginal is not None for part in evidence.manifest.parts)
    facts = (
        ("Rows", f"{evidence.manifest.rows:,}", ""),
        ("Sensitive", names, f"perturbed by the mechanism {evidence.manifest.mechanism}"),
        *coins(evidence),
        ("Noisy histogram", "yes", "makes answers more accurate")
        if histogram
        else ("Noisy histogram", "no", "one would make answers more accurate"),
    )
    return Section(
        "short",
        "In short",
        (
            *seed_warning(evidence),
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
    blocks = [block for one in evidence.estimates for block in error_blocks(one)]
    return Section("errors", "How far off answers are", tuple(blocks)) if blocks else None


def _values(evidence: Evidence) -> Section | None:
    blocks = [block for one in evidence.estimates for block in histogram_blocks(one)]
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
    return f"{rows} in which every value of {sensitive_names(evidence)} is deniable."


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
