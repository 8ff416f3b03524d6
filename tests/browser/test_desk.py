"""The desk in a real browser: the whole way by mouse and by keyboard, on a phone and on a screen, over three tables.

Needs what tests/browser/test_report.py needs; what is missing is skipped, with the reason.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.desk.desk import STEPS, Desk
from deniable.desk.server import Serving
from deniable.lab import made_up
from tests.browser.combinations import in_part
from tests.desk.visitor import serving

playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright: pip install playwright")
WIDTHS = (375, 1280)
MOST_CLICKS = 12
PATIENCE = 240_000  # milliseconds, for work on a million rows by a machine that does other things, too
DONE = (
    "document.readyState === 'complete' && !document.querySelector('.working[data-state=running]') && "
    "!!document.querySelector('main h1')"
)


def csv_table(home: Path) -> tuple[str, str]:
    pa_csv.write_csv(made_up.census(5000), home / "people.csv")
    return "people.csv", "occupation"


def spss_table(home: Path) -> tuple[str, str]:
    """A survey with labelled codes, as SPSS keeps it."""
    pyreadstat = pytest.importorskip("pyreadstat", reason="needs the extra files")
    pandas = pytest.importorskip("pandas", reason="needs the extra files")
    rng = np.random.default_rng(4)
    frame = pandas.DataFrame(
        {
            "sex": rng.integers(1, 3, 4000).astype(float),
            "age": rng.integers(18, 90, 4000).astype(float),
            "religion": rng.choice(6, 4000, p=[0.3, 0.25, 0.2, 0.1, 0.1, 0.05]).astype(float),
        }
    )
    faiths = dict(enumerate(["Catholic", "Protestant", "none", "Muslim", "Jewish", "other"]))
    labels = {"sex": {1: "female", 2: "male"}, "religion": faiths}
    pyreadstat.write_sav(frame, str(home / "survey.sav"), variable_value_labels=labels)
    return "survey.sav", "religion"


def large_table(home: Path) -> tuple[str, str]:
    """A million rows."""
    rng, rows = np.random.default_rng(5), 1_000_000
    diseases = np.minimum(rng.zipf(1.5, rows) - 1, 29)
    table = pa.table(
        {
            "age": rng.integers(0, 95, rows),
            "sex": np.array(["F", "M"])[rng.integers(0, 2, rows)],
            "region": np.array([f"region {i}" for i in range(26)])[rng.integers(0, 26, rows)],
            "admitted": pa.array(rng.integers(18_000, 19_000, rows).astype("datetime64[D]")),
            "disease": np.array([f"disease {i}" for i in range(30)])[diseases],
        }
    )
    pq.write_table(table, home / "patients.parquet")
    return "patients.parquet", "disease"


TABLES: dict[str, Callable[[Path], tuple[str, str]]] = {"csv": csv_table, "spss": spss_table, "parquet": large_table}


class Person:
    """Someone at a page, whose clicks are counted."""

    def __init__(self, browser: Any, served: Serving, *, width: int = 1280, **options: Any) -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.complaints: list[str] = []
        self.asked: set[str] = set()
        self.clicks = 0
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.asked.add("://".join(urlsplit(request.url)[:2])))
        self.page.goto(served.address)
        self.settle()

    def settle(self) -> None:
        self.until(DONE)

    def until(self, condition: str) -> None:
        """Wait; the page's policy forbids what Playwright has for this, rightly."""
        end = time.monotonic() + PATIENCE / 1000
        while time.monotonic() < end:
            with contextlib.suppress(playwright.Error):  # the page is leaving
                if self.page.evaluate(condition):
                    return
            time.sleep(0.05)
        raise AssertionError(f"it never came to be that {condition}")

    def click(self, selector: str) -> None:
        self.clicks += 1
        self.page.locator(selector).first.click()

    def onward(self) -> None:
        """By the mouse: the button that leads on."""
        self.page.evaluate("window.old = true")
        self.click(".buttons .main")
        self.until("!window.old")
        self.settle()

    def make_sensitive(self, column: str) -> None:
        row = self.page.locator("tr", has=self.page.locator(f"th:text-is('{column}')"))
        if row.locator("select").input_value() != "sensitive":
            self.clicks += 2  # one opens the list, one chooses
            row.locator("select").select_option("sensitive")

    def press_to(self, selector: str) -> None:
        """By the keyboard: Tab until this has the focus."""
        for _ in range(400):
            self.page.keyboard.press("Tab")
            if self.page.evaluate(f"document.activeElement.matches({selector!r})"):
                return
        raise AssertionError(f"{selector} cannot be reached by the keyboard")

    def press_onward(self) -> None:
        self.press_to(".buttons .main")
        self.page.evaluate("window.old = true")
        self.page.keyboard.press("Enter")
        self.until("!window.old")
        self.settle()

    @property
    def step(self) -> str:
        return urlsplit(self.page.url).path.strip("/")

    def close(self) -> None:
        self.context.close()


@contextlib.contextmanager
def desk_of(home: Path, table: str) -> Iterator[Serving]:
    made = Desk(home=home)
    made.open(table)
    with serving(made) as served:
        yield served


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """A table of a kind, and a desk for it."""
    monkeypatch.chdir(tmp_path)

    def start(kind: str) -> Any:
        table, sensitive = TABLES[kind](tmp_path)
        return desk_of(tmp_path, table), sensitive

    return start


def assert_published(person: Person, served: Serving) -> None:
    """A signed release stands there, the page said nothing to its console, and it asked one origin."""
    person.until("!!document.querySelector('#command')")
    checked = dn.verify("release", signed_by="signing-key.pub")
    assert "signed by" in str(checked)
    assert person.complaints == []
    assert person.asked == {f"http://127.0.0.1:{served.port}"}


