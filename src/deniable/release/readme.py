"""The README inside a release: for the analyst who receives it, with deniable or without."""

from __future__ import annotations

import re
import shlex
from typing import Any

from deniable.core import text as markdown
from deniable.core.manifest import Column, Manifest
from deniable.core.text import line, shown
from deniable.core.transforms import ListItem, said
from deniable.core.values import percent
from deniable.estimation.model.columns import values_of
from deniable.release.weights import Weights, asked_sql, joined_sql, literal, quoted

# -- What the README of a release says of the release itself: who and when, columns, accuracy, how to cite it ----------


LINEUPS = "lineups"
NOT_NAMED, NOT_DESCRIBED = "a publisher who is not named", "not described"
DIGITS = 16  # of the digest in a citation: enough to tell any two releases apart


def head(manifest: Manifest) -> str:
    """A paragraph below the title: when, by whom, and where questions go; nothing where nothing is said."""
    about = manifest.about
    if about is None:
        return ""
    publisher = NOT_NAMED if about.publisher is None else line(about.publisher)
    contact = "" if about.contact is None else f" Questions go to {line(about.contact)}."
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
    rows = [_row(one.name, one.role, one.type, about.columns.get(one.name)) for one in _columns_listed(manifest)]
    rows += [_row(name, "sensitive", "list", about.columns.get(name)) for name in _lists(manifest)]
    lines = "\n".join(["| column | role | type | description |", "|---|---|---|---|", *rows])
    return f"\n## Columns\n\n{lines}\n"


def citation(manifest: Manifest) -> str:
    """A section that says how to cite the release: publisher, year, name, version and digest of the data."""
    about = manifest.about
    if about is None:
        return ""
    publisher = "Publisher not named" if about.publisher is None else line(about.publisher.rstrip(". "))
    year = "" if about.date is None else f" ({about.date[:4]})"
    digest = "" if manifest.data is None else f" SHA-256 of {manifest.data.file}: {manifest.data.sha256[:DIGITS]}."
    made = f"{manifest.software.get('name', 'deniable')} {manifest.software.get('version', '')}".strip()
    return f"""
## How to cite

> {publisher}{year}. {line(manifest.name)}: {manifest.rows:,} rows with deniable values. Published on
> {about.date}, made with {line(made)}.{digest}
"""


def _columns_listed(manifest: Manifest) -> list[Column]:
    """Columns to describe; of lists not the column of each item."""
    items = {name for part in manifest.parts if part.item is not None for name in part.columns}
    return [one for one in manifest.columns if one.name not in items]


def _lists(manifest: Manifest) -> list[str]:
    return list(dict.fromkeys(part.item.list for part in manifest.parts if part.item is not None))


def _row(name: str, role: str, kind: str, description: str | None) -> str:
    text = NOT_DESCRIBED if description is None else line(description)
    return f"| {line(shown(name))} | {role} | {line(kind)} | {text} |"


# -- The README inside a release: for the analyst who receives it, with deniable or without ----------------------------


CHANNELS = """`manifest.json` holds every channel as whole numbers out
of 2^32. A value x is kept with probability p_x = keep/2^32, and otherwise replaced by y with probability
r_y = replace/2^32 (in a range of numbers: 1 / the number of its points), so P[y][x] = p_x [x = y] + (1 - p_x) r_y."""
HIDDEN = """which rows lend each other values is not published;
`manifest.json` holds, for each sensitive column, what that comes to in the whole table: mixture[y][x] = P[y][x], the
probability that a value x is published as y, as the noisy histogram tells it. Columns are independent of each other."""
UNSAID = """which rows lend each other values is not published,
nor is a histogram. The number of rows that show a value estimates how many have it, in the whole table and nowhere
else. For the rows of a question deniable plans the groups once more, from these numbers, and has P from that."""
MATRIX = """`manifest.json` holds the probability that a value x
is published as y, P[y][x] = mixture[y][x], in multiples of 2^-32."""
LINE_UPS = """rows show sets of values, and c_x, the number of rows
whose set holds x, is B f on average, with B[x][y] = t J[x][y] / pi_y + (1 - t) pi_x. `manifest.json` holds, under
`lineups` of the part, t = truth/2^32 and pi = {inclusion}; J[x][y], the probability that a set made without looking
holds both x and y, follows from its orders ("Line-ups" in the documentation of deniable has a program of twenty
lines)."""
CODED_BY_ARCS = """ A set is
shown by a number: `{file}` lists, for every value, the numbers of the sets that hold it, from `first` to `last`."""
CODED_BY_BLOCKS = """ A set is
shown by a number: `{file}` lists the places of each block. The set with number c holds the values number
(c + place) modulo `values` of `domain`, counted from 0, for the places of block floor(c / `values`)."""


