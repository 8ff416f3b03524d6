"""Reports say the same in every format, let nothing through that is not theirs, and keep the owner's facts apart."""

from __future__ import annotations

import html.parser
import io
import itertools
import json
import re
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import deniable as dn
from deniable import report
from deniable.cli.main import app
from deniable.core.errors import ExtraMissingError, OptionError, OutputError
from deniable.mechanisms.decoys import Decoys
from deniable.mechanisms.retention import Retention
from deniable.owner.audit import audit
from deniable.report import tables as style
from deniable.report.charts import to_svg
from deniable.report.tables import Table, formatted, shown, to_html, to_markdown

WAYS: dict[str, dict[str, Any]] = {
    "uniform": {},
    "small-domain": {"mechanism": "small-domain", "privacy": dn.Privacy(rho2="1/2")},
    "fine-grain": {"mechanism": "fine-grain", "privacy": dn.Privacy(rho2="1/2")},
    "no-histogram": {"marginals": False},
    "redraw": {"mechanism": "redraw"},
    "decoys": {"mechanism": Decoys(c=4), "privacy": None},
    "numbers": {
        "mechanism": Retention({"age": dn.Replace(coin=0.3, low=0, high=100)}),
        "sensitive": "age",
        "privacy": None,
    },
    "two-columns": {"sensitive": ["<b>sex</b>", 'dis<ease> & "more"']},
}


