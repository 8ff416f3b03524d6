"""What the owner of a table should know of its columns before it is published."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.errors import TableError, option, worded
from deniable.tables.base import Dataset
from deniable.tables.encoding import is_text, plain_type

# -- Columns that name people: told by what their values look like, or by what the column is called --------------------
# A column of categories is never taken for one: it has few values, and many rows for each of them.


MANY = 50  # values, of a column that is no list of categories; half of the rows in a smaller table
ALIKE = 0.9  # of the values look like that
COMMON = 0.02  # values for each row, of addresses and numbers: people may have many rows
NAMED, VARIED = 0.15, 20  # values for each row, of names, which several people may have; and first and last words
LONG_LETTERS, LONG_WORDS, WRITTEN = 40, 5, 0.1  # of free text, and its values for each row
DECADES = 20  # years, between the first and the last twentieth of the rows
DAYS = 24  # of a year, at the least: dates that were made coarser are firsts of a month

_WORD = r"\p{Lu}[\p{L}'’.-]*"
_LOOKS: tuple[tuple[str, str], ...] = (
    ("e-mail addresses", r"^[^@\s]+@[^@\s]+\.[A-Za-z]{2,}$"),
    ("addresses of computers", r"^([0-9]{1,3}\.){3}[0-9]{1,3}$"),
    ("bank accounts", r"^[A-Z]{2}[0-9]{2}( ?[A-Z0-9]{1,4}){3,8}$"),
    ("numbers of people", r"^([0-9]{3}-[0-9]{2}-[0-9]{4}|756\.[0-9]{4}\.[0-9]{4}\.[0-9]{2})$"),
    ("numbers of people", r"^[A-Z]{6}[0-9]{2}[A-Z][0-9]{2}[A-Z][0-9]{3}[A-Z]$"),
    ("numbers of people", r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"),
    ("telephone numbers", r"^(\+|0)[0-9 ()/.-]{7,20}$|^\(?[0-9]{3}\)?[ .-][0-9]{3}[ .-][0-9]{4}$"),
)
_NAME = rf"^(?P<first>{_WORD})(?:,? (?:{_WORD}|von|van|de|der|den|di|da|la|le|bin)){{0,3}},? (?P<last>{_WORD})$"
_DAY = r"^(?P<year>[12][0-9]{3})-?(?P<month>[01][0-9])-?(?P<day>[0-3][0-9])$"
_LOCAL_DAY = r"^(?P<day>[0-9]{1,2})[./-](?P<month>[0-9]{1,2})[./-](?P<year>[12][0-9]{3})$"

# Words of a column's name, without accents. All of them must be known, so that drug_name and phone_model are not meant.
_CALLED = {
    "names of people": """
        name names surname lastname firstname forename fullname familyname givenname middlename maidenname username
        nachname vorname familienname nom prenom nombre apellido apellidos cognome nome apelido sobrenome naam
        achternaam voornaam""",
    "e-mail addresses": "email emails mail courriel correo",
    "telephone numbers": """
        phone telephone tel telefon telefono telefoon telefone mobile mobil handy cellphone fax telefonnummer
        handynummer""",
    "addresses": "address addresses adresse street strasse rue calle indirizzo direccion straat endereco anschrift",
    "bank accounts": "iban kontonummer",
    "numbers of people": """
        ssn nin nhs mrn ahv svnr bsn cpf dni passport security patientid personid userid customerid clientid memberid
        employeeid studentid subjectid personnummer patientennummer versichertennummer kundennummer matrikelnummer""",
    "dates of birth": """
        birth birthdate birthday dob born geburtsdatum geburtstag geboren naissance nacimiento nascita nascimento
        geboortedatum geboorte""",
    "people": """
        person patient customer client member employee student pupil user subject respondent participant resident
        citizen applicant child mother father parent spouse contact personne persona paciente paziente cliente kunde
        mitarbeiter versicherter schueler""",
    "number": "id ids nr no num number nbr nummer numero uid key ref",
    "between": """
        of the de la le du del di da der des van e date datum fecha data day first last middle given family maiden full
        home work private main social line code""",
}
_KINDS = {word: kind for kind, words in _CALLED.items() for word in words.split()}
_ALONE_NOTHING = ("people", "number", "between")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def what_people(name: str, column: pa.ChunkedArray) -> str | None:
    """What of people a column holds, in words, and how that is told; None where nothing speaks for it."""
    values = pc.unique(column).drop_null()
    rows, many = len(column) - column.null_count, len(values)
    if many < max(2, min(MANY, rows / 2)):
        return None
    called = _called(name)
    day = is_day(column)
    if called == "dates of birth":
        return f"{called}, by its name" if day else None
    if called is not None:
        return f"{called}, by its name" if _may_be(called, column.type) else None
    if rows < MANY:
        return None
    if day:
        return "dates of birth: its days are spread over decades" if _over_decades(column) else None
    if not _is_text(column.type):
        return None
    for what, pattern in _LOOKS:
        if many >= COMMON * rows and _share(pc.match_substring_regex(values, pattern)) >= ALIKE:
            return f"{what}, by its values"
    if many >= NAMED * rows and _are_names(values):
        return "names of people, by its values"
    if many >= WRITTEN * rows and _share(_is_long(values)) >= 0.5:
        return "free text, in which people may be named"
    return None


def _called(name: str) -> str | None:
    """What the name of a column says that it holds.

    >>> _called("patientID"), _called("Date of birth"), _called("drug_name")
    ('numbers of people', 'dates of birth', None)
    """
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss")).encode("ascii", "ignore").decode()
    words = [word.lower() for word in _PARTS.findall(plain)]
    if not all(word in _KINDS for word in words):
        return None
    kinds = [_KINDS[word] for word in words]
    if "people" in kinds and "number" in kinds:
        kinds.append("numbers of people")
    return next((kind for kind in kinds if kind not in _ALONE_NOTHING), None)


def _may_be(called: str, kind: pa.DataType) -> bool:
    """Whether values of this type can be what the column is called like: numbers are no names."""
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return _is_text(kind) or (numeric and called in ("numbers of people", "telephone numbers"))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _share(matches: pa.Array) -> float:
    return float(pc.mean(matches.cast(pa.float64())).as_py() or 0)


def _are_names(values: pa.Array) -> bool:
    """Whether texts are two or more words with capitals, of which many are first and many are last: of towns called New
    York, New Haven and New London, and of titles, few are."""
    read = pc.extract_regex(values, _NAME).drop_null()
    varied = (len(pc.unique(pc.struct_field(read, place))) >= VARIED for place in ("first", "last"))
    return len(read) >= ALIKE * len(values) and all(varied)


def _is_long(values: pa.Array) -> pa.Array:
    long = pc.greater_equal(pc.utf8_length(values), LONG_LETTERS)
    return pc.and_(long, pc.greater_equal(pc.count_substring(values, " "), LONG_WORDS - 1))


def _parts(column: pa.ChunkedArray) -> tuple[pa.Array, pa.Array, pa.Array] | None:
    """Year, month and day of each value; None where it holds no days. Times of a day are something that happened."""
    kind = column.type
    values = column.combine_chunks().drop_null()
    if pa.types.is_date(kind):
        return pc.year(values), pc.month(values), pc.day(values)
    if pa.types.is_timestamp(kind):
        moments = values.cast(pa.timestamp(kind.unit))
        if not pc.all(pc.equal(moments, pc.floor_temporal(moments, unit="day"))).as_py():
            return None
        return pc.year(moments), pc.month(moments), pc.day(moments)
    if not (_is_text(kind) or pa.types.is_integer(kind)):
        return None
    texts = values.cast(pa.string())
    for pattern in (_DAY, _LOCAL_DAY):
        if pc.all(pc.match_substring_regex(texts, pattern)).as_py():
            read = pc.extract_regex(texts, pattern)
            year, month, day = (pc.struct_field(read, name).cast(pa.int64()) for name in ("year", "month", "day"))
            return year, month, day
    return None


def is_day(column: pa.ChunkedArray) -> bool:
    """Whether it holds exact days, and not months or years that are written as days."""
    parts = _parts(column)
    if parts is None:
        return False
    _, month, day = parts
    return len(pc.unique(pc.add(pc.multiply(month.cast(pa.int64()), 100), day.cast(pa.int64())))) > DAYS


def _over_decades(column: pa.ChunkedArray) -> bool:
    """Whether nine tenths of the days are spread over decades, as birthdays are: a few strange days change nothing."""
    parts = _parts(column)
    low, high = pc.quantile(parts[0], q=[0.05, 0.95]).to_pylist() if parts is not None else (0, 0)
    return bool(high - low >= DECADES)


# -- What the owner of a table should know before it is published ------------------------------------------------------


SAMPLE_ROWS = 100_000
FEWEST_ROWS = 50
DISTINCT_SHARE = 0.9
ALARM = 6.0


def identifier_warnings(source: Dataset, columns: Sequence[str], sample_rows: int = SAMPLE_ROWS) -> list[str]:
    """Public columns that name people: nearly every row has a value of its own, or they look or are called like it.

    Floats and times are no identifiers for being different: measurements differ from row to row without naming anybody.
    """
    sample, taken = [], 0
    for batch in source.batches(list(columns)) if columns else ():
        sample.append(batch.slice(0, sample_rows - taken))
        taken += sample[-1].num_rows
        if taken >= sample_rows:
            break
    if not taken:
        return []
    part = "" if source.rows == taken else f" of the first {taken:,} rows"
    table = pa.Table.from_batches(sample)
    warnings = []
    for name in columns:
        column = table.column(name)
        column = column.cast(plain_type(column.type))
        looks = all_different(column, part) or what_people(name, column)
        if looks is not None:
            day = "" if "birth" not in looks else ", or recode it by year"
            warnings.append(
                f"The column {name!r} looks like {looks}. It is published as it is and may name people. Fix: "
                f"{option('drop', name)}{day}, unless that is intended."
            )
    return warnings


def all_different(column: pa.ChunkedArray, part: str) -> str | None:
    """What is said of a column in which nearly every row has a value of its own."""
    values = len(column) - column.null_count
    if values < FEWEST_ROWS or not _may_identify(column.type):
        return None
    distinct = pc.count_distinct(column, mode="only_valid").as_py()
    share = math.floor(100 * distinct / values)
    different = f"an identifier: {share} % of its values{part} are different"
    return different if distinct >= DISTINCT_SHARE * values else None


class OrderWatch:
    """Whether the order of the rows predicts the sensitive value; fed with the codes, batch by batch.

    With counts c_i of n rows in random order, the number of neighbours with equal values has the mean
    sum c_i (c_i - 1) / n and the variance of the number of runs of several kinds,
    (A (A + n (n + 1)) - 2 n B - n^3) / (n^2 (n - 1)), A = sum c_i^2, B = sum c_i^3.
    Steps up minus steps down have the mean 0 and at most the variance (n + 1) / 3 (reached without ties).
    """

    def __init__(self, m: int) -> None:
        self._counts = np.zeros(m + 1, dtype=np.int64)  # one more for exempt rows
        self._equal = self._up = self._down = 0
        self._first: int | None = None
        self._last: int | None = None

    def update(self, codes: np.ndarray) -> None:
        """Take in the next rows."""
        if not len(codes):
            return
        self._counts += np.bincount(codes, minlength=len(self._counts))
        if self._last is None:
            self._first = int(codes[0])
        else:
            self._step(np.array([self._last]), codes[:1])
        self._step(codes[:-1], codes[1:])
        self._last = int(codes[-1])

    def merge(self, later: OrderWatch) -> None:
        """Take in the rows that another watch has seen, which follow these."""
        if later._first is None:
            return
        if self._last is None:
            self._first = later._first
        else:
            self._step(np.array([self._last]), np.array([later._first]))
        self._counts += later._counts
        self._equal, self._up, self._down = self._equal + later._equal, self._up + later._up, self._down + later._down
        self._last = later._last

    def _step(self, before: np.ndarray, after: np.ndarray) -> None:
        up, down = int(np.count_nonzero(before < after)), int(np.count_nonzero(before > after))
        self._up += up
        self._down += down
        self._equal += len(before) - up - down

    @property
    def z_equal(self) -> float:
        """How many standard deviations more neighbours are equal than in random order."""
        n = int(self._counts.sum())
        if n < 2:
            return 0.0
        counts = [int(count) for count in self._counts[self._counts > 0]]  # Python integers: n^3 overflows
        squares, cubes = sum(c**2 for c in counts), sum(c**3 for c in counts)
        variance = (squares * (squares + n * (n + 1)) - 2 * n * cubes - n**3) / (n**2 * (n - 1))
        return (self._equal - (squares - n) / n) / math.sqrt(variance) if variance > 0 else 0.0

    @property
    def z_steps(self) -> float:
        """How many standard deviations more steps lead up than down."""
        n = int(self._counts.sum())
        return (self._up - self._down) / math.sqrt((n + 1) / 3)

    def warnings(self, column: str) -> list[str]:
        """At most one warning; a random order raises it with a probability far below one in a million."""
        pairs = self._equal + self._up + self._down
        if pairs and min(self._up, self._down) == 0 and (self.z_equal > ALARM or abs(self.z_steps) > ALARM):
            what = "the rows are sorted by it"
        elif self.z_equal > ALARM:
            what = "neighbouring rows have the same value more often than by chance"
        elif self.z_equal < -ALARM:
            what = "neighbouring rows have the same value less often than by chance"
        elif abs(self.z_steps) > ALARM:
            what = f"its values mostly {'rise' if self.z_steps > 0 else 'fall'} from row to row"
        else:
            return []
        return [
            f"The order of the rows predicts {column!r}: {what}. Whoever sees the order learns more than the guarantee "
            f"allows. Fix: {worded('shuffle the rows (shuffle=True, the default)', 'leave out --no-shuffle')}."
        ]


def _may_identify(dtype: pa.DataType) -> bool:
    t = pa.types
    kinds = (t.is_integer, t.is_string, t.is_large_string, t.is_decimal, t.is_binary, t.is_fixed_size_binary)
    return any(test(dtype) for test in (*kinds, t.is_large_binary))


# -- Documents in place of values --------------------------------------------------------------------------------------


LONGEST_TEXT = 32_767  # bytes of a cell, as many as a workbook takes: a value may come to stand in every row


def require_short(batch: pa.RecordBatch, start: int) -> pa.RecordBatch:
    """The same rows; refused where a cell holds a document and not a value.

    Args:
        batch: some rows of a table.
        start: the number of its first row.
    """
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        texts = column.dictionary if pa.types.is_dictionary(column.type) else column
        if not is_text(texts.type) or texts.nbytes <= LONGEST_TEXT:
            continue
        sizes = pc.binary_length(texts)
        longest = pc.max(sizes).as_py() or 0
        if longest > LONGEST_TEXT:
            where = "" if texts is not column else f", row {start + pc.index(sizes, longest).as_py() + 1:,},"
            raise TableError(
                f"A cell of the column {name!r}{where} has {longest:,} bytes, more than the {LONGEST_TEXT:,} that a "
                f"value may have. Fix: {option('drop', name)}, or shorten it before."
            )
    return batch
