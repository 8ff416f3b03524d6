"""Mutants are what they are said to be, and one that a test notices is told from one that none does."""

from __future__ import annotations

import tomllib
from pathlib import Path

from fuzz import mutants

SOURCE = '''
def covered(rows, least=3):
    """Whether there are enough."""
    if rows >= least and not rows == 0:
        return Check("rows", rows > 2, f"{rows + 1} rows")
    return max(rows, 1) + 1
'''


def made(tmp_path: Path) -> list[mutants.Mutant]:
    path = tmp_path / "src" / "one.py"
    path.parent.mkdir()
    path.write_text(SOURCE)
    return mutants.mutants_of(path, tmp_path / "src")


def test_every_kind_of_change_is_made_and_words_are_left_alone(tmp_path: Path) -> None:
    every = made(tmp_path)
    changes = {(one.before, one.after) for one in every}
    assert {
        ("rows >= least", "rows > least"),
        ("rows >= least", "rows <= least"),
        ("rows >= least and (not rows == 0)", "rows >= least or not rows == 0"),
        ("not rows == 0", "rows == 0"),
        ("rows > 2", "rows >= 2"),
        ("max(rows, 1)", "min(rows, 1)"),
        ("max(rows, 1) + 1", "max(rows, 1) - 1"),
        ("1", "2"),
    } <= changes
    assert "rows + 1" not in {before for before, _ in changes}
    assert "Check('rows', True, f'{rows + 1} rows')" in {after for _, after in changes}, "a check that cannot fail"
    for one in every:
        compile(one.source, "mutant", "exec")
        assert one.source != SOURCE


def test_a_mutant_that_no_test_notices_lives(tmp_path: Path) -> None:
    every = made(tmp_path)
    test = tmp_path / "test_one.py"
    test.write_text("from one import covered\n\ndef test_it():\n    assert covered(0) == 2\n")
    words = [str(test), "--rootdir", str(tmp_path), "-c", "/dev/null"]
    by_name = {(one.before, one.after): one for one in every}
    assert mutants.noticed(by_name["max(rows, 1)", "min(rows, 1)"], words, tmp_path / "src")
    assert not mutants.noticed(by_name["rows > 2", "rows >= 2"], words, tmp_path / "src")
    assert (tmp_path / "src" / "one.py").read_text() == SOURCE


def test_what_is_guarded_and_what_guards_it_is_there() -> None:
    settings = tomllib.loads(mutants.SETTINGS.read_text("utf-8"))
    for guard in settings["guards"]:
        assert all(list((mutants.ROOT / "src").glob(pattern)) for pattern in guard["files"])
        assert all((mutants.ROOT / path).exists() for path in guard["tests"])
    assert all(one["why"] for one in settings.get("lives", []))
