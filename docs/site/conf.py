"""The documentation as a site: `make site` builds it from the same pages that are read in the repository.

The repository is the source folder, so that links between pages, also to README and ARCHITECTURE, are what they are
there. Why this generator: docs/decisions/site.md.
"""

import itertools
import re
import tomllib
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
HEADING = re.compile(r"^\*\*(\w[\w-]*)\*\*", re.MULTILINE)
PAGE = re.compile(r"^- \[[^\]]+\]\(([^)]+)\.(?:md|ipynb)\)", re.MULTILINE)

project = "deniable"
author = "The deniable developers"
release = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
extensions = ["myst_nb", "sphinx_copybutton"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md", "docs/**.ipynb"]
exclude_patterns = [".*", "site", "demo", "reference/vectors", "**/reference/vectors"]
html_theme = "furo"
html_title = f"deniable {release}"
html_static_path = [str(ROOT / "docs" / "site" / "site.css")]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
nb_execution_mode = "off"  # tests run the notebooks and compare what they print
nb_merge_streams = True
myst_heading_anchors = 4
myst_enable_extensions = ["deflist"]
suppress_warnings = ["misc.highlighting_failure"]
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
# what the theme leaves out for who hears a page or has no mouse: the rank of captions, names of the two columns beside
# the text, and the way into code that is wider than the screen
NAMED = {
    'role="heading">': 'role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<aside class="toc-drawer">': '<aside class="toc-drawer" aria-label="On this page">',
    "<pre><span></span>": '<pre tabindex="0"><span></span>',
}


def contents(app: Sphinx, name: str, source: list[str]) -> None:
    """What docs/index.md lists is also the navigation: one entry for each of its headings."""
    if name != root_doc:
        return
    (text,) = source
    starts = [*HEADING.finditer(text), None]
    for start, end in itertools.pairwise(starts):
        assert start is not None
        section = text[start.end() : None if end is None else end.start()]
        pages = "\n".join(f"/docs/{page}" for page in PAGE.findall(section))
        source[0] += f"\n\n```{{toctree}}\n:hidden:\n:caption: {start.group(1)}\n\n{pages}\n```\n"
    of_project = "\n".join(f"/{page.stem}" for page in sorted(ROOT.glob("*.md")))
    source[0] += f"\n\n```{{toctree}}\n:hidden:\n:caption: Project\n\n{of_project}\n```\n"


def named(app: Sphinx, problem: Exception | None) -> None:
    """``NAMED`` on every page."""
    for page in Path(app.outdir).rglob("*.html") if problem is None else ():
        text = page.read_text("utf-8")
        for bare, name in NAMED.items():
            text = text.replace(bare, name)
        page.write_text(text, "utf-8")


def setup(app: Sphinx) -> None:
    app.connect("source-read", contents)
    app.connect("build-finished", named)
