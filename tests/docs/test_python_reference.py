"""The Python reference is whole and true: every public name, every parameter, examples that run as they stand."""

from __future__ import annotations

import doctest
import importlib.util
import inspect
import re
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

import deniable as dn
from deniable import collection, learn, mechanisms

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### `([^`]+)`\n(.*?)(?=^##? |^### |\Z)", PAGE, re.MULTILINE | re.DOTALL))
METHODS = dict(re.findall(r"^#{3,4} `([^`]+)`\n(.*?)(?=^#+ |\Z)", PAGE, re.MULTILINE | re.DOTALL))
EXAMPLE = re.compile(r"^```pycon\n(.*?)^```", re.MULTILINE | re.DOTALL)
MODULES = ("collection", "learn", "mechanisms")
PUBLIC = [
    *(f"dn.{name}" for name in dn.__all__ if name not in MODULES),
    *mechanisms.__all__,
    *learn.__all__,
    *collection.__all__,
]
DESCRIBED = {
    "dn.publish": dn.publish,
    "dn.audit": dn.audit,
    "dn.plan": dn.plan,
    "dn.verify": dn.verify,
    "dn.open_release": dn.open_release,
    "dn.Privacy": dn.Privacy,
    "dn.Replace": dn.Replace,
    "SmallDomain": mechanisms.SmallDomain,
    "Decoys": mechanisms.Decoys,
    **{
        f"Release.{name}": getattr(dn.Release, name)
        for name in ("count", "sum", "mean", "group_by", "histogram", "sql", "count_many", "cube", "save")
    },
}


def program(name: str) -> ModuleType:
    """A program of the documentation, as a module."""
    path = next(path for path in (ROOT / "docs").rglob(f"{name}.py"))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_docstrings_say_now():
    assert program("make_python").page() == PAGE, "python docs/check.py --write"


def test_nothing_lacks_a_sentence_a_description_or_an_example():
    assert list(program("make_python").problems()) == []


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_a_signature_and_an_example(name):
    section = SECTIONS[name]
    signature = re.match(r"\n```python\n(.*?)\n```\n\n(\S.*)", section, re.DOTALL)
    assert signature, "a signature, and a sentence after it"
    assert re.match(rf"(class )?{re.escape(name)}[(:]", signature[1])
    assert EXAMPLE.search(section)


@pytest.mark.parametrize("name", DESCRIBED)
def test_every_parameter_is_described(name):
    bullets = " ".join(re.findall(r"^- (`.*?`): ", METHODS[name], re.MULTILINE))
    parameters = [parameter for parameter in inspect.signature(DESCRIBED[name]).parameters if parameter != "self"]
    assert parameters
    assert [parameter for parameter in parameters if f"`{parameter}`" not in bullets] == []


@pytest.mark.parametrize("name", [name for name in SECTIONS if EXAMPLE.search(SECTIONS[name])])
def test_examples_run_as_they_stand_on_the_page(name):
    said: list[str] = []
    for number, text in enumerate(EXAMPLE.findall(SECTIONS[name])):
        test = doctest.DocTestParser().get_doctest(text, {}, f"{name} {number}", str(ROOT), 0)
        assert test.examples
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of a seed: an example may have one, a release may not
            doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert not said, "".join(said)


def test_links_inside_the_page_lead_to_headings():
    anchors = set(program("make_python").anchors_of(PAGE).values())
    links = re.findall(r"\]\(#([^)]+)\)", PAGE)
    assert len(links) > len(PUBLIC)
    assert set(links) <= anchors
    assert len(links) == len(set(links))


# -- the checker sees what it is there to see --------------------------------------------------------------------------


@dataclass
class Undocumented:
    rows: int


class Half:
    """A class with a sentence.

    >>> 1 + 1
    2
    """

    def told(self) -> None:
        """A method with one."""

    def untold(self) -> None: ...

    @property
    def silent(self) -> int:
        return 1


def nameless(rows: int) -> None: ...


def careless(rows: int, *, how: str = "fast") -> None:
    """A function that describes one of its two parameters and shows nothing.

    Args:
        rows: how many.
    """


for _made_up in (Undocumented, Half, nameless, careless):
    _made_up.__module__ = "deniable.made_up"  # members are looked at where the package wrote them
for _method in (Half.told, Half.untold):
    _method.__module__ = "deniable.made_up"


@pytest.mark.parametrize(
    ("made_up", "wrong"),
    [
        (Undocumented, ["made_up has no docstring", "made_up: the parameter rows is not described"]),
        (nameless, ["made_up has no docstring", "made_up: the parameter rows is not described"]),
        (
            careless,
            ["made_up has no example in its docstring", "made_up: the parameter how is not described"],
        ),
        (Half, ["made_up.untold has no docstring", "made_up.silent has no docstring"]),
    ],
)
def test_a_made_up_name_without_docstring_is_a_problem(made_up, wrong):
    make = program("make_python")
    assert list(make.problems([make.Public("made_up", made_up)])) == wrong


def test_a_new_public_name_must_be_documented_and_the_page_written_anew(monkeypatch):
    check, make = program("check"), program("make_python")
    before = set(check.problems())
    monkeypatch.setattr(dn, "__all__", [*dn.__all__, "nameless"])
    monkeypatch.setitem(dn.__dict__, "nameless", nameless)
    said = set(check.problems()) - before
    assert {line.partition(" Fix:")[0] for line in said} == {
        "docs/reference/python.md is not what the program says now.",
        "docs/reference/python.md: dn.nameless has no docstring.",
        "docs/reference/python.md: dn.nameless: the parameter rows is not described.",
    }
    assert "### `dn.nameless`" in make.page()
