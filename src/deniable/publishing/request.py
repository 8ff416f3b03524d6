"""What an owner asked for, checked before anything is read, and the table that it is asked of.

``Request`` is the arguments of ``publish``; ``Publication`` is the same with the table open: which columns it has, what
they are read as, and what makes this release another one than any other (mathematics 13.1).
"""

from __future__ import annotations

import dataclasses
import glob
import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from deniable.core.about import About, today
from deniable.core.errors import (
    ColumnError,
    OptionError,
    OutputError,
    RequirementError,
    TableError,
    did_you_mean,
    listing,
    no_column,
    option,
    shortened,
)
from deniable.core.histogram import Histogram
from deniable.core.manifest import PERSON_AND_VALUE, ROW_ID, ROW_NUMBER
from deniable.core.privacy import EPSILON_LIMIT, Privacy, as_privacy, exact_epsilon
from deniable.core.transforms import BinsLike, Quantiles, as_bins, require_fixed
from deniable.core.values import Ints, Probability
from deniable.mechanisms import Mechanism, mechanism_named
from deniable.mechanisms.registry import AUTO
from deniable.mechanisms.synthetic import Instalment
from deniable.publishing.recoding import RecodeLike, Recoding, Rows
from deniable.release.commit import settle
from deniable.release.sign import Signer, files_of_key, signer_of
from deniable.tables import Engine, engine_for, engine_named
from deniable.tables.base import CELL, Dataset, Domain, Progress, Scan, Unfolds, no_progress, row_labels
from deniable.tables.encoding import is_askable
from deniable.tables.keys import Keystream, Secret

