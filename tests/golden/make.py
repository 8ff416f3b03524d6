"""Freezes anew what changed, and prints each change in a line.

    python -m tests.golden.make [CLASS ..] [--release NAME]

Answers that are the same up to rounding stay as they are written. Say in the commit which changed, and why.
"""

import argparse
import sys

from tests.golden import answers
from tests.golden.cases import CASES
from tests.golden.commands import COMMANDS, ran
from tests.golden.freeze import CLASSES, freeze


def renewed(kind: str, release: str, frozen: answers.Items, found: answers.Items) -> tuple[answers.Items, int]:
    """The answers as they are now, and how many changed."""
    changed = {name: (before, after) for name, before, after in answers.differences(frozen, found)}
    for name, (before, after) in changed.items():
        for line in answers.told(name, before, after):
            print(f"{kind} | {release} | {line}")
    return {name: value if name in changed else frozen[name] for name, value in found.items()}, len(changed)


def main() -> None:
    """Go through the classes and releases that are named, or all."""
    reader = argparse.ArgumentParser(prog="python -m tests.golden.make", description=__doc__)
    reader.add_argument("classes", nargs="*", metavar="CLASS", help=f"of {', '.join([*CLASSES, 'commands'])}")
    reader.add_argument("--release", action="append", help="a release of the list; repeat it for several")
    asked = reader.parse_args()
    unknown = [*({*asked.classes} - {*CLASSES, "commands"}), *({*(asked.release or ())} - {*CASES})]
    if unknown:
        sys.exit(f"Not known: {', '.join(unknown)}.")
    total = 0
    for kind in asked.classes or [*CLASSES, "commands"]:
        frozen = answers.read(kind)
        made = {}
        for name in COMMANDS if kind == "commands" else CASES:
            before = frozen.get(name, {})
            if asked.release and name not in asked.release:
                made[name] = before
                continue
            made[name], number = renewed(kind, name, before, ran()[name] if kind == "commands" else freeze(kind, name))
            total += number
        gone = [] if asked.release else [name for name in frozen if name not in made]
        print("".join(f"{kind} | {name} | gone\n" for name in gone), end="")
        answers.write(kind, made)
    print(f"{total} answers changed.")


if __name__ == "__main__":
    main()
