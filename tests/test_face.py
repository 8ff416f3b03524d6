"""The public face: its names and nothing else, each imported when it is first used."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

import deniable as dn
from deniable import mechanisms

# With deniable forgotten, the next import is the first one; numpy and the like may stay.
FORGET = """
import importlib, sys
def forget():
    for module in [module for module in sys.modules if module.partition(".")[0] == "deniable"]:
        del sys.modules[module]
"""


def fresh(program: str) -> str:
    """What a program prints in a new process."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_dir_shows_the_public_names_only():
    for module in (dn, mechanisms):
        assert dir(module) == sorted(module.__all__)
        assert set(vars(module)) - set(module.__all__), "there is something that dir hides"


@pytest.mark.long
@pytest.mark.long
def test_every_name_can_be_the_first_one_used():
    program = f"""{FORGET}
for name in importlib.import_module("deniable").__all__:
    forget()
    face = importlib.import_module("deniable")
    assert name not in vars(face), name
    exec(f"from deniable import {{name}}")
    assert getattr(face, name) is eval(name), name
    print(name)
"""
    assert fresh(program).split() == list(dn.__all__)


def test_importing_the_package_imports_nothing_heavy():
    program = "import sys, deniable; print([name for name in ('numpy', 'pyarrow', 'scipy') if name in sys.modules])"
    assert fresh(program) == "[]"


def test_nothing_imports_scipy_stats():
    """It takes longer to import than most commands take to run; ``scipy.special`` has the functions that we need."""
    named = [
        str(path)
        for path in Path(dn.__file__).parent.rglob("*.py")
        if re.search(r"^\s*(from scipy import .*\bstats\b|(import|from) scipy\.stats)", path.read_text("utf-8"), re.M)
    ]
    assert named == []


def test_no_room_has_the_name_of_a_function():
    """Importing a room would hide the function."""
    rooms = {path.name for path in Path(dn.__file__).parent.iterdir() if path.is_dir()}
    assert {name for name in dn.__all__ if name in rooms} == {"collection", "learn", "mechanisms"}


def test_a_star_brings_the_public_names_and_nothing_else():
    names: dict[str, object] = {}
    exec("from deniable import *", names)
    assert set(names) - {"__builtins__"} == set(dn.__all__)


def test_an_unknown_name_is_an_attribute_error():
    for module in (dn, mechanisms):
        with pytest.raises(AttributeError, match="no attribute 'publsh'"):
            _ = module.publsh


def test_a_version_is_known():
    assert dn.__version__.count(".") >= 1


PRIVACIES = {
    "rho2": dn.Privacy(rho2="1/6"),
    "both": dn.Privacy(rho1="1/13", rho2="1/6", adversary="any-prior", exempt=["flu", None]),
    "per value": dn.Privacy(per_value={"hiv": ("1/100", "1/50"), None: ("1/10", "1/5")}, exempt=["flu"]),
    "tolerance": mechanisms.tolerance({"flu": 900, "hiv": 100}, 2),
    "sums": dn.Privacy(small_sums=dn.SmallSums(), large_sums=dn.LargeSums()),
}


@pytest.mark.parametrize("name", PRIVACIES)
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_requirement_can_be_copied_and_sent_to_another_process(name, copied):
    privacy = PRIVACIES[name]
    again = copied(privacy)
    assert again is not privacy
    assert again == privacy
    assert dict(again.per_value) == dict(privacy.per_value)
    assert isinstance(again.per_value, types.MappingProxyType)
    with pytest.raises(TypeError):
        again.per_value["flu"] = (0, 1)


def test_a_deep_copy_of_a_requirement_shares_no_mapping():
    again = copy.deepcopy(PRIVACIES["per value"])
    assert again.__dict__["per_value"] is not PRIVACIES["per value"].__dict__["per_value"]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_mechanisms_can_be_copied_and_sent_to_another_process(copied):
    retention = mechanisms.Retention({"age": dn.Replace(coin=0.5, low=17, high=90), "job": dn.Replace(coin=0.6)})
    every = (retention, *(mechanisms.MECHANISMS[name]() for name in mechanisms.MECHANISMS))
    for mechanism in every:
        assert copied(mechanism) == mechanism
