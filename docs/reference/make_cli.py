"""Write docs/reference/cli.md from the commands themselves: `python docs/reference/make_cli.py`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from deniable.cli.main import app

PAGE = Path(__file__).parent / "cli.md"
START = """# Commands

Made from the commands themselves (`python docs/check.py --write`); `deniable COMMAND --help` says the same.

Results go to stdout, progress, hints and warnings to stderr. A mistake in the input is one message on stderr and exit
code 2 (with `--json` also an object `{"error": {"type", "message"}}` on stdout); `verify` leaves with 1 when a release
does not hold what it promises; Ctrl-C leaves with 130. `deniable --install-completion` teaches your shell the commands.
"""


def page() -> str:
    """The whole page."""
    return START + "".join(f"\n{part}\n" for part in _commands(typer.main.get_command(app), "deniable"))


def _commands(command: Any, name: str) -> Iterator[str]:
    yield f"## `{name}`\n\n{inspect.cleandoc(command.help or '')}"
    rows = [_row(param) for param in command.params if not getattr(param, "hidden", False)]
    if rows:
        yield "\n".join(["| | |", "|---|---|", *rows])
    for child, part in getattr(command, "commands", {}).items():
        yield from _commands(part, f"{name} {child}")


def _row(param: Any) -> str:
    if param.param_type_name == "argument":
        return f"| `{param.metavar or param.name.upper()}` | {_cell(param.help)} |"
    names = ", ".join(f"`{name}{_value(param)}`" for name in param.opts)
    default = param.default
    shown = default is not None and not param.is_flag and not callable(default) and default != ()
    notes = " Required." if param.required else f" Default: `{default}`." if shown else ""
    return f"| {names} | {_cell(param.help)}{notes} |"


def _value(param: Any) -> str:
    return "" if param.is_flag else f" {param.metavar or param.name.upper()}"


def _cell(text: str | None) -> str:
    return (text or "").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
