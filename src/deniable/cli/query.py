"""`deniable query`: ask a release a question in SQL."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import typer

from deniable.cli import console
from deniable.cli.options import EngineName, Master
from deniable.core.errors import OptionError

if TYPE_CHECKING:
    from deniable.estimation.asking import Method

FORMULA = r"^[=+\-@\t\r]"


def query(
    *,
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="The folder of a release.")],
    sql: Annotated[
        str, typer.Argument(metavar="SQL", help='A question, for example "SELECT COUNT(*) AS n FROM release".')
    ],
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="How counts are reconstructed: inverse (unbiased), mle (never negative) or shrunk."
        ),
    ] = "inverse",
    confidence: Annotated[
        float, typer.Option(metavar="SHARE", help="How often an interval must contain the true answer.")
    ] = 0.95,
    lookups: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="NAME=FILE",
            help="A lookup table, CSV or Parquet, that the question may join; repeatable.",
        ),
    ] = None,
    simultaneous: Annotated[
        bool,
        typer.Option("--simultaneous", help="Make all intervals of a column hold together: for picking rows by them."),
    ] = False,
    no_calibrate: Annotated[
        bool, typer.Option("--no-calibrate", help="Do not use the noisy histogram that the release carries.")
    ] = False,
    as_csv: Annotated[
        bool,
        typer.Option(
            "--csv",
            help="Print the result as CSV on stdout. Texts that a spreadsheet would run as formulas get a ' in front.",
        ),
    ] = False,
    raw: Annotated[bool, typer.Option("--raw", help="With --csv: texts exactly as the release has them.")] = False,
    engine: EngineName = "local",
    master: Master = None,
    as_json: console.AsJson = False,
) -> None:
    """Ask a release a question in SQL; the table is called `release`.

    Each estimate comes with an interval: a column n has n_low and n_high beside it. The interval covers the
    randomness of the perturbation.

    Example: deniable query release/ "SELECT sex, COUNT(*) AS n FROM release WHERE disease = 'flu' GROUP BY sex"
    """
    import deniable as dn
    from deniable.estimation.sql.answering import NOTE
    from deniable.tables import engine_on

    if as_csv and as_json:
        raise OptionError("--csv and --json contradict each other. Fix: choose one.")
    if raw and not as_csv:
        raise OptionError("--raw goes with --csv. Fix: add --csv, or leave --raw out.")
    # None: the release decides (calibrated wherever it carries a histogram).
    calibrate = False if no_calibrate else None
    tables: dict[str, pa.Table] = {}
    for given in lookups or ():
        name, table = _lookup(given)
        if name in tables:
            raise OptionError(f"--with names the table {name!r} twice. Fix: a name for each file.")
        tables[name] = table
    answer = dn.open_release(release, engine=engine_on(engine, master)).sql(
        sql,
        tables=tables,
        method=cast("Method", method),
        calibrate=calibrate,
        confidence=confidence,
        simultaneous=simultaneous,
    )
    note = (answer.schema.metadata or {}).get(NOTE.encode(), b"").decode() or None
    if note is not None:
        console.warn(note)
    if as_json:
        console.emit({"columns": answer.column_names, "rows": answer.to_pylist(), "note": note})
    elif as_csv:
        _print_csv(answer if raw else _without_formulas(answer))
    else:
        console.show_table(answer.column_names, (tuple(row.values()) for row in answer.to_pylist()))


def _without_formulas(answer: pa.Table) -> pa.Table:
    """Texts that begin like a formula with a ' before them, column names too."""
    for place, field in enumerate(answer.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            texts = answer.column(place)
            tamed = pc.if_else(
                pc.match_substring_regex(texts, FORMULA), pc.binary_join_element_wise("'", texts, ""), texts
            )
            answer = answer.set_column(place, field, tamed.cast(field.type))
    return answer.rename_columns([f"'{name}" if re.match(FORMULA, name) else name for name in answer.column_names])


def _lookup(given: str) -> tuple[str, pa.Table]:
    """NAME=FILE as a name and a table."""
    name, equals, file = given.partition("=")
    if not equals or not name.isidentifier() or name == "release" or not file:
        raise OptionError(
            f"--with {given} is not understood. Fix: NAME=FILE, such as icd=chapters.csv; the name is a word, and not "
            "'release'."
        )
    is_parquet = Path(file).suffix.lower() == ".parquet"
    try:
        table = pq.read_table(file) if is_parquet else pa_csv.read_csv(file)
    except FileNotFoundError:
        raise OptionError(f"--with {given}: there is no file {file!r}. Fix: check the name.") from None
    except (pa.ArrowInvalid, OSError):
        table = pa.table({})
    # What is no UTF-8 is binary to the reader of CSV.
    strange = [field.name for field in table.schema if pa.types.is_binary(field.type) and not is_parquet]
    if not table.num_columns or strange:
        where = f" (column {strange[0]!r} is not UTF-8)" if strange else ""
        raise OptionError(
            f"--with {given}: {file!r} cannot be read as CSV or Parquet{where}. "
            "Fix: a CSV file in UTF-8 with a header, or a whole Parquet file."
        )
    return name, table


def _print_csv(answer: pa.Table) -> None:
    sink = pa.BufferOutputStream()
    pa_csv.write_csv(answer, sink)
    sys.stdout.write(sink.getvalue().to_pybytes().decode())
