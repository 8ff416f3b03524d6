"""The command `deniable`: every command of the family is listed here, one line each, and imported when it is asked for.

What a command needs takes longer to import than `--help` or a wrong option should take to answer.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from deniable.cli.completing import with_completions
from deniable.cli.console import TAKEN_BY_TYPER, PassedError, run
from deniable.core.registry import Registry

# name -> where, and the first sentence of its help, which a test compares with the command's own
COMMANDS: dict[str, tuple[str, str]] = {
    "plan": (
        "plan:plan",
        "Compare the mechanisms for this table: what they promise, what they keep, how far off answers would be.",
    ),
    "publish": (
        "publish:publish",
        "Publish a table with sensitive values that are learned or perturbed, so that each stays deniable.",
    ),
    "desk": (
        "desk:desk",
        "Publish a table in seven steps, on a page that this machine serves to itself: from the table to a signed "
        "release.",
    ),
    "verify": (
        "verify:verify",
        "Check a release: recompute its guarantee from its own numbers, and check its data against its manifest.",
    ),
    "query": ("query:query", "Ask a release a question in SQL; the table is called `release`."),
    "export": (
        "export:export",
        "Write a release's rows as a file of SPSS, Stata or SAS, with the labels that its table came with.",
    ),
    "open": (
        "open:open_",
        "Open a release in a database: one DuckDB file, in which SQL and BI tools count with weights.",
    ),
    "explore": (
        "explore:explore",
        "Write a page in which anyone asks a release: one file, without a server, a network or anything to install.",
    ),
    "serve": (
        "serve:serve",
        "Serve a release to BI tools, psql and drivers, which ask it as a PostgreSQL database.",
    ),
    "commit": (
        "commit:commit",
        "Commit to a table, its project and a key, before a receiver chooses the name of the release.",
    ),
    "audit": ("audit:audit", "See, before anyone else does, what attackers learn from a release."),
    "breach": (
        "breach:breach",
        "Say how sure someone can become of values or ranges of columns that were perturbed one by one.",
    ),
    "risk": (
        "risk:risk",
        "See who stands out in a table: k-anonymity, uniqueness and l-diversity, before and after --recode.",
    ),
    "rows-needed": (
        "rows_needed:rows_needed",
        "Say how many rows make a share accurate to plus or minus an error, before anything is collected.",
    ),
    "respond": (
        "respond:respond",
        "Perturb your own row as the rows of a release were, before it leaves this machine.",
    ),
    "pool": (
        "combine:pool",
        "Put the rows of several releases together: the same columns of other people, perturbed in the same way.",
    ),
    "join": (
        "combine:join",
        "Put the columns of two releases about the same people together, matched by a public column.",
    ),
    "evaluate": (
        "evaluate:evaluate",
        "Measure how far off answers would be: draw releases of this table, ask them questions, compare with the "
        "truth.",
    ),
    "report": (
        "report:report",
        "Write a report about a release: one file that needs no network and can be printed.",
    ),
    "reproduce": (
        "reproduce:reproduce",
        "Repeat a paper's tables and figures: its figure, ours, whether they agree, and why not.",
    ),
    "collect": (
        "collect:app",
        "Ask people in private: check a survey, serve it, try it with made-up respondents.",
    ),
    "doctor": ("doctor:doctor", "Say what this machine has, and what is missing for what."),
    "demo": ("demo:demo", "Make up a census, publish it, verify the release and ask it questions."),
}
FIRST = """\
Publish a table about people so that every sensitive value stays deniable, and ask it questions:

  deniable publish people.csv --sensitive disease --rho2 1/6 --out release/
  deniable verify release/
  deniable query release/ "SELECT COUNT(*) FROM release WHERE disease = 'flu'"

Next: deniable demo makes up a table and does all three. deniable --help lists every command."""
SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"]}


class _NoPandas:
    """A finder that finds no pandas."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=name)


def without_pandas(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command, before which Arrow looks for pandas in vain: it does so once, for the first list that it is given.

    Importing pandas takes as long as all else that a short command does. Whoever needs it later imports it.
    """

    @functools.wraps(command)
    def run(*words: Any, **options: Any) -> Any:
        import pyarrow as pa

        sys.meta_path.insert(0, _NoPandas)
        try:
            pa.array([0])
        finally:
            sys.meta_path.remove(_NoPandas)
        return command(*words, **options)

    return run


class _Lazily(Mapping[str, Any]):
    """Name -> command; a command's module is imported when it is looked up."""

    functions = Registry("deniable.commands", {name: f"deniable.cli.{place}" for name, (place, _) in COMMANDS.items()})

    def __getitem__(self, name: str) -> Any:
        command = self.functions[name]
        if isinstance(command, typer.Typer):
            for registered in command.registered_commands:
                assert registered.callback is not None
                registered.callback = without_pandas(registered.callback)
            return typer.main.get_command(command)
        alone = typer.Typer(
            add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, context_settings=SETTINGS
        )
        alone.command(name)(without_pandas(command))
        made = typer.main.get_command(alone)
        made.name = name
        return with_completions(made)

    def __iter__(self) -> Iterator[str]:
        return iter(self.functions)

    def __len__(self) -> int:
        return len(self.functions)

    def sentences(self) -> Iterator[tuple[str, str]]:
        """What the help says of each command; of another package's, the first line of its own help."""
        for name in self:
            known = COMMANDS.get(name)
            yield name, known[1] if known else (self[name].help or "").strip().partition("\n")[0]


class Family(TyperGroup):
    """The commands, by name; all of them run under one guard."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = _Lazily()  # type: ignore[assignment]

    def main(self, args: Sequence[str] | None = None, *others: Any, **options: Any) -> NoReturn:
        words = list(sys.argv[1:] if args is None else args)
        parse = super().main
        run(lambda: parse(words, *others, **{**options, "standalone_mode": False}), words)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except TAKEN_BY_TYPER as problem:
            raise PassedError(problem) from None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_Lazily().sentences()))


app = typer.Typer(
    name="deniable",
    cls=Family,
    invoke_without_command=True,
    pretty_exceptions_enable=False,  # they print local variables, and one of them may be the key
    rich_markup_mode=None,
    context_settings=SETTINGS,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"deniable {metadata.version('deniable')}")
        raise typer.Exit


@app.callback()
def deniable(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Publish tables about people so that every sensitive value stays deniable, and ask them questions.

    New here? Run `deniable demo`.
    """
    if ctx.invoked_subcommand is None:
        print(FIRST)
