"""The files of answers: one for each class, one line an answer; how answers are compared, and what changed is said."""

import difflib
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

HOME = Path(__file__).parent / "answers"
EXACT = 1e-9  # relative to the number, or to the largest one beside it
ITERATED = 1e-7  # of what is found step by step
FLAT = 1e-4  # of likeliest counts: where ten leaps gain 1e-9 in likelihood they end, and rounding decides which leap
ITERATIVE = ("mle", "shrunk", "four-state", "logit")
SHOWN = 160  # letters of an answer
BESIDE = ("_low", "_high", "_stderr")  # SQL's columns about the same estimates

Items = dict[str, Any]


def _column(name: str) -> str:
    """The column of estimates that a column of a table belongs to."""
    return next((name.removesuffix(end) for end in BESIDE if name.endswith(end)), name)


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield abs(float(value))
    elif isinstance(value, list):
        for inner in value:
            yield from _numbers(inner)


def same(frozen: Any, found: Any, limit: float, largest: float = 0.0) -> bool:
    """Whether two answers are the same: texts exactly, numbers up to a limit relative to the largest beside them."""
    if isinstance(frozen, dict) and isinstance(found, dict):
        if list(frozen) != list(found):
            return False
        scale: dict[str, float] = {}
        for name, value in frozen.items():
            scale[_column(name)] = max(scale.get(_column(name), 0.0), *_numbers(value), 0.0)
        return all(same(frozen[name], found[name], limit, scale[_column(name)]) for name in frozen)
    if isinstance(frozen, list) and isinstance(found, list):
        beside = max([largest, *_numbers(frozen)])
        return len(frozen) == len(found) and all(same(a, b, limit, beside) for a, b in zip(frozen, found, strict=True))
    one, other = (isinstance(value, int | float) and not isinstance(value, bool) for value in (frozen, found))
    if one and other:
        return abs(frozen - found) <= limit * max(abs(frozen), abs(found), largest)
    return type(frozen) is type(found) and frozen == found


def limit_of(name: str) -> float:
    """How far the numbers of an answer may be apart."""
    if "mle" in name:
        return FLAT
    return ITERATED if any(way in name for way in ITERATIVE) else EXACT


def differences(frozen: Items, found: Items) -> Iterator[tuple[str, Any, Any]]:
    """(name, before, after) of whatever is not the same; None where there is none."""
    for name in dict.fromkeys([*frozen, *found]):
        if name not in frozen or name not in found or not same(frozen[name], found[name], limit_of(name)):
            yield name, frozen.get(name), found.get(name)


def told(name: str, before: Any, after: Any) -> list[str]:
    """What changed, in a line; of a text of several lines, each line that went or came."""
    lines = [isinstance(value, list) and all(isinstance(one, str) for one in value) for value in (before, after)]
    if all(lines):
        changed = [line for line in difflib.ndiff(before, after) if line[0] in "+-"]
        return [f"{name}: {line}" for line in changed]
    before, after = _places(before, after)
    return [f"{name}: {before}  ->  {after}"]


def _places(before: Any, after: Any) -> tuple[str, str]:
    """Two answers as texts, from a little before the first letter in which they differ."""
    texts = ["(none)" if value is None else json.dumps(value, ensure_ascii=False) for value in (before, after)]
    first = next((k for k, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), 0)
    start = max(0, first - 20) if max(map(len, texts)) > SHOWN else 0
    cut = [
        ("…" if start else "") + text[start : start + SHOWN] + ("…" if len(text) > start + SHOWN else "")
        for text in texts
    ]
    return cut[0], cut[1]


@cache
def read(kind: str) -> dict[str, Items]:
    """What is frozen of a class: release -> name -> answer."""
    path = HOME / f"{kind}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(kind: str, answers: dict[str, Items]) -> None:
    """One line an answer; a text of several lines has a line for each."""
    releases = [f"{_json(release)}: {{{_items(items)}\n}}" for release, items in answers.items()]
    HOME.mkdir(exist_ok=True)
    (HOME / f"{kind}.json").write_text("{\n" + ",\n".join(releases) + "\n}\n", encoding="utf-8")


def _items(items: Items) -> str:
    return ",".join(f"\n {_json(name)}: {_answer(value)}" for name, value in items.items())


def _answer(value: Any) -> str:
    if isinstance(value, list) and value and all(isinstance(line, str) for line in value):
        return "[" + ",".join(f"\n  {_json(line)}" for line in value) + "]"
    return _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
