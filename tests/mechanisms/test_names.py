"""The names of the room: classes and functions, however and how often they are imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

from deniable import mechanisms


@pytest.mark.parametrize("first", ["", "import deniable.mechanisms.designed; ", "mechanisms.tolerance; "])
def test_a_function_is_not_hidden_by_the_module_that_has_its_name(first):
    code = f"from deniable import mechanisms; {first}print(mechanisms.tolerance({{'a': 9, 'b': 1}}, 5).theta)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "5\n"


def test_every_public_name_is_something_to_call_or_to_look_up():
    for name in mechanisms.__all__:
        assert callable(getattr(mechanisms, name)) or name == "MECHANISMS"