def analyst_readme(manifest: Manifest) -> str:
    """What this is, how to query it, what it promises and what it does not."""
    sensitive = ", ".join(map(markdown.code, manifest.sensitive_columns))
    item = manifest.parts[0].item
    if item is not None:
        return _lists_readme(manifest, item)
    first, value = _example(manifest)
    mechanism = markdown.code(manifest.mechanism)
    question = f"SELECT COUNT(*) AS n FROM release WHERE {_in_sql(first)} = {literal(value)}"
    where = f"{{{first!r}: {value if isinstance(value, int | float) else str(value)!r}}}"
    if manifest.parts[0].learned is not None:
        return _learned_readme(manifest, sensitive, question, where)
    shows = "each row shows a set of values" if _shows_sets(manifest) else "any single one may be replaced"
    distort = "the others in a set" if _shows_sets(manifest) else "replaced values"
    return f"""# A release with deniable values
{head(manifest)}
{manifest.rows:,} rows. The values of {sensitive} were perturbed at random, row by row (mechanism
{mechanism}): {shows}, so no row says what a person's value was. Counts over many rows can be
reconstructed. {_others(manifest)}
{_seed(manifest)}
Do not count {sensitive} directly: {distort} distort every count. Ask like this instead:

{_how_to_ask(question, where)}

`deniable verify .` recomputes the guarantee.
{_without(manifest, first, value)}
{_sections(manifest)}"""


def _example(manifest: Manifest) -> tuple[str, Any]:
    """A sensitive column and a value to ask for: the first that is short and plain, where there is one."""
    first = next((name for name in manifest.sensitive_columns if manifest.column_domains[name]), None)
    if first is None:  # only ranges of numbers
        part = manifest.parts[0]
        return part.columns[0], values_of(part, part.columns[0], part.types[0])[0].as_py()
    known = [value for value in manifest.column_domains[first] if value is not None]
    plain = (value for value in known if len(str(value)) <= 40 and shown(str(value)) == str(value))
    return first, next(plain, next(iter(known), ""))


def _learned_readme(manifest: Manifest, sensitive: str, question: str, where: str) -> str:
    """For learned releases, whose rows may be counted as they are."""
    learned = manifest.parts[0].learned
    assert learned is not None
    counted = [" x ".join(learned.codings[place].column for place in table.columns) for table in learned.measured]
    listed = ", ".join(markdown.code(name) if name else "the values alone" for name in counted)
    return f"""# A release with deniable values
{head(manifest)}
{manifest.rows:,} rows. The values of {sensitive} are not those of the people in these rows: they were dealt from a
model (mechanism {markdown.code(manifest.mechanism)}), which was learned from tables of counts with noise. Counts over
many rows are close to the truth. {_others(manifest)}
{_seed(manifest)}
Rows can be counted with any tool, {sensitive} like every other column:

    {question}

What deniable adds is how far a count may be off, and answers of the model itself, which are a little closer:

{_how_to_ask(question, where)}

Counted by value, with noise, were: {listed}. `{"" if manifest.tables is None else manifest.tables.file}` holds these
tables and the model. How values go together with anything else was not looked at: there the model takes what these
tables say, column by column, and intervals allow for that.

`deniable verify .` recomputes the guarantee, and compares the rows with the model.
{_sections(manifest)}"""


def _how_to_ask(question: str, where: str) -> str:
    """How to count, in a shell and in Python."""
    return f"""    pip install deniable
    deniable query . {_in_shell(question)}

or in Python:

{_in_python(where)}

Others may ask, too: `deniable explore . --out explore.html` writes a page for any browser, with nothing to install;
`deniable serve .` answers BI tools, psql and drivers of PostgreSQL; and R has the package `deniable`."""


def _in_python(where: str) -> str:
    return f"""    import deniable as dn
    release = dn.open_release(".")
    print(release.count(where={where}))"""


def _sections(manifest: Manifest) -> str:
    """What every README ends with."""
    return f"""{_coarser(manifest)}{accuracy(manifest)}{columns(manifest)}
## What is promised

{_listed(manifest.guarantee["sentence"], *manifest.guarantee["also"])}

## What is not protected

{_listed(*manifest.guarantee["not_protected"])}
{citation(manifest)}"""


def _without(manifest: Manifest, column: str, value: Any) -> str:
    """How counts are reconstructed by other means."""
    if manifest.weights is not None:
        return _by_weights(manifest, column, value)
    if _shows_sets(manifest):
        how = f"{_line_ups(manifest)}\nSolve B f = c for the true counts f, among the rows of your question."
        return f"\nWithout deniable: {how}"
    known = HIDDEN if any(part.mixture is not None for part in manifest.parts) else UNSAID
    plain = MATRIX if any(part.mixture is not None for part in manifest.parts) else CHANNELS
    how = known if any(part.groups is not None for part in manifest.parts) else plain
    published = any(part.cells_published for part in manifest.parts)
    by_cell = ", cell by cell (column `cell`), and add up" if published else ""
    return f"""
Without deniable: {how}
Solve P f = o for the true counts f, o being the counts you see among the rows of your question{by_cell}."""


