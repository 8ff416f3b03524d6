"""Chromium for the tests of pages, what they listen to, and what axe finds.

Needs Chromium (``chromium`` on the PATH) and the package playwright; the checks for accessibility also need axe-core:
the environment variable DENIABLE_AXE names its file axe.min.js. What is missing is skipped, with the reason.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync")  # fmt: skip
OPEN = "document.querySelectorAll('details').forEach((each) => { each.open = true; })"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="needs the package playwright: pip install playwright"
    )
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs Chromium: no program 'chromium' is on the PATH")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture
def tab(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open an empty page, in a window of its own unless one is given (``context``). What it complains about and what it
    asks for (method, address, body) is in ``page.complaints`` and ``page.asked``."""
    windows = []

    def start(width: int, scheme: str = "light", *, context: Any = None, **options: Any) -> Any:
        if context is None:
            context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **options)
            windows.append(context)
        page = context.new_page()
        page.complaints, page.asked = [], []
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("request", lambda request: page.asked.append((request.method, request.url, request.post_data)))
        return page

    yield start
    for window in windows:
        window.close()


@pytest.fixture(scope="session")
def violations() -> Callable[[Any], list[Any]]:
    """What axe finds on a page, everything unfolded; the page's own policy has to be lifted for it (``bypass_csp``)."""
    axe = os.environ.get("DENIABLE_AXE", "")

    def found(page: Any) -> list[Any]:
        if not Path(axe).is_file():
            pytest.skip("needs axe-core: set DENIABLE_AXE to its axe.min.js")
        page.evaluate(OPEN)
        page.add_script_tag(path=axe)
        rules = page.evaluate("axe.run()")["violations"]
        return [(rule["id"], rule["impact"], rule["nodes"][0]["html"]) for rule in rules]

    return found