@pytest.mark.parametrize(("kind", "width"), in_part(list(TABLES), WIDTHS, quick={("csv", 1280)}))
def test_the_whole_way_by_mouse(browser: Any, opened: Any, kind: str, width: int) -> None:
    """From the table to a signed release in a few clicks, without a word typed."""
    desk, sensitive = opened(kind)
    with desk as served:
        person = Person(browser, served, width=width)
        for step in STEPS:
            assert person.step == step
            assert person.page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
            if step == "columns":
                person.make_sensitive(sensitive)
            person.onward()
        assert_published(person, served)
        assert person.clicks <= MOST_CLICKS
        person.close()


@pytest.mark.parametrize(("kind", "width"), in_part(list(TABLES), WIDTHS, quick={("spss", 375)}))
def test_the_whole_way_by_keyboard_alone(browser: Any, opened: Any, kind: str, width: int) -> None:
    desk, sensitive = opened(kind)
    with desk as served:
        person = Person(browser, served, width=width)
        for step in STEPS:
            assert person.step == step
            if step == "columns":
                names = person.page.locator("tbody th").all_inner_texts()
                person.press_to(f"[name='role.{names.index(sensitive)}']")
                person.page.keyboard.type("sens")
            if step == "promise":
                person.press_to("#rho2")
                person.page.keyboard.press("ArrowRight")
            person.press_onward()
        assert_published(person, served)
        person.close()


def test_figures_follow_the_form_and_nothing_is_saved_before_next(browser: Any, opened: Any) -> None:
    desk, sensitive = opened("csv")
    with desk as served:
        person = Person(browser, served)
        person.onward()
        person.make_sensitive(sensitive)
        person.onward()
        alone = "[data-live] td b"
        before = person.page.locator(alone).first.inner_text()
        person.page.locator("select[name^='recode.']").first.select_option("drop")
        person.until(f"document.querySelector('{alone}').innerText !== {before!r}")
        assert served.desk.project is not None
        assert all(one.role != "drop" for one in served.desk.project.columns)
        person.onward()
        said = person.page.locator("#live").inner_text()
        person.page.locator("#rho2").focus()
        person.page.keyboard.press("ArrowRight")
        person.until(f"document.querySelector('#live').innerText !== {said!r}")
        assert person.page.locator("#rho2").get_attribute("aria-valuetext") == "40\xa0%"
        assert person.complaints == []
        person.close()


def test_it_works_without_scripts(browser: Any, opened: Any) -> None:
    desk, sensitive = opened("csv")
    with desk as served:
        context = browser.new_context(java_script_enabled=False)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(served.address)
        for step in STEPS:
            page.wait_for_selector(".buttons .main")  # a page with work under way asks for itself anew
            if step == "columns":
                row = page.locator("tr", has=page.locator(f"th:text-is('{sensitive}')"))
                row.locator("select").select_option("sensitive")
            page.locator(".buttons .main").click()
        page.wait_for_selector("#command")
        assert (Path("release") / "manifest.json").is_file()
        context.close()


def test_a_second_browser_without_the_token_sees_nothing(browser: Any, opened: Any) -> None:
    desk, _ = opened("csv")
    with desk as served:
        person = Person(browser, served)
        other = browser.new_context()
        stranger = other.new_page()
        answer = stranger.goto(f"http://127.0.0.1:{served.port}/table")
        assert answer.status == 403
        assert "owner alone" in stranger.inner_text("body")
        # a page of another site, in the owner's own browser: the cookie is not sent, and the form is not taken
        attack = f"<form id=f method=post action=http://127.0.0.1:{served.port}/columns><input name=go></form>"
        person.page.route("http://evil.invalid/", lambda route: route.fulfill(body=attack, content_type="text/html"))
        person.page.goto("http://evil.invalid/")
        with person.page.expect_navigation() as moved:
            person.page.evaluate("document.getElementById('f').submit()")
        assert moved.value.status == 403
        other.close()
        person.close()


@pytest.mark.parametrize(
    ("language", "width", "scheme"),
    in_part(["en-GB", "de-CH"], WIDTHS, ["light", "dark"], quick={("de-CH", 375, "dark")}),
)
def test_axe_finds_nothing(browser: Any, opened: Any, violations: Any, language: str, width: int, scheme: str) -> None:
    desk, sensitive = opened("csv")
    with desk as served:
        person = Person(browser, served, width=width, color_scheme=scheme, locale=language, bypass_csp=True)
        assert person.page.locator("html").get_attribute("lang") == language[:2]
        for step in [*STEPS, "published"]:
            assert violations(person.page) == [], step
            assert person.page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0, step
            if step == "columns":
                person.make_sensitive(sensitive)
            if step != "published":
                person.onward()
        person.close()


@pytest.mark.long
def test_the_pictures_of_the_how_to_can_be_made_anew(tmp_path: Path) -> None:
    """By the script that made them; every picture is on the page, and all of them are small."""
    home = Path(__file__).parents[2] / "docs" / "how-to"
    page = (home / "use-the-desk.md").read_text(encoding="utf-8")
    command = [sys.executable, str(home / "desk" / "make_pictures.py"), str(tmp_path)]
    paths = os.pathsep.join([str(home.parents[1]), *sys.path])  # a driver of its own needs a process of its own
    ended = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, timeout=600, check=False
    )
    assert ended.returncode == 0, ended.stderr
    made = {path.name for path in tmp_path.glob("*.png")}
    kept = {path.name: path.stat().st_size for path in (home / "desk").glob("*.png")}
    assert made == set(kept)
    assert {f"step-{step}.png" for step in STEPS} < made
    assert {name for name in made if f"](desk/{name})" not in page} == set()
    assert sum(kept.values()) < 600_000
