"""`deniable explore` writes one page, with the columns that are named, and says what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deniable.cli.main import app
from tests.golden.cases import CASES


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("explored") / "release"
    CASES["small-domain"].publish(out=home)
    return home


def test_it_writes_a_page_of_its_own(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "explore.html"
    done = CliRunner().invoke(app, ["explore", str(folder), "--out", str(out), "--columns", "sex,region", "--json"])
    assert done.exit_code == 0, done.output
    page = out.read_text(encoding="utf-8")
    assert json.loads(done.stdout)["bytes"] == len(page.encode())
    meta = json.loads(page.split('id="meta">')[1].split("</script>")[0])
    assert [column["name"] for column in meta["public"]] == ["sex", "region"]
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")  # it asks nobody


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--columns", "sexx"], "There is no public column 'sexx'. Did you mean 'sex'?"),
        (["--columns", "disease"], "There is no public column 'disease'."),
    ],
)
def test_a_column_that_is_not_there_is_named(words: list[str], said: str, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "explore.html"
    done = CliRunner().invoke(app, ["explore", str(folder), "--out", str(out), *words])
    assert done.exit_code == 2
    assert said in done.output
    assert not out.exists()


def test_it_never_writes_over_the_release(folder: Path) -> None:
    done = CliRunner().invoke(app, ["explore", str(folder), "--out", str(folder / "manifest.json")])
    assert done.exit_code == 2
    assert (folder / "manifest.json").read_text(encoding="utf-8").startswith("{")
