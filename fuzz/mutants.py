"""Small changes of the code that guards promises, each of which some test has to notice: python -m fuzz.mutants.

A mutant is one change of one expression: a comparison turned round or made strict, a number off by one, a condition
negated, an operator exchanged, `min` for `max`, `all` for `any`, a check that always holds. ``mutants.toml`` names the
files, the tests that have to notice, and mutants that live for a reason. Which mutants are tried is drawn by a seed;
each is a copy of the package in which one file differs.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = Path(__file__).with_name("mutants.toml")
COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
REVERSED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
OPERATED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
CALLED = {"min": "max", "max": "min", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor"}
LONGEST = 600.0  # seconds of the tests of one mutant: one that hangs is noticed, too


@dataclass(frozen=True)
class Mutant:
    """One change.

    Attributes:
        path: of the file, from src/.
        function: that it is in.
        line: of the file.
        before, after: the expression.
    """

    path: str
    function: str
    line: int
    before: str
    after: str
    source: str

    @property
    def name(self) -> str:
        """What a reason names it by: lines move."""
        return f"{self.path} {self.function}: {self.before} -> {self.after}"


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """Everything that a node could be instead."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for table in (COMPARED, REVERSED):
            if type(node.ops[0]) in table:
                yield ast.Compare(node.left, [table[type(node.ops[0])]()], node.comparators)
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATED:
        yield ast.BinOp(node.left, OPERATED[type(node.op)](), node.right)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        yield from node.values  # one of the conditions alone
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield ast.Constant(node.value + 1)
        if node.value:
            yield ast.Constant(0)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node.operand
    elif isinstance(node, ast.IfExp):
        yield node.body
        yield node.orelse
    elif isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in CALLED:
            function = copy.deepcopy(node.func)
            if isinstance(function, ast.Name):
                function.id = CALLED[name]
            elif isinstance(function, ast.Attribute):
                function.attr = CALLED[name]
            yield ast.Call(function, node.args, node.keywords)
        if name == "Check" and len(node.args) > 1:  # a check that cannot fail
            yield ast.Call(node.func, [node.args[0], ast.Constant(True), *node.args[2:]], node.keywords)


def mutants_of(path: Path, root: Path) -> list[Mutant]:
    """All mutants of a file; what is said in words, and defaults of arguments, are left out."""
    text = path.read_text("utf-8")
    tree = ast.parse(text)
    lines = [line.encode() for line in text.splitlines(keepends=True)]
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line))
    data, made = text.encode(), []
    for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
        nodes = [node for statement in function.body for node in ast.walk(statement)]
        words = {id(inner) for node in nodes if isinstance(node, ast.JoinedStr) for inner in ast.walk(node)}
        for node in nodes:
            if not isinstance(node, ast.expr) or id(node) in words:
                continue
            start = offsets[node.lineno - 1] + node.col_offset
            end = offsets[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
            for change in changes(node):
                before = ast.unparse(node)
                after = ast.unparse(ast.fix_missing_locations(copy.deepcopy(change)))
                if after == before:  # a check that says that it holds
                    continue
                source = (data[:start] + f"({after})".encode() + data[end:]).decode()
                where = path.relative_to(root).as_posix()
                made.append(Mutant(where, function.name, node.lineno, before, after, source))
    return made


def noticed(mutant: Mutant, tests: list[str], copied: Path) -> bool:
    """Whether the tests fail, or never end, with the mutant in the place of the file."""
    place = copied / mutant.path
    sound = place.read_text("utf-8")
    place.write_text(mutant.source, "utf-8")
    for cached in place.parent.glob(f"__pycache__/{place.stem}.*"):
        cached.unlink()
    try:
        return fails(tests, copied)
    finally:
        place.write_text(sound, "utf-8")


def fails(tests: list[str], copied: Path) -> bool:
    """Whether tests fail, or never end, with the package as it is in a folder."""
    words = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not long", *tests]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        done = subprocess.run(
            words, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(copied)}, check=False, timeout=LONGEST, **quiet
        )  # type: ignore[call-overload]
    except subprocess.TimeoutExpired:
        return True
    return bool(done.returncode)


def main() -> int:
    """Try some mutants; 1 where one lives without a reason, or fewer die than they have to."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--most", type=int, default=60, help="how many mutants are tried")
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--minutes", type=float, default=60.0)
    asked.add_argument("--only", default="", help="files whose path holds this")
    options = asked.parse_args()
    settings = tomllib.loads(SETTINGS.read_text("utf-8"))
    reasons = {one["mutant"]: one["why"] for one in settings.get("lives", [])}
    every = []
    for guard in settings["guards"]:
        for pattern in guard["files"]:
            for path in sorted((ROOT / "src").glob(pattern)):
                if options.only in path.as_posix():
                    every += [(mutant, guard["tests"]) for mutant in mutants_of(path, ROOT / "src")]
    chosen = random.Random(options.seed).sample(every, min(options.most, len(every)))
    until, lived, tried, excused = time.monotonic() + 60 * options.minutes, [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / "src"
        shutil.copytree(ROOT / "src", copied, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        for tests in {tuple(tests) for _, tests in chosen}:
            if fails([*tests], copied):  # of which every mutant would be said to be noticed
                print(f"fails without a mutant, too: {' '.join(tests)}")
                return 1
        for mutant, tests in chosen:
            if time.monotonic() > until:
                break
            if mutant.name in reasons:
                excused += 1
                continue
            tried += 1
            if not noticed(mutant, tests, copied):
                lived.append(mutant)
                print(f"lives: {mutant.name} (line {mutant.line})", flush=True)
    killed = tried - len(lived)
    print(f"{len(every):,} mutants; {tried} tried, {killed} killed, {len(lived)} live, {excused} live for a reason")
    return int(bool(lived))


if __name__ == "__main__":
    sys.exit(main())
