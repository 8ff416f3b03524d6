"""Answer counts about a table that is not published, with noise, until a budget is spent (SPEC 9). For comparison.

The noise of an answer is a function of the key, the table, epsilon, the question and its number: the same questions in
the same order get the same answers under one key, and no two different questions ever share their noise, which their
difference would then be free of. Nor do two budgets: noise of two sizes from the same draws would show the draws.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Mapping
from importlib import metadata
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deniable.audit.verify.certificate import Certificate
from deniable.core.errors import OutputError, QuestionError
from deniable.core.manifest import Column, Manifest, Part, Randomness, guarantee_dict, privacy_dict
from deniable.engines.randomness import Keystream, discrete_laplace, discrete_laplace_variance
from deniable.estimation.estimate import normal_quantile
from deniable.estimation.predicates import Leaf, conjunction, require_known
from deniable.mechanisms import Laplace
from deniable.publishing.request import Request
from deniable.rivals.anatomy.publish import codes_and_rows
from deniable.rivals.anatomy.release import CountsOnly, holds_for
from deniable.rivals.laplace.estimate import LaplaceEstimate

Bools = npt.NDArray[np.bool_]

NO_ROWS = (
    "mechanism 'laplace' publishes no rows: it answers count(where=...) from the original table, which stays with its "
    "owner. Fix: leave out= out and ask the object, or publish with another mechanism."
)


def publish_answers(mechanism: Laplace, request: Request) -> NoisyAnswers:
    """An object that answers counts about the table."""
    scan = request.scan(request.sensitive, request.domain)
    guarantee = mechanism.guarantee(scan.histogram, request.privacy)
    budget = mechanism.budget(scan.histogram, request.privacy)
    codes, rows = codes_and_rows(request, scan.encoding)
    sensitive = zip(request.sensitive, scan.encoding.types, strict=True)
    manifest = Manifest(
        name=request.name,
        software={"name": "deniable", "version": metadata.version("deniable")},
        mechanism=mechanism.name,
        options={"epsilon": budget, "questions": mechanism.questions},
        rows=rows.num_rows,
        columns=(
            *(Column(field.name, str(field.type), "public") for field in rows.schema),
            *(Column(name, str(kind), "sensitive") for name, kind in sensitive),
        ),
        parts=(Part(request.sensitive, scan.histogram.domain, request.missing, False, (), ()),),
        privacy=privacy_dict(request.privacy),
        guarantee=guarantee_dict(guarantee),
        randomness=Randomness(request.secret.source, request.secret.seed, request.shuffle, "row number"),
    )
    keys = request.keys
    return NoisyAnswers(manifest, rows=rows, codes=codes, keys=keys, epsilon=mechanism.share(budget))


class _Spending:
    """How many questions were asked. A copy of the object that answers shares it, so it spends the same budget."""

    def __init__(self, questions: int) -> None:
        self.left = questions
        self._asked = 0
        self._turn = threading.Lock()

    def next(self) -> int | None:
        """The number of one more question; None where there is none left."""
        with self._turn:
            if self.left <= 0:
                return None
            self.left -= 1
            self._asked += 1
            return self._asked


class NoisyAnswers(CountsOnly):
    """Counts with discrete Laplace noise, each for an equal part of the budget. It holds the original table."""

    def __init__(
        self,
        manifest: Manifest,
        *,
        rows: pa.Table,
        codes: npt.NDArray[np.int64],
        keys: Keystream,
        epsilon: float,
    ) -> None:
        super().__init__(manifest)
        self._rows = rows
        self._codes = codes
        self._keys = keys.subkey("answers", hashlib.sha256(codes.tobytes()).hexdigest(), epsilon.hex())
        self._epsilon = epsilon
        self._spending = _Spending(int(manifest.options["questions"]))

    @property
    def remaining(self) -> int:
        """How many questions are left."""
        return self._spending.left

    @property
    def remaining_epsilon(self) -> float:
        """How much of the budget is left."""
        return self.remaining * self._epsilon

    def count(
        self, where: Mapping[str, Any] | None = None, *, confidence: float = 0.95, **options: Any
    ) -> LaplaceEstimate:
        """Rows that satisfy ``where``, with noise. Every answer costs the same, one that was given before too.

        A question that cannot be understood costs nothing.
        """
        self.refuse(options)
        normal_quantile(confidence)
        matching, wanted = self._masks(where)
        question = hashlib.sha256(np.packbits(matching).tobytes() + np.packbits(wanted).tobytes()).hexdigest()
        keys = self._keys.subkey(str(self._next()), question)
        noise = int(discrete_laplace(keys, 1, self._epsilon)[0])
        return LaplaceEstimate(
            value=float(int((matching & wanted[self._codes]).sum()) + noise),
            stderr=discrete_laplace_variance(self._epsilon) ** 0.5,
            confidence=confidence,
            smallest=0.0,
            largest=float(matching.sum()),
            method="laplace",
            epsilon=self._epsilon,
        )

    def _masks(self, where: Mapping[str, Any] | None) -> tuple[Bools, Bools]:
        """Which rows satisfy the conditions on public columns, and which values those on sensitive ones."""
        matching = np.ones(self._rows.num_rows, dtype=bool)
        wanted = np.ones(len(self.manifest.domain), dtype=bool)
        for leaf in conjunction(where).parts:
            assert isinstance(leaf, Leaf)
            if leaf.column in self.manifest.sensitive_columns:
                wanted &= self.domain_mask(leaf)
            elif leaf.column in self._rows.column_names:
                values = self._rows[leaf.column].combine_chunks()
                require_known(leaf.column, values, leaf.named, sensitive=False)
                matching &= holds_for(leaf, values)
            else:
                raise self.no_column(leaf.column)
        return matching, wanted

    def _next(self) -> int:
        """The number of this question; refused when the budget is spent."""
        number = self._spending.next()
        if number is None:
            asked = int(self.manifest.options["questions"])
            raise QuestionError(
                f"The budget is spent: all {asked:,} questions of epsilon {self._epsilon:.3g} each were asked. "
                "Fix: plan for more questions, Laplace(questions=...), with more noise in each answer; another "
                "object for the same table would give away as much again."
            )
        return number

    @property
    def table(self) -> pa.Table:
        """Refused: there are no rows to hand over."""
        raise QuestionError(NO_ROWS)

    def save(self, out: str | os.PathLike[str], *, overwrite: bool = False, format: str = "parquet") -> NoReturn:
        """Refused: there are no rows to hand over."""
        raise OutputError(NO_ROWS)

    def verify(self) -> Certificate:
        """Refused: nothing was published that a stranger could check."""
        raise QuestionError(
            "Answers of mechanism 'laplace' cannot be verified: whoever asks trusts the owner to add the noise. "
            "Fix: publish rows with another mechanism."
        )

    def __repr__(self) -> str:
        columns = ", ".join(self.manifest.sensitive_columns)
        asked = int(self.manifest.options["questions"])
        return (
            f"<NoisyAnswers about {self.manifest.rows:,} rows, {columns} by laplace: "
            f"{self.remaining:,} of {asked:,} questions left>"
        )
