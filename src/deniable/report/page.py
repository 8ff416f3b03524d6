"""A report as content: sections of blocks, the one HTML page that they become, and the same as Markdown and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

from deniable.core.text import escaped
from deniable.report import tables
from deniable.report.charts import to_svg
from deniable.report.tables import Table, content_security_policy, in_html, inline_svg, script, style_sheet, to_markdown

# -- A report as content: sections of blocks, and the one HTML page that they become -----------------------------------


WIDE, NARROW = 700, 270  # the plot widths that a chart is drawn at, for a screen and for a phone
Grade = Literal["serious", "caution", "info", "good"]


@dataclass(frozen=True)
class Text:
    """A paragraph; ``role`` may be ``"lead"`` (the first words) or ``"promise"`` (the guarantee)."""

    text: str
    role: Literal["", "lead", "promise"] = ""


@dataclass(frozen=True)
class Bullets:
    items: tuple[str, ...]


@dataclass(frozen=True)
class Facts:
    """Key figures: (label, figure, what it means)."""

    items: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Code:
    text: str
    language: Literal["sh", "sql", "python"]


@dataclass(frozen=True)
class Note:
    """A finding or a warning, graded."""

    grade: Grade
    title: str
    text: str
    advice: str = ""


@dataclass(frozen=True)
class Heading:
    text: str


@dataclass(frozen=True)
class Figure:
    """A chart: ``draw`` takes a width; ``data`` is the same as a table, for those who cannot see it."""

    title: str
    caption: str
    draw: Callable[[int], Any]
    data: Table


@dataclass(frozen=True)
class Folded:
    """Details under one line, opened by whoever wants them."""

    title: str
    blocks: tuple[Block, ...]


Block = Text | Bullets | Facts | Code | Note | Heading | Figure | Table | Folded


@dataclass(frozen=True)
class Section:
    name: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Document:
    """A report: for whom, about what, and its sections in order."""

    audience: Literal["owner", "analyst"]
    title: str
    subtitle: str
    sections: tuple[Section, ...]
    footer: str


def to_html(document: Document) -> str:
    """One self-contained page: no network, no fonts, no scripts but its own."""
    links = "".join(f'<li><a href="#{s.name}">{in_html(s.title)}</a></li>' for s in document.sections)
    body = "\n".join(_section(section) for section in document.sections)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{content_security_policy(style_sheet(), script())}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>{in_html(document.title)}</title>
<style>{style_sheet()}</style>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header>
<p class="kicker">A report of deniable, for the {document.audience}</p>
<h1>{in_html(document.title)}</h1>
<p class="lead">{in_html(document.subtitle)}</p>
</header>
<nav aria-label="Contents"><ul>{links}</ul></nav>
<main id="content">
{body}
</main>
<footer><p>{in_html(document.footer)}</p></footer>
<script>{script()}</script>
</body>
</html>
"""


def _section(section: Section) -> str:
    blocks = "\n".join(_block(block, f"{section.name}-{number}") for number, block in enumerate(section.blocks))
    heading = f'<h2 id="{section.name}-title">{in_html(section.title)}</h2>'
    return f'<section id="{section.name}" aria-labelledby="{section.name}-title">\n{heading}\n{blocks}\n</section>'


def _block(block: Block, name: str) -> str:
    match block:
        case Text(text, role):
            return f'<p class="{role}">{in_html(text)}</p>' if role else f"<p>{in_html(text)}</p>"
        case Bullets(items):
            return "<ul>" + "".join(f"<li>{in_html(item)}</li>" for item in items) + "</ul>"
        case Facts(items):
            three = " three" if len(items) % 3 == 0 else ""  # rows of three rather than four and two
            return f'<dl class="facts{three}">' + "".join(_fact(*item) for item in items) + "</dl>"
        case Code(text, _):
            return f"<pre><code>{escape(text)}</code></pre>"
        case Heading(text):
            return f"<h3>{in_html(text)}</h3>"
        case Note():
            return _note(block)
        case Figure():
            return _figure(block, name)
        case Folded(title, blocks):
            inside = "\n".join(_block(one, f"{name}-{number}") for number, one in enumerate(blocks))
            return f'<details class="folded"><summary>{in_html(title)}</summary>\n{inside}\n</details>'
        case Table():
            return tables.to_html(block, name)


