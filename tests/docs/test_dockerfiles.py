"""The images' files: no engine builds them here, so what they copy, install and start is checked line by line."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FILES = ("Dockerfile", "deploy/Dockerfile")


def instructions(name: str) -> list[tuple[str, str]]:
    """The instructions of a file, continued lines joined, without comments."""
    lines = [line for line in (ROOT / name).read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


def values(name: str, wanted: str) -> list[str]:
    return [rest for word, rest in instructions(name) if word == wanted]


@pytest.mark.parametrize("name", FILES)
def test_what_is_copied_is_there_and_not_ignored(name: str) -> None:
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").split() if line.startswith("!")}
    copied = [source for rest in values(name, "COPY") for source in shlex.split(rest)[:-1]]
    assert copied
    for source in copied:
        assert (ROOT / source).exists(), source
        assert source in kept, source


@pytest.mark.parametrize("name", FILES)
def test_what_is_installed_are_extras_that_tests_run_with(name: str) -> None:
    (line,) = [rest for rest in values(name, "RUN") if rest.startswith("pip install")]
    *_, constraints, target = shlex.split(line)
    assert constraints == "constraints.txt"
    extras = re.fullmatch(r"\.\[([a-z,]+)\]", target)
    assert extras is not None
    pinned = dict(re.findall(r"^([A-Za-z0-9_.-]+)==(\S+)$", (ROOT / constraints).read_text(encoding="utf-8"), re.M))
    for extra in extras[1].split(","):
        for text in PROJECT["optional-dependencies"][extra]:
            requirement = Requirement(text)
            assert requirement.specifier.contains(pinned[requirement.name]), text
            assert requirement.specifier.contains(metadata.version(requirement.name)), text


@pytest.mark.parametrize("name", FILES)
def test_what_is_started_is_a_command_and_not_as_root(name: str) -> None:
    (entry,) = (json.loads(rest) for rest in values(name, "ENTRYPOINT"))
    assert entry[0] in PROJECT["scripts"]
    (user,) = values(name, "USER")
    order = [word for word, _ in instructions(name)]
    assert order.index("USER") < order.index("ENTRYPOINT")
    assert user != "root"
    (base,) = values(name, "FROM")
    assert int(base.removeprefix("python:3.").split("-")[0]) >= int(PROJECT["requires-python"].removeprefix(">=3."))
