"""What every command has without having to name it: the option `--memory`, and no pandas.

Where pandas is installed, Arrow imports it for the first list that it is given. That takes as long as all else that a
short command does, and no command has a frame of pandas to give to Arrow.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_type_hints

import typer

from deniable.core import memory


def _keep_below(text: str | None) -> str | None:
    if text is not None:
        memory.keep_below(memory.size_of(text))
    return text


Memory = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        callback=_keep_below,
        is_eager=True,
        help="The most memory that this may take, e.g. 4GB; more is refused. Default: half of the machine's.",
    ),
]


# What commands that hold codes of whole tables take of a row and column, in bytes, and which argument names the table.
# From docs/explanation/scale.md: evaluate holds a code of one to four bytes, and one of the draw at hand; an audit
# holds different values of public columns, and comes to a ceiling only where nearly all of them differ.
HELD = {"audit": (100, "original"), "evaluate": (4, "files")}
START = 300 * 2**20  # what Python, NumPy and Arrow hold by then


def needed(command: str, options: Mapping[str, Any]) -> str:
    """How much a command would have taken, by the size of its table."""
    from deniable.engines import engine_named

    held, argument = HELD[command]
    table = engine_named("local").open(options[argument])
    rows = table.rows
    if rows is None:
        rows = sum(batch.num_rows for batch in table.batches(table.names[:1]))
    size = START + held * rows * len(table.names)
    if command == "evaluate" and size < memory.ceiling():  # so it was not the rows
        return "evaluate asks about every value of the column under each condition: many values are many questions"
    return f"{command} of {rows:,} rows and {len(table.names):,} columns takes about {memory.in_words(size)}"


class _NoPandas:
    """A finder that finds no pandas."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=name)


def leave_pandas_out() -> None:
    """Let Arrow look for pandas in vain: it does so once. Whoever needs pandas later imports it, Arrow included."""
    import pyarrow as pa

    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(_NoPandas)


def with_ceiling(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with the option; Typer reads a command's options off its signature."""

    @functools.wraps(command)
    def run(*words: Any, memory: str | None = None, **options: Any) -> Any:
        try:
            leave_pandas_out()
            return command(*words, **options)
        except MemoryError:
            if command.__name__ not in HELD:
                raise
        # Only now, when the frames that held the rows are gone, there is room to look at the table once more.
        raise MemoryError(needed(command.__name__, options))

    signature, hints = inspect.signature(command), get_type_hints(command, include_extras=True)
    given = [one.replace(annotation=hints.get(name, one.annotation)) for name, one in signature.parameters.items()]
    added = inspect.Parameter("memory", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Memory)
    run.__signature__ = signature.replace(parameters=[*given, added])  # type: ignore[attr-defined]
    run.__annotations__ = {**hints, "memory": Memory}
    return run


def with_ceilings(group: typer.Typer) -> typer.Typer:
    """The same for every command of a group."""
    for registered in group.registered_commands:
        if registered.callback is not None and "memory" not in inspect.signature(registered.callback).parameters:
            registered.callback = with_ceiling(registered.callback)
    return group
