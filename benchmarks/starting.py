"""How long it takes until something happens: importing the package, and `deniable --help`, against importing NumPy."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from functools import partial

from measuring import best

PROGRAMS = {
    "python -c 'import numpy'": ["-c", "import numpy"],
    "python -c 'import deniable'": ["-c", "import deniable"],
    "deniable --help": ["-m", "deniable", "--help"],
    "deniable publish --help": ["-m", "deniable", "publish", "--help"],
}


def run(arguments: list[str]) -> None:
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


def rows() -> list[Mapping[str, object]]:
    seconds = {name: best(partial(run, arguments), repeats=5) for name, arguments in PROGRAMS.items()}
    peer = seconds["python -c 'import numpy'"]
    return [
        {"what": name, "seconds": spent, "ratio": spent / peer, "note": "ratio to importing NumPy"}
        for name, spent in seconds.items()
    ]