MISSING = ("value", "exempt", "refuse")
FORMATS = ("parquet", "csv")


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    """The arguments of ``publish``, which describes them, and what follows from them before the table is read.

    Attributes:
        chosen: the mechanism for these columns and this requirement, or ``"auto"``.
        columns: the sensitive columns as they are named, by ``sensitive`` or by the mechanism.
        required: the requirement; None where nothing is required.
        who: the column that decides draws: it names rows, or people.
        secret: where the draws come from; of a series, its own.
        recoding: what is made coarser, as it was asked for.
        signer: who signs the folder.
    """

    table: Any
    sensitive: str | Sequence[str] | None
    privacy: Privacy | Probability | None
    mechanism: str | Mechanism
    epsilon_limit: Probability | None
    drop: str | Sequence[str]
    out: str | os.PathLike[str] | None
    overwrite: bool
    format: str
    key: bytes | None
    key_file: str | os.PathLike[str] | None
    new_key_file: str | os.PathLike[str] | None
    seed: int | None
    row_id: str | None
    person: str | None
    group: str | None
    series: str | os.PathLike[str] | None
    changes: int | None
    publications: int | None
    new_people: bool
    again: bool
    shuffle: bool
    missing: str
    bins: Mapping[str, BinsLike] | None
    recode: RecodeLike | None
    rare: Rows | None
    suppress: Rows | None
    domain: Domain
    marginals: bool | None
    name: str
    about: About | Mapping[str, Any] | None
    threads: int | None
    batch_rows: int
    progress: Progress
    engine: str | Engine | None
    sign: Any | None
    judge: Any | None
    chosen: str | Mechanism = field(init=False)
    columns: tuple[str, ...] = field(init=False)
    required: Privacy | None = field(init=False)
    signer: Signer | None = field(init=False)

    def __post_init__(self) -> None:
        named, required = () if self.sensitive is None else as_names(self.sensitive), as_privacy(self.privacy)
        chosen: str | Mechanism = AUTO if self.mechanism == AUTO else mechanism_named(self.mechanism)
        if isinstance(chosen, Mechanism):
            by_name = isinstance(self.mechanism, str) and ":" not in self.mechanism
            chosen = (chosen.fitted(required) if by_name else chosen).for_columns(named, required)
            named = chosen.columns_of(named)
        check_choice("missing", self.missing, MISSING)
        check_choice("format", self.format, FORMATS)
        if not self.name:
            raise OptionError("name = '' is not allowed: give the release a name, or leave it out.")
        made = {"chosen": chosen, "columns": named, "required": required, "signer": self._signer()}
        for name, value in made.items():
            object.__setattr__(self, name, value)
        if self.row_id is not None and self.person is not None:
            raise OptionError(
                f"{option('row_id', '')} and {option('person', '')} exclude each other: the one names a row, the other "
                f"whoever it is about. Fix: {option('person', '')} where people have several rows, otherwise "
                f"{option('row_id', '')}."
            )
        self._check_series()
        require_once(self.table)

    def _signer(self) -> Signer | None:
        """Refused without a folder, so that no private key waits in memory for a later ``save``."""
        if self.sign is None:
            return None
        if self.out is None:
            raise OptionError(
                "sign signs the files of a release, and out names no folder. Fix: out=, or save(.., sign=)."
            )
        return signer_of(self.sign)

    def _check_series(self) -> None:
        if self.publications is not None and not (self.series is not None and self.learned):
            raise OptionError(
                f"{option('publications')} divides the budget of a series of learned releases. Fix: leave it out; or "
                f"{option('series', 'FILE')} and {option('mechanism', 'synthetic')}."
            )
        if self.series is None:
            if self.changes is not None:
                raise OptionError(
                    f"{option('changes')} goes with series: how often a person's value may change in it. Fix: "
                    f"{option('series', 'FILE')}."
                )
            if self.new_people:
                raise OptionError(
                    f"{option('new_people')} goes with series: it says who is new in it. Fix: "
                    f"{option('series', 'FILE')}."
                )
            return
        if self._sources:
            raise OptionError(f"{option('series')} has a key of its own. Fix: leave {' and '.join(self._sources)} out.")
        if self.learned:
            if self.changes is not None or self.new_people:
                which = "changes" if self.changes is not None else "new_people"
                raise OptionError(
                    f"{option(which)} is about rows that are drawn one by one. A series of learned releases has a "
                    f"budget: whoever changes, comes or goes is covered. Fix: leave {option(which)} out."
                )
            return
        if self.who is None:
            raise OptionError(
                f"{option('series')} needs to know who is who: a column that names the row or the person, and is not "
                f"published. Fix: {option('row_id', 'COLUMN')}, or {option('person', 'COLUMN')}."
            )
        require_fixed(self.bins or {}, "the next publication of a series")

    @property
    def learned(self) -> bool:
        """Whether public columns are counted by value, and all that is told of values is paid for."""
        chosen = self.chosen
        return isinstance(chosen, Mechanism) and any(need.crossed for need in chosen.layout(self.columns))

    @property
    def limit(self) -> Fraction | None:
        """On epsilon against any attacker, of what is taken without being named; None where it is lifted."""
        return None if self.epsilon_limit is None else exact_epsilon(self.epsilon_limit, "epsilon_limit")

    @property
    def who(self) -> str | None:
        return self.row_id if self.person is None else self.person

    @property
    def by_value(self) -> bool:
        """Whether rows of one person that hold one value are published alike."""
        return self.person is not None or self.series is not None

    @property
    def drawn_by(self) -> str:
        """What a row's draw depends on, beside the key."""
        if self.who is None:
            return ROW_NUMBER
        return PERSON_AND_VALUE if self.by_value else ROW_ID

    @property
    def _sources(self) -> list[str]:
        """The options that say where randomness comes from."""
        return [option(name) for name in ("key", "key_file", "new_key_file", "seed") if getattr(self, name) is not None]

    @property
    def new_key_place(self) -> Path:
        """Where a new key is written to."""
        named = Path(self.new_key_file or "")
        return named.parent.resolve() / named.name

    def require_new_key(self) -> None:
        """Refuse to write a key over anything, or into the release that it opens."""
        named = str(self.new_key_file)
        if self.out is not None and self.new_key_place.is_relative_to(Path(self.out).resolve()):
            raise OutputError(
                f"The key file {named!r} lies in the release {str(self.out)!r}: whoever gets the release could undo "
                "it. Fix: write the key to another folder."
            )
        if os.path.lexists(self.new_key_place):  # perhaps of a dead run, whose release did not come into place
            settle(self.new_key_place.parent)
        if os.path.lexists(self.new_key_place):
            raise OutputError(
                f"The key file {named!r} exists already, and a key is never overwritten. Fix: choose another name."
            )
        if not self.new_key_place.parent.is_dir():
            raise OutputError(
                f"The key file {named!r} cannot be written: there is no folder {str(self.new_key_place.parent)!r}. "
                "Fix: a folder that is there, and that you may write to."
            )

    @cached_property
    def secret(self) -> Secret:
        """The one that was given, or a fresh key."""
        if len(self._sources) > 1:
            raise OptionError(
                f"{' and '.join(self._sources)} exclude each other. Fix: give one of them, or none for a fresh key."
            )
        if self.key is not None:
            return Secret.from_key(self.key)
        if self.key_file is not None:
            return Secret.read(Path(self.key_file))
        if self.new_key_file is not None:
            self.require_new_key()
            return replace(Secret.generate(), source="key file")
        return Secret.generate() if self.seed is None else Secret.from_seed(self.seed)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The files that are read: a release must not be written over one of them."""
        return (*files_of(self.table), *files_of_key(self.sign))


@dataclass(frozen=True, eq=False)
class Publication:
    """A request with its table open.

    Attributes:
        secret: where the draws come from: the request's, or a series'.
        source: the table as its owner has it, before anything is made coarser.
        dataset: as it is published.
        sensitive: the perturbed columns of ``dataset``: of a column of lists, its items.
        privacy: what is required; for the plan of a series a little more than was asked for.
        domain: the declared values.
        about: what the release will say of itself.
        context: a digest of the table's content and of all choices: what makes a release another one.
        choices: what a series must not change, as text.
        instalment: which part of a series' budget it may spend; None where it is in none.
    """

    request: Request
    secret: Secret
    engine: Engine
    source: Dataset
    dataset: Dataset
    sensitive: tuple[str, ...]
    public: tuple[str, ...]
    privacy: Privacy | None
    domain: Domain
    about: About
    context: str
    choices: str
    instalment: Instalment | None = None

    @classmethod
    def of(cls, request: Request, secret: Secret) -> Publication:
        """Open the table, and find in it what was asked for."""
        engine = engine_for(request.engine, request.table)
        source = opened = engine.open(request.table)
        names, bins = request.columns, request.bins or {}
        public = public_columns(
            opened,
            names,
            as_names(request.drop),
            request.row_id,
            request.person,
            request.group,
            named_by="mechanism" if request.sensitive is None else "sensitive",
        )
        about = about_of(request.about, opened.names, [*public, *names])
        recoding = Recoding.of(request.recode, request.rare, request.suppress)
        recoding = recoding.fitting(names, request.missing, request.domain, bins)
        opened, names, domain = unfolded(opened, request, recoding)
        steps = recoding.steps(opened.schema, public, names)
        opened = opened.recoded(steps) if steps else opened
        chosen: dict[str, Any] = {"mechanism": request.chosen, "privacy": request.required}
        if request.chosen == AUTO and request.limit != EPSILON_LIMIT:
            chosen["limit"] = request.limit  # it may decide what noise costs
        said = {"values": (request.missing, domain, request.bins)}
        recoded = {"recode": opened.recodes} if opened.recodes else {}
        columns = (names, request.row_id, request.person, *([] if request.group is None else [request.group]))
        whole = {"columns": (public, *columns), "published": (request.marginals, request.shuffle)}
        context = ""
        if not secret.fresh:
            read = [*public, *names, *([] if request.group is None else [request.group])]
            context = context_of(opened, read, request.who, {**chosen, **whole, **said, **recoded})
        fixed = {"columns": columns, "published": (request.marginals,)}
        known = {
            name: one for name, one in bins.items() if not (request.learned and isinstance(as_bins(one), Quantiles))
        }
        dataset = binned(opened, known, names, Keystream(secret, "release", request.name, context, *names))
        return cls(
            request=request,
            secret=secret,
            engine=engine,
            source=source,
            dataset=dataset,
            sensitive=names,
            public=public,
            privacy=request.required,
            domain=domain,
            about=about,
            context=context,
            choices=canonical({**chosen, **fixed, **said, **recoded}),
        )

    @cached_property
    def keys(self) -> Keystream:
        """The randomness of everything that is not drawn row by row."""
        return Keystream(self.secret, "release", self.request.name, self.context, *self.sensitive)

    @property
    def unnamed(self) -> tuple[str, ...]:
        """Columns that are left out because they are labels of rows."""
        request = self.request
        return row_labels(self.source.names, (*request.columns, *as_names(request.drop), request.who))

    def scan(self, columns: tuple[str, ...], domain: Domain = None) -> Scan:
        """Count some columns as one."""
        return self.dataset.scan(columns, self.request.missing, domain, self.request.progress)

    def without(self, rows: Ints) -> Publication:
        """The same for a table without these rows."""
        return replace(self, dataset=self.dataset.without(rows))


# -- the table and its columns -----------------------------------------------------------------------------------------


def files_of(table: Any) -> list[str]:
    """The files that a table is read from; none where it is in memory."""
    paths = table if isinstance(table, list | tuple) else [table]
    named = [os.fspath(path) for path in paths if isinstance(path, str | os.PathLike)]
    files = [path if os.path.exists(path) else re.sub(r"(?i)(\.xls[xm])#.*", r"\1", path) for path in named]
    return [file for path in files for file in (glob.glob(path, recursive=True) or [path])]


def require_once(table: Any) -> None:
    """Refuse a file that is named twice: everybody would be published twice, which is two looks at each of them."""
    several = table if isinstance(table, list | tuple) else [table]
    files = files_of([path for path in several if not (isinstance(path, str) and "#" in path)])  # book.xlsx#sheet
    places = [os.path.realpath(file) for file in files]
    for file, place in zip(files, places, strict=True):
        if places.count(place) > 1:
            raise TableError(f"The file {file!r} is named {places.count(place)} times. Fix: name it once.")


def as_names(names: str | Sequence[str]) -> tuple[str, ...]:
    """One name or several, as several."""
    return (names,) if isinstance(names, str) else tuple(names)


def public_columns(
    source: Dataset,
    sensitive: tuple[str, ...],
    drop: tuple[str, ...] = (),
    row_id: str | None = None,
    person: str | None = None,
    group: str | None = None,
    *,
    named_by: str = "sensitive",
) -> tuple[str, ...]:
    """The columns that stay as they are; every problem with the roles of columns is said at once.

    ``named_by`` is the option that names the sensitive ones: a mechanism may, too.
    """
    problems = []
    if not sensitive:
        problems.append(f"{option('sensitive')} names no column: say which column must stay deniable.")
    roles = {named_by: sensitive, "drop": drop}
    owners = (("row_id", row_id), ("person", person), ("group", group))
    roles |= {role: (name,) for role, name in owners if name is not None}
    problems += [
        no_column(role, name, source.names, _joined(role, name, source.names))
        for role, names in roles.items()
        for name in names
        if name not in source.names
    ]
    for name in dict.fromkeys(sensitive):
        named = [option(role, "") for role, names in roles.items() for other in names if other == name]
        if len(named) > 1:
            problems.append(
                f"The column {name!r} is named by {' and by '.join(named)}: a column has one role. Fix: name it once."
            )
    left_out = {*row_labels(source.names, sensitive), *(name for names in roles.values() for name in names)}
    public = tuple(name for name in source.names if name not in left_out)
    if CELL in (*public, *sensitive):
        problems.append(
            f"The column name {CELL!r} is reserved: a release uses it for the cell a row fell into. "
            f"Fix: rename the column, or drop it."
        )
    for name in public:
        kind = source.schema.field(name).type
        if not is_askable(kind):
            problems.append(
                f"The column {name!r} has the type {kind}, by which a release could not be asked. Fix: drop it, or "
                "convert it to strings or numbers."
            )
    if problems:
        raise ColumnError("\n".join(problems))
    return public


def _joined(role: str, name: str, names: Sequence[str]) -> str:
    """The hint where a column that is not there is several that are, joined by commas."""
    joined = [part.strip() for part in name.split(",")]
    several = len(joined) > 1 and all(part in names for part in joined)
    return f" Fix: name columns one by one, {option(role, joined)}." if several else ""


def check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Refuse what is not among the choices."""
    if value not in allowed:
        raise OptionError(
            f"{name} = {value!r} is not known: choose one of {', '.join(allowed)}.{did_you_mean(value, allowed)}"
        )


