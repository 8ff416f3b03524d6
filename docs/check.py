"""Check the documentation: links lead somewhere, references exist, generated pages are current. Exit code 0 or 1.

`python docs/check.py --write` first writes the generated pages.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
MAKERS = ("make_cli", "make_python")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CITED = re.compile(r"\[([a-z]+\d{4}[a-z]+)\]")
ENTRY = re.compile(r"^@\w+\{([^,]+),", re.MULTILINE)
CODE = re.compile(r"^```.*?^```|^    .*?$", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """Every page of the documentation."""
    pages = sorted((ROOT / "docs").rglob("*.md"))
    return [*sorted(ROOT.glob("*.md")), *(page for page in pages if "vectors" not in page.parts)]  # READMEs of releases


def maker(name: str) -> ModuleType:
    """A program of docs/reference that makes a page."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "reference" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def generated_pages() -> Iterator[tuple[Path, str]]:
    """Where each generated page is, and what should be in it."""
    for name in MAKERS:
        module = maker(name)
        yield module.PAGE, module.page()


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
    for path, text in generated_pages():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            yield f"{path.relative_to(ROOT)} is not what the program says now. Fix: python docs/check.py --write"
    yield from (f"docs/reference/python.md: {lack}." for lack in maker("make_python").problems())


def main() -> int:
    if "--write" in sys.argv[1:]:
        for path, text in generated_pages():
            path.write_text(text, encoding="utf-8")
    wrong = list(problems())
    print("\n".join(wrong) or f"{len(pages())} pages: links, references and generated pages are in order.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
