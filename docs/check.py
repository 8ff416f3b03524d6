"""Check the documentation: links lead somewhere, references exist, generated pages are current. Exit code 0 or 1.

`python docs/check.py --write` first writes the generated pages.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CITED = re.compile(r"\[([a-z]+\d{4}[a-z]+)\]")
ENTRY = re.compile(r"^@\w+\{([^,]+),", re.MULTILINE)
CODE = re.compile(r"^```.*?^```|^    .*?$", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """Every page of the documentation."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def commands_page() -> tuple[Path, str]:
    """Where the reference of the commands is, and what should be in it."""
    spec = importlib.util.spec_from_file_location("make_cli", ROOT / "docs" / "reference" / "make_cli.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.PAGE, module.page()


def problems() -> Iterator[str]:
    """Everything that is wrong, one line each."""
    known = set(ENTRY.findall((ROOT / "docs" / "references.bib").read_text(encoding="utf-8")))
    linked = {ROOT / "docs" / "index.md"}
    for page in pages():
        text = CODE.sub("", page.read_text(encoding="utf-8"))
        name = page.relative_to(ROOT)
        for target in LINK.findall(text):
            if target.startswith(("https://", "mailto:")):
                continue
            path = (page.parent / target.partition("#")[0]).resolve() if not target.startswith("#") else page
            linked.add(path)
            if not path.exists():
                yield f"{name}: {target} leads nowhere"
        yield from (f"{name}: {key} is not in docs/references.bib" for key in CITED.findall(text) if key not in known)
    for page in pages():
        if page.parent != ROOT and page not in linked:
            yield f"{page.relative_to(ROOT)}: no page leads here; link it from docs/index.md"
    path, text = commands_page()
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        yield f"{path.relative_to(ROOT)} is not what the commands say now. Fix: python docs/check.py --write"


def main() -> int:
    if "--write" in sys.argv[1:]:
        path, text = commands_page()
        path.write_text(text, encoding="utf-8")
    found = list(problems())
    print("\n".join(found) or f"{len(pages())} pages: links, references and generated pages are in order.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
