"""Linear and logistic models by weighted estimating equations (mathematics 8).

A model of the originals solves sum_i psi_i(x_i, theta) = 0, psi = x (y - mu(x theta)). They are not known, so

    psi*_i = sum over values v of w_v(row i) psi_i(v),    E[psi*_i | original] = psi_i

takes its place, and its zero estimates the coefficients that the *original table* gives. With A = -d/dtheta sum psi*,

    Cov(theta) = A^-1 M A^-1,    M = sum_i (psi*_i psi*_i^T - (psi psi^T)*_i)

over the randomization; sum psi* psi*^T alone holds the sampling of people as well. Where A is uncertain itself in a
direction (perturbed regressors), it is made smaller there by 1 - g, g = z^2 Var(lambda) / lambda^2 (Fieller's).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit

from deniable.core.errors import QuestionError, listing
from deniable.estimation.fitting.design import Atom, Variable
from deniable.estimation.fitting.expanded import Block, Expanded
from deniable.estimation.fitting.sums import Sums, summed
from deniable.estimation.published import Floats, Published

ROUNDS, HALVINGS, CLOSE = 60, 30, 1e-9
EQUAL = 1e-9  # eigenvalues that differ by rounding alone
Kind = Literal["linear", "logit"]
NOISY = (
    "The perturbation drowns this model: what it adds up of the regressors may be anything, zero included. "
    "Fix: fewer regressors, fewer perturbed columns among them, or more rows."
)
ENDLESS = (
    "The logistic model has no finite coefficients: a regressor seems to decide the outcome, or the perturbation "
    "drowns it. Fix: fewer regressors, or more rows."
)


@dataclass(frozen=True, eq=False)
class Fit:
    """Coefficients, intercept first, and their covariance."""

    coefficients: Floats
    covariance: Floats
    rows: float


def number_of(variable: Variable, block: Block) -> Floats:
    """A variable of originals [kinds, combinations]; not a number where one of its atoms is missing."""
    value: Floats = np.ones(block.shape)
    for atom in variable.atoms:
        value = value * block.numbers[atom]
    return value


@dataclass(frozen=True, eq=False)
class Model:
    """A model on its way: rows, an outcome, and regressors.

    Attributes:
        rows: as the model sees them.
        outcome: y.
        regressors: x, without the intercept.
        inside: the condition on rows, as zeros and ones.
        kind: which mean function.
    """

    rows: Expanded
    outcome: Variable
    regressors: Sequence[Variable]
    inside: Variable
    kind: Kind

    @classmethod
    def of(
        cls,
        published: Published,
        outcome: Variable,
        regressors: Sequence[Variable],
        where: Sequence[Atom],
        kind: Kind,
    ) -> Model:
        inside = Variable("where", tuple(where))
        atoms = [atom for one in (outcome, inside, *regressors) for atom in one.atoms]
        return cls(Expanded(published, atoms), outcome, regressors, inside, kind)

    def fitted(self, z: float, population: bool) -> Fit:
        """Coefficients in the units of the columns."""
        start = np.zeros(len(self.regressors) + 1)
        self._require_rows()
        theta = self._newton(start) if self.kind == "linear" else self._logit(start)
        _, slopes, rows = self._slopes(theta)
        values, vectors = self._directions(slopes)
        doubt = self._doubt(theta, values, vectors, z)
        if (doubt >= 1).any():
            raise QuestionError(NOISY)
        inverse = (vectors / (values * (1 - doubt))) @ vectors.T
        covariance = inverse @ self._sums(theta).covariance(population) @ inverse
        back = self._back()
        return Fit(back @ theta, back @ covariance @ back.T, rows)

    # -- sums over rows and what their originals may have been ---------------------------------------------------------

    def at(self, block: Block) -> tuple[Floats, Floats, Floats]:
        """Which originals are in the model, x and y [kinds, combinations, ..]."""
        columns = [np.ones(block.shape)]
        for one in self.regressors:
            columns.append((number_of(one, block) - one.centre) / one.scale)
        x, y = np.stack(columns, axis=-1), number_of(self.outcome, block)
        known = ~(np.isnan(x).any(axis=-1) | np.isnan(y))
        kept = np.where(known, number_of(self.inside, block), 0.0)
        return kept, np.where(known[..., None], x, 0.0), np.where(known, y, 0.0)

    def _sums(self, theta: Floats) -> Sums:
        """sum psi* and M."""

        def score(block: Block) -> Floats:
            kept, x, y = self.at(block)
            return x * (kept * (y - self._mean(x @ theta)))[..., None]

        return summed(self.rows, score, len(theta))

    def _mean(self, linear: Floats) -> Floats:
        return linear if self.kind == "linear" else expit(linear)

    def _steepness(self, linear: Floats) -> Floats:
        if self.kind == "linear":
            return np.ones_like(linear)
        mean = expit(linear)
        return mean * (1 - mean)

    def _slopes(self, theta: Floats) -> tuple[Floats, Floats, float]:
        """sum psi*, A = -d/dtheta of it, and how many rows the model is about."""
        size = len(self.regressors) + 1
        total, slopes, rows = np.zeros(size), np.zeros((size, size)), 0.0
        for block in self.rows:
            kept, x, y = self.at(block)
            own, flat, linear = (block.rows * kept).ravel(), x.reshape(-1, size), (x @ theta).ravel()
            total += (own * (y.ravel() - self._mean(linear))) @ flat
            slopes += (flat * (own * self._steepness(linear))[:, None]).T @ flat
            rows += float(own.sum())
        return total, slopes, rows

    def _require_rows(self) -> None:
        """Refuse a model of no row, or of an outcome that is the same in all of them."""
        rows, held = 0.0, 0.0
        for block in self.rows:
            kept, _, y = self.at(block)
            rows += float((block.rows * kept).sum())
            held += float((block.rows * kept * y).sum())
        if rows <= 0:
            raise QuestionError(
                "By the estimate no row is left for this model: rows in which a column of it is missing are left out, "
                "too. Fix: another condition, or fewer columns."
            )
        if self.kind == "logit" and not 0 < held < rows:
            share = "none" if held <= 0 else "all"
            raise QuestionError(
                f"By the estimate the outcome {self.outcome.name!r} holds in {share} of the rows of this model: there "
                "is nothing to explain. Fix: another outcome, or more rows."
            )

    # -- solving -------------------------------------------------------------------------------------------------------

    def _directions(self, slopes: Floats) -> tuple[Floats, Floats]:
        """The eigenvalues and -vectors of A, which must all be positive; vectors carry the scaling of A's diagonal."""
        diagonal = np.diag(slopes)
        scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        values, vectors = np.linalg.eigh(slopes * np.outer(scale, scale))
        if values[0] <= 1e-9:
            raise self._alike(vectors[:, 0])
        return values, _settled(values, vectors) * scale[:, None]

    def _alike(self, direction: Floats) -> QuestionError:
        """No spread in a direction of the regressors: they say the same there, or the perturbation makes it seem so."""
        said = [one.name for one, part in zip(self.regressors, direction[1:], strict=True) if abs(part) > 1e-3]
        verbs = ("say", "are") if said[1:] else ("says", "is")
        alike = (
            f"{listing(said)} {verbs[0]} the same as other regressors, or {verbs[1]} the same for all rows of the "
            "model. Fix: leave one out."
        )
        columns = {atom.column for one in (*self.regressors, self.inside) for atom in one.atoms}
        return QuestionError(f"{NOISY} Or: {alike}" if columns & self.rows.perturbed else alike)

    def _doubt(self, theta: Floats, values: Floats, vectors: Floats, z: float) -> Floats:
        """g of each direction: how far the perturbation may have moved its eigenvalue."""
        variance = np.zeros(len(values))
        for block in self.rows:
            kept, x, _ = self.at(block)
            size = (x @ vectors) ** 2 * (kept * self._steepness(x @ theta))[..., None]
            variance += block.counts.data @ block.shown(size, block.weights) ** 2
            variance -= np.einsum("kc,kcs->s", block.rows, size**2)
        variance = np.maximum(variance, 0.0)
        return z**2 * variance / values**2

    def _logit(self, theta: Floats) -> Floats:
        """Newton's steps, halved while they lead away: with negative weights the score may bend."""
        step = self._newton(theta)
        for _ in range(ROUNDS):
            if np.abs(step).max() < CLOSE:
                return theta
            theta, step = self._nearer(theta, step)
        raise QuestionError(ENDLESS)

    def _nearer(self, theta: Floats, step: Floats) -> tuple[Floats, Floats]:
        size, before = 1.0, float(np.abs(step).max())
        for _ in range(HALVINGS):
            ahead = theta + size * step
            try:
                following = self._newton(ahead)
            except QuestionError:
                following = np.full(len(theta), np.inf)
            if np.abs(following).max() < before or (size == 1.0 and before < CLOSE):
                return ahead, following
            size /= 2
        raise QuestionError(ENDLESS)

    def _newton(self, theta: Floats) -> Floats:
        """Newton's step, which leads a linear model from zero to its coefficients."""
        total, slopes, _ = self._slopes(theta)
        values, vectors = self._directions(slopes)
        return (vectors / values) @ (vectors.T @ total)

    def _back(self) -> Floats:
        """From scaled regressors to the columns' own units."""
        back = np.eye(len(self.regressors) + 1)
        for place, one in enumerate(self.regressors, start=1):
            back[place, place] = 1 / one.scale
            back[0, place] = -one.centre / one.scale
        return back


def _settled(values: Floats, vectors: Floats) -> Floats:
    """Eigenvectors of equal eigenvalues (those of indicators are) may be any basis of their space, and which one a
    processor's arithmetic finds decides nothing: the basis in which they are told apart by the regressors' order."""
    edges = np.flatnonzero(np.diff(values) > EQUAL * values[-1]) + 1
    order = np.arange(len(values), dtype=np.float64)[:, None]
    return np.concatenate(
        [
            own @ np.linalg.eigh(own.T @ (order * own))[1] if own.shape[1] > 1 else own
            for own in np.split(vectors, edges, axis=1)
        ],
        axis=1,
    )
