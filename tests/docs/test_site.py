"""The documentation as a site: it builds without a warning, every link in it leads somewhere, and nothing comes from
outside."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytest.importorskip("myst_nb", reason="the site's generator is not installed: make site installs it")
pytest.importorskip("furo", reason="the site's theme is not installed: make site installs it")

ROOT = Path(__file__).parents[2]


class Links(HTMLParser):
    """What a page links to, what it loads, and the places in it."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.places: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.places |= {text for name, text in attrs if name in ("id", "name") and text}
        if tag == "a" and named.get("href"):
            self.links.append(named["href"] or "")
        elif tag in ("link", "script", "img", "source", "iframe"):
            self.loaded += [text for name, text in attrs if name in ("src", "href") and text]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Links]:
    folder = tmp_path_factory.mktemp("site")
    words = ["-q", "-W", "--keep-going", "-j", "2", "-c", "docs/site", ".", str(folder)]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {page: Links(page) for page in folder.rglob("*.html")}


def test_every_page_of_the_repository_is_on_the_site(site: dict[Path, Links]) -> None:
    names = {page.stem for page in site}
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.ipynb")]
    pages = [page for page in pages if "vectors" not in page.parts]
    assert {page.stem for page in pages} <= names


def test_every_link_leads_to_a_page_and_a_place_in_it(site: dict[Path, Links]) -> None:
    wrong = []
    for page, inside in site.items():
        for link in inside.links:
            path, _, place = link.partition("#")
            if re.match(r"[a-z]+:", link) or link == "#":
                continue
            there = page if not path else (page.parent / path).resolve()
            if not there.exists() or (place and there in site and place not in site[there].places):
                wrong.append(f"{page.name}: {link}")
    assert not wrong


def test_nothing_is_loaded_from_outside(site: dict[Path, Links]) -> None:
    loaded = [(page.name, link) for page, inside in site.items() for link in inside.loaded]
    assert loaded
    assert not [pair for pair in loaded if re.match(r"(https?:)?//", pair[1])]


def test_who_cites_names_the_version_that_is_built() -> None:
    """pyproject.toml is the place of the version; CITATION.cff repeats it."""
    (version,) = re.findall(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
