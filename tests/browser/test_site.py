"""The documentation's site, as `make site` builds it, in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

SITE = Path(__file__).parents[2] / "site"
PAGES = (
    "README.html",
    "docs/index.html",
    "docs/tutorials/you-received-a-release.html",
    "docs/explanation/guarantees.html",
    "docs/reference/manifest.html",
)


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES)
def test_axe_finds_nothing_on_pages_of_the_site(tab: Any, violations: Any, page: str) -> None:
    if not (SITE / page).is_file():
        pytest.skip("the site is not built: make site builds it")
    opened = tab(1280, bypass_csp=True)
    opened.goto((SITE / page).as_uri())
    assert violations(opened) == []
