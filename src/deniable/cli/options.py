"""Options that several commands take, said once, and what becomes of their texts."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

from deniable.core.about import About, dictionary
from deniable.core.errors import OptionError, did_you_mean
from deniable.core.histogram import Histogram
from deniable.core.privacy import LargeSums, Privacy, SmallSums, exact_epsilon
from deniable.core.text import small_text
from deniable.core.transforms import Bins, BinsLike, Quantiles
from deniable.mechanisms import MECHANISMS, read_requirements
from deniable.mechanisms import tolerance as tolerance_rule
from deniable.publishing.recoding import SPELLING, Recoding, Rows
from deniable.tables import Engine, engine_named

# -- Values that need no protection, from words of a shell -------------------------------------------------------------


def exempted(
    values: list[str] | None,
    table: str | list[str],
    sensitive: Sequence[str],
    *,
    binned: bool,
    engine: str | Engine = "local",
) -> list[Hashable]:
    """Exempt values, which a shell has as words, in the type of the sensitive column; of a binned column they are the
    texts of intervals."""
    if not values or binned:
        return list(values or [])
    if len(sensitive) > 1:
        raise OptionError(
            "--exempt goes with one sensitive column; with several, Fix: exempt= of deniable.Privacy, in Python."
        )
    schema = engine_named(engine).open(table).schema
    if sensitive[0] not in schema.names:  # whoever reads the column says it better
        return list(values)
    kind: Any = schema.field(sensitive[0]).type
    try:
        return [pa.scalar(value).cast(kind).as_py() for value in values]
    except pa.ArrowInvalid:
        raise OptionError(
            f"--exempt {' '.join(values)} does not fit the column {sensitive[0]!r} ({kind}). Fix: values of that kind."
        ) from None


# -- The options that say which engine reads and counts the rows -------------------------------------------------------


EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="What reads and counts the rows: local (this machine) or spark (tables on a cluster; extra 'spark').",
    ),
]
Master = Annotated[
    str | None,
    typer.Option(metavar="URL", help="With --engine spark: where it runs, e.g. yarn. Left out: as Spark is set up."),
]


# -- Options that say who publishes a release, and what its columns mean -----------------------------------------------


Publisher = Annotated[
    str | None, typer.Option(metavar="NAME", help="Who publishes it, for the README of the release and its citation.")
]
Contact = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Where questions about the release go: an address, a page.")
]
Dictionary = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.csv",
        help="A data dictionary, for the README of the release: a CSV file with the fields column and description.",
    ),
]


def about_of(publisher: str | None, contact: str | None, described: Path | None) -> About:
    """What the options say of a release."""
    return About(publisher, contact, columns={} if described is None else dictionary(described))


# -- The key of a publication: one source of randomness, and a new key file that stays only where it opens something.


def one_source_of_randomness(key_file: Path | None, new_key_file: Path | None, seed: int | None) -> None:
    """Refuse several of them."""
    given = {"--key-file": key_file, "--new-key-file": new_key_file, "--seed": seed}
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise OptionError(f"{' and '.join(names)} contradict each other. Fix: give one of them, or none.")


# -- Options that several commands take, said once, and what becomes of their texts ------------------------------------


NAMES = ", ".join(MECHANISMS)

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="The table: CSV, Parquet, SPSS, Stata, SAS or Excel (book.xlsx#sheet); several files, or a pattern.",
    ),
]
Rho2 = Annotated[
    str | None,
    typer.Option(metavar="SHARE", help="How sure an attacker may become of a person's value: 1/6, 0.17 or 17%."),
]
Rho1 = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE",
        help="How strongly an attacker may believe it beforehand. Values more frequent than this are not protected. "
        "Left out: every value is.",
    ),
]
Epsilon = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER",
        help="Instead of --rho2: what no odds grow by more than e to the power of, whatever was believed; at 1 a "
        "belief of 10 % becomes at most 23.2 %.",
    ),
]
EpsilonLimit = Annotated[
    str,
    typer.Option(
        metavar="NUMBER",
        help="What is taken without being named keeps epsilon at or below this against any attacker; none lifts it.",
    ),
]
Adversary = Annotated[
    str,
    typer.Option(
        metavar="WHO",
        help="Who is held off: 'frequency' knows how frequent each value is; 'any-prior' may believe anything up to "
        "rho1.",
    ),
]
Exempt = Annotated[
    list[str] | None,
    typer.Option(metavar="VALUE", help="A value that needs no protection, for example 'healthy'. Repeat it."),
]
Requirements = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Each value its own requirement, for 'fine-grain': CSV with the columns value, rho1, rho2, or TOML.",
    ),
]
Tolerance = Annotated[
    str | None,
    typer.Option(
        metavar="THETA",
        help="Each value its own requirement: nobody becomes more than THETA times as sure of it as its share of the "
        "rows. Values of 1/THETA of the rows or more are exempt.",
    ),
]
SmallTerms = Annotated[
    str | None,
    typer.Option(
        "--small-sums",
        metavar="TERMS",
        help="Counts that must stay uncertain: 'error=0.3,below=3,at-least=0.6' means that a count of 1 to 3 rows is "
        "off by more than 30 % with probability 60 % or more. Of what publishes rows, decoy groups alone promise "
        "that; their size follows.",
    ),
]
LargeTerms = Annotated[
    str | None,
    typer.Option(
        "--large-sums",
        metavar="TERMS",
        help="Counts that must stay accurate: 'error=0.1,above=1000,at-most=0.05' means that a count of 1,000 rows or "
        "more is off by 10 % or more with probability 5 % or less. Likewise.",
    ),
]
BinEdges = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=EDGES",
        help="For a sensitive number: publish intervals, e.g. salary=0,20000,50000,200000, salary=equal:0:200000:10 "
        "(from, to, how many) or salary=quantiles:10.",
    ),
]
RecodeSteps = Annotated[
    list[str] | None,
    typer.Option(
        "--recode",
        metavar="COLUMN=HOW",
        help=f"Make a column coarser before it is published: {SPELLING}. Or a TOML file with a table 'recode', and "
        "'rare' and 'suppress' where they are wanted.",
    ),
]
RareRows = Annotated[
    list[str] | None,
    typer.Option(
        "--rare",
        metavar="ROWS",
        help="Merge values of public columns that fewer rows have into one: 20 for all columns of text, or COLUMN=20.",
    ),
]
SuppressRows = Annotated[
    list[str] | None,
    typer.Option(
        "--suppress",
        metavar="ROWS",
        help="Make sensitive values that fewer rows have missing, before perturbing: 20, or COLUMN=20.",
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="A column to leave out, such as a name. Repeat it for several."),
]
Missing = Annotated[
    str,
    typer.Option(
        metavar="POLICY",
        help="Missing sensitive values: 'value' (perturbed like any other), 'exempt' (published as missing) or "
        "'refuse'.",
    ),
]
ONE_POOL_HELP = (
    "'sdr' (200 random conditions, each with every value), or a file with one SELECT COUNT(*) FROM release WHERE .. in "
    "each line."
)
POOL_HELP = (
    "'sdr' (200 random conditions, each with every value), 'splu' (5,000 small and 5,000 large counts), or a file with "
    "one SELECT COUNT(*) FROM release WHERE .. in each line."
)


@dataclass(frozen=True)
class Required:
    """What the options require of a release."""

    rho2: str | None = None
    rho1: str | None = None
    adversary: str = "frequency"
    requirements: Path | None = None
    tolerance: str | None = None
    exempt: list[str] | None = None
    small_sums: str | None = None
    large_sums: str | None = None
    epsilon: str | None = None

    def privacy(
        self,
        table: str | list[str],
        sensitive: Sequence[str],
        binned: Mapping[str, BinsLike],
        histogram: Callable[[], Histogram] | None = None,
        engine: str | Engine = "local",
    ) -> Privacy | None:
        """The requirement; None where nothing is said, and the mechanism decides whether it can do without.

        ``histogram`` counts the sensitive values where the requirement depends on them (``tolerance``).
        """
        who: Any = self.adversary
        small, large = None, None
        if self.small_sums is not None:
            small = SmallSums(**_terms("--small-sums", self.small_sums, "below", "at_least"))
        if self.large_sums is not None:
            large = LargeSums(**_terms("--large-sums", self.large_sums, "above", "at_most"))
        stated = bool(self.exempt) or any(given is not None for given in (self.rho1, self.rho2, small, large))
        if self.requirements is not None:
            if stated:
                raise OptionError(
                    "--requirements excludes --rho1, --rho2, --exempt, --small-sums and --large-sums: the file says it "
                    "all, value by value. Fix: leave them out."
                )
            if self.tolerance is not None:
                raise OptionError("--requirements and --tolerance contradict each other. Fix: give one of them.")
            return read_requirements(self.requirements, adversary=who)
        if self.tolerance is not None and histogram is not None:
            if stated:
                raise OptionError(
                    "--tolerance excludes --rho1, --rho2, --exempt, --small-sums and --large-sums: it is a requirement "
                    "for each value, made from its share of the rows. Fix: leave them out."
                )
            return tolerance_rule(histogram(), self.tolerance, adversary=who)
        if self.epsilon is not None:
            if stated:
                raise OptionError("--epsilon excludes --rho1, --rho2, --exempt and sums. Fix: give it alone.")
            return Privacy(epsilon=self.epsilon)
        if not stated:
            return None
        unprotected = exempted(self.exempt, table, sensitive, binned=bool(binned), engine=engine)
        return Privacy(self.rho1, self.rho2, adversary=who, exempt=unprotected, small_sums=small, large_sums=large)


def epsilon_limit_of(text: str) -> Fraction | None:
    """A limit on epsilon; none where it is lifted."""
    return None if text.lower() == "none" else exact_epsilon(text, "epsilon_limit")


def domains_of(texts: Sequence[str] | None) -> dict[str, list[Any]] | None:
    """Declared values by column, from ``column=file`` texts: a value a line, an empty line for missing."""
    if not texts:
        return None
    declared: dict[str, list[Any]] = {}
    for text in texts:
        column, sign, name = text.partition("=")
        if not (column and sign and name):
            raise OptionError(f"--domain {text} is not understood. Fix: --domain COLUMN=FILE, one value a line.")
        _require_once("--domain", column, declared)
        try:
            lines = small_text(Path(name)).splitlines()
        except FileNotFoundError:
            raise OptionError(f"--domain {text}: there is no file {name!r}. Fix: check the name.") from None
        except (OSError, UnicodeDecodeError):
            raise OptionError(f"--domain {text}: {name} cannot be read as text. Fix: a value a line, UTF-8.") from None
        declared[column] = [line or None for line in lines]
    return declared


def _require_once(option: str, column: str, before: Container[str]) -> None:
    if column in before:
        raise OptionError(f"{option} names the column {column!r} twice. Fix: name it once.")


def recoding_of(
    recode: Sequence[str] | None, rare: Sequence[str] | None = None, suppress: Sequence[str] | None = None
) -> Recoding:
    """What becomes coarser: ``COLUMN=HOW`` texts or one file, and numbers of rows."""
    texts = list(recode or ())
    fewest = _rows("--rare", rare), _rows("--suppress", suppress)
    if len(texts) == 1 and "=" not in texts[0]:
        return Recoding.of(Path(texts[0]), *fewest)
    columns: dict[str, Any] = {}
    for text in texts:
        column, sign, how = text.partition("=")
        if not (column and sign and how) or column in columns:
            raise OptionError(
                f"--recode {text} is not understood. Fix: COLUMN=HOW, each column once ({SPELLING}); or one file alone."
            )
        columns[column] = how
    return Recoding.of(columns, *fewest)


def _rows(option: str, texts: Sequence[str] | None) -> Rows | None:
    """``20``, or ``COLUMN=20`` several times."""
    if not texts:
        return None
    if len(texts) == 1 and texts[0].isdecimal() and len(texts[0]) < 10:
        return int(texts[0])
    pairs = [text.rpartition("=") for text in texts]
    if any(not column or not rows.isdecimal() or len(rows) > 9 for column, _, rows in pairs):
        raise OptionError(f"{option} {' '.join(texts)} is not understood. Fix: {option} 20, or {option} COLUMN=20.")
    for place, (column, _, _) in enumerate(pairs):
        _require_once(option, column, [other for other, _, _ in pairs[:place]])
    return {column: int(rows) for column, _, rows in pairs}


def one_or_many(files: list[str]) -> str | list[str]:
    return files[0] if len(files) == 1 else files


def _terms(option: str, text: str, size: str, chance: str) -> dict[str, Any]:
    """``error=0.3,below=3,at-least=0.6``: terms that are left out keep their defaults."""
    terms: dict[str, Any] = {}
    for entry in text.split(","):
        name, _, value = (part.strip() for part in entry.partition("="))
        term = name.replace("-", "_")
        if term not in ("error", size, chance) or not value or term in terms:
            known = ("error", size, chance.replace("_", "-"))
            raise OptionError(
                f"{option} {text} is not understood at {entry!r}.{did_you_mean(name, known)} "
                f"Fix: {option} {','.join(f'{term}=..' for term in known)}, each once."
            )
        terms[term] = int(value) if term == size and value.isdecimal() else value
    return terms


def bins_of(texts: Sequence[str] | None) -> dict[str, BinsLike]:
    """``column=edge,edge,...``, ``column=equal:low:high:count`` or ``column=quantiles:10``."""
    bins: dict[str, BinsLike] = {}
    for text in texts or ():
        column, _, edges = text.partition("=")
        _require_once("--bins", column, bins)
        try:
            bins[column] = _bins(edges)
        except ValueError:
            raise OptionError(
                f"--bins {text} is not understood. Fix: COLUMN=EDGE,EDGE,EDGE with numbers, "
                "COLUMN=equal:LOW:HIGH:COUNT, or COLUMN=quantiles:10."
            ) from None
    return bins


def _bins(text: str) -> BinsLike:
    kind, *numbers = text.split(":")
    if kind == "quantiles":
        (count,) = numbers
        return Quantiles(int(count))
    if kind == "equal":
        low, high, count = numbers
        return Bins.equal_width(float(low), float(high), int(count))
    return [float(edge) for edge in text.split(",")]
