"""`make fuzz` runs: every class is tried, and its cases are counted."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.classes import CLASSES
from fuzz.running import run_class


@pytest.mark.long
def test_a_minute_of_fuzzing_counts_the_cases_of_every_class() -> None:
    """Whether it finds anything is not the question here: then it says so, and its exit code does, too."""
    words = [sys.executable, "-m", "fuzz", "--minutes", "0.5", "--seed", "1"]
    folder = Path(__file__).parents[2]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == int("FAILED" in done.stdout), done.stdout + done.stderr
    for name in CLASSES:
        assert re.search(rf"{re.escape(name)}\D+[1-9]", done.stdout), f"no case of {name}: {done.stdout}"


def test_a_class_is_tried_once_although_starting_took_all_of_its_time() -> None:
    assert sum(run_class("sql", seed=1, seconds=0.1).verdicts.values()) == 1
