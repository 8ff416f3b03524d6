"""The survey page and the researcher's page in a real browser, against a real server."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deniable.collection.client import sent
from tests.collection.serving import TOKEN, Server, new_id, serving
from tests.collection.surveys import EVERY_KIND, answers, responses_of

pytest.importorskip("fastapi", reason="needs the extra 'collect'")
pytestmark = pytest.mark.long
RESPONSES = responses_of()
PHONE = 390
TRUTH = {
    "team": "office", "smokes": "yes", "illness": "ü <k>", "took": ["pills"], "days": 40, "dose": 0.7,
    "seen": "2024-05-30",
}  # fmt: skip
Opened = Callable[..., Any]


def key_that_hides_everything() -> tuple[bytes, dict[str, Any]]:
    """A key of which not one private answer is sent as it is: any answer in the network log would be the truth."""
    for number in range(100_000):
        key = hashlib.shake_256(f"hiding {number}".encode()).digest(32)
        (row,) = sent(RESPONSES.sheet, RESPONSES.fingerprint, [TRUTH], [key])
        kept = row["smokes"] == "yes" or "ü <k>" in row["illness"] or row["took_pills"] == "yes"
        if not kept and row["days"] != 40 and row["dose"] != 0.7 and row["seen"] != "2024-05-30":
            return key, row
    raise AssertionError


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("server")
    survey = home / "survey.toml"
    survey.write_text(EVERY_KIND, encoding="utf-8")
    with serving(survey, str(home / "responses.db"), home) as started:
        yield started


@pytest.fixture
def opened(tab: Any, server: Server) -> Opened:
    def start(
        path: str = f"/#{RESPONSES.fingerprint}",
        *,
        width: int = PHONE,
        key: bytes | None = None,
        document: str | None = None,
        **options: Any,
    ) -> Any:
        page = tab(width, **{"locale": "en-GB", **options})
        if key is not None:
            fixed = f"crypto.getRandomValues = (out) => {{ out.set({list(key)}); return out; }};"
            page.add_init_script(fixed)
        if document is not None:
            page.route("**/survey", lambda route: route.fulfill(body=document, content_type="application/json"))
        page.goto(server.url + path)
        return page

    return start


def fill_in(page: Any) -> None:
    page.get_by_label("office").check()
    page.locator("[name=smokes][value=yes]").check()
    page.locator("[name=illness]").nth(10).check()
    page.locator("[name=took][value=pills]").check()
    page.locator("#days-0").fill("40")
    page.locator("#dose-0").fill("0.7")
    page.locator("#seen-0").fill("2024-05-30")
    page.get_by_role("button", name="Show what will be sent").click()


def count(server: Server) -> int:
    return int(server.get("/progress", TOKEN)[1]["responses"])


def test_only_what_the_preview_shows_leaves_the_phone(opened: Opened, server: Server) -> None:
    key, row = key_that_hides_everything()
    page = opened(key=key)
    page.locator("#form").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    fill_in(page)
    page.get_by_role("heading", name="This will be sent").wait_for()
    assert (
        page.locator("dd[data-column=illness] small").inner_text()
        == f"We will send: one of these {len(row['illness'])}"
    )
    shown = page.locator("#preview dd[data-column=illness]").inner_text()
    assert [value for value in row["illness"] if value.capitalize() not in shown and value not in shown] == []
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    before = count(server)
    page.get_by_role("button", name="Send").click()
    page.get_by_text("This was sent.").wait_for()
    said = page.locator("#done dd[data-column=illness] small").inner_text()
    assert said == f"We sent: one of these {len(row['illness'])}"
    assert count(server) == before + 1
    posts = [(url, json.loads(body)) for method, url, body in page.asked if method == "POST"]
    ((url, body),) = posts
    assert url == f"{server.url}/responses"
    assert set(body) == {"survey", "id", "answers"}
    assert body["answers"] == row  # what Python sends with the same random bytes
    # Nothing else was asked for but the page's own files, and no request holds an answer.
    assert [url for _, url, _ in page.asked if not url.startswith(server.url + "/") or "?" in url] == []
    everything = json.dumps(page.asked, ensure_ascii=False)
    assert "ü <k>" not in everything
    kept = page.evaluate("JSON.stringify(Object.entries(localStorage))")
    assert key.hex() not in kept
    assert page.complaints == []


def test_sending_again_gives_nothing_new(opened: Opened, server: Server) -> None:
    page = opened()
    fill_in(page)
    first = page.locator("#preview-list").inner_text()
    page.get_by_role("button", name="Change my answers").click()
    page.get_by_role("button", name="Show what will be sent").click()
    assert page.locator("#preview-list").inner_text() == first  # the draw is remembered, not thrown again
    page.get_by_role("button", name="Send").click()
    page.get_by_text("This was sent.").wait_for()
    before = count(server)
    page.reload()
    page.get_by_role("button", name="Send again").click()
    page.get_by_text("It had arrived before").wait_for()
    bodies = {body for method, _, body in page.asked if method == "POST"}
    assert len(bodies) == 1
    assert count(server) == before


def test_a_second_tab_gives_no_second_response(opened: Opened, server: Server) -> None:
    first = opened()
    second = opened(context=first.context)
    third = opened(context=first.context)
    fill_in(third)
    fill_in(first)
    first.get_by_role("button", name="Send").click()
    first.get_by_text("This was sent.").wait_for()
    before = count(server)
    fill_in(second)
    second.get_by_text("This was sent.").wait_for()
    third.get_by_role("button", name="Send").click()
    third.get_by_text("This was sent.").wait_for()
    assert second.locator("#done-list").inner_text() == first.locator("#done-list").inner_text()
    assert [method for page in (second, third) for method, _, _ in page.asked if method == "POST"] == []
    assert count(server) == before


def test_offline_it_waits_and_online_it_sends(opened: Opened, server: Server) -> None:
    page = opened()
    page.locator("#form").wait_for()
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    page.reload()  # now under the service worker, which keeps what it sees
    page.locator("#form").wait_for()
    before = count(server)
    page.context.set_offline(True)
    page.reload()
    fill_in(page)
    page.get_by_role("button", name="Send").click()
    page.get_by_text("You are offline").wait_for()
    assert count(server) == before
    page.context.set_offline(False)
    page.get_by_text("This was sent.").wait_for()
    assert count(server) == before + 1


def tampered(how: str) -> str:
    document = json.loads(RESPONSES.document)
    smokes = document["questions"][1]
    if how == "less noise":
        smokes["columns"][0]["channel"]["keep"] += 2**24
    elif how == "less noise, and says so":
        smokes["columns"][0]["channel"]["keep"] = 2**32 - 1
        smokes["columns"][0].update(gamma=str(2**40), epsilon=28.0)
        document.update(gamma=str(2**80), epsilon=60.0)
    elif how == "another question":
        smokes["text"]["en"] = "Do you drink?"
    else:
        smokes["public"], smokes["columns"][0]["channel"] = True, None
    return json.dumps(document, ensure_ascii=False)


@pytest.mark.parametrize("how", ["less noise", "less noise, and says so", "another question", "public"])
def test_a_changed_survey_is_refused_in_red(opened: Opened, how: str) -> None:
    page = opened(document=tampered(how))
    page.locator("#alarm").wait_for()
    assert page.locator("#alarm").inner_text().startswith("Do not answer.")
    assert page.locator("#form").is_hidden()
    red, green, blue = (
        int(part) for part in page.evaluate("getComputedStyle(document.getElementById('alarm')).color")[4:-1].split(",")
    )
    assert red > 2 * max(green, blue)
    assert not [method for method, _, _ in page.asked if method == "POST"]


def test_without_an_invitation_noise_is_still_computed_and_changes_are_seen(opened: Opened) -> None:
    page = opened("/", document=tampered("less noise"))
    page.get_by_text("less noise than the survey says").wait_for()
    page = opened("/", service_workers="block")  # a worker's requests are out of the test's reach
    page.locator("#form").wait_for()
    again = opened("/", document=tampered("another question"), context=page.context)
    again.get_by_text("was changed since you last opened it here").wait_for()
    assert again.locator("#form").is_hidden()


def test_missing_answers_are_asked_for_and_focused(opened: Opened) -> None:
    page = opened()
    page.get_by_role("button", name="Show what will be sent").click()
    assert page.locator("#status").inner_text() == "Some answers are missing."
    assert page.evaluate("document.activeElement.name") == "team"
    page.locator("#days-0").fill("51")
    page.get_by_role("button", name="Show what will be sent").click()
    assert "from 0 to 50" in page.locator("#days-wrong").inner_text()
    assert page.locator("#preview").is_hidden()


def test_it_speaks_the_readers_language_and_can_be_worked_by_keyboard(opened: Opened) -> None:
    page = opened(locale="de-DE")
    page.get_by_role("heading", name="Jede Art von Frage").wait_for()
    assert page.evaluate("document.documentElement.lang") == "de"
    page.locator("#language").select_option("en")
    page.get_by_role("heading", name="Every kind of question").wait_for()
    page.locator("[name=team]").first.focus()
    page.keyboard.press("Space")
    assert page.locator("[name=team]").first.is_checked()
    picture = page.locator("#field-smokes svg.coin")
    assert "your answer" in picture.get_attribute("aria-label")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, 1200])
def test_axe_finds_nothing_on_any_step(
    opened: Opened, violations: Any, server: Server, scheme: str, width: int
) -> None:
    page = opened(scheme=scheme, width=width, bypass_csp=True, service_workers="block")
    page.locator("#form").wait_for()
    assert violations(page) == []
    page.get_by_role("button", name="Show what will be sent").click()
    assert violations(page) == []
    fill_in(page)
    assert violations(page) == []
    page.get_by_role("button", name="Send").click()
    page.get_by_text("This was sent.").wait_for()
    assert violations(page) == []
    alarm = opened(scheme=scheme, width=width, bypass_csp=True, service_workers="block", document=tampered("public"))
    alarm.locator("#alarm").wait_for()
    assert violations(alarm) == []
    results = signed_in(opened, server, width=width, scheme=scheme, bypass_csp=True)
    results.locator("#cross button").click()
    results.locator("#cross-table table").wait_for()
    assert violations(results) == []


def signed_in(opened: Opened, server: Server, **options: Any) -> Any:
    rows = sent(RESPONSES.sheet, RESPONSES.fingerprint, answers(400), [os.urandom(32) for _ in range(400)])
    batch = [{"id": new_id(), "answers": row} for row in rows]
    server.post("/responses/batch", {"survey": RESPONSES.fingerprint, "responses": batch})
    page = opened("/results.html", **options)
    page.locator("#token").fill(TOKEN)
    page.get_by_role("button", name="Show results").click()
    page.locator("[data-column=smokes] table").wait_for()
    return page


def test_the_researcher_sees_counts_crosses_and_exports(opened: Opened, server: Server, tmp_path: Path) -> None:
    page = opened("/results.html", width=1200)
    page.locator("#token").fill("wrong")
    page.get_by_role("button", name="Show results").click()
    page.get_by_text("not the one of this survey").wait_for()
    assert page.locator("#results").is_hidden()
    page = signed_in(opened, server, width=PHONE, accept_downloads=True)
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    assert page.locator("[data-column=illness] tbody tr").count() == 13
    assert "more respondents make it" in page.locator("[data-column=illness] .badge").inner_text()
    widths = page.locator("[data-column=illness] tbody th").evaluate_all("cells => cells.map(c => c.clientWidth)")
    assert min(widths) >= 100  # words, not letters, stand below each other
    assert page.locator("[data-column=team] tbody small").count() == 0  # counted as it is: no interval
    assert page.locator("[data-column=illness] tbody small").count() == 13
    page.locator("#one").select_option("illness")
    page.locator("#other").select_option("smokes")
    page.locator("#cross button").click()
    page.locator("#cross-table tbody tr").nth(12).wait_for()
    page.locator("#sql").fill("SELECT smokes, COUNT(*) AS n FROM release WHERE team = 'office' GROUP BY smokes")
    page.get_by_role("button", name="Ask").click()
    page.locator("#answer tbody tr").nth(1).wait_for()
    page.locator("#sql").fill("SELECT nonsense FROM release")
    page.get_by_role("button", name="Ask").click()
    page.locator("#alarm").wait_for()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download the release").click()
    assert download.value.suggested_filename == "every-kind.zip"
    stored = page.evaluate("JSON.stringify(Object.entries(localStorage))")
    assert TOKEN not in stored
