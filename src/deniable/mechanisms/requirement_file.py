"""Per-value requirements from a file: who knows the diseases writes them down, who publishes reads them."""

from __future__ import annotations

import csv
import io
import tomllib
from collections.abc import Hashable
from pathlib import Path
from typing import Any

from deniable.core.errors import RequirementError, listing, option, shortened
from deniable.core.privacy import Adversary, Privacy
from deniable.core.probability import Probability
from deniable.core.reading import small_text

Pairs = dict[Hashable, tuple[Probability, Probability]]


def read_requirements(path: str | Path, *, adversary: Adversary = "frequency") -> Privacy:
    """Per-value requirements from a file.

    Values that the file does not name are exempt. Names are text; they also find numbers and dates that print so, and
    an empty name a missing value.

    Args:
        path: a CSV file with the columns value, rho1, rho2, or a TOML file with a table ``[values]``, whose lines are
            ``hiv = ["1/100", "1/50"]`` or ``hiv = { rho1 = "1/100", rho2 = "1/50" }``.
        adversary: who is held off, as for ``Privacy``.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from deniable.mechanisms import read_requirements
    >>> with tempfile.TemporaryDirectory() as home:
    ...     path = Path(home, "requirements.csv")
    ...     _ = path.write_text("value,rho1,rho2\\nhiv,1/100,1/50\\n")
    ...     read_requirements(path).per_value["hiv"]
    (Fraction(1, 100), Fraction(1, 50))
    """
    file = Path(path)
    readers = {".csv": _from_csv, ".toml": _from_toml}
    try:
        text = small_text(file)
    except FileNotFoundError:
        raise RequirementError(
            f"The requirements file {str(file)!r} cannot be read: there is none. Fix: check the name."
        ) from None
    except (OSError, UnicodeDecodeError):
        raise RequirementError(
            f"The requirements file {str(file)!r} cannot be read as text. Fix: a CSV or TOML file in UTF-8."
        ) from None
    if file.suffix.lower() not in readers:
        raise RequirementError(
            f"The requirements file {str(file)!r} has an unknown format. Fix: a name that ends in .csv or .toml."
        )
    pairs = readers[file.suffix.lower()](text, file.name)
    if not pairs:
        raise RequirementError(f"{file.name} holds no requirement. Fix: add a line such as hiv,1/100,1/50.")
    return Privacy(per_value=pairs, adversary=adversary)


def _from_csv(text: str, name: str) -> Pairs:
    lines = csv.DictReader(io.StringIO(text), skipinitialspace=True)
    if not {"value", "rho1", "rho2"} <= set(lines.fieldnames or ()):
        raise RequirementError(f"{name} must have the columns value, rho1 and rho2. Fix: name them in its first line.")
    pairs: Pairs = {}
    for line in lines:
        value, rho1, rho2 = line["value"], line["rho1"], line["rho2"]
        if value is None or rho1 is None or rho2 is None:
            raise RequirementError(f"{name}, line {lines.line_num} is too short: give value, rho1 and rho2.")
        if None in line:
            raise RequirementError(
                f"{name}, line {lines.line_num} has more fields than the first line. "
                "Fix: put a value that holds a comma in double quotes."
            )
        if value in pairs:
            raise RequirementError(f"{name}, line {lines.line_num} names {shortened(value)} again: name it once.")
        pairs[value] = (rho1, rho2)
    return pairs


def _from_toml(text: str, name: str) -> Pairs:
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise RequirementError(f"{name} is not valid TOML: {problem}. Fix: mend that line.") from None
    table = content.pop("values", None)
    if not isinstance(table, dict):
        raise RequirementError(f"{name} must have a table [values] with lines such as hiv = ['1/100', '1/50'].")
    if content:
        raise RequirementError(
            f"{name} says {listing(list(content))}, which means nothing here: it holds the table [values] alone. Fix: "
            f"leave it out; an adversary is given with {option('adversary', '')}."
        )
    return {value: _pair(value, entry, name) for value, entry in table.items()}


def _pair(value: str, entry: Any, name: str) -> tuple[Probability, Probability]:
    if isinstance(entry, dict) and set(entry) == {"rho1", "rho2"}:
        return entry["rho1"], entry["rho2"]
    if isinstance(entry, list) and len(entry) == 2:
        return entry[0], entry[1]
    raise RequirementError(f"{name}: write {value} = ['1/100', '1/50'], rho1 first; got {shortened(entry)}.")