class Tags(html.parser.HTMLParser):
    """The tags, ids, headings and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


# An owner's page plays all attacks: in most ways of publishing that is for the long run.
SOON = ("uniform", "two-columns", "no-histogram")
EVERY = [
    pytest.param(way, audience, marks=[pytest.mark.long] if audience == "owner" and way not in SOON else [])
    for way in WAYS
    for audience in report.AUDIENCES
]
MADE: dict[tuple[str, str], report.page.Document] = {}
PAGES: dict[tuple[str, str], str] = {}


def made(hostile: Any, way: str, audience: str) -> report.page.Document:
    """What a report says of a release, and to whom; each is made once."""
    if (way, audience) not in MADE:
        release = hostile(way, **WAYS[way])
        truth = audit(release.original, release.folder).to_dict() if audience == "owner" else None
        MADE[way, audience] = report.document(release.folder, audience=audience, audit=truth)  # type: ignore[arg-type]
    return MADE[way, audience]


def page_of(hostile: Any, way: str, audience: str) -> str:
    """The same as a page; each is rendered once."""
    if (way, audience) not in PAGES:
        PAGES[way, audience] = report.render(made(hostile, way, audience))
    return PAGES[way, audience]


@pytest.mark.parametrize(("way", "audience"), EVERY)
def test_names_and_values_stay_text_in_html(hostile: Any, way: str, audience: str) -> None:
    text = page_of(hostile, way, audience)
    page = Tags(text)
    assert len(page.named("script")) == 1
    assert not {tag for tag, _ in page.tags} & {"img", "b", "i", "cell", "link", "iframe", "object", "base", "form"}
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on") or name == "style"]
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text or way == "numbers"
    assert "\u202e" not in text


def test_what_cannot_be_told_apart_is_said_to_be(hostile: Any) -> None:
    text = report.render(made(hostile, "redraw", "analyst"), "md")
    assert "nothing was learned: these values cannot be told apart in this release" in text
    assert "cannot be predicted: these values cannot be told apart in this release" in text
    assert "nothing was learned" not in report.render(made(hostile, "uniform", "analyst"), "md")


@pytest.mark.parametrize("audience", report.AUDIENCES)
def test_a_page_asks_nothing_of_the_network(hostile: Any, audience: str) -> None:
    text = page_of(hostile, "uniform", audience)
    page = Tags(text)
    for _, attributes in page.tags:
        for name, value in attributes.items():
            assert name not in {"src", "srcset", "xlink:href", "data", "action"}, name
            assert name != "href" or str(value).startswith("#"), value
    assert "url(" not in text.replace("url(#", "")
    assert "@import" not in text
    policy = next(a["content"] for a in page.named("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert policy == style.content_security_policy(style.style_sheet(), style.script())
    assert str(policy).startswith("default-src 'none'")
    assert "unsafe" not in str(policy)


@pytest.mark.parametrize(("way", "audience"), EVERY)
def test_the_structure_of_a_page_can_be_read_aloud(hostile: Any, way: str, audience: str) -> None:
    page = Tags(page_of(hostile, way, audience))
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    assert page.named("html")[0]["lang"] == "en"
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in page.tags:
        if "aria-labelledby" in attributes:
            assert attributes["aria-labelledby"] in ids, tag
        if tag == "svg":
            assert attributes["role"] == "img"
    assert len(page.named("caption")) == len(page.named("table")) > 0
    assert len(page.named("svg")) >= 2 or way in {"numbers", "redraw", "decoys"}
    assert all(link["href"][1:] in ids for link in page.named("a") if link["href"])  # type: ignore[index]


def test_charts_follow_the_schema_and_are_drawn_as_altair_saves_them(hostile: Any) -> None:
    content = made(hostile, "small-domain", "owner")
    drawn = [
        block.draw(560)
        for section in content.sections
        for block in section.blocks
        if isinstance(block, report.page.Figure)
    ]
    assert len(drawn) > 3
    for chart in drawn:
        saved = io.StringIO()
        chart.save(saved, format="svg")  # checks the specification
        assert to_svg(chart) == saved.getvalue()


@pytest.mark.parametrize("audience", report.AUDIENCES)
def test_every_format_has_the_same_sections_and_tables(hostile: Any, audience: str) -> None:
    content = made(hostile, "small-domain", audience)
    told = json.loads(report.render(content, "json"))
    titles = [section.title for section in content.sections]
    assert [section["title"] for section in told["sections"]] == titles
    text = report.render(content, "md")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == titles
    page = page_of(hostile, "small-domain", audience)
    assert re.findall(r"<h2[^>]*>(.*?)</h2>", page) == titles
    blocks = [block for section in told["sections"] for block in section["blocks"]]
    tables = [block for block in blocks if block["kind"] == "table"]
    drawn = [block for block in blocks if block["kind"] == "chart"]
    assert page.count("<table") == len(tables) + len(drawn)
    assert len(re.findall(r"^\|(?:-+:?\|)+$", text, re.MULTILINE)) == len(tables) + len(drawn)


def test_markdown_holds_no_html_and_rows_keep_their_cells(hostile: Any) -> None:
    text = report.render(made(hostile, "uniform", "owner"), "md")
    outside = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    assert not re.search(r"<[a-z/!]", outside)
    table = to_markdown(Table.of("c", {"x|y": "text", "n": "count"}, [("a|b\nc", 3)]))
    assert table.splitlines()[-1] == "| a\\|b\\\\nc | 3 |"


def test_the_owner_sees_posteriors_findings_and_the_truth(hostile: Any) -> None:
    told = json.loads(report.render(made(hostile, "uniform", "owner"), "json"))
    sections = {section["name"]: section["blocks"] for section in told["sections"]}
    assert list(sections)[:6] == ["verdict", "short", "promise", "attackers", "limits", "findings"]
    found = audit(hostile().original, hostile().folder)
    worst = next(item for item in sections["short"][0]["items"] if item["label"] == "Surest an attacker gets")
    assert worst["figure"] == f"{100 * float(found.parts[0].worst_protected):.3g} %"
    assert {block["grade"] for block in sections["findings"]} == {finding.grade for finding in found.findings}
    values = next(block for block in sections["attackers"] if block["kind"] == "table")
    assert len(values["rows"]) == 8
    chart = next(block for block in sections["answers"] if "true rows" in block.get("data", {}).get("columns", ()))
    assert sum(row[-1] for row in chart["data"]["rows"]) == 3000


def test_a_bound_inside_cells_is_not_sold_as_a_bound_for_all(hostile: Any) -> None:
    for way, bounded in (("uniform", True), ("small-domain", False)):
        told = json.loads(report.render(made(hostile, way, "owner"), "json"))
        attackers = next(section["blocks"] for section in told["sections"] if section["name"] == "attackers")
        caption = next(block["caption"] for block in attackers if block["kind"] == "chart")
        assert ("bounds what anybody can conclude" in caption) == bounded
        assert ("The cell itself can change beliefs without bound" in caption) != bounded


def test_the_analyst_sees_nothing_but_the_release(hostile: Any, tmp_path: Path) -> None:
    release = hostile()
    with pytest.raises(OptionError, match="only what the release holds"):
        report.document(release.folder, audit=audit(release.original, release.folder).to_dict())
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for path in release.folder.iterdir():
        (moved / path.name).write_bytes(path.read_bytes())
    again = report.render(report.document(moved), "json")
    assert again == report.render(report.document(release.folder), "json")
    assert str(release.folder) not in again


def test_answers_in_the_report_are_those_of_the_release(hostile: Any) -> None:
    release = dn.open_release(hostile().folder)
    told = json.loads(report.render(report.document(release), "json"))
    ask = next(section["blocks"] for section in told["sections"] if section["name"] == "ask")
    questions = [block["text"] for block in ask if block.get("language") == "sql"]
    answers = [block for block in ask if block["kind"] == "table"]
    assert len(questions) == len(answers) == 4
    for question, answer in zip(questions, answers, strict=True):
        assert [list(row.values()) for row in release.sql(question).to_pylist()] == answer["rows"]
    python = next(block["text"] for block in ask if block.get("language") == "python")
    names: dict[str, Any] = {"release": release, "dn": dn}
    count = eval(re.search(r"print\((.*)\)$", python)[1], names)  # type: ignore[index]
    assert count.value == answers[0]["rows"][0][0]


def test_the_owner_s_report_is_refused_inside_the_release(hostile: Any, tmp_path: Path) -> None:
    release = hostile()
    content = report.document(release.folder, audience="owner")
    link = tmp_path / "link"
    link.symlink_to(release.folder)
    for out in (release.folder / "report.md", link / "report.md", release.folder / "x" / ".." / "report.md"):
        with pytest.raises(OutputError, match="never be published"):
            report.write(content, out, "md", release.folder)
    assert not (release.folder / "report.md").exists()
    out = tmp_path / "report.md"
    out.write_text("older")
    report.write(content, out, "md", release.folder)
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_a_measured_evaluation_can_be_plugged_in(hostile: Any) -> None:
    measured = {"caption": "Measured", "columns": ["mechanism", "error"], "rows": [["uniform", 0.25], ["<b>", None]]}
    content = report.document(hostile().folder, audience="owner", evaluation=measured)
    assert "Measured errors" in [section.title for section in content.sections]
    assert "&lt;b&gt;" in report.render(content)


def test_a_broken_release_is_called_broken(hostile: Any, tmp_path: Path) -> None:
    for path in hostile().folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    manifest["guarantee"]["gamma"] = "101/100"
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(dn.VerificationError, match="would not verify, so answers from it would mean nothing"):
        report.document(tmp_path)
    (tmp_path / "manifest.json").write_bytes((hostile().folder / "manifest.json").read_bytes())
    (data,) = tmp_path.glob("data.*")
    data.write_bytes(data.read_bytes() + b"x")
    with pytest.raises(dn.DeniableError):
        report.document(tmp_path)


def test_without_the_extra_html_says_what_to_install(hostile: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    content = report.document(hostile().folder)
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(ExtraMissingError, match=r"deniable\[report\]"):
        report.render(content)
    assert report.render(content, "md")
    assert report.render(content, "json")


def test_shown_makes_the_unseen_visible() -> None:
    assert shown("\u202ea\x00b") == "\\u202ea\\x00b"
    assert shown("") == "''"
    assert shown("x" * 500) == "x" * 79 + "…"
    assert formatted(-0.3, "count") == "0"
    assert formatted(float("nan"), "count") == ""
    assert formatted(10.0, "share") == "1,000 %"


def test_cells_carry_what_they_are_sorted_by() -> None:
    text = to_html(Table.of("c", {"x": "text", "n": "count"}, [("a", 1234.5), ("b", None)]), "t")
    assert 'data-sort="1234.5"' in text
    assert 'data-sort=""' in text
    assert 'class="sortable"' in text


def run(*words: object) -> Any:
    return CliRunner().invoke(app, ["report", *map(str, words)])


def test_the_command_writes_the_report_and_says_where(hostile: Any, tmp_path: Path) -> None:
    release, out = hostile(), tmp_path / "r.html"
    done = run(release.folder, "--original", release.original, "--out", out, "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["report"] == str(out)
    assert told["for"] == "owner"
    assert sum(told["findings"].values()) > 0
    assert out.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--for", "ownr"], "Did you mean 'owner'"),
        (["--format", "pdf"], "choose one of html, md, json"),
        (["--for", "analyst", "--original", "x.csv"], "contradict"),
        (["--for", "analyst", "--evaluation", "x.json"], "contradict"),
    ],
)
def test_mistakes_are_told_in_words(hostile: Any, tmp_path: Path, words: list[str], message: str) -> None:
    done = run(hostile().folder, "--out", tmp_path / "r", *words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert not (tmp_path / "r").exists()


def test_the_command_refuses_the_release_folder_for_the_owner(hostile: Any) -> None:
    release = hostile()
    done = run(release.folder, "--for", "owner", "--format", "json", "--out", release.folder / "r.json")
    assert done.exit_code == 2
    assert "never be published" in done.stderr


def test_the_command_takes_an_evaluation_and_nothing_else_for_one(hostile: Any, tmp_path: Path) -> None:
    row = {"setting": "independence", "estimator": "", "bands": [], "cloud": []}
    told = {"pool": "mine", "questions": {"0.01": 3}, "draws": 1, "rows": [row], "refused": {}}
    file, out = tmp_path / "e.json", tmp_path / "r.md"
    file.write_text(json.dumps({"results": [told]}))
    done = run(hostile().folder, "--evaluation", file, "--format", "md", "--out", out)
    assert done.exit_code == 0, done.output
    assert "Pool mine" in out.read_text()
    for wrong in ("[]", "{", '{"results": []}', '{"results": [{"rows": [{}]}]}'):
        file.write_text(wrong)
        done = run(hostile().folder, "--evaluation", file, "--format", "md", "--out", out)
        assert done.exit_code == 2, wrong
        assert "not the result of an evaluation" in done.stderr
