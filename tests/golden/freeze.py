"""What a release is to whoever stands outside: rows, answers, promises, findings, each under a name, as JSON has it."""

import contextlib
import hashlib
import json
import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa

import deniable as dn
from deniable.tables.keys import Secret
from tests.golden import questions
from tests.golden.cases import CASES, KEY, Case
from tests.golden.tables import changed, chapters, places

Items = dict[str, Any]
DIGITS = 12
CELLS = 12  # of a plan; what all of them hold has a digest
EVERY = 5  # of the questions to a release that shows an option
LOOKUPS = {"chapters": chapters(), "places": places()}


def plain(value: Any) -> Any:
    """A value as JSON has it: numbers of 12 digits, fractions and dates as text."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(inner) for inner in value]
    if isinstance(value, pa.Table):
        return {name: plain(value[name].to_pylist()) for name in value.column_names}
    return str(value)


def asked(question: Callable[[], Any]) -> Any:
    """The answer, or that the question is refused: how a refusal is worded is not frozen."""
    try:
        return plain(question())
    except dn.DeniableError:
        return "refused"


def numbers(estimate: dn.Estimate) -> list[float]:
    """Value, low, high, stderr."""
    return [estimate.value, estimate.low, estimate.high, estimate.stderr]


# -- rows --------------------------------------------------------------------------------------------------------------


def _digest(texts: Iterator[str] | list[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def digests(table: pa.Table) -> Items:
    """SHA-256 of the rows in order, of the rows in any order, and of each column, over values and not over bytes."""
    columns = {name: [repr(value) for value in table[name].to_pylist()] for name in table.column_names}
    rows = ["\t".join(row) for row in zip(*columns.values(), strict=True)]
    schema = ", ".join(f"{field.name} {field.type}" for field in table.schema)
    return {
        "schema": schema,
        "rows": f"{table.num_rows} {_digest(rows)}",
        "rows in any order": _digest(sorted(rows)),
        **{f"column {name}": _digest(texts) for name, texts in columns.items()},
    }


# -- a release ---------------------------------------------------------------------------------------------------------


class Frozen:
    """One release of the list, published once, and what is frozen of it."""

    def __init__(self, case: Case, home: Path) -> None:
        self.case, self.home = case, home
        self.original, self.first = case.rows(), None
        if case.series:
            with mock.patch.object(Secret, "generate", return_value=Secret(KEY)):  # a series makes its own key
                self.first, self.release = case.publications(home)
            self.original = changed(self.original)
        else:
            self.release = case.publish()
        self.manifest = self.release.manifest

    @property
    def folder(self) -> dn.Release:
        """The same release, published into a folder and opened from it."""
        out = self.home / "parquet"
        if not out.exists():
            self.case.publish(out=out)
        return dn.open_release(out)

    def some(self, given: list[Any]) -> list[Any]:
        """All of the questions, or every fifth."""
        return given if self.case.whole else given[::EVERY]

    def rows(self) -> Items:
        """Of the rows in memory, and of those in folders where they differ from these."""
        made = digests(self.release.table)
        if self.first is not None:
            made |= {f"first publication, {name}": digest for name, digest in digests(self.first.table).items()}
        if self.case.folders:
            made["parquet"] = digests(self.folder.table)["rows"]
            self.case.publish(out=self.home / "csv", format="csv", overwrite=True)
            made["csv"] = digests(dn.open_release(self.home / "csv").table)["rows"]
            made["saved"] = digests(self.release.save(self.home / "saved", overwrite=True).table)["rows"]
        return made

    def counts(self) -> Items:
        """Counts: value, low, high, stderr."""
        return {
            one.name: asked(lambda one=one: numbers(self.release.count(one.where, **one.options)))
            for one in self.some(list(questions.counts(self.case.questions, self.manifest.mechanism)))
        }

    def sql(self) -> Items:
        """Answers in SQL, column by column; of releases that are in folders, from there."""
        release = self.folder if self.case.folders else self.release
        return {
            name: asked(lambda text=text: release.sql(text, tables=LOOKUPS))
            for name, text in self.some(list(questions.questions(self.case.questions)))
        }

    def models(self) -> Items:
        """Sums, means, shares, tables, regressions, weights."""
        release, kind = self.release, self.case.questions
        conditions, column = questions.SENSITIVE[kind], questions.COLUMN[kind]
        what, other = (conditions[name] for name in questions.MODELLED[kind])
        made: dict[str, Callable[[], Any]] = {
            "sum of pay": lambda: numbers(release.sum("pay", what)),
            "sum of pay, not calibrated": lambda: numbers(release.sum("pay", what, calibrate=False)),
            "mean of age": lambda: numbers(release.mean("age", what)),
            "mean of age among women": lambda: numbers(release.mean("age", {**other, "sex": "F"}, confidence=0.9)),
            "share": lambda: numbers(release.share(what)),
            "share within": lambda: numbers(release.share(what, within={"region": "east"})),
            "difference": lambda: numbers(release.difference(what, other)),
            "difference of sexes": lambda: numbers(release.difference({**what, "sex": "F"}, {**what, "sex": "M"})),
            "group by region": lambda: release.group_by("region", what),
            "group by sex, simultaneous": lambda: release.group_by("sex", other, simultaneous=True),
            "group by it": lambda: release.group_by(column),
            "group by sex and it, not calibrated": lambda: release.group_by(["sex", column], calibrate=False),
            **{
                f"group by it, women, {way}": lambda options=options: release.group_by(column, {"sex": "F"}, **options)
                for way, options in questions.ways_of(self.manifest.mechanism).items()
            },
            "cube of conditions": lambda: release.cube({"sex": "F", "age": dn.between(20, 50), **what}),
            "cube of columns": lambda: release.cube(["sex", "insured"], what),
            "linear": lambda: model(release.linear("pay", ["age", "sex", what])),
            "linear among the insured": lambda: model(release.linear("age", [what, "region"], {"insured": True})),
            "linear, the population": lambda: model(release.linear("visits", ["age", other], population=True)),
            "linear of it": lambda: model(release.linear(what, ["age", "sex"])),
            "logit": lambda: model(release.logit(what, ["age", "sex"])),
            "logit of a public column": lambda: model(release.logit("insured", ["age", other])),
            "logit, the population": lambda: model(release.logit(other, ["visits"], population=True)),
            "correlation": lambda: numbers(release.correlation("age", what)),
            "chi-square": lambda: tested(release.chi_square("sex", column)),
            "chi-square of conditions": lambda: tested(release.chi_square(what, "region")),
            "weights": lambda: weighed(release.weights(what)),
            "weights among women": lambda: weighed(release.weights({**other, "sex": "F"})),
            "survey": lambda: surveyed(release.survey(weights="weight").share(what)),
            "survey of strata": lambda: surveyed(release.survey(weights="weight", strata="region").mean("age", other)),
            "pseudo-rows": lambda: weighed(release.pseudo_table(["sex", "age", column])["weight"].to_numpy()),
        }
        if kind not in ("numbers", "ranges"):  # ranges of numbers have too many values, multiplied
            made["histogram"] = lambda: release.histogram({"sex": "F"})
        if kind in ("bins", "quantiles", "numbers"):
            made |= {
                "sum of salary": lambda: numbers(release.sum("salary")),
                "mean of salary among women": lambda: numbers(release.mean("salary", {"sex": "F"})),
                "mean of salary, not calibrated": lambda: numbers(release.mean("salary", calibrate=False)),
                "linear of salary": lambda: model(release.linear("salary", ["age", "sex"])),
                "correlation of salary": lambda: numbers(release.correlation("salary", "age")),
            }
        if kind in ("two", "numbers"):
            made |= {
                "group by both": lambda: release.group_by(["disease", "job"]),
                "chi-square of both": lambda: tested(release.chi_square("disease", "job")),
                "linear of one on the other": lambda: model(release.linear({"job": "nurse"}, ["disease"])),
            }
        if kind == "lists":
            made |= {"items": release.items, "pairs": lambda: release.items({"sex": "F"}, pairs=True)}
        return {name: asked(question) for name, question in made.items()}

    def certificate(self) -> Items:
        """What is promised, in words and in numbers."""
        promised = dict(self.manifest.guarantee)
        parts = json.loads(self.manifest.to_json())["parts"]
        return {
            "mechanism": self.manifest.mechanism,
            **{name: plain(value) for name, value in promised.items()},
            **{f"promise {' and '.join(part['columns'])}": _line(part["promise"]) for part in parts},
        }

    def advice(self) -> Items:
        """What the owner is told."""
        choice = getattr(self.release, "choice", None)
        open_ones = self.release.decision.open
        return {
            "chosen": getattr(choice, "chosen", ""),
            "decision": [f"{point.grade}: {point.part}: {', '.join(point.columns)}" for point in open_ones],
            "notes": list(self.release.advice.notes),
        }

    def verify(self) -> Items:
        """What verifying prints, of the release in memory and of the folder."""
        made = {"memory": str(self.release.verify()).splitlines()}
        if self.case.folders:
            made["folder"] = str(dn.verify(self.folder.folder)).splitlines()
        return made

    def audit(self) -> Items:
        """The owner's audit; of mechanisms with the attacks played."""
        report = dn.audit(self.original, self.release, attacks=self.case.whole)
        return {
            "epsilon": plain(report.epsilon),
            "serious": [str(finding) for finding in report.serious],
            "report": report.details.splitlines(),
        }

    def plan(self) -> Items:
        """The plan of the histogram alone: cells, coins, replacements; and what is promised."""
        options = self.case.options()
        if self.case.questions != "disease" or options["sensitive"] is None:
            return {}
        rows = Counter(self.original["disease"].to_pylist())
        histogram = {value: rows[value] for value in sorted({*rows, *options.get("domain", ())})}
        made: Items = {}

        def planned() -> str:
            plan = dn.plan(histogram, options["privacy"], options["mechanism"])
            made["cells"] = f"{len(plan.cells)} {_digest([_line(dict(cell.rows)) for cell in plan.cells])}"
            for number, cell in enumerate(plan.cells[:CELLS]):
                made[f"cell {number} rows"] = plain(dict(cell.rows))
                made[f"cell {number} values"] = plain(list(cell.channel.values))
                made[f"cell {number} coins"] = plain(cell.channel.coins)
                made[f"cell {number} replacing"] = plain(cell.channel.replacing)
            made["gamma"] = plain(plan.guarantee.gamma)
            made["worst"] = plain(plan.guarantee.worst)
            return str(plan.guarantee)

        return {"guarantee": asked(planned), **made}

    def breach(self) -> Items:
        """How sure someone can become of sets of values."""
        made: Items = {}
        for name, where in questions.SENSITIVE[self.case.questions].items():
            for rho1, rho2 in (("1/10", "19/20"), ("1/50", "1/3")):

                def told(where: Any = where, rho1: str = rho1, rho2: str = rho2) -> list[Any]:
                    about = dn.breach(self.release, where, rho1=rho1, rho2=rho2)
                    return [about.posterior, about.seen, about.holds]

                made[f"{name} | {rho1} to {rho2}"] = asked(told)
        return made