def unfolded(opened: Dataset, request: Request, recoding: Recoding) -> tuple[Dataset, tuple[str, ...], Domain]:
    """The table, its sensitive columns and their domain: with a column for each item where the mechanism perturbs the
    items of a column of lists."""
    how = request.chosen.unfolding if isinstance(request.chosen, Mechanism) else None
    if how is None:
        return opened, request.columns, request.domain
    if len(request.columns) != 1:
        raise OptionError(
            f"mechanism 'items' perturbs the items of one column of lists; sensitive names "
            f"{listing(list(request.columns))}. Fix: name one, and drop the others or put their items into its lists."
        )
    (column,) = request.columns
    _require_lists_alone(request, recoding, column)
    items = _declared_items(column, request.domain)
    if items is None and request.required is not None and request.required.adversary == "any-prior":
        raise RequirementError(
            f"The items of {column!r} are not declared: adversary 'any-prior' covers whatever was believed, and that "
            f"an item is listed because someone has it is evidence. Fix: {option('domain', '[..]', 'COLUMN=FILE')} "
            "with every item that a list may hold, whether or not the table shows it."
        )
    if not isinstance(opened, Unfolds):
        raise OptionError(
            f"This engine cannot read the lists of {column!r} item by item. Fix: publish on one machine "
            f"({option('engine', 'local')}), or make a column of each item first and publish them with Retention(.., "
            "budget=..)."
        )
    dataset = opened.unfolded(column, how, items, request.person)
    columns = tuple(dataset.items)
    return dataset, columns, None if items is None else {name: [False, True] for name in columns}


