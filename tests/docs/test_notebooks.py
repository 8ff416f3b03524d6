"""The notebooks of the docs run from top to bottom, and what they print is so."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
SIGMAS = 6.0


def cells(name: str, kind: str) -> list[str]:
    notebook = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 4)
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in notebook["cells"])
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == kind]


def run(code: str, names: dict[str, Any]) -> Any:
    """Run a cell as a notebook does: what its last line is, is what it shows."""
    tree = ast.parse(code)
    last = tree.body[-1]
    if not isinstance(last, ast.Expr):
        exec(compile(tree, "cell", "exec"), names)
        return None
    exec(compile(ast.Module(tree.body[:-1], []), "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


def holds(estimate: Any, truth: float) -> None:
    assert abs(estimate.value - truth) < SIGMAS * estimate.stderr
    assert estimate.stderr < truth / 4


def owner(names: dict[str, Any], printed: str) -> None:
    holds(names["diabetes"], names["truth"])
    assert "estimated" in printed


def analyst(names: dict[str, Any], printed: str) -> None:
    holds(names["clerks"], names["truth"])
    assert "True" in printed
    assert abs(names["counted"] - names["clerks"].value) < SIGMAS * names["clerks"].stderr  # weights do not calibrate


def researcher(names: dict[str, Any], printed: str) -> None:
    assert names["matrix"].round(3).tolist() == [[0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.3, 0.3, 0.4]]
    assert names["exact"] <= names["Fraction"](4, 3)
    assert [round(float(cell.channel.gamma)) for cell in names["plan"].cells] == [4, 10]
    assert names["posterior"].max() <= 2 / 3
    assert {"uniform, inverse", "designed, inverse", "independence, "} <= set(names["errors"])


def survey(names: dict[str, Any], printed: str) -> None:
    holds(names["ward"], names["truth"])
    assert "the limit is 0.5" in printed


CHECKS: dict[str, Callable[[dict[str, Any], str], None]] = {
    "analyst": analyst, "owner": owner, "researcher": researcher, "survey": survey
}  # fmt: skip


def test_every_notebook_is_checked() -> None:
    assert sorted(CHECKS) == NOTEBOOKS


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_it_runs_and_its_answers_hold_the_truth(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "notebook"}
    for code in cells(name, "code"):
        run(code, names)
    CHECKS[name](names, capsys.readouterr().out)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_its_links_lead_somewhere(name: str) -> None:
    links = [target for text in cells(name, "markdown") for target in re.findall(r"\]\(([^)]+)\)", text)]
    assert links
    assert all((FOLDER / target).exists() for target in links)
