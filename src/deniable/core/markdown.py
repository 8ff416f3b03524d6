"""Text of strangers inside Markdown: values and names of a table may hold markup, links and control characters."""

from __future__ import annotations

from deniable.core.html import shown


def escaped(text: str) -> str:
    """Text in which no character means anything to Markdown, nor to the HTML it becomes.

    >>> escaped("a|b <i> *c*")
    'a\\\\|b &lt;i&gt; \\\\*c\\\\*'
    """
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join("\\" + c if c in "\\`*_[]#|~$" else c for c in text).replace("\n", " ")


def line(text: str) -> str:
    """A sentence on one line, whose markup and unseen characters are to be read and not to work.

    >>> line("of 'a<b>\\x1b[2J'")
    "of 'a&lt;b&gt;\\\\\\\\x1b\\\\[2J'"
    """
    return escaped(shown(text, most=len(text) + 1))


def code(name: str) -> str:
    """A name as code, whatever it is.

    >>> code("age"), code("a`b")
    ('`age`', '`` a`b ``')
    """
    text = shown(name)
    if "`" not in text:
        return f"`{text}`"
    fence = "`" * (1 + max(len(run) for run in "".join(c if c == "`" else " " for c in text).split()))
    return f"{fence} {text} {fence}"
