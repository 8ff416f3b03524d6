"""Behaviour frozen from outside: releases under fixed keys publish the same rows and answer as they did.

A commit that must change an answer runs `python -m tests.golden.make`, and says what it printed, and why.
"""

import pytest

from tests.golden import answers
from tests.golden.cases import CASES
from tests.golden.commands import COMMANDS, ran
from tests.golden.freeze import CLASSES, freeze

MOST = 20  # differences that are shown


def _require_same(kind: str, release: str, found: answers.Items) -> None:
    changed = list(answers.differences(answers.read(kind).get(release, {}), found))
    lines = [line for difference in changed[:MOST] for line in answers.told(*difference)]
    assert not changed, f"{len(changed)} of {len(found)} answers of {release!r} changed ({kind}):\n" + "\n".join(lines)


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("release", CASES)
def test_a_release_is_as_it_was(release, kind):
    _require_same(kind, release, freeze(kind, release))


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_prints_what_it_printed(line):
    _require_same("commands", line, ran()[line])


def test_nothing_is_frozen_that_is_not_asked():
    assert all(list(answers.read(kind)) == list(CASES) for kind in CLASSES)
    assert list(answers.read("commands")) == COMMANDS


def test_a_change_is_seen():
    assert answers.same([1.0, 2.0, "a"], [1.0 + 1e-10, 2.0, "a"], answers.EXACT)
    assert not answers.same([1.0, 2.0], [1.05, 2.0], answers.EXACT)
    assert not answers.same({"n": [10.0], "n_low": [1.0]}, {"n": [10.0], "n_low": [1.0 + 1e-7]}, answers.EXACT)
    assert not answers.same("refused", [1.0], answers.EXACT)
    assert not answers.same(True, 1, answers.EXACT)
