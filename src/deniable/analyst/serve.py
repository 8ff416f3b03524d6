"""A release behind the PostgreSQL protocol: what speaks to a database asks it, and `SELECT .. FROM release` means what
``release.sql`` means.

It serves reading alone, at an address of this machine unless another is named, to whoever has the token (as password).
There is no TLS: for other machines a tunnel (`ssh -L`) goes in front of it. What clients ask of a catalogue is answered
by the locked database of ``estimation.sql.database``, in which the table has columns and no rows.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import hmac
import math
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pyarrow as pa

from deniable.core.errors import DeniableError, QuestionError
from deniable.estimation.sql.answering import NOTE
from deniable.estimation.sql.database import run
from deniable.release.release import Release

MOST_BYTES = 2**20  # of one message
MOST_ROWS = 100_000  # of one result
MOST_CLIENTS = 32
MOST_KEPT = 256  # prepared statements, and portals, of one client
PATIENCE = 10.0  # seconds for a client to say who it is
PROTOCOL, TLS, GSS, CANCEL = 196608, 80877103, 80877104, 80877102
STATES = {
    "server_version": "16.0 (deniable)",
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "DateStyle": "ISO, YMD",
    "TimeZone": "UTC",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
    "is_superuser": "off",
    "default_transaction_read_only": "on",
    "in_hot_standby": "off",
}
SHOWN = {
    "transaction isolation level": "read committed",
    "transaction_isolation": "read committed",
    "transaction_read_only": "on",
    "search_path": "public",
    "max_identifier_length": "63",
    "statement_timeout": "0",
    "lc_collate": "C",
    "server_version_num": "160000",
}
BOOL, INT8, FLOAT8, TEXT, DATE, TIMESTAMP = 16, 20, 701, 25, 1082, 1114
SIZES = {BOOL: 1, INT8: 8, FLOAT8: 8, DATE: 4, TIMESTAMP: 8}
NUMBERS = {20, 21, 23, 26, 700, 701, 1700}  # types of parameters that are written without quotes
EPOCH = datetime.date(2000, 1, 1)
MIDNIGHT = datetime.datetime.combine(EPOCH, datetime.time())  # what a timestamp without a zone counts from

_WORD = re.compile(r"\s*(?:--[^\n]*\n\s*|/\*.*?\*/\s*)*\(*\s*([A-Za-z]+)", re.DOTALL)
_QUALIFIED = re.compile(r'(?:"?public"?|"?main"?)\s*\.\s*("?release"?)(?=\W|$)', re.IGNORECASE)
_RELEASE = re.compile(r'\b(?:from|join)\s+"?release"?(?=\W|$)', re.IGNORECASE)
_EMPTY = re.compile(
    r'select\s+(\*|[^()]*?)\s+from\s+"?release"?(?:\s+(?:as\s+)?"?\w+"?)?\s+(?:limit\s+0|where\s+(?:1\s*=\s*0|0\s*=\s*1|false))',
    re.IGNORECASE | re.DOTALL,
)
_CATALOGUE = re.compile(r"\b(pg_\w+|information_schema)\b", re.IGNORECASE)
_MAKES_ROWS = re.compile(r"\b(range|generate_series|repeat|unnest|sleep\w*|pg_sleep\w*|recursive)\s*\(", re.IGNORECASE)
_SHOW = re.compile(r"\s*show\s+(.+?)\s*;?\s*$", re.IGNORECASE | re.DOTALL)
_VERSION = re.compile(r"(?:pg_catalog\.)?\bversion\(\)", re.IGNORECASE)
_LISTING = re.compile(r'select n\.nspname as "Schema",\s+c\.relname as "Name"', re.IGNORECASE)  # \dt of psql
_SCHEMA_OF_FUNCTION = re.compile(r"\bpg_catalog\.(?=\w+\()", re.IGNORECASE)
_PIECE = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/|\$\d+|;|.""", re.DOTALL)
TAGS = {
    **dict.fromkeys(("BEGIN", "START"), "BEGIN"),
    **dict.fromkeys(("COMMIT", "END"), "COMMIT"),
    **dict.fromkeys(("ROLLBACK", "ABORT"), "ROLLBACK"),
    **{word: word for word in ("SET", "RESET", "DISCARD", "SAVEPOINT", "RELEASE", "DEALLOCATE", "CLOSE", "UNLISTEN")},
}

