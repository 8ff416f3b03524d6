"""A survey: what is asked, in which words, how deniable every answer must be, and the file that says so."""

from __future__ import annotations

import datetime
import math
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from deniable.core.channels import NumberRange
from deniable.core.errors import DeniableError, OptionError, did_you_mean, shortened
from deniable.core.privacy import amplification_limit
from deniable.core.text import small_text
from deniable.core.values import probability

# -- A survey: what is asked, in which words, and how deniable every answer must be ------------------------------------
# Everything here is chosen before anyone answers and depends on no answer, so what it promises holds against any prior.


Kind = Literal["choice", "several", "number", "date"]
KINDS: tuple[Kind, ...] = ("choice", "several", "number", "date")
Texts = Mapping[str, str]  # language -> words
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
NO_ANSWER = "no answer"
YES, NO = "yes", "no"
EPSILON_PARTS = 10**9  # gamma of an epsilon is rounded down to a fraction of so many parts


@dataclass(frozen=True)
class Requirement:
    """How deniable an answer must be: two beliefs, an epsilon, or a coin.

    Attributes:
        rho1, rho2: a belief of up to rho1 may grow to rho2 at most.
        epsilon: of local differential privacy; for people who think in it.
        coin: the probability that the answer is kept, whatever that promises.
    """

    rho1: Fraction | None = None
    rho2: Fraction | None = None
    epsilon: float | None = None
    coin: float | None = None

    @property
    def gamma(self) -> Fraction | None:
        """The largest amplification that is allowed; None where a coin is given instead.

        >>> Requirement(rho1=Fraction(1, 13), rho2=Fraction(1, 6)).gamma
        Fraction(12, 5)
        """
        if self.rho1 is not None and self.rho2 is not None:
            return amplification_limit(self.rho1, self.rho2)
        if self.epsilon is None:
            return None
        return Fraction(math.floor(math.exp(self.epsilon) * EPSILON_PARTS * (1 - 1e-12)), EPSILON_PARTS)


@dataclass(frozen=True)
class Choice:
    """One of the answers that may be chosen: what is stored, and what people read."""

    value: str
    label: Texts


@dataclass(frozen=True)
class Question:
    """One question of a survey.

    Attributes:
        name: of its column in the results.
        kind: ``choice`` (one of several), ``several`` (any of them, each a column of yes and no), ``number`` or
            ``date`` (in a range).
        text: what people read.
        choices: of ``choice`` and ``several``.
        range: of ``number`` and ``date``, its coin not yet chosen.
        optional: whether it may be left out; no answer is then an answer like the others.
        public: whether the answer is sent as it is.
        requirement: how deniable the answer must be; None for a public question.
    """

    name: str
    kind: Kind
    text: Texts
    choices: tuple[Choice, ...] = ()
    range: NumberRange | None = None
    optional: bool = False
    public: bool = False
    requirement: Requirement | None = None

    @property
    def values(self) -> tuple[str, ...]:
        """What a question of choices may be answered with; no answer last."""
        given = tuple(choice.value for choice in self.choices)
        return (*given, NO_ANSWER) if self.optional and self.kind == "choice" and not self.public else given

    @property
    def size(self) -> int:
        """How many different answers there are."""
        if self.range is not None:
            return self.range.points
        return 2 ** len(self.choices) if self.kind == "several" else len(self.values)


@dataclass(frozen=True)
class Survey:
    """A survey, as its file says it.

    Attributes:
        name: a short one, of the release that is exported.
        title, consent: what people read first.
        languages: of all texts; the first is the one that is shown where the reader's is not there.
        questions: in their order.
        codes: whether only who has a one-time code may answer.
        respondents: how many are expected, for what is said about precision.
    """

    name: str
    title: Texts
    consent: Texts
    languages: tuple[str, ...]
    questions: tuple[Question, ...]
    codes: bool = False
    respondents: int = 1000


def grid(low: object, high: object, step: float | None, *, missing: bool) -> NumberRange:
    """The grid of a number's or date's answers; whole where both ends and the step are."""
    if isinstance(low, datetime.date) and isinstance(high, datetime.date):
        return NumberRange("date", low, high, int(step or 1), 0, missing)
    assert isinstance(low, int | float)
    assert isinstance(high, int | float)
    whole = isinstance(low, int) and isinstance(high, int) and (step is None or float(step).is_integer())
    return NumberRange("integer" if whole else "number", low, high, step if step is not None else 1, 0, missing)


