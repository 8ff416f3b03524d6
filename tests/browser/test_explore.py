"""The page of `deniable explore` in a real browser: it computes what deniable computes, and asks no network."""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import random
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deniable as dn
from deniable.analyst import explore
from tests.estimation.test_learned_answers import release as learned
from tests.golden.cases import CASES
from tests.release.test_coded_lineups import BY_ARCS, BY_BLOCKS, published

SHOWN = [
    "uniform", "small-domain", "small-domain, variance and fine-grain", "fine-grain", "designed", "identity", "lineup",
    "lineup, any prior", "lineup, codes", "decoys", "decoys, sums", "redraw", "pram", "retention",
    "retention, dates and floats", "retention, swapped", "items", "two columns", "two columns, small-domain",
    "two columns, decoys", "missing, a value", "missing, exempt", "bins", "recoded", "without marginals", "auto",
]  # fmt: skip
OTHERS = ["line-ups by blocks", "line-ups by arcs", "learned", "learned, missing"]
EVERY, QUICK = (
    [*SHOWN, *OTHERS],
    {"small-domain", "lineup", "decoys", "retention, swapped", "two columns, decoys", "learned"},
)
EACH = 34  # questions to each release: 30 of them are more than 1,000
HOSTILE = ("</script><script>document.title='broken'</script>", "<!--", "a & 'b' \"c\"", "long " * 30, "flu", "x")


@cache
def released(name: str) -> dn.Release:
    if name.startswith("line-ups"):
        return published(
            20, "exempt" if name.endswith("arcs") else "value", BY_ARCS if name.endswith("arcs") else BY_BLOCKS
        )
    if name == "learned":
        return learned(1)
    if name == "learned, missing":
        table = CASES["missing, exempt"].rows().select(["sex", "region", "age", "ill"])
        options = {"mechanism": "synthetic", "privacy": dn.Privacy(epsilon=1), "missing": "exempt", "key": bytes(32)}
        known = sorted({one for one in table["ill"].to_pylist() if one is not None})
        return dn.publish(table, sensitive="ill", domain=known, **options)
    return CASES[name].publish()


