"""The whole way over the desk by a browser without scripts: from a table to a signed release, and the next month."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib import parse

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.desk import desk as desk_module
from deniable.desk.desk import STEPS, Desk
from deniable.desk.figures import Figures
from deniable.lab import made_up
from tests.desk.visitor import Visitor, serving

ROWS = 3000


def write_people(path: Path, seed: int = 1) -> None:
    """Made-up people: an id, and the columns of the demo."""
    table = made_up.census(ROWS, seed=seed)
    rows = table.to_pylist()
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*table.column_names])
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_people(tmp_path / "people.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@contextlib.contextmanager
def visit(home: Path, table: str = "people.csv", project: str | None = None) -> Iterator[tuple[Visitor, Desk]]:
    desk = Desk(home=home, file=None if project is None else Path(project))
    desk.open(table)
    with serving(desk) as served:
        yield Visitor(served), desk


def to(step: str, visitor: Visitor) -> None:
    """Every step up to this one, as it is proposed, with occupation as the sensitive column."""
    visitor.wait("table")
    visitor.send("table", go="next")
    for name in STEPS[1 : STEPS.index(step)]:
        own = {visitor.role_of("occupation"): "sensitive"} if name == "columns" else {}
        visitor.send(name, go="next", **own)
        assert visitor.problem == "", (name, visitor.problem)
    assert visitor.place == f"/{step}"


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_release_is_the_one_of_the_command_and_of_the_python_that_are_shown(home: Path) -> None:
    with visit(home) as (visitor, desk):
        key = desk.key
        to("promise", visitor)
        visitor.send("promise", go="next", rho1="1/10")
        visitor.send("compare", go="next")
        visitor.send("look", go="next")
        visitor.send(
            "publish",
            go="publish",
            publisher="Office of Statistics",
            approved_by="A. Miller",
            **{"means.0": "Age in years"},
        )
        assert visitor.problem == ""
        assert key.hex() not in visitor.text
        command, program = (
            io.StringIO(text).read() for text in re.findall(r"<pre[^>]*><code>(.*?)</code>", visitor.text, re.DOTALL)
        )
    import html

    command, program = html.unescape(command), html.unescape(program)
    made = files(home / "release")
    assert {"manifest.json", "data.parquet", "README.md", "signature.json"} <= set(made)
    assert "--key-file release.key" in command
    for again in (["sh", "-c", command], [sys.executable, "-c", program]):
        (home / "release" / "manifest.json").touch()
        before = (home / "release").stat().st_ino
        environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        done = subprocess.run(
            again, cwd=home, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert (home / "release").stat().st_ino != before, done.stderr
        assert files(home / "release") == made
    checked = dn.verify(home / "release", signed_by=home / "signing-key.pub")
    assert "signed by" in str(checked)
    assert_kept(home, key)


def assert_kept(home: Path, key: bytes) -> None:
    """What the owner keeps can be read by nobody else, and the project file holds no values of rows."""
    for name in ("release.key", "signing-key", "deniable.toml", "release-record.html"):
        assert (home / name).stat().st_mode & 0o077 == 0, name
        assert (key.hex() in (home / name).read_text(encoding="utf-8")) == (name == "release.key")
    text = (home / "deniable.toml").read_text(encoding="utf-8")
    rows = made_up.census(ROWS, seed=1).to_pylist()
    values = {value for row in rows for value in row.values() if isinstance(value, str)}
    assert [value for value in values if f'"{value}"' in text] == []
    project = dn.Project.read(home / "deniable.toml")
    assert project.approvals[0].by == "A. Miller"
    assert project.published
    assert sorted(path.name for path in home.iterdir() if path.name.startswith(".")) == []


def test_a_second_look_is_seen_before_it_is_published(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DENIABLE_MEMORY", str(home / "memory.json"))
    dn.publish(home / "people.csv", sensitive="occupation", privacy="1/2", mechanism="uniform", out=home / "earlier")
    with visit(home) as (visitor, _):
        to("look", visitor)
        visitor.wait("look")
        assert "These people were published before" in visitor.text


def test_a_killed_desk_loses_nothing_but_the_step(home: Path) -> None:
    with visit(home) as (visitor, _):
        to("promise", visitor)
        visitor.send("promise", go="next", rho2="3")
        decided = dn.Project.read(home / "deniable.toml")
    with visit(home) as (visitor, desk):
        visitor.wait("table")
        assert desk.project == decided
        visitor.send("table", go="next")
        assert visitor.fields(visitor.text)[visitor.role_of("occupation")] == "sensitive"
        visitor.send("columns", go="next")
        visitor.send("coarsen", go="next")
        assert visitor.fields(visitor.text)["rho2"] == "3"


def test_the_way_back_loses_nothing(home: Path) -> None:
    with visit(home) as (visitor, desk):
        to("coarsen", visitor)
        place = re.search(r'id="coarse-(\d+)">age<', visitor.text)
        assert place is not None
        visitor.send("coarsen", go="back", **{f"recode.{place[1]}": "bands:10"})
        assert visitor.place == "/columns"
        assert desk.project is not None
        assert [one.recode for one in desk.project.columns if one.column == "age"] == ["bands:10"]
        visitor.send("columns", go="coarsen")
        assert visitor.fields(visitor.text)[f"recode.{place[1]}"] == "bands:10"


def test_what_is_previewed_is_not_decided(home: Path) -> None:
    with visit(home) as (visitor, desk):
        to("coarsen", visitor)
        before = desk.project
        place = re.search(r'id="coarse-(\d+)">age<', visitor.text)
        assert place is not None
        alone = visitor.figures_of("are alone")
        visitor.send("coarsen", go="preview", **{f"recode.{place[1]}": "drop"})
        now = visitor.figures_of("are alone")
        assert now[0] == alone[0]
        assert float(now[1].rstrip("\xa0%")) < float(alone[1].rstrip("\xa0%"))
        assert desk.project == before


def test_what_cannot_be_is_refused_where_it_was_asked(home: Path) -> None:
    with visit(home) as (visitor, _):
        visitor.wait("table")
        visitor.send("table", go="next")
        visitor.send("columns", go="next")
        assert visitor.status == 422
        assert "No column is sensitive" in visitor.problem
        to("coarsen", visitor)
        place = re.search(r'id="coarse-(\d+)">gender<', visitor.text)
        assert place is not None
        visitor.send("coarsen", go="next", **{f"own.{place[1]}": "bands:x"})
        assert visitor.status == 422
        assert "Fix:" in visitor.problem
        visitor.send("coarsen", go="next", **{f"own.{place[1]}": ""})
        visitor.send("promise", go="next", rho1="nine")
        assert visitor.status == 422
        visitor.send("promise", go="find", rho1="", wanted="much")
        assert "percent" in visitor.problem


def test_from_the_accuracy_that_is_wanted_to_the_promise(home: Path) -> None:
    with visit(home) as (visitor, desk):
        to("promise", visitor)
        visitor.send("promise", go="find", wanted="120", wanted_share="0.01")
        assert visitor.problem == ""
        assert desk.project is not None
        loose = dn.Privacy(rho2=desk.project.requirement["rho2"]).rho2
        visitor.send("promise", go="find", wanted="60", wanted_share="0.01")
        looser = dn.Privacy(rho2=desk.project.requirement["rho2"]).rho2
        assert loose is not None
        assert looser is not None
        assert loose < looser  # more accurate is less private


def test_next_month_the_project_is_taken_up_and_what_changed_is_shown(home: Path) -> None:
    with visit(home) as (visitor, _):
        to("publish", visitor)
        visitor.send("publish", go="publish")
        assert visitor.problem == ""
    rows = list(csv.DictReader((home / "people.csv").open(encoding="utf-8")))
    for row in rows:
        row["country"] = "Atlantis" if row["country"] == "United States" else row["country"]
        row["shift"] = "night" if int(row["age"]) % 2 else "day"
        del row["race"]
    with (home / "december.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows[: ROWS - 500])
    with visit(home, "december.csv", "deniable.toml") as (visitor, desk):
        visitor.wait("table")
        said = dict(re.findall(r"<dt>([^<]+)</dt><dd>([^<]+)</dd>", visitor.text))
        assert said["New columns"] == "shift"
        assert said["Columns that are gone"] == "race"
        assert said["New values of country"] == "Atlantis"
        assert "United States" in said["Values of country that are gone"]
        assert said["Rows, then and now"] == "3,000, 2,500"
        for step in STEPS[:6]:
            visitor.send(step, go="next")
            assert visitor.problem == ""
        visitor.send("publish", go="publish", out="release-december")
        assert visitor.problem == ""
        assert desk.published is not None
        assert "shift" in dn.open_release("release-december").manifest.public_columns


@pytest.mark.parametrize("language", ["en", "de"])
def test_every_page_is_in_the_language_of_the_browser(home: Path, language: str) -> None:
    with visit(home) as (visitor, _):
        to("publish", visitor)
        titles = {"en": "How sure may anyone become?", "de": "Wie sicher darf jemand werden?"}
        for step in STEPS:
            text = visitor.page(step, language)
            assert f'<html lang="{language}">' in text
            assert "{" not in re.sub(r"<(script|style).*?</\1>", "", text)
        assert titles[language] in visitor.page("promise", language)
        assert titles["de"] in visitor.page("promise?lang=de", "en")  # and stays, once it is chosen
        assert titles["de"] in visitor.page("promise", "en")


def test_work_can_be_stopped_and_begun_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    from deniable.desk import looking

    held = threading.Event()
    own = looking.publish

    def slow(*words: object, **options: object) -> object:
        while not held.wait(0.02):
            options["progress"](1, 10, "rows")  # type: ignore[operator]
        return own(*words, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(looking, "publish", slow)
    with visit(home) as (visitor, desk):
        to("compare", visitor)
        visitor._open("/compare", b"revision=%d&go=next" % desk.revision)
        assert 'data-state="running"' in visitor.text
        assert "1 of 10" in visitor.page("look") or "Reading" in visitor.text
        visitor._open("/stop/look?back=look", b"")
        desk.bench.wait(desk.bench.get("look"), 10)  # type: ignore[arg-type]
        assert "Stopped" in visitor.page("look")
        held.set()
        visitor.wait("look?again=1")
        assert "Ten questions" in visitor.text
        assert not (home / "release").exists()


def test_looking_for_people_shows_progress_and_can_be_stopped(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = threading.Event()
    own = Figures.alone

    def slow(figures: Figures, maps: Any, progress: Any) -> Any:
        while not held.wait(0.02):
            progress(1, 10, "alone")
        return own(figures, maps, progress)

    monkeypatch.setattr(Figures, "alone", slow)
    monkeypatch.setattr(desk_module, "PATIENCE", 0.1)
    with visit(home) as (visitor, desk):
        visitor.wait("table")
        visitor.send("table", go="next")
        sent = {**visitor.fields(visitor.text), visitor.role_of("occupation"): "sensitive", "go": "next"}
        visitor._open("/columns", parse.urlencode(sent).encode())
        assert "Looking for people among all rows: 1 of 10" in visitor.text
        assert visitor.figures_of("are alone") == []
        visitor._open("/stop/alone?back=coarsen", b"")
        desk.bench.wait(desk.bench.get("alone"), 10)  # type: ignore[arg-type]
        assert "Stopped" in visitor.page("coarsen")
        held.set()
        visitor.page("coarsen?again=1")
        visitor.wait("coarsen")
        assert len(visitor.figures_of("are alone")) == 2


def test_a_page_that_waits_for_the_table_lets_it_be_read(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Event()
    own = Figures.read

    def later(figures: Figures, *words: Any) -> None:
        begun.wait(30)
        own(figures, *words)

    monkeypatch.setattr(Figures, "read", later)
    monkeypatch.setattr(desk_module, "PATIENCE", 10.0)
    threading.Timer(1.0, begun.set).start()
    with visit(home) as (visitor, _):  # it opens the first page
        assert visitor.place == "/table"
        assert 'data-state="running"' not in visitor.text


@pytest.mark.long
def test_pages_of_a_table_of_thirty_times_the_rows_take_little_longer(home: Path) -> None:
    """What they say rests on samples, on values and their counts, and on two quick passes over codes."""
    small = made_up.census(100_000)

    def cost(table: pa.Table) -> float:
        """Processor time from each form to the next page, the least of three, of all pages together."""
        pq.write_table(table, home / "people.parquet")
        (home / "deniable.toml").unlink(missing_ok=True)
        took = dict.fromkeys(STEPS[:5], float("inf"))
        with visit(home, "people.parquet") as (visitor, desk):
            visitor.wait("table")
            for _ in range(3):
                desk.kept.clear()
                for work in ("alone", "compare"):
                    desk.bench.forget(work)
                visitor.page("table")
                for step in took:
                    own = {visitor.role_of("occupation"): "sensitive"} if step == "columns" else {}
                    begun = time.process_time()
                    visitor.send(step, go="next" if step != "compare" else "stay", **own)
                    took[step] = min(took[step], time.process_time() - begun)
                    assert visitor.problem == "", step
        return sum(took.values())

    few, many = cost(small), cost(pa.concat_tables([small] * 30))
    assert many < 2 * few


def test_what_is_proposed_is_taken_up_and_leaves_few_alone(home: Path) -> None:
    with visit(home) as (visitor, desk):
        to("coarsen", visitor)
        before = visitor.figures_of("are alone")
        visitor.send("coarsen", go="propose", wanted="0.1")
        assert visitor.problem == ""
        assert "Proposed:" in visitor.text
        now = visitor.figures_of("are alone")
        assert now[0] == before[0]
        assert float(now[1].rstrip("\xa0%")) <= 10
        assert desk.project is not None
        changed = [one for one in desk.project.columns if one.recode or one.role == "drop"]
        assert changed
        assert dn.Project.read(home / "deniable.toml") == desk.project
        visitor.page("coarsen")
        assert "Proposed:" not in visitor.text  # it is said once


def test_a_point_of_the_decision_is_fixed_or_meant_so(home: Path) -> None:
    with visit(home) as (visitor, desk):
        to("look", visitor)
        assert "Decide first" in visitor.text or "Must not be published" in visitor.text
        assert desk.project is not None
        visitor.send("look", go="accept:0")
        assert "No reason" in visitor.problem
        visitor.page("look")
        part = re.search(r'name="reason\.(\d+)"', visitor.text)
        assert part is not None
        visitor.send("look", go=f"accept:{part[1]}", **{f"reason.{part[1]}": "Everyone is in the register."})
        assert [one.reason for one in desk.project.decisions] == ["Everyone is in the register."]
        assert "Everyone is in the register." in visitor.text
        before = desk.project
        fix = re.search(r'value="(fix:\d+)">Do this: ([^<]+)<', visitor.text)
        if fix is not None:
            visitor.send("look", go=fix[1])
            assert desk.project != before


def test_what_no_mechanism_can_promise_is_said_where_it_is_chosen(home: Path) -> None:
    with visit(home) as (visitor, desk):
        to("promise", visitor)
        visitor.send("promise", go="next", rho2="0")
        assert visitor.status == 422
        assert visitor.problem
        assert visitor.place == "/promise"
        assert desk.bench.get("look") is None


def test_a_new_project_asks_for_what_the_most_frequent_value_allows(home: Path) -> None:
    rows = [f"{i % 50},{'no' if i % 5 else 'yes'}\n" for i in range(2000)]
    (home / "people.csv").write_text("age,occupation\n" + "".join(rows), encoding="utf-8")
    with visit(home) as (visitor, desk):
        to("promise", visitor)
        assert desk.project is not None
        assert float(Fraction(desk.project.requirement["rho2"])) > 0.8


def test_work_that_is_stopped_leaves_nothing_behind(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from deniable.desk import releasing

    begun = threading.Event()
    own = releasing.publish

    def slow(*words: object, **options: object) -> object:
        begun.set()
        while True:
            time.sleep(0.01)
            options["progress"](1, 10, "rows")  # type: ignore[operator]

    with visit(home) as (visitor, desk):
        to("publish", visitor)
        monkeypatch.setattr(releasing, "publish", slow)
        before = sorted(path.name for path in home.iterdir())
        sent = {**visitor.fields(visitor.text), "go": "publish"}
        visitor._open("/publish", parse.urlencode(sent).encode())
        assert begun.wait(30)
        assert (home / "release.key").exists()
        visitor._open("/stop/publish?back=publish", b"")
        desk.bench.wait(desk.bench.get("publish"), 30)  # type: ignore[arg-type]
        assert "Stopped" in visitor.page("publish")
        assert sorted(path.name for path in home.iterdir()) == before
        monkeypatch.setattr(releasing, "publish", own)
        visitor.wait("publish?again=1")
        visitor.send("publish", go="publish")
        assert visitor.problem == ""
        assert (home / "release" / "manifest.json").exists()


def test_a_series_is_published_again_and_says_who_came_and_went(home: Path) -> None:
    lines = (home / "people.csv").read_text(encoding="utf-8").splitlines()
    rows = [f"{place + 1000},{line}" for place, line in enumerate(lines[1:])]
    (home / "people.csv").write_text("\n".join([f"number,{lines[0]}", *rows]) + "\n", encoding="utf-8")
    (home / "next.csv").write_text(
        "\n".join([f"number,{lines[0]}", *rows[100:], "999,29" + rows[5][7:]]) + "\n", encoding="utf-8"
    )
    for table, out in (("people.csv", "first"), ("next.csv", "second")):
        with visit(home, table, "deniable.toml") as (visitor, desk):
            visitor.wait("table")
            if out == "second":
                assert "2,900 known, 1 new, 100 gone" in visitor.text
            visitor.send("table", go="next")
            roles = {visitor.role_of("occupation"): "sensitive", visitor.role_of("number"): "row_id"}
            visitor.send("columns", go="next", **roles)
            visitor.send("coarsen", go="next")
            visitor.send("promise", go="next", rho2="10")
            visitor.send("compare", go="next", mechanism="uniform")
            visitor.send("look", go="next")
            despite = "An exercise." if 'name="despite"' in visitor.text else ""
            visitor.send("publish", go="publish", out=out, series="1", despite=despite)
            assert visitor.problem == "", out
            assert desk.published is not None
            assert "--series series.json" in desk.published.command
    assert dn.open_release("second").manifest.randomness.series
