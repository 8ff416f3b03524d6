"""The documentation is true: its examples run, its links lead somewhere, every command and option is in it."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import typer

from deniable.cli.main import app

ROOT = Path(__file__).resolve().parent.parent.parent
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
WITH_EXAMPLES = [
    ROOT / "README.md",
    ROOT / "docs" / "how-to" / "public-columns.md",
    ROOT / "docs" / "how-to" / "projects.md",
    ROOT / "docs" / "how-to" / "lists.md",
    ROOT / "docs" / "how-to" / "learned-releases.md",
    ROOT / "docs" / "how-to" / "many-columns.md",
    ROOT / "docs" / "how-to" / "fit-models.md",
    ROOT / "docs" / "how-to" / "survey-weights.md",
    *sorted((ROOT / "docs" / "tutorials").glob("*.md")),
]


def run(page: Path, folder: Path) -> None:
    """Run the blocks of a page in order; Python blocks share their names, commands a folder."""
    python = ""
    for kind, block in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "console":
            for line in block.splitlines():
                if line.startswith("$ "):
                    program, *words = shlex.split(line.removeprefix("$ "))
                    assert program == "deniable", line
                    decided = (0, 3) if words[0] in ("publish", "audit") else (0,)  # 3: something is to be decided
                    execute([sys.executable, "-m", "deniable", *words], folder, line, decided)
        else:
            python += block
    if python:
        execute([sys.executable, "-c", python], folder, f"the Python examples of {page.name}")


def execute(words: list[str], folder: Path, what: str, codes: tuple[int, ...] = (0,)) -> None:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode in codes, f"{what}\n{done.stdout}\n{done.stderr}"


def checker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_check", ROOT / "docs" / "check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.stem)
def test_the_examples_run(page: Path, tmp_path: Path) -> None:
    assert BLOCK.search(page.read_text(encoding="utf-8")), "a page without examples does not belong here"
    run(page, tmp_path)


def test_links_references_and_generated_pages_are_in_order() -> None:
    assert list(checker().problems()) == []


def test_every_file_of_python_that_a_page_names_is_there() -> None:
    folders = ("src", "tests", "docs", "benchmarks", "reproduction", "fuzz")
    there = {f"/{path.relative_to(ROOT)}" for folder in folders for path in (ROOT / folder).rglob("*.py")}
    named = [
        (page.name, path)
        for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
        for path in re.findall(r"`((?:[\w-]+/)+[\w-]+\.py)`", page.read_text(encoding="utf-8"))
    ]
    assert len(named) > 100
    assert [one for one in named if not any(path.endswith(f"/{one[1]}") for path in there)] == []


def test_every_command_and_option_is_in_the_reference() -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## `([^`]+)`\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))

    def check(command: object, name: str) -> None:
        for param in command.params:
            for option in param.opts if param.param_type_name == "option" else ():
                if option not in {"--help", "-h"}:
                    assert f"`{option}" in sections[name], f"{name} {option}"
            assert getattr(param, "help", None), f"{name} {param.name} has no help"
        for child, part in getattr(command, "commands", {}).items():
            assert f"{name} {child}" in sections
            check(part, f"{name} {child}")

    check(typer.main.get_command(app), "deniable")


def test_every_command_prints_json_on_request() -> None:
    def leaves(command: object) -> list[object]:
        children = getattr(command, "commands", None)
        return [command] if children is None else [leaf for child in children.values() for leaf in leaves(child)]

    for leaf in leaves(typer.main.get_command(app)):
        assert any("--json" in param.opts for param in leaf.params), leaf.name


def test_the_readme_starts_with_two_commands_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "    make demo\n    make test\n" in readme
    for target in re.findall(r"(?:`|^    )make (\w+)", readme, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_no_package_index_and_no_path_of_a_machine_is_named() -> None:
    for name in ("constraints.txt", "pyproject.toml", "Makefile", ".ci/run", "README.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert not re.search(r"index-url|pypi\.org|file://|^-e |/home/|/work/", text, re.MULTILINE), name
