"""Messages in the words of the command line: Python's ``row_id='number'`` is ``--row-id number`` there.

Messages are written once, for whoever calls from Python, and translated where a terminal shows them. What stands in
quotes is a value or a name of the table, and stays as it is.
"""

from __future__ import annotations

import re
import shlex

# Parameters of Python that are options of the same name here.
OPTIONS = (
    "adversary",
    "bins",
    "changes",
    "confidence",
    "domain",
    "draws",
    "drop",
    "engine",
    "exempt",
    "format",
    "key_file",
    "mechanism",
    "method",
    "missing",
    "name",
    "person",
    "rare",
    "recode",
    "rho1",
    "rho2",
    "row_id",
    "seed",
    "sensitive",
    "series",
    "suppress",
)
# Parameters that are written in another way.
WRITTEN = (
    (r"privacy=(?:dn\.)?Privacy\(rho2='([^']*)'\)", r"--rho2 \1"),
    (r"privacy='([^']*)'", r"--rho2 \1"),
    (r"theta=", "--tolerance "),
    (r"theta(?= = )", "--tolerance"),
    (r"lower theta", "a lower --tolerance"),
    (r"Replace\(privacy=\.\.\), no privacy=", "leave out --rho1 and --rho2"),
    (r"mechanism=Retention\(\{[^}]*\}\), as text ('retention:[^']*')", r"--mechanism \1"),
    (r"privacy=(?=[,.])", "--rho2"),
    (r"small_sums(?![\w'=])", "--small-sums"),
    (r"large_sums(?![\w'=])", "--large-sums"),
    (r"leave out= out and ask the object", "ask it in Python (dn.publish)"),
    (r"marginals=False", "--no-marginals"),
    (r"again=True", "--again"),
    (r"new_people=True", "--new-people"),
    (r"overwrite=True", "--overwrite"),
    (r"leave out shuffle=False", "leave out --no-shuffle"),
    (r"shuffle=False", "--no-shuffle"),
    (r"shuffle the rows \(shuffle=True, the default\)", "leave out --no-shuffle"),
    (r"simultaneous=True \(--simultaneous\), (.*), or simultaneous='selected', [^.]*", r"--simultaneous, \1"),
    (r"simultaneous=True", "--simultaneous"),
    (r"recode=\{'([^']*)': bands\(\.\.\)\}", r"--recode \1=bands:.."),
    (r"bins=\{'([^']*)': \[0, 10, 20\]\}", r"--bins \1=0,10,20"),
    (r"domain=\{column: \[values\](?:, \.\.\.)?\}(?: or a list of such tuples)?", "--domain COLUMN=FILE"),
    (r"widen low= and high=", "widen LOW..HIGH"),
    (r"domain=\[\.\.\]", "--domain COLUMN=FILE"),
    (r"exempt=[\[(]('[^']*'),?[\])]", r"--exempt \1"),
)
_NAMES = "|".join(OPTIONS)
_QUOTED = re.compile(rf"(?<!['\w-])({_NAMES})='([^']*)'")
_CALLED = re.compile(rf"(?<!['\w-])({_NAMES})=(?!['=])")
_LISTED = re.compile(rf"(?<!['\w-])({_NAMES})=\[('[^']*'(?:, '[^']*')*)\]")
_WITH_UNDERSCORE = re.compile(rf"(?<!['\w-])({'|'.join(name for name in OPTIONS if '_' in name)})(?![\w'=])")
_FIRST = re.compile(rf"(?m)^(- \S+: )?({_NAMES}|columns) (names|needs|goes|go|takes) ")
_OF_A_SENTENCE = ".,;:)"


def in_options(message: str) -> str:
    """A message as someone at a terminal can follow it.

    >>> in_options("Fix: row_id=COLUMN, or mechanism='uniform'. The column 'row_id' stays.")
    "Fix: --row-id COLUMN, or --mechanism uniform. The column 'row_id' stays."
    >>> in_options("exempt 'flu' with exempt=.")
    "exempt 'flu' with --exempt."
    >>> in_options("Fix: name columns one by one, drop=['name', 'zip code'].")
    "Fix: name columns one by one, --drop name --drop 'zip code'."
    """
    for pattern, words in WRITTEN:
        message = re.sub(rf"(?<!['\w-]){pattern}", words, message)
    message = _LISTED.sub(lambda match: _repeated(match[1], match[2]), message)
    message = _QUOTED.sub(lambda match: f"{_option(match[1])} {shlex.quote(match[2])}", message)
    message = _CALLED.sub(lambda match: _before(match, message), message)
    message = _WITH_UNDERSCORE.sub(lambda match: _option(match[1]), message)
    return _FIRST.sub(lambda match: f"{match[1] or ''}{_option(match[2])} {match[3]} ", message)


def _repeated(name: str, values: str) -> str:
    """An option that takes one value, once for each of several."""
    return " ".join(f"{_option(name)} {shlex.quote(value)}" for value in re.findall(r"'([^']*)'", values))


def _before(match: re.Match[str], message: str) -> str:
    """An option before its value; before the end of a sentence there is none."""
    rest = message[match.end() : match.end() + 1]
    return _option(match[1]) + ("" if not rest or rest in _OF_A_SENTENCE or rest.isspace() else " ")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
