"""Columns that name people: told by what their values look like, or by what the column is called.

A column of categories is never taken for one: it has few values, and many rows for each of them.
"""

from __future__ import annotations

import re
import unicodedata

import pyarrow as pa
import pyarrow.compute as pc

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
    day = _is_day(column)
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


def _is_day(column: pa.ChunkedArray) -> bool:
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