def _require_lists_alone(request: Request, recoding: Recoding, column: str) -> None:
    """Refuse the first option that does not go with lists."""
    given = {
        f"{option('missing', request.missing)} (a missing list is an empty one, and is perturbed like any other)": (
            request.missing != "value"
        ),
        "marginals=True (a noisy count of every item would cost as much as the rows do, once for every item that a "
        "person has)": bool(request.marginals),
        f"{option('series', '')} (a list that changes by one item would be published again in all of its items)": (
            request.series is not None
        ),
        f"{option('bins', '')} (items are no numbers)": bool(request.bins),
        f"{option('recode', '')} of {column!r} (a list is no value to make coarser; recode its items beforehand)": (
            column in recoding.columns
        ),
        f"{option('suppress', '')} (it makes rare values missing; leave rare items out beforehand)": recoding.suppress
        is not None,
    }
    for what, there in given.items():
        if there:
            raise OptionError(f"The lists of {column!r} do not go with {what}. Fix: leave it out.")


def _declared_items(column: str, domain: Domain) -> Sequence[Any] | None:
    if not isinstance(domain, Mapping):
        return domain
    strange = [name for name in domain if name != column]
    if strange:
        declared = option("domain", "[items]", f"{column}=FILE")
        raise OptionError(f"{option('domain')} names {strange[0]!r}, which is no sensitive column. Fix: {declared}.")
    return domain.get(column)