TO_SAVEPOINT = "ROLLBACK TO"  # which leaves the transaction open


class ServeError(Exception):
    """A refusal in the words of the protocol: a code of five letters, and what it says."""

    def __init__(self, code: str, said: str) -> None:
        super().__init__(said)
        self.code = code


# -- Results as the protocol has them ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Result:
    """Columns, with their types, and rows; a statement that gives none has a word that says it was done.

    Attributes:
        note: what to know before believing it.
    """

    tag: str
    names: tuple[str, ...] = ()
    kinds: tuple[int, ...] = ()
    rows: tuple[tuple[object, ...], ...] = ()
    note: str = ""

    @classmethod
    def of(cls, table: pa.Table) -> Result:
        if table.num_rows > MOST_ROWS:
            raise ServeError(
                "54000",
                f"The result has {table.num_rows:,} rows; at most {MOST_ROWS:,} are sent. Fix: LIMIT, or fewer groups.",
            )
        note = (table.schema.metadata or {}).get(NOTE.encode(), b"").decode()
        columns = [column.to_pylist() for column in table.columns]
        rows = tuple(zip(*columns, strict=True)) if columns else ()
        kinds = tuple(kind_of(field.type) for field in table.schema)
        return cls(f"SELECT {table.num_rows}", tuple(table.column_names), kinds, rows, note)

    def description(self, formats: Sequence[int]) -> bytes:
        """What the columns are."""
        fields = b"".join(
            name.encode() + b"\0" + struct.pack("!ihihih", 0, 0, kind, SIZES.get(kind, -1), -1, form)
            for name, kind, form in zip(self.names, self.kinds, spread(formats, len(self.names)), strict=True)
        )
        return message(b"T", struct.pack("!h", len(self.names)) + fields)

    def sent(self, formats: Sequence[int], first: int = 0, last: int | None = None) -> Iterator[bytes]:
        """Its rows, one message each."""
        forms = spread(formats, len(self.names))
        for row in self.rows[first:last]:
            cells = []
            for value, kind, form in zip(row, self.kinds, forms, strict=True):
                raw = None if value is None else (in_binary if form else in_text)(value, kind)
                cells.append(struct.pack("!i", -1) if raw is None else struct.pack("!i", len(raw)) + raw)
            yield message(b"D", struct.pack("!h", len(cells)) + b"".join(cells))


def kind_of(kind: pa.DataType) -> int:
    """The type that a column has for clients."""
    if pa.types.is_boolean(kind):
        return BOOL
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return INT8
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return FLOAT8
    if pa.types.is_date(kind):
        return DATE
    return TIMESTAMP if pa.types.is_timestamp(kind) and kind.tz is None else TEXT


def in_text(value: object, kind: int) -> bytes:
    """A value as text.

    >>> in_text(True, BOOL), in_text(2.5, FLOAT8), in_text(datetime.date(2024, 5, 1), DATE)
    (b't', b'2.5', b'2024-05-01')
    """
    if kind == BOOL:
        return b"t" if value else b"f"
    if kind == FLOAT8:
        number = float(value)  # type: ignore[arg-type]
        return (repr(number) if math.isfinite(number) else {"nan": "NaN"}.get(str(number), str(number))).encode()
    return (value.isoformat(" ") if isinstance(value, datetime.datetime) else str(value)).encode()