# -- Surveys from TOML files: read strictly, and everything that is wrong is said at once ------------------------------


SURVEY_KEYS = ("name", "title", "consent", "languages", "codes", "respondents", "privacy", "question")
PRIVACY_KEYS = ("rho1", "rho2", "epsilon", "coin")
QUESTION_KEYS = ("name", "kind", "text", "choices", "low", "high", "step", "optional", "public", *PRIVACY_KEYS)
LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Z][A-Za-z]{1,3})?")
MOST_CHOICES, MOST_QUESTIONS, LONGEST_TEXT, LONGEST_VALUE = 1000, 100, 20_000, 100
LARGEST_EPSILON = 20.0
RESERVED = ("cell", "release")


class SurveyError(DeniableError):
    """A survey file that cannot be used. The message lists everything that is wrong with it."""


def read_survey(path: str | os.PathLike[str]) -> Survey:
    """The survey in a TOML file."""
    try:
        text = small_text(Path(path))
    except OSError as problem:
        raise SurveyError(
            f"The survey {str(path)!r} cannot be read: {problem.strerror}. Fix: check the name, or write one to begin "
            "with: deniable collect new"
        ) from None
    except UnicodeDecodeError:
        raise SurveyError(f"The survey {str(path)!r} is not UTF-8 text. Fix: save it as UTF-8.") from None
    return survey_of(text, Path(path).stem)


def survey_of(text: str, name: str = "survey") -> Survey:
    """The survey in the text of a TOML file.

    >>> survey = survey_of('''
    ... title = "Smoking"
    ... [[question]]
    ... name = "smokes"
    ... kind = "choice"
    ... text = "Do you smoke?"
    ... choices = ["yes", "no"]
    ... rho1 = "1/10"
    ... rho2 = "1/4"
    ... ''')
    >>> survey.questions[0].requirement.gamma
    Fraction(3, 1)
    """
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise SurveyError(
            f"The survey is not TOML: {problem}. Fix: mend that line; `deniable collect new` writes an example."
        ) from None
    reader = _Reader(raw, name)
    survey = reader.survey()
    if reader.problems or survey is None:
        raise SurveyError("The survey cannot be used:\n" + "\n".join(f"- {line}" for line in reader.problems))
    return survey