def binned(
    dataset: Dataset, bins: Mapping[str, BinsLike], sensitive: tuple[str, ...], keys: Keystream | None = None
) -> Dataset:
    """The table with its sensitive numbers as intervals, where it has bins."""
    other = [column for column in bins if column not in sensitive]
    if other:
        if other[0] not in dataset.names:
            raise ColumnError(no_column("bins", other[0], dataset.names))
        raise ColumnError(
            f"{option('bins')} names {other[0]!r}, which is not a sensitive column. Fix: "
            f"{option('recode', f'{{{other[0]!r}: bands(..)}}', f'{other[0]}=bands:..')} makes a public column coarser."
        )
    return dataset.binned(bins, keys)


def scan_table(
    table: Any,
    sensitive: str | Sequence[str],
    *,
    missing: str = "value",
    bins: Mapping[str, BinsLike] | None = None,
    recoding: Recoding | None = None,
    progress: Progress = no_progress,
    engine: str | Engine = "local",
) -> Histogram:
    """The histogram of a table's sensitive column: all that planning needs."""
    names = as_names(sensitive)
    opened = engine_named(engine).open(table)
    public = public_columns(opened, names)
    steps = {} if recoding is None else recoding.steps(opened.schema, public, names)
    coarse = opened.recoded({column: step for column, step in steps.items() if column in names})
    return binned(coarse, bins or {}, names).scan(names, missing, None, progress).histogram


