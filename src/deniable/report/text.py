"""The same report as Markdown and as JSON; neither needs the extra ``report``."""

from __future__ import annotations

import json
import re
from typing import Any

from deniable.core.markdown import escaped
from deniable.report.page import Block, Bullets, Code, Document, Facts, Figure, Folded, Heading, Note, Text
from deniable.report.tables import Table, to_markdown


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