class _Reader:
    """Reads a survey and collects what is wrong with it."""

    def __init__(self, raw: Mapping[str, Any], name: str) -> None:
        self.raw = raw
        self.problems: list[str] = []
        self.languages: tuple[str, ...] = ("en",)
        self.name = name

    def survey(self) -> Survey | None:
        raw = self.raw
        self._known(raw, SURVEY_KEYS, "The survey")
        self.languages = self._languages()
        title = self._texts(raw.get("title"), "title")
        consent = self._texts(raw.get("consent", dict.fromkeys(self.languages, "")), "consent", may_be_empty=True)
        name = raw.get("name", re.sub(r"[^a-z0-9_]+", "_", self.name.lower()).strip("_") or "survey")
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_-]{1,60}", name):
            self._wrong(f"name = {shortened(name)} is not allowed: letters, digits, '-' and '_', up to 60.")
        codes, respondents = raw.get("codes", False), raw.get("respondents", 1000)
        if not isinstance(codes, bool):
            self._wrong(f"codes = {shortened(codes)} is not allowed: true or false.")
        if not _whole(respondents) or not 0 < respondents <= 10**9:
            self._wrong(f"respondents = {shortened(respondents)} is not allowed: a whole number above 0.")
        entries = raw.get("question", [])
        if not isinstance(entries, list) or not 1 <= len(entries) <= MOST_QUESTIONS:
            self._wrong(f"A survey has 1 to {MOST_QUESTIONS} questions. Fix: a table [[question]] for each.")
            return None
        usual = self._requirement(raw.get("privacy", {}), "[privacy]")
        questions = [self._question(entry, place, usual) for place, entry in enumerate(entries, start=1)]
        self._columns([question for question in questions if question is not None])
        if self.problems:
            return None
        known = tuple(question for question in questions if question is not None)
        return Survey(name, title, consent, self.languages, known, codes, respondents)

    # -- texts ---------------------------------------------------------------------------------------------------------

    def _languages(self) -> tuple[str, ...]:
        given = self.raw.get("languages", ["en"])
        sound = isinstance(given, list) and given and all(isinstance(code, str) for code in given)
        if not sound or len(set(given)) < len(given) or not all(LANGUAGE.fullmatch(code) for code in given):
            self._wrong(
                f"languages = {shortened(given)} is not allowed: a list of codes such as ['en', 'de'], each once."
            )
            return ("en",)
        return tuple(given)

    def _texts(self, given: Any, where: str, *, may_be_empty: bool = False) -> Texts:
        """Words in every language: one text where there is one language, else a table."""
        texts = {self.languages[0]: given} if isinstance(given, str) else given
        if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
            self._wrong(f"{where} is missing, or is no text. Fix: {where} = {{ {self.languages[0]} = '..' }}.")
            return {}
        lacking = [code for code in self.languages if code not in texts]
        unknown = [code for code in texts if code not in self.languages]
        if lacking:
            self._wrong(f"{where} is missing in {', '.join(lacking)}, which `languages` lists.")
        if unknown:
            self._wrong(f"{where} is given in {', '.join(map(str, unknown))}, which `languages` does not list.")
        if any(len(text) > LONGEST_TEXT or (not text.strip() and not may_be_empty) for text in texts.values()):
            self._wrong(f"{where} is empty, or longer than {LONGEST_TEXT:,} characters.")
        return {code: texts.get(code, "") for code in self.languages}

    # -- questions -----------------------------------------------------------------------------------------------------

    def _question(self, raw: Any, place: int, usual: Requirement | None) -> Question | None:
        if not isinstance(raw, dict):
            self._wrong(f"Question {place} is no table. Fix: [[question]] with name, kind and text.")
            return None
        name = raw.get("name")
        if not isinstance(name, str) or not NAME.fullmatch(name) or name in RESERVED:
            self._wrong(
                f"Question {place}: name = {shortened(name)} is not allowed: a small letter, then small letters, "
                f"digits and '_', up to 40, and none of {', '.join(RESERVED)}."
            )
            return None
        where = f"Question {name!r}"
        self._known(raw, QUESTION_KEYS, where)
        kind = raw.get("kind")
        if kind not in KINDS:
            hint = did_you_mean(kind, KINDS)
            self._wrong(f"{where}: kind = {shortened(kind)} is not known: choose from {', '.join(KINDS)}.{hint}")
            return None
        optional, public = raw.get("optional", False), raw.get("public", False)
        if not isinstance(optional, bool) or not isinstance(public, bool):
            self._wrong(f"{where}: optional and public are true or false.")
        if optional is True and kind == "several":
            self._wrong(f"{where}: several choices cannot be optional; ticking none is an answer. Fix: leave it out.")
        text = self._texts(raw.get("text"), f"{where}: text")
        choices = self._choices(raw, where) if kind in ("choice", "several") else ()
        with_missing = optional is True and public is not True
        scope = None if kind in ("choice", "several") else self._range(raw, kind, where, missing=with_missing)
        own = self._requirement({key: raw[key] for key in PRIVACY_KEYS if key in raw}, where)
        if public is True and own is not None:
            self._wrong(f"{where} is public and has a requirement. Fix: one of the two.")
        wanted = own or usual
        if public is not True and wanted is None:
            self._wrong(
                f"{where} says neither how deniable its answer must be nor that it is public. Fix: rho1 = '1/10' and "
                "rho2 = '1/3', or epsilon = 1.0, for it or in [privacy]; or public = true."
            )
        return Question(
            name, kind, text, choices, scope, bool(optional), bool(public), None if public is True else wanted
        )

    def _choices(self, raw: Mapping[str, Any], where: str) -> tuple[Choice, ...]:
        given = raw.get("choices")
        least = 1 if raw.get("kind") == "several" else 2
        if not isinstance(given, list) or not least <= len(given) <= MOST_CHOICES:
            self._wrong(f"{where}: choices are a list of {least} to {MOST_CHOICES:,} answers.")
            return ()
        choices = [self._choice(entry, where) for entry in given]
        values = [choice.value for choice in choices if choice is not None]
        if len(set(values)) < len(values):
            self._wrong(f"{where}: a choice is listed twice.")
        for key in ("low", "high", "step"):
            if key in raw:
                self._wrong(f"{where}: {key} is for numbers and dates.")
        return tuple(choice for choice in choices if choice is not None)

    def _choice(self, entry: Any, where: str) -> Choice | None:
        table = {"value": entry} if isinstance(entry, str) else entry
        if not isinstance(table, dict) or not isinstance(table.get("value"), str):
            self._wrong(f"{where}: a choice is a text, or a table with value and label.")
            return None
        value = table["value"]
        self._known(table, ("value", "label"), f"{where}: the choice {shortened(value)}")
        if not 0 < len(value) <= LONGEST_VALUE or not value.isprintable() or value != value.strip():
            self._wrong(f"{where}: a choice has 1 to {LONGEST_VALUE} printable characters, no space at its ends.")
        if value == NO_ANSWER:
            self._wrong(f"{where}: {NO_ANSWER!r} is what leaving a question out is called. Fix: optional = true.")
        label = table.get("label", dict.fromkeys(self.languages, value))
        return Choice(value, self._texts(label, f"{where}: label of {shortened(value)}"))

    def _range(self, raw: Mapping[str, Any], kind: str, where: str, *, missing: bool) -> Any:
        low, high, step = (raw.get(key) for key in ("low", "high", "step"))
        if "choices" in raw:
            self._wrong(f"{where}: choices are for kinds 'choice' and 'several'.")
        right = _day if kind == "date" else _number
        if not right(low) or not right(high) or low >= high:  # type: ignore[operator]
            example = "low = 2000-01-01 and high = 2020-12-31" if kind == "date" else "low = 0 and high = 100"
            self._wrong(f"{where}: low and high are the ends of its range, low below high. Fix: {example}.")
            return None
        if step is not None and (not _number(step) or step <= 0 or (kind == "date" and not _whole(step))):
            self._wrong(f"{where}: step = {shortened(step)} is not allowed: a number above 0, for dates whole days.")
            return None
        try:
            scope = grid(low, high, step, missing=missing)
        except OptionError as problem:
            self._wrong(f"{where}: {problem}")
            return None
        if scope.grid < 2:
            self._wrong(f"{where}: step = {step} leaves one answer. Fix: a smaller step.")
            return None
        return scope

    # -- requirements --------------------------------------------------------------------------------------------------

    def _requirement(self, raw: Any, where: str) -> Requirement | None:
        if raw == {}:
            return None
        if not isinstance(raw, dict):
            self._wrong(f"{where} is no table.")
            return None
        self._known(raw, PRIVACY_KEYS, where)
        if {"rho1", "rho2"} <= set(raw) and len(raw) == 2:
            try:
                rho1, rho2 = (probability(raw[key], key) for key in ("rho1", "rho2"))
            except DeniableError as problem:
                self._wrong(f"{where}: {problem}")
                return None
            if rho1 >= rho2:
                self._wrong(f"{where}: rho1 = {rho1} must be smaller than rho2 = {rho2}.")
                return None
            return Requirement(rho1=rho1, rho2=rho2)
        if set(raw) == {"epsilon"} and _number(raw["epsilon"]) and 0 < raw["epsilon"] <= LARGEST_EPSILON:
            return Requirement(epsilon=float(raw["epsilon"]))
        if set(raw) == {"coin"} and _number(raw["coin"]) and 0 < raw["coin"] < 1:
            return Requirement(coin=float(raw["coin"]))
        self._wrong(
            f"{where}: say it in one way: rho1 and rho2 (a belief of up to rho1 grows to rho2 at most), or epsilon (up "
            f"to {LARGEST_EPSILON:g}), or coin (above 0, below 1)."
        )
        return None

    def _columns(self, questions: Sequence[Question]) -> None:
        names = [name for question in questions for name in column_names(question)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            self._wrong(f"Two questions would fill the column {twice[0]!r}. Fix: another name for one of them.")

    def _known(self, raw: Mapping[str, Any], keys: Sequence[str], where: str) -> None:
        for key in raw:
            if key not in keys:
                self._wrong(f"{where} has {shortened(key)}, which is not known.{did_you_mean(key, keys)}")

    def _wrong(self, problem: str) -> None:
        self.problems.append(problem)


def column_names(question: Question) -> tuple[str, ...]:
    """The columns that a question fills: one, or one for each of several choices."""
    if question.kind != "several":
        return (question.name,)
    return tuple(f"{question.name}_{_word(choice.value)}" for choice in question.choices)


def _word(value: str) -> str:
    return re.sub(r"[^\w]+", "_", value.lower()).strip("_") or "choice"


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _day(value: Any) -> bool:
    return isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)
