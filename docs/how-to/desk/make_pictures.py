"""Pictures of every step of the desk, for docs/how-to/use-the-desk.md: the demo table, published by a real browser.

Needs Chromium and the package playwright: python docs/how-to/desk/make_pictures.py [FOLDER]
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.csv as pa_csv
from playwright.sync_api import sync_playwright

from deniable.desk.desk import STEPS, Desk
from deniable.lab import made_up
from tests.desk.visitor import serving

HOME = Path(__file__).parent
SCREEN, PHONE = {"width": 1080, "height": 800}, {"width": 375, "height": 720}
SMALLER = 0.65  # pixels of a picture for each of the page
PHONES = ("coarsen", "promise")
DONE = "document.readyState === 'complete' && !document.querySelector('.working[data-state=running]')"


def main(folder: Path) -> None:
    """Write step-NAME.png for each step, published.png, and some steps as a phone shows them."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as home:
        try:
            os.chdir(home)
            pa_csv.write_csv(made_up.census(), "people.csv")
            desk = Desk(home=Path(home))
            desk.open("people.csv")
            with serving(desk) as served, sync_playwright() as driver:
                chromium = driver.chromium.launch(
                    executable_path=shutil.which("chromium"), args=["--headless", "--no-sandbox", "--disable-gpu"]
                )
                page = chromium.new_context(viewport=SCREEN, device_scale_factor=SMALLER).new_page()
                page.goto(served.address)
                _walk(page, here / folder)
                chromium.close()
        finally:
            os.chdir(here)


def _walk(page: Any, folder: Path) -> None:
    for step in STEPS:
        _settle(page)
        if step == "columns":
            page.locator("tr", has=page.locator("th:text-is('occupation')")).locator("select").select_option(
                "sensitive"
            )
        if step == "coarsen":
            page.locator("tr", has=page.locator("th:text-is('age')")).locator("select").select_option("bands:10")
            page.wait_for_timeout(3000)
            page.evaluate("window.scrollTo(0, document.getElementById('live').offsetTop - 300)")
        if step == "look":
            page.evaluate("window.scrollTo(0, 120)")
        page.screenshot(path=folder / f"step-{step}.png")
        if step in PHONES:
            page.set_viewport_size(PHONE)
            page.evaluate("window.scrollTo(0, 0)")
            page.screenshot(path=folder / f"phone-{step}.png")
            page.set_viewport_size(SCREEN)
        page.evaluate("window.old = true")
        page.locator(".buttons .main").click()
        _settle(page)
    page.screenshot(path=folder / "published.png")


def _settle(page: Any) -> None:
    for _ in range(2400):
        try:
            if page.evaluate(f"{DONE} && !window.old"):
                return
        except Exception:  # the page is leaving
            pass
        page.wait_for_timeout(50)
    raise SystemExit("The page did not come to rest.")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HOME)
