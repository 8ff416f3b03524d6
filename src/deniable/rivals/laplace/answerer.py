"""Answer counts about a table that is not published, with noise, until a budget is spent (mathematics 9). For
comparison.

The noise of an answer is a function of the key, the table, epsilon, the question and its number: the same questions in
the same order get the same answers under one key, and no two different questions ever share their noise, which their
difference would then be free of. Nor do two budgets: noise of two sizes from the same draws would show the draws.
"""

from __future__ import annotations

import hashlib
import threading
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from deniable.core.arrays import Ints
from deniable.core.errors import QuestionError, RequirementError
from deniable.core.manifest import Manifest
from deniable.engines.noise import discrete_laplace, discrete_laplace_variance
from deniable.engines.randomness import Keystream
from deniable.engines.request import Request
from deniable.estimation.question import Question
from deniable.rivals.base import CountsOnly, RivalRelease, codes_and_rows, manifest_of, matching_rows, noisy_histogram
from deniable.rivals.laplace.estimate import LaplaceEstimate
from deniable.rivals.laplace.sums import not_declared

if TYPE_CHECKING:
    from deniable.rivals.laplace.mechanism import Laplace


def published_answers(mechanism: Laplace, request: Request) -> RivalRelease:
    """Who answers counts about the table, which stays with its owner."""
    if request.privacy is not None and request.privacy.small_sums is not None and request.domain is None:
        raise RequirementError(not_declared(" and ".join(map(repr, request.sensitive))))
    scan = request.scan(request.sensitive, request.domain)
    public = noisy_histogram(request, scan.histogram)
    guarantee = mechanism.guarantee(scan.histogram, request.privacy, public)
    budget = mechanism.budget(scan.histogram, request.privacy, public)
    codes, rows = codes_and_rows(request, scan.encoder)
    sensitive = [pa.field(name, kind) for name, kind in zip(request.sensitive, scan.encoder.types, strict=True)]
    schema = pa.schema([*rows.schema, *sensitive])
    options = {"epsilon": budget, "questions": mechanism.questions}
    manifest = manifest_of(mechanism, request, guarantee, scan, schema, len(codes), options=options)
    answerer = NoisyAnswerer(manifest, rows, codes, request.keys, mechanism.share(budget), mechanism.questions)
    return RivalRelease(manifest, answerer=answerer)


class _Spending:
    """How many questions were asked. A copy of the object that answers shares it, so it spends the same budget."""

    def __init__(self, questions: int) -> None:
        self.left = questions
        self._questions = 0
        self._turn = threading.Lock()

    def next(self) -> int | None:
        """The number of one more question; None where there is none left."""
        with self._turn:
            if self.left <= 0:
                return None
            self.left -= 1
            self._questions += 1
            return self._questions


class NoisyAnswerer(CountsOnly):
    """Counts with discrete Laplace noise, each for an equal part of the budget. It holds the original table."""

    def __init__(
        self, manifest: Manifest, rows: pa.Table, codes: Ints, keys: Keystream, epsilon: float, questions: int
    ) -> None:
        super().__init__(manifest)
        self._rows = rows
        self._codes = codes
        self._keys = keys.subkey("answers", hashlib.sha256(codes.tobytes()).hexdigest(), epsilon.hex())
        self._epsilon = epsilon
        self._questions = questions
        self._spending = _Spending(questions)

    @property
    def remaining(self) -> int:
        """How many questions are left."""
        return self._spending.left

    def __repr__(self) -> str:
        sensitive = ", ".join(self.manifest.sensitive_columns)
        return (
            f"<NoisyAnswers about {self.manifest.rows:,} rows, {sensitive} by {self.manifest.mechanism}: "
            f"{self.remaining:,} of {self._questions:,} questions left>"
        )

    def estimate(self, question: Question) -> LaplaceEstimate:
        """Rows that satisfy the conditions, with noise. Every answer costs the same, one that was given before too.

        A question that cannot be understood costs nothing.
        """
        leaves, wanted = self.split(question)
        everyone = np.ones(len(self._codes), dtype=bool)  # a table without columns does not say how many rows it has
        matching = matching_rows(leaves, self._rows, named=True) if leaves else everyone
        digest = hashlib.sha256(np.packbits(matching).tobytes() + np.packbits(wanted).tobytes()).hexdigest()
        keys = self._keys.subkey(str(self._next()), digest)
        noise = int(discrete_laplace(keys, 1, self._epsilon)[0])
        return LaplaceEstimate(
            value=float(int((matching & wanted[self._codes]).sum()) + noise),
            stderr=discrete_laplace_variance(self._epsilon) ** 0.5,
            confidence=question.options.confidence,
            smallest=0.0,
            largest=float(matching.sum()),
            method="laplace",
            epsilon=self._epsilon,
        )

    def _next(self) -> int:
        """The number of this question; refused when the budget is spent."""
        number = self._spending.next()
        if number is None:
            raise QuestionError(
                f"The budget is spent: all {self._questions:,} questions of epsilon {self._epsilon:.3g} each were "
                "asked. Fix: plan for more questions, Laplace(questions=...), with more noise in each answer; another "
                "object for the same table would give away as much again."
            )
        return number