CLASSES = ("rows", "counts", "sql", "models", "certificate", "advice", "verify", "audit", "plan", "breach")


def model(fitted: Any) -> dict[str, Any]:
    """A regression: rows, and [value, low, high, stderr] by name."""
    return {"rows": fitted.rows, **{name: numbers(fitted[name]) for name in fitted}}


def tested(test: Any) -> list[Any]:
    """Statistic, degrees of freedom, probability."""
    return [getattr(test, name) for name in ("statistic", "degrees", "p_value")]


def surveyed(estimate: Any) -> list[float]:
    """An estimate with weights, and the part of its error that is randomization."""
    return [estimate.value, estimate.low, estimate.high, estimate.stderr, estimate.randomization]


def weighed(weights: Any) -> list[float]:
    """Weights of rows: how many, their sum, the sum of their squares, and that in the order of rows."""
    weights = np.asarray(weights, np.float64)
    return [len(weights), weights.sum(), (weights**2).sum(), (weights * np.arange(len(weights))).sum()]


def _line(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


@cache
def _homes() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="golden-")


@cache
def published(name: str) -> Frozen:
    """A release of the list; published once for all that is frozen of it."""
    home = Path(_homes().name) / str(list(CASES).index(name))
    home.mkdir()
    with quiet():
        return Frozen(CASES[name], home)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without warnings: advice is frozen by itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def freeze(kind: str, name: str) -> Items:
    """What is frozen of one release and one class."""
    with quiet():
        return getattr(published(name), kind)()
