"""Manifests with values that nobody wrote: one to three edits of a sound one."""

from __future__ import annotations

import copy
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import deniable as dn
import deniable_verify
from fuzz.case import Case, Step
from fuzz.releases import make

STRANGE: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 7, 2**31, 2**32, 2**32 + 1, 2**53, 2**63, 2**64, -(2**63), 2**70, 10**30),
    *(0.5, -0.0, 1e-320, 1e308, -1e308, float("inf"), float("nan"), 1e-9, 1.0000001),
    *(
        "",
        " ",
        "x",
        "a",
        "disease",
        "sex",
        "age",
        "cell",
        "1/2",
        "1/0",
        "0/1",
        "-1/3",
        "3/2",
        "1e999999999",
        "1e-99999",
    ),
    *("nan", "inf", "string", "int64", "date32[day]", "timestamp[ns]", "decimal128(3, 1)", "double", "bool", "null"),
    *("9999-12-31", "0001-01-01", "\x1b[2J", "\ud800", "../../etc/passwd", "9" * 5000, "frequency", "any-prior"),
    *([], {}, [[]], [0], [None], ["a"], {"kind": "nothing", "why": "x"}, [[0, "1/3", "1/2"]], [1] * 9, {"": []}),
)
Place = tuple[str | int, ...]
QUESTIONS = (
    "SELECT COUNT(*) AS n FROM release",
    "SELECT sex, COUNT(*) AS n, AVG(age) AS a FROM release WHERE disease IN ('a', 'b') GROUP BY sex",
    "SELECT disease, COUNT(*) AS n FROM release GROUP BY disease",
    "SELECT COUNT(*) AS n FROM release WHERE age BETWEEN 20 AND 40",
    "SELECT sex, COUNT(*) AS n FROM release WHERE list_contains(disease, 'a') GROUP BY sex",
)


def places(tree: Any, here: Place = ()) -> Iterator[Place]:
    """Every place of a JSON document but the top."""
    inside = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for name, branch in inside:
        yield (*here, name)
        yield from places(branch, (*here, name))


def at(tree: Any, place: Place) -> Any:
    """What stands at a place."""
    for name in place:
        tree = tree[name]
    return tree


def edited(manifest: Any, draw: Random) -> tuple[Any, str]:
    """A copy with one edit, and what the edit was."""
    changed = copy.deepcopy(manifest)
    # Half of the edits near the top: below, long lists of numbers would take nearly all of them.
    known = list(places(changed))
    place = draw.choice([p for p in known if len(p) <= draw.choice((2, 4, 9))] or known)
    parent, name, old = at(changed, place[:-1]), place[-1], at(changed, place)
    kind = draw.choice(("set", "set", "set", "nudge", "delete", "repeat", "borrow", "key"))
    if kind == "nudge" and isinstance(old, int | float) and not isinstance(old, bool):
        parent[name] = draw.choice((old + 1, old - 1, -old, old * 2, old / 3, str(old)))
    elif kind == "delete":
        del parent[name]
    elif kind == "repeat" and isinstance(parent, list):
        parent.insert(int(name), copy.deepcopy(old))
    elif kind == "borrow":
        parent[name] = copy.deepcopy(at(manifest, draw.choice(known)))
    elif kind == "key" and isinstance(parent, dict):
        parent[draw.choice(("x", "", "kind", str(name) + " "))] = parent.pop(str(name))
    else:
        kind = "set"
        parent[name] = copy.deepcopy(draw.choice(STRANGE))
    return changed, f"{kind} {'/'.join(map(str, place))}"


def cases(draw: Random, home: Path) -> Iterator[Case]:
    """Releases with edited manifests: opened, asked, verified and reported."""
    folders = make(home / "sound")
    sound = {name: json.loads((folder / "manifest.json").read_text()) for name, folder in folders.items()}
    spoilt = home / "spoilt"
    while True:
        name = draw.choice(list(folders))
        manifest, abouts = sound[name], [name]
        for _ in range(draw.choice((1, 1, 1, 2, 3))):
            manifest, about = edited(manifest, draw)
            abouts.append(about)
        place_release(folders[name], spoilt, json.dumps(manifest))
        yield Case("; ".join(abouts), steps(spoilt, draw))


def place_release(sound: Path, spoilt: Path, manifest: str) -> None:
    """A folder like the sound one, with another manifest."""
    shutil.rmtree(spoilt, ignore_errors=True)
    spoilt.mkdir(parents=True)
    for file in sound.iterdir():
        if file.name != "manifest.json":
            os.link(file, spoilt / file.name)
    (spoilt / "manifest.json").write_text(manifest)


def steps(folder: Path, draw: Random) -> tuple[Step, ...]:
    """What a user does with a release."""
    from deniable import report

    question = draw.choice(QUESTIONS)
    method = draw.choice(("inverse", "inverse", "mle", "shrunk"))
    return (
        lambda: dn.open_release(folder).sql(question, method=method),
        lambda: counted(folder),
        lambda: repr(dn.open_release(folder)) + dn.open_release(folder)._repr_html_(),
        lambda: dn.verify(folder),
        lambda: report.document(folder, audience="analyst", audit=None, evaluation=None),
    )


def counted(folder: Path) -> None:
    """A count, which no release gives that would not verify."""
    dn.open_release(folder).count({"disease": "a"})
    failures = deniable_verify.verify(folder).failures
    if failures:
        raise AssertionError(f"answered, and refused by verify: {failures[0].what}")
