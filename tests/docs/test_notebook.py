"""The notebook of the docs runs from top to bottom, and says what is so."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).parents[2] / "docs" / "tutorials" / "notebook.ipynb"
SIGMAS = 6.0


def cells(kind: str) -> list[str]:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 4)
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


def test_it_runs_and_its_answers_hold_the_truth(capsys: Any) -> None:
    names: dict[str, Any] = {"__name__": "notebook"}
    shown = [run(code, names) for code in cells("code")]
    assert any(hasattr(result, "_repr_html_") for result in shown)
    diabetes, truth = names["diabetes"], names["truth"]
    assert abs(diabetes.value - truth) < SIGMAS * diabetes.stderr
    assert diabetes.stderr < truth / 5
    assert "estimated" in capsys.readouterr().out


def test_it_is_stored_without_what_it_showed() -> None:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in notebook["cells"])


def test_its_links_lead_somewhere() -> None:
    import re

    links = [target for text in cells("markdown") for target in re.findall(r"\]\(([^)]+)\)", text)]
    assert links
    assert all((NOTEBOOK.parent / target).exists() for target in links)