def questions(meta: dict[str, Any], number: int, seed: int) -> list[dict[str, Any]]:
    """Conditions as the page has them: a few values, or a range, of up to three public columns and some sensitive."""
    rng = random.Random(seed)
    asked = []
    for _ in range(number):
        public = rng.sample(meta["public"], rng.choice([0, 0, 1, 1, 2, 3]) % (len(meta["public"]) + 1))
        hidden = rng.sample(meta["sensitive"], min(len(meta["sensitive"]), rng.choice([1, 1, 1, 2, 3])))
        where = {}
        for column in [*public, *hidden]:
            values = column["values"]
            if column["kind"] in ("number", "date", "time") and rng.random() < 0.6:
                ends = sorted(rng.choices(range(len(values)), k=2))
                where[column["name"]] = {"from": values[ends[0]], "to": values[ends[1]]}
                continue
            size = 1 if "item" in column else rng.choice([1, 1, 2, len(values) // 2, len(values) - 1])
            chosen = rng.sample(values, max(1, min(size, len(values))))
            missing = column.get("missing", False) and "item" not in column and rng.random() < 0.3
            where[column["name"]] = [*chosen, *([None] if missing else [])]
        asked.append(where)
    return asked


def as_asked(meta: dict[str, Any], where: dict[str, Any]) -> dict[str, Any]:
    """The same for ``release.count``."""
    columns = {column["name"]: column for column in [*meta["public"], *meta["sensitive"]]}
    read = {"date": dt.date.fromisoformat, "time": dt.datetime.fromisoformat}
    result: dict[str, Any] = {}
    for name, condition in where.items():
        value = read.get(columns[name]["kind"], lambda one: one)
        if isinstance(condition, dict):
            result[name] = dn.between(value(condition["from"]), value(condition["to"]))
        else:
            result[name] = [None if one is None else value(one) for one in condition]
    return result


@pytest.fixture
def opened(tab: Any, tmp_path: Path) -> Any:
    def start(release: dn.Release, *, width: int = 1280, columns: Any = None, **options: Any) -> Any:
        page = tab(width, **options)
        page.goto(explore.write(release, tmp_path / "page.html", columns).as_uri())
        page.evaluate("deniable.ready")
        return page

    return start


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in EVERY]
)
def test_the_page_computes_what_deniable_computes(name: str, opened: Any) -> None:
    release = released(name)
    page = opened(release)
    assert page.complaints == []
    meta = page.evaluate("JSON.parse(document.getElementById('meta').textContent)")
    asked = questions(meta, EACH, seed=len(name))
    got = page.evaluate("(asked) => asked.map((where) => deniable.count(where))", asked)
    for where, one in zip(asked, got, strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = release.count(as_asked(meta, where))
        ours = [one["value"], one["low"], one["high"]]
        assert ours == pytest.approx([wanted.value, wanted.low, wanted.high], rel=1e-6, abs=1e-6), where
        assert one["hopeless"] == wanted.hopeless


def hostile() -> dn.Release:
    rows = 3000
    table = pa.table(
        {
            "</script><b>sex</b>": ["F" if i % 3 else HOSTILE[0] for i in range(rows)],
            "age": [18 + (i * 7) % 70 for i in range(rows)],
            "when": [dt.date(2020, 1, 1) + dt.timedelta(days=i % 50) for i in range(rows)],
            'it\'s "ill"': [HOSTILE[(i * i) % 17 % len(HOSTILE)] for i in range(rows)],
        }
    )
    return dn.publish(
        table, sensitive='it\'s "ill"', privacy="1/2", mechanism="uniform", key=bytes(32), name="<i>x</i>"
    )


def pick(page: Any, column: str, value: str) -> None:
    """Open a column's values, and tick one."""
    box = page.locator(f"details[data-column={column}]")
    box.locator("summary").click()
    box.get_by_label(value, exact=True).check()


def test_whoever_opens_it_is_answered(opened: Any) -> None:
    release = released("small-domain")
    page = opened(release)
    assert [url for _, url, _ in page.asked] == [page.url]
    assert page.locator("#figures .estimate").inner_text().startswith("3,600")
    every = release.histogram()
    assert page.locator("#shown rect").count() == page.locator("#shown tbody tr").count() == len(every)
    first, counted = page.locator("#shown tbody tr").first.inner_text().split("\t")[:2]
    assert counted == f"{release.count({'disease': first}).value:,.0f}"
    pick(page, "disease", "flu")
    pick(page, "sex", "F")
    wanted = release.count({"disease": "flu", "sex": "F"})
    low, high = f"{wanted.low:,.0f}", f"{wanted.high:,.0f}"
    assert page.locator("#figures .estimate").inner_text() == f"{wanted.value:,.0f}\n95 %: {low} to {high}"
    page.get_by_label("For each").select_option("region")
    rows = page.locator("#shown tbody tr")
    assert rows.count() == page.locator("#shown rect").count() == 4
    east = release.count({"disease": "flu", "sex": "F", "region": "east"})
    assert rows.first.inner_text().split("\t")[:2] == ["east", f"{east.value:,.0f}"]
    page.get_by_label("as columns of a table, each").select_option("disease")
    assert page.locator("#shown td").count() == 4
    page.get_by_label("as a share of the rows").check()
    within = release.count({"sex": "F", "region": "east"}).value
    assert page.locator("#shown td").first.inner_text().startswith(f"{100 * east.value / within:.1f} %")
    age = page.locator("details[data-column=age]")
    age.locator("summary").click()
    age.get_by_label("From").fill("30")
    age.get_by_label("From").press("Tab")
    assert "age: 30 to 90" in page.locator("#figures").inner_text()
    page.get_by_role("button", name="Start again").click()
    assert page.locator("#figures .estimate").inner_text().startswith("3,600")
    assert page.complaints == []


def test_what_is_copied_gives_the_same(opened: Any) -> None:
    for release in (released("small-domain"), hostile(), released("items")):
        page = opened(release, permissions=["clipboard-read", "clipboard-write"])
        meta = page.evaluate("JSON.parse(document.getElementById('meta').textContent)")
        for where in questions(meta, 12, seed=3):
            value = page.evaluate("(where) => deniable.count(where).value", where)
            sql = page.evaluate("(where) => deniable.sql(where, [])", where)
            assert release.sql(sql)["n"][0].as_py() == pytest.approx(value, rel=1e-6, abs=1e-6)
            python = page.evaluate("(where) => deniable.python(where, [])", where).replace(
                'dn.open_release("release")', "given"
            )
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(python, {"given": release})
            if "release.sql" not in python:
                assert float(printed.getvalue().split(" (")[0].replace(",", "")) == pytest.approx(value, abs=1)
        page.get_by_role("button", name="Copy the SQL").click()
        page.get_by_role("button", name="Copied").wait_for()
        assert page.evaluate("navigator.clipboard.readText()") == page.locator("#sql").inner_text()


def test_what_values_hold_is_text(opened: Any) -> None:
    page = opened(hostile())
    assert page.title() == "Explore '<i>x</i>'"
    assert page.locator("h1 i, summary b").count() == 0
    page.locator("summary", has_text="it's").click()
    assert page.get_by_label(HOSTILE[0], exact=True).count() == 2  # of the public column, and of the sensitive one
    page.get_by_label("For each").select_option("</script><b>sex</b>")
    assert page.locator("#shown th[scope=row]").first.inner_text() in (HOSTILE[0], "F")
    assert page.evaluate("document.title") == "Explore '<i>x</i>'"
    assert page.complaints == []


def test_the_policy_stops_the_network_evaluation_and_foreign_scripts(opened: Any) -> None:
    page = opened(hostile())
    assert page.evaluate("fetch('https://example.invalid/').then(() => 'reached', () => 'refused')") == "refused"
    written = "() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1'; "
    page.evaluate(written + "document.body.append(s); }")
    assert page.evaluate("window.ran") is None
    clicked = "() => { const p = document.createElement('p'); p.setAttribute('onclick', 'window.ran = 1'); "
    assert page.evaluate(clicked + "document.body.append(p); p.click(); return window.ran ?? null; }") is None


@pytest.mark.parametrize(("width", "scheme"), [(375, "light"), (1280, "dark")])
def test_it_fits_phones_and_axe_finds_nothing(width: int, scheme: str, opened: Any, violations: Any) -> None:
    page = opened(released("small-domain"), width=width, scheme=scheme, bypass_csp=True)
    for rows, columns in (("", ""), ("region", ""), ("disease", "sex")):
        page.locator("#by-rows").select_option(rows)
        page.locator("#by-columns").select_option(columns)
        assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
        assert violations(page) == []


def test_it_is_asked_by_keys_alone(opened: Any) -> None:
    page = opened(released("missing, a value"))
    page.locator("details[data-column=ill] summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    if page.evaluate("document.activeElement.type") == "search":
        page.keyboard.press("Tab")
    if page.evaluate("document.activeElement.classList.contains('ticks')"):
        page.keyboard.press("Tab")
    page.keyboard.press("Space")
    first = page.evaluate("document.activeElement.parentElement.textContent")
    wanted = released("missing, a value").count({"ill": first})
    assert page.locator("#figures .estimate").inner_text().startswith(f"{wanted.value:,.0f}")


def test_what_cannot_be_answered_is_said(opened: Any) -> None:
    page = opened(released("redraw"))
    pick(page, "disease", "hiv")
    assert "nothing learned" in page.locator("#figures").inner_text()
    assert "has no inverse" in page.locator("#limits").inner_text()
    page = opened(released("small-domain"), columns=["sex"])
    assert "The column region: it was not asked for" in page.locator("#limits").inner_text()
    pick(page, "disease", "tb")
    few = page.locator("#limits li", has_text="fewer than about").inner_text()
    assert 1 < int(few.split()[-2].replace(",", "")) < 3600


def test_a_model_too_large_for_a_page_gives_no_interval(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explore, "MOST_ENTRIES", 100)
    page = opened(released("learned"))
    pick(page, "ill", "v3")
    assert page.evaluate("deniable.count({ill: ['v3']}).low") is None
    assert page.evaluate("deniable.count({ill: ['v3']}).value") == released("learned").count({"ill": "v3"}).value
    assert "interval not computed here" in page.locator("#figures").inner_text()
    assert "gives counts without intervals" in page.locator("#limits").inner_text()


@pytest.mark.long
def test_of_many_rows_a_sample_is_stated_and_intervals_hold_it(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explore, "MOST_ROWS", 900)
    held, wider = [], []
    for name in ("uniform", "without marginals", "retention"):
        release = released(name)
        page = opened(release)
        meta = page.evaluate("JSON.parse(document.getElementById('meta').textContent)")
        assert 0.2 < meta["share"] < 0.25
        assert "a sample, about" in page.locator("#limits").inner_text()
        asked = questions(meta, 200, seed=11)
        rows = CASES[name].rows().to_pylist()
        got = page.evaluate("(asked) => asked.map((where) => deniable.count(where))", asked)
        for where, one in zip(asked, got, strict=True):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                whole = release.count(as_asked(meta, where))
            truth = sum(all(holds(row[column], wanted) for column, wanted in where.items()) for row in rows)
            held.append(one["low"] <= truth <= one["high"])
            assert one["low"] <= one["value"] <= one["high"]
            if whole.stderr > 0:
                wider.append(one["stderr"] > whole.stderr)
    assert sum(held) >= 0.93 * len(held)  # of truths, in one draw; over 18 draws .96
    assert sum(wider) >= 0.9 * len(wider)


def holds(value: Any, wanted: Any) -> bool:
    """Whether a row's value satisfies a condition of the page."""
    shown = value.isoformat() if isinstance(value, dt.date) else value
    if isinstance(wanted, dict):
        return shown is not None and wanted["from"] <= shown <= wanted["to"]
    return shown in wanted