def _fact(label: str, figure: str, meaning: str) -> str:
    small = f"<small>{in_html(meaning)}</small>" if meaning else ""
    return f"<div><dt>{in_html(label)}</dt><dd>{in_html(figure)}{small}</dd></div>"


def _note(note: Note) -> str:
    advice = f"<p>What to do: {in_html(note.advice)}</p>" if note.advice else ""
    grade = "" if note.grade == "good" else f"{note.grade.capitalize()}: "
    return (
        f'<div class="note {note.grade}"><p><span class="grade">{grade}{in_html(note.title)}</span></p>'
        f"<p>{in_html(note.text)}</p>{advice}</div>"
    )


def _figure(figure: Figure, name: str) -> str:
    """The chart twice, for a screen and for a phone (the style sheet shows one), then its data."""
    drawn = "".join(
        f'<div class="{size}">{inline_svg(to_svg(figure.draw(width)), f"{name}-{size}", f"{name}-title")}</div>'
        for size, width in (("wide", WIDE), ("narrow", NARROW))
    )
    return (
        f'<figure>\n<h3 id="{name}-title">{in_html(figure.title)}</h3>\n{drawn}\n'
        f"<figcaption>{in_html(figure.caption)}</figcaption>\n"
        f"<details><summary>The numbers of this chart</summary>\n{tables.to_html(figure.data, f'{name}-data')}\n"
        "</details></figure>"
    )


# -- The same report as Markdown and as JSON; neither needs the extra ``report`` ---------------------------------------


def markdown(document: Document) -> str:
    """The report as Markdown; charts as tables of their numbers."""
    lines = [f"# {escaped(document.title)}", f"*For the {document.audience}.* {escaped(document.subtitle)}"]
    for section in document.sections:
        lines.append(f"## {escaped(section.title)}")
        lines += [_markdown(block) for block in section.blocks]
    return "\n\n".join([*lines, "---", escaped(document.footer)]) + "\n"


def as_json(document: Document) -> str:
    """The report as JSON: sections of blocks with a ``kind`` each."""
    content = {
        "report": "deniable",
        "for": document.audience,
        "title": document.title,
        "subtitle": document.subtitle,
        "sections": [
            {"name": section.name, "title": section.title, "blocks": [_dict(block) for block in section.blocks]}
            for section in document.sections
        ],
        "footer": document.footer,
    }
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _markdown(block: Block) -> str:
    match block:
        case Text(text, role):
            return f"> {escaped(text)}" if role == "promise" else escaped(text)
        case Bullets(items):
            return "\n".join(f"- {escaped(item)}" for item in items)
        case Facts(items):
            return "\n".join(
                f"- {escaped(label)}: **{escaped(figure)}**" + (f" ({escaped(meaning)})" if meaning else "")
                for label, figure, meaning in items
            )
        case Code(text, language):
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
            return f"{fence}{language}\n{text}\n{fence}"
        case Heading(text):
            return f"### {escaped(text)}"
        case Note(grade, title, text, advice):
            note = f"**{escaped(title)}** ({grade}): {escaped(text)}"
            return "> " + note + (f" What to do: {escaped(advice)}" if advice else "")
        case Figure(title, caption, _, data):
            return f"### {escaped(title)}\n\n{escaped(caption)}\n\n{to_markdown(data)}"
        case Folded(title, blocks):
            return "\n\n".join([f"### {escaped(title)}", *map(_markdown, blocks)])
        case Table():
            return to_markdown(block)


def _dict(block: Block) -> dict[str, Any]:
    match block:
        case Text(text, role):
            return {"kind": role or "text", "text": text}
        case Bullets(items):
            return {"kind": "list", "items": list(items)}
        case Facts(items):
            return {
                "kind": "figures",
                "items": [dict(zip(("label", "figure", "meaning"), i, strict=True)) for i in items],
            }
        case Code(text, language):
            return {"kind": "code", "language": language, "text": text}
        case Heading(text):
            return {"kind": "heading", "text": text}
        case Note(grade, title, text, advice):
            return {"kind": "finding", "grade": grade, "title": title, "text": text, "advice": advice}
        case Figure(title, caption, _, data):
            return {"kind": "chart", "title": title, "caption": caption, "data": data.to_dict()}
        case Folded(title, blocks):
            return {"kind": "details", "title": title, "blocks": [_dict(one) for one in blocks]}
        case Table():
            return block.to_dict()