def _by_weights(manifest: Manifest, column: str, value: Any) -> str:
    """A section with the weights beside the rows, and what counts with them in any database."""
    weights = Weights.of(manifest)
    assert weights is not None
    assert manifest.weights is not None
    assert manifest.data is not None
    one = next(one for one in weights.parts if column in one.part.columns)
    codes, name = _coded(manifest), column if one.part.item is None else one.part.item.list
    select = asked_sql(weights, one, f"{quoted(f'value_{name}')} IN ({literal(value)})")
    files = [("data", manifest.data), ("weights", manifest.weights), (LINEUPS, manifest.lineups)]
    views = [f"CREATE VIEW {name} AS SELECT * FROM '{file.file}';" for name, file in files if file is not None]
    lines = [
        *views,
        "WITH asked AS (",
        *(f"  {line}" for line in select.splitlines()),
        ")",
        "SELECT SUM(w) AS n, SQRT(GREATEST(SUM(w * w - w), 0)) AS stderr",
        f"FROM data JOIN asked ON {joined_sql(one, 'data', 'asked')};",
    ]
    several = len(manifest.parts) > 1
    product = "For conditions on several of these columns a row counts with the product of its weights." * several
    swapped = "\nValues were swapped among rows here, so that stderr is too large." * any(
        part.swapped is not None for part in manifest.parts
    )
    listed = "\n".join(f"    {shown(line, most=len(line) + 1)}" for text in lines for line in text.splitlines())
    return f"""
## Without deniable

A row counts with a weight, 1 on average where its original has a value that is asked for and 0 elsewhere, which depends
on what the row shows: `{manifest.weights.file}` has them.{codes}

So any tool that joins and adds up can count. In DuckDB, in this folder (other databases load both files as tables):

{listed}

List more values in `IN`; put `WHERE` and `GROUP BY` on other columns at the end, and `SUM(w * v)` adds up a number v.
The interval is n - 1.96 stderr to n + 1.96 stderr. A single weight means nothing: it may be negative, or above 1.
{product}{swapped}"""


def _line_ups(manifest: Manifest) -> str:
    inclusion = "arcs/2^32" if _by_arcs(manifest) else "size/values"
    return LINE_UPS.format(inclusion=inclusion) + _coded(manifest)


def _by_arcs(manifest: Manifest) -> bool:
    design = manifest.parts[0].lineups
    return design is not None and "arcs" in design.integers()


def _coded(manifest: Manifest) -> str:
    """How codes of sets are read, where rows show codes."""
    if manifest.lineups is None:
        return ""
    return (CODED_BY_ARCS if _by_arcs(manifest) else CODED_BY_BLOCKS).format(file=manifest.lineups.file)


def _shows_sets(manifest: Manifest) -> bool:
    return all(part.lineups is not None for part in manifest.parts)


def _seed(manifest: Manifest) -> str:
    if manifest.randomness.source != "seed":
        return ""
    return "\n**This release was made from a seed, for an experiment: whoever knows the seed can undo it.**\n"


def _lists_readme(manifest: Manifest, item: ListItem) -> str:
    """For releases of items, which have a column for each."""
    text = item.item.replace("'", "''")
    question = f"SELECT COUNT(*) AS n FROM release WHERE list_contains({_in_sql(item.list)}, '{text}')"
    counted = f" Only the first {item.most} items of a list count." if item.beyond == "first" else ""
    return f"""# A release with deniable lists
{head(manifest)}
{manifest.rows:,} rows. Every person has a list {markdown.code(item.list)} of up to {item.most} of
{len(manifest.parts):,} items. A column such as {markdown.code(item.column)} says for each row whether the item is in
the list, and every such answer was changed at random (mechanism {markdown.code(manifest.mechanism)}), so no row says
what a person's list was. Counts of items, and of items together, can be reconstructed.{counted} {_others(manifest)}
{_seed(manifest)}
Do not count the answers directly: changed ones distort every count. Ask like this instead:

{_how_to_ask(question, f"{{{item.list!r}: dn.contains({item.item!r})}}")}

`deniable verify .` recomputes the guarantee.
{_without(manifest, item.column, True)}
{_sections(manifest)}"""


def _others(manifest: Manifest) -> str:
    if not manifest.recoded:
        return "All other columns are as they were."
    return "Some columns were made coarser (below); all others are as they were."


def _coarser(manifest: Manifest) -> str:
    """What became of recoded columns, with a heading; empty where there are none."""
    if not manifest.recoded:
        return ""
    lines = [f"{markdown.code(column)}: {markdown.line(said(steps))}." for column, steps in manifest.recoded.items()]
    listed = "\n".join(f"- {line}" for line in lines)
    return f"\n## Columns that were made coarser\n\n{listed}\n"


def _listed(*sentences: str) -> str:
    return "\n".join(f"- {markdown.line(sentence)}" for sentence in sentences)


def _in_sql(column: str) -> str:
    """A column's name as SQL has it: in quotes, unless it is a plain word."""
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", column)
    return column if plain else '"' + shown(column).replace('"', '""') + '"'


def _in_shell(question: str) -> str:
    """A question as a shell takes it: in double quotes where they hold nothing that a shell would read."""
    return shlex.quote(question) if set(question) & set('"$`\\!') else f'"{question}"'