def in_binary(value: object, kind: int) -> bytes:
    """A value as the protocol packs it.

    >>> in_binary(7, INT8)[-1], in_binary(datetime.date(2000, 1, 3), DATE)
    (7, b'\\x00\\x00\\x00\\x02')
    """
    if kind == BOOL:
        return b"\1" if value else b"\0"
    if kind == INT8:
        return struct.pack("!q", value)
    if kind == FLOAT8:
        return struct.pack("!d", float(value))  # type: ignore[arg-type]
    if isinstance(value, datetime.datetime):
        return struct.pack("!q", (value - MIDNIGHT) // datetime.timedelta(microseconds=1))
    if isinstance(value, datetime.date):
        return struct.pack("!i", (value - EPOCH).days)
    return str(value).encode()


def spread(formats: Sequence[int], number: int) -> list[int]:
    """Formats of columns: none said is text, one is for all."""
    if len(formats) not in (0, 1, number):
        raise ServeError("08P01", f"{len(formats)} formats are given for {number} columns.")
    return list(formats) if len(formats) == number else [formats[0] if formats else 0] * number


def message(kind: bytes, content: bytes = b"") -> bytes:
    return kind + struct.pack("!i", len(content) + 4) + content


# -- Statements --------------------------------------------------------------------------------------------------------


def statements(text: str) -> list[str]:
    """The statements of a text; a semicolon within quotes or a remark parts nothing.

    >>> statements("SELECT ';' ; -- one; two")
    ["SELECT ';'"]
    """
    parts = [""]
    for piece in _PIECE.findall(text):
        if piece == ";":
            parts.append("")
        elif not piece.startswith(("--", "/*")):
            parts[-1] += piece
        else:
            parts[-1] += " "
    return [part.strip() for part in parts if part.strip()]


def with_parameters(text: str, values: Sequence[str | None]) -> str:
    """A statement with values, already in SQL, in the place of $1, $2, ..

    >>> with_parameters("SELECT '$1' WHERE a = $1", ["'x'"])
    "SELECT '$1' WHERE a = 'x'"
    """

    def one(piece: str) -> str:
        if not re.fullmatch(r"\$\d+", piece):
            return piece
        place = int(piece[1:]) - 1
        if not 0 <= place < len(values):
            raise ServeError("08P01", f"{piece} has no value: {len(values)} are given.")
        value = values[place]
        return "NULL" if value is None else value

    return "".join(map(one, _PIECE.findall(text)))


def parameter(raw: bytes | None, kind: int, form: int) -> str | None:
    """A value of a parameter in SQL: numbers as they are, all else as a text, which is read by the column's type."""
    if raw is None:
        return None
    if form == 1:
        text = _from_binary(raw, kind)
    else:
        text = raw.decode()
        if kind == BOOL:
            return "TRUE" if text.lower() in ("t", "true", "1", "on", "yes") else "FALSE"
        if kind in NUMBERS:
            float(text)  # a number, and nothing else
    if kind == BOOL or kind in NUMBERS:
        return text
    return "'" + text.replace("'", "''") + "'"


def _from_binary(raw: bytes, kind: int) -> str:
    whole = {2: "!h", 4: "!i", 8: "!q"}
    if kind in (20, 21, 23, 26) and len(raw) in whole:
        return str(struct.unpack(whole[len(raw)], raw)[0])
    if kind in (700, 701):
        return repr(struct.unpack("!f" if kind == 700 else "!d", raw)[0])
    if kind == BOOL:
        return "TRUE" if raw == b"\1" else "FALSE"
    if kind == DATE:
        return str(EPOCH + datetime.timedelta(struct.unpack("!i", raw)[0]))
    if kind == TIMESTAMP:
        return str(MIDNIGHT + datetime.timedelta(microseconds=struct.unpack("!q", raw)[0]))
    if kind in (0, TEXT, 1042, 1043, 705):
        return raw.decode()
    raise ServeError("0A000", f"A parameter of type {kind} in binary is not understood. Fix: send it as text.")


class Answers:
    """Answers statements about a release, one after the other."""

    def __init__(self, release: Release) -> None:
        self.release = release
        schema = release.published_schema()
        names = [column.name for column in release.manifest.columns if column.role != "cell"]
        self.columns = pa.table({name: pa.array([], _simple(schema.field(name).type)) for name in names})

    def answer(self, text: str) -> Result:
        """The result of one statement."""
        word = _WORD.match(text)
        first = "" if word is None else word[1].upper()
        if first == "SHOW":
            return self._shown(text)
        if first in TAGS:
            within = first == "ROLLBACK" and re.search(r"\bto\b", text, re.IGNORECASE) is not None
            return Result(TO_SAVEPOINT if within else TAGS[first])
        if first not in ("SELECT", "WITH", "VALUES", "TABLE"):
            raise ServeError(
                "25006", f"A release can only be asked: write SELECT .. FROM release, not {first or text!r}."
            )
        plain = _QUALIFIED.sub(r"\1", text)
        if _RELEASE.search(plain) is not None and _CATALOGUE.search(plain) is None:
            if _EMPTY.fullmatch(plain) is not None:  # clients ask so what columns there are
                return Result.of(run(plain, {"release": self.columns}))
            return Result.of(self.release.sql(plain))
        return Result.of(self._of_catalogue(plain))

    def _of_catalogue(self, text: str) -> pa.Table:
        if _MAKES_ROWS.search(text) is not None:
            raise ServeError("42501", "Only the table release, and what a catalogue says of it, can be asked here.")
        if _LISTING.search(text) is not None:
            return pa.table({"Schema": ["public"], "Name": ["release"], "Type": ["table"], "Owner": ["deniable"]})
        known = _VERSION.sub(f"'PostgreSQL {STATES['server_version']}'", text)
        try:
            return run(_SCHEMA_OF_FUNCTION.sub("", known), {"release": self.columns})
        except QuestionError as problem:
            raise ServeError(
                "42704",
                f"The catalogue cannot say this: {str(problem).rstrip('.!')}. Fix: SELECT column_name, data_type FROM "
                "information_schema.columns WHERE table_name = 'release'",
            ) from None

    @staticmethod
    def _shown(text: str) -> Result:
        match = _SHOW.match(text)
        name = "" if match is None else match[1].strip().strip('"')
        known = {**{key.lower(): value for key, value in STATES.items()}, **SHOWN}
        if name.lower() not in known:
            raise ServeError("42704", f"There is no setting {name!r} here.")
        return Result("SHOW", (name.lower().replace(" ", "_"),), (TEXT,), ((known[name.lower()],),))


def _simple(kind: pa.DataType) -> pa.DataType:
    """A type that an empty table may have: dictionaries are their values, lists are texts."""
    if pa.types.is_dictionary(kind):
        return _simple(kind.value_type)
    return pa.string() if pa.types.is_nested(kind) else kind


# -- The conversation with one client ----------------------------------------------------------------------------------


@dataclass
class Prepared:
    """A statement, the types of its parameters, and its result where it has none."""

    text: str
    kinds: tuple[int, ...]
    result: Result | None = None


@dataclass
class Portal:
    """A statement that has its values, and how far its result was sent."""

    text: str
    formats: tuple[int, ...]
    result: Result | None = None
    place: int = 0


@dataclass
class Client:
    """One connection.

    Attributes:
        answered: gives the result of a statement, within its time.
        status: I, outside of a transaction; T, in one; E, in one that has failed.
    """

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    answered: Callable[[str], asyncio.Future[Result]]
    token: str
    status: str = "I"
    prepared: dict[str, Prepared] = field(default_factory=dict)
    portals: dict[str, Portal] = field(default_factory=dict)

    async def talk(self) -> None:
        """All of it."""
        if not await asyncio.wait_for(self._greeted(), PATIENCE):
            return
        skipping = False  # after an error, what follows up to the next Sync
        while True:
            kind, content = await self._message()
            if kind == b"X":
                return
            try:
                if kind == b"S":
                    skipping = False
                    self._send(message(b"Z", self.status.encode()))
                elif not skipping:
                    await self._handle(kind, Reading(content))
            except (DeniableError, ServeError, ValueError, struct.error) as problem:
                self._refuse(problem)
                skipping = kind != b"Q"
                if not skipping:
                    self._send(message(b"Z", self.status.encode()))
            if kind in (b"Q", b"S", b"H"):
                await self.writer.drain()

    async def _greeted(self) -> bool:
        """Whether the client has said who it is."""
        while True:
            (size,) = struct.unpack("!i", await self.reader.readexactly(4))
            if not 8 <= size <= 10_000:
                return False
            content = await self.reader.readexactly(size - 4)
            (code,) = struct.unpack("!i", content[:4])
            if code in (TLS, GSS):
                self._send(b"N")
                await self.writer.drain()
                continue
            if code != PROTOCOL:  # a request to cancel, or another protocol: questions have a time of their own
                return False
            break
        self._send(message(b"R", struct.pack("!i", 3)))
        await self.writer.drain()
        kind, given = await self._message()
        if kind != b"p" or not hmac.compare_digest(given.rstrip(b"\0"), self.token.encode()):
            self._refuse(
                ServeError("28P01", "The password is not the token that `deniable serve` has printed."), "FATAL"
            )
            await self.writer.drain()
            return False
        self._send(message(b"R", struct.pack("!i", 0)))
        for name, value in STATES.items():
            self._send(message(b"S", name.encode() + b"\0" + value.encode() + b"\0"))
        self._send(message(b"K", struct.pack("!ii", 1, 1)) + message(b"Z", b"I"))
        await self.writer.drain()
        return True

    async def _message(self) -> tuple[bytes, bytes]:
        kind, size = struct.unpack("!ci", await self.reader.readexactly(5))
        if not 4 <= size <= MOST_BYTES:
            self._refuse(
                ServeError("54000", f"A message has {size:,} bytes; at most {MOST_BYTES:,} are read."), "FATAL"
            )
            raise ConnectionError
        return kind, await self.reader.readexactly(size - 4)

    async def _handle(self, kind: bytes, content: Reading) -> None:
        match kind:
            case b"Q":
                await self._simple(content.text())
            case b"P":
                name, text = content.text(), content.text()
                kinds = tuple(content.number("!i") for _ in range(content.number("!h")))
                if len(statements(text)) > 1:
                    raise ServeError("42601", "Ask one question at a time.")
                if len(self.prepared) >= MOST_KEPT and name not in self.prepared:
                    raise ServeError("54000", f"At most {MOST_KEPT} statements are kept. Fix: DEALLOCATE some.")
                self.prepared[name] = Prepared(text, kinds)
                self._send(message(b"1"))
            case b"B":
                self._bind(content)
            case b"D":
                await self._describe(content.kind(), content.text())
            case b"E":
                await self._execute(content.text(), content.number("!i"))
            case b"C":
                (self.prepared if content.kind() == b"S" else self.portals).pop(content.text(), None)
                self._send(message(b"3"))
            case b"H":
                pass
            case _:
                raise ServeError("0A000", f"Messages of kind {kind.decode('latin-1')!r} are not understood.")

    async def _simple(self, text: str) -> None:
        every = statements(text)
        if not every:
            self._send(message(b"I"))
        for one in every:
            result = await self._result(one)
            if result.names:
                self._send(result.description(()))
            for row in result.sent(()):
                self._send(row)
            self._done(result)
        self._send(message(b"Z", self.status.encode()))

    def _bind(self, content: Reading) -> None:
        portal, name = content.text(), content.text()
        forms = [content.number("!h") for _ in range(content.number("!h"))]
        raws = [content.raw() for _ in range(content.number("!h"))]
        formats = tuple(content.number("!h") for _ in range(content.number("!h")))
        prepared = self._prepared(name)
        kinds = [*prepared.kinds, *[0] * (len(raws) - len(prepared.kinds))]
        values = [parameter(*one) for one in zip(raws, kinds, spread(forms, len(raws)), strict=False)]
        if len(self.portals) >= MOST_KEPT:
            self.portals.clear()
        self.portals[portal] = Portal(
            with_parameters(prepared.text, values), formats, prepared.result if not raws else None
        )
        self._send(message(b"2"))

    async def _describe(self, kind: bytes, name: str) -> None:
        if kind == b"P":
            portal = self._portal(name)
            portal.result = portal.result or await self._result(portal.text)
            self._send(portal.result.description(portal.formats) if portal.result.names else message(b"n"))
            return
        prepared = self._prepared(name)
        number = max(
            (int(piece[1:]) for piece in _PIECE.findall(prepared.text) if re.fullmatch(r"\$\d+", piece)), default=0
        )
        kinds = [*(kind or TEXT for kind in prepared.kinds), *[TEXT] * (number - len(prepared.kinds))]
        self._send(message(b"t", struct.pack("!h", len(kinds)) + b"".join(struct.pack("!i", kind) for kind in kinds)))
        result = await self._columns(prepared.text, number) if _asks(prepared.text) else None
        prepared.result = result if number == 0 else None
        self._send(result.description(()) if result is not None and result.names else message(b"n"))

    async def _columns(self, text: str, number: int) -> Result:
        """What a statement would give, whose parameters have no values yet: any that it can be asked with will do."""
        for value in ("''", "0") if number else ():
            with contextlib.suppress(DeniableError):
                return await self._result(with_parameters(text, [value] * number))
        return await self._result(with_parameters(text, [None] * number))

    async def _execute(self, name: str, most: int) -> None:
        portal = self._portal(name)
        if not portal.text.strip():
            self._send(message(b"I"))
            return
        portal.result = portal.result or await self._result(portal.text)
        last = len(portal.result.rows) if most <= 0 else min(portal.place + most, len(portal.result.rows))
        for row in portal.result.sent(portal.formats, portal.place, last):
            self._send(row)
        portal.place = last
        if last < len(portal.result.rows):
            self._send(message(b"s"))
        else:
            self._done(portal.result)

    def _prepared(self, name: str) -> Prepared:
        if name not in self.prepared:
            raise ServeError("26000", f"There is no prepared statement {name!r}.")
        return self.prepared[name]

    def _portal(self, name: str) -> Portal:
        if name not in self.portals:
            raise ServeError("34000", f"There is no portal {name!r}.")
        return self.portals[name]

    async def _result(self, text: str) -> Result:
        return await self.answered(text)

    def _done(self, result: Result) -> None:
        if result.note:
            self._send(message(b"N", _fields({"S": "NOTICE", "V": "NOTICE", "C": "01000", "M": result.note})))
        if result.tag in ("BEGIN", TO_SAVEPOINT):
            self.status = "T"
        elif result.tag in ("COMMIT", "ROLLBACK"):
            self.status = "I"
        self._send(message(b"C", result.tag.replace(TO_SAVEPOINT, "ROLLBACK").encode() + b"\0"))

    def _refuse(self, problem: Exception, severity: str = "ERROR") -> None:
        said, _, fix = str(problem).partition(" Fix: ")
        code = problem.code if isinstance(problem, ServeError) else "42000"
        fields = {"S": severity, "V": severity, "C": code, "M": said or "This could not be read."}
        self._send(message(b"E", _fields({**fields, **({"H": fix} if fix else {})})))
        if self.status == "T":
            self.status = "E"

    def _send(self, raw: bytes) -> None:
        self.writer.write(raw)


def _asks(text: str) -> bool:
    word = _WORD.match(text)
    return word is not None and word[1].upper() in ("SELECT", "WITH", "SHOW", "VALUES", "TABLE")


def _fields(said: dict[str, str]) -> bytes:
    return b"".join(key.encode() + value.replace("\0", "").encode() + b"\0" for key, value in said.items()) + b"\0"


class Reading:
    """The content of a message, read from its beginning."""

    def __init__(self, content: bytes) -> None:
        self._content, self._place = content, 0

    def text(self) -> str:
        end = self._content.find(b"\0", self._place)
        if end < 0:
            raise ServeError("08P01", "A text in a message has no end.")
        part = self._content[self._place : end]
        self._place = end + 1
        return part.decode()

    def number(self, form: str) -> int:
        (value,) = struct.unpack_from(form, self._content, self._place)
        self._place += struct.calcsize(form)
        return int(value)

    def kind(self) -> bytes:
        return bytes([self.number("!B")])

    def raw(self) -> bytes | None:
        size = self.number("!i")
        if size < 0:
            return None
        part = self._content[self._place : self._place + size]
        if len(part) < size:
            raise ServeError("08P01", "A value in a message has no end.")
        self._place += size
        return part


# -- The server --------------------------------------------------------------------------------------------------------


async def serve(
    release: Release, token: str, *, host: str, port: int, seconds: float, ready: Callable[[int], None]
) -> None:
    """Serve a release until it is cancelled.

    Args:
        release: the release.
        token: the password.
        host, port: where to listen; port 0 is any that is free.
        seconds: the time that a question has.
        ready: called with the port.
    """
    answers, workers = Answers(release), ThreadPoolExecutor(1, "answers")
    clients: set[asyncio.StreamWriter] = set()

    async def answered(text: str) -> Result:
        loop = asyncio.get_running_loop()
        try:
            return await asyncio.wait_for(loop.run_in_executor(workers, answers.answer, text), seconds)
        except TimeoutError:
            raise ServeError(
                "57014", f"The question took more than {seconds:g} seconds. Fix: ask about less."
            ) from None
        except RecursionError:
            raise QuestionError("The question is nested too deeply.") from None

    async def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(clients) >= MOST_CLIENTS:
            writer.close()
            return
        clients.add(writer)
        try:
            await Client(reader, writer, answered, token).talk()  # type: ignore[arg-type]
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError, UnicodeDecodeError, struct.error):
            pass
        finally:
            clients.discard(writer)
            with contextlib.suppress(ConnectionError, RuntimeError):
                writer.close()

    server = await asyncio.start_server(met, host, port, limit=MOST_BYTES)
    ready(server.sockets[0].getsockname()[1])
    try:
        async with server:
            await server.serve_forever()
    finally:
        workers.shutdown(wait=False, cancel_futures=True)