def about_of(given: About | Mapping[str, Any] | None, names: Sequence[str], published: Sequence[str]) -> About:
    """What was given, with a date, and with descriptions of published columns alone.

    Args:
        given: as the owner has it.
        names: of all columns of the table: others are refused.
        published: those that whoever receives the release will see or ask about.
    """
    about = About() if given is None else given
    if isinstance(about, Mapping):
        unknown = [name for name in about if name not in ("publisher", "contact", "date", "columns")]
        if unknown:
            raise OptionError(
                f"about has the field {shortened(unknown[0])}. Fix: publisher, contact, date and columns are known."
            )
        about = About(**about)
    if not isinstance(about, About) or about.expected:
        raise OptionError(f"about = {shortened(given)} is not understood. Fix: dn.About(publisher='..', contact='..').")
    unknown = [name for name in about.columns if name not in names]
    if unknown:
        raise ColumnError(
            f"The data dictionary describes {listing(unknown)}, and the table has no such column."
            f"{did_you_mean(unknown[0], names)} Fix: leave it out of the dictionary, or correct its name."
        )
    described = {name: text for name, text in about.columns.items() if name in published}
    return replace(about, date=about.date or today(), columns=described)


# -- what makes a release another one ----------------------------------------------------------------------------------
#
# Draws are derived from the key and this context. If two releases shared draws, rows that they publish differently
# would show that both were kept; so the same table and choices give the same release, anything else another one.


def context_of(dataset: Dataset, columns: list[str], row_id: str | None, choices: Mapping[str, Any]) -> str:
    """A digest of some columns of a table, in the order of its rows or of their ids, and of all choices."""
    content = dataset.digest([*columns, *([] if row_id is None else [row_id])], by=row_id)
    return hashlib.sha256(f"{content} {canonical(choices)}".encode()).hexdigest()


def canonical(value: Any) -> str:
    """A value as text that depends on nothing but the value: not on the order of a set, nor on a run of the program.

    >>> canonical({"b": {2, 1}, "a": (1.5, None)})
    '{"a": (1.5, None), "b": {1, 2}}'
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        stated = {field.name: (field, getattr(value, field.name)) for field in dataclasses.fields(value)}
        # An option that came later says nothing where it is left out, so that draws stay what they were.
        later = {name for name, (field, own) in stated.items() if "later" in field.metadata and own == field.default}
        fields = {name: own for name, (_, own) in stated.items() if name not in later}
        return f"{type(value).__name__}{canonical(fields)}"
    if isinstance(value, Mapping):
        items = sorted((canonical(key), canonical(item)) for key, item in value.items())
        return "{" + ", ".join(f"{key}: {item}" for key, item in items) + "}"
    if isinstance(value, set | frozenset):
        return "{" + ", ".join(sorted(map(canonical, value))) + "}"
    if isinstance(value, list | tuple):
        return "(" + ", ".join(map(canonical, value)) + ")"
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"
    return f'"{value}"' if isinstance(value, str) else repr(value)
