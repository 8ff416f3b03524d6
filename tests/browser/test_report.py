"""The report in a real browser: it sorts, prints, fits a phone, follows light and dark, and asks no network."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable import report
from deniable.lab.experiments import run_experiment
from deniable.lab.settings import Perturbed, setting_named
from deniable.mechanisms import Designed
from deniable.owner.audit import audit
from deniable.planning.pools import CodedTable, sdr_pool
from tests.browser.combinations import in_part

HOSTILE = ("<script>document.title='broken'</script>", "<cell>", "a & b", "long " * 30, "x", "y", "z", "w" * 90, "flu")
SCHEMES = ("light", "dark")
WIDTHS = (1200, 360)
PAGES = (*report.AUDIENCES, "evaluation")
Opened = Callable[..., Any]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both reports about a release with cells, and an evaluation, as files."""
    home = tmp_path_factory.mktemp("pages")
    rows = 4000
    weighted = [value for place, value in enumerate(HOSTILE) for _ in range(place + 3)]
    table = pa.table(
        {
            "<b>sex</b>": ["F" if i % 3 else "M" for i in range(rows)],
            "age": [18 + (i * 7) % 70 for i in range(rows)],
            "disease": [weighted[(i * 17) % len(weighted)] for i in range(rows)],
        }
    )
    pq.write_table(table, home / "original.parquet")
    folder = home / "release"
    privacy = dn.Privacy(rho2="1/2")
    dn.publish(table, sensitive="disease", privacy=privacy, mechanism="small-domain", out=folder, key=bytes(32))
    found = audit(table, folder, attacks=True).to_dict()
    written = {}
    for audience in ("owner", "analyst"):
        content = report.document(folder, audience=audience, audit=found if audience == "owner" else None)  # type: ignore[arg-type]
        written[audience] = home / f"{audience}.html"
        report.write(content, written[audience], "html", folder)
    written["evaluation"] = home / "evaluation.html"
    report.write(evaluation(table), written["evaluation"], "html", None)
    return written


def evaluation(table: pa.Table) -> report.page.Document:
    """The page of `deniable evaluate --out`, with refused settings and hostile names in it."""
    pool = sdr_pool(CodedTable.of(table, "disease"), conditions=40)
    names = ("uniform", "small-domain", "designed", "anatomy", "laplace")
    settings = [setting_named(name, dn.Privacy("1/4", "1/2")) for name in names]
    refused = Perturbed("<b>refused</b>", Designed(), dn.Privacy("1/4", "1/2", adversary="any-prior"))
    result = run_experiment(pool, [*settings, refused], draws=2)
    return report.evaluation_report([result.to_dict()], "<script>.csv")


@pytest.fixture
def opened(tab: Any, pages: dict[str, Path]) -> Opened:
    """Open a report."""

    def start(audience: str, *, width: int = 1200, **options: Any) -> Any:
        page = tab(width, **options)
        page.goto(pages[audience].as_uri())
        return page

    return start


@pytest.mark.parametrize("audience", PAGES)
def test_the_page_opens_without_complaint_and_without_network(opened: Opened, audience: str) -> None:
    page = opened(audience)
    assert page.complaints == []
    assert len(page.asked) == 1
    assert page.title().startswith("What a release" if audience == "evaluation" else "Release 'release'")
    assert page.evaluate("getComputedStyle(document.querySelector('.facts')).display") == "grid"


def test_the_policy_stops_the_network_and_foreign_scripts(opened: Opened) -> None:
    page = opened("analyst")
    fetched = "fetch('https://example.invalid/').then(() => 'reached', () => 'refused')"
    assert page.evaluate(fetched) == "refused"
    assert any("Content Security Policy" in complaint for complaint in page.complaints)
    page.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = 'window.ran = true';"
        "document.body.append(s); }"
    )
    assert page.evaluate("window.ran") is None


@pytest.mark.parametrize("audience", PAGES)
@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_never_scrolls_sideways(opened: Opened, audience: str, width: int) -> None:
    page = opened(audience, width=width)
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    shown = page.evaluate(
        "[...document.querySelectorAll('figure svg')].filter((s) => s.getClientRects().length).length"
    )
    assert shown == page.locator("figure").count() > 1


def column(page: Any, table: str, place: int) -> list[str]:
    return page.evaluate(
        f"[...document.querySelectorAll('{table} tbody tr')].map((r) => r.cells[{place}].dataset.sort)"
    )


def test_tables_sort_by_mouse_and_by_keyboard(opened: Opened) -> None:
    page = opened("owner")
    table = ".scroll[aria-labelledby=attackers-1] table"
    heading = page.locator(f"{table} th[scope=col]").nth(1)
    assert heading.get_attribute("aria-sort") is None
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    numbers = [float(number) for number in column(page, table, 1)]
    assert numbers == sorted(numbers)
    assert len(set(numbers)) > 3
    heading.locator("button").focus()
    page.keyboard.press("Enter")
    assert heading.get_attribute("aria-sort") == "descending"
    assert [float(number) for number in column(page, table, 1)] == sorted(numbers, reverse=True)
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert page.locator(f"{table} th[scope=col]").nth(2).get_attribute("aria-sort") == "ascending"
    assert page.locator(f"{table} [aria-sort]").count() == 1


@pytest.mark.parametrize("audience", ["owner", "evaluation"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_charts_follow_light_and_dark(opened: Opened, audience: str, scheme: str) -> None:
    """Every text of every chart stands out from the page: contrast of at least 4.5 to 1 (WCAG AA)."""
    page = opened(audience, scheme=scheme)
    colours = page.evaluate(
        "() => [getComputedStyle(document.body).backgroundColor, "
        "...new Set([...document.querySelectorAll('figure .wide text')].map((t) => getComputedStyle(t).fill))]"
    )
    ground, *texts = [[int(part) for part in colour[4:-1].split(",")] for colour in colours]
    assert texts
    assert (sum(ground) < 3 * 128) == (scheme == "dark")
    assert min(contrast(ground, text) for text in texts) >= 4.5


def contrast(one: list[int], other: list[int]) -> float:
    def light(colour: list[int]) -> float:
        parts = [c / 255 for c in colour]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def test_it_prints_on_white_paper_with_whole_tables(opened: Opened) -> None:
    page = opened("owner", scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('.scroll')).overflowX") == "visible"
    assert page.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_tables_are_whole_without_scripts(opened: Opened) -> None:
    page = opened("analyst", java_script_enabled=False)
    assert page.locator("th button").count() == 0
    assert page.locator("table").first.is_visible()


@pytest.mark.parametrize(("audience", "scheme", "width"), in_part(PAGES, SCHEMES, WIDTHS))
def test_axe_finds_nothing(opened: Opened, violations: Any, audience: str, scheme: str, width: int) -> None:
    page = opened(audience, width=width, scheme=scheme, bypass_csp=True)  # the page's own policy forbids axe, rightly
    assert violations(page) == []
