"""What rows and columns say together: all columns of a row, lists, all rows at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view
from scipy import sparse
from scipy.special import gammaln, xlogy

from deniable.core.channels import Channel
from deniable.core.exact import SCALE
from deniable.core.part import Part
from deniable.core.values import Bools, Counts, Floats, Ints, percent
from deniable.owner.findings import Finding, Name
from deniable.planning.posteriors import Limits, Posteriors, protects

# -- All perturbed columns of a row together: what someone concludes who knows how often each combination of values
# occurs (mathematics 13.8).
#
# With N[x] rows of each combination x = (x_1 .. x_k), a row that shows y = (y_1 .. y_k) holds v in column c with
#
#     sum over x with x_c = v of N[x] prod_j P_j[y_j][x_j]  /  sum over x of N[x] prod_j P_j[y_j][x_j]
#
# exactly, since columns are perturbed independently. A column that is deniable by itself need not be so beside others
# that go with it.


MOST = 3 * 10**8  # comparisons of a published row with a combination, in one column
NEVER = 1e-300  # rows that hidden groups made again from the table cannot have shown
CHUNK, ENTRIES = 256, 2**23  # published rows at a time; of many combinations fewer, so that not more is held


@dataclass(frozen=True)
class JointBelief:
    """The value of one column that all columns of a row give away most.

    Attributes:
        column: its place among the columns; ``columns`` says how many there are.
        position: which value, by its place in the domain.
        alone, together: how sure one becomes of it by its own column at most, and by all columns of some row.
        allowed: what is promised of the column alone; None where nothing is.
        rows, of: how many published rows were looked at, and how many there are.
    """

    column: int
    columns: int
    position: int
    alone: float
    together: float
    allowed: Fraction | None
    rows: int
    of: int


def joint_beliefs(
    channels: Sequence[Posteriors],
    held: tuple[Ints, Ints],
    shown: Ints,
    limits: Sequence[Limits],
    alone: Sequence[Floats],
) -> list[JointBelief]:
    """For each column the protected value (any, where nothing is required) of which a row's columns say most.

    Args:
        channels: of each column, what rows show of it.
        held: the different combinations of codes in original rows, [combinations, columns], and the rows of each.
        shown: the different combinations in published rows.
        limits: (rho1, rho2) of each value of each column.
        alone: for each column and value, how sure one becomes by this column alone, at most.
    """
    combinations, counts = held
    looked_at = _sample(shown, MOST // (len(combinations) * len(channels)))
    chunk = max(1, min(CHUNK, ENTRIES // len(combinations)))
    weights = [
        sparse.csr_matrix((counts.astype(float), (column, np.arange(len(counts)))), shape=(len(limit), len(counts)))
        for column, limit in zip(combinations.T, limits, strict=True)
    ]
    rows = [
        np.bincount(column, weights=counts, minlength=len(limit)).astype(np.int64)
        for column, limit in zip(combinations.T, limits, strict=True)
    ]
    covered = [_covered(one, of) for one, of in zip(limits, rows, strict=True)]
    best = [np.zeros(len(limit)) for limit in limits]
    for first in range(0, len(looked_at), chunk):
        likelihood = _likelihood(channels, combinations, looked_at[first : first + chunk])
        whole = np.maximum(likelihood @ counts, NEVER)
        for column, weight in enumerate(weights):
            beliefs = (weight @ likelihood.T) / whole
            best[column] = np.maximum(best[column], beliefs.max(axis=1))
    made = []
    for column, (posterior, inside) in enumerate(zip(best, covered, strict=True)):
        if not inside.any():
            continue
        place = int(np.argmax(np.where(inside, posterior, -1.0)))
        limit = limits[column][place]
        allowed = None if limit is None else limit[1]
        figures = float(posterior[place]), allowed, len(looked_at), len(shown)
        made.append(JointBelief(column, len(channels), place, float(alone[column][place]), *figures))
    return made


def _likelihood(channels: Sequence[Posteriors], combinations: Ints, rows: Ints) -> Floats:
    """prod_j P_j[y_j][x_j] for rows y and combinations x."""
    product = np.ones((len(rows), len(combinations)))
    for column, channel in enumerate(channels):
        product *= channel.chances(rows[:, column], combinations[:, column])
    return product


def _covered(limits: Limits, counts: Ints) -> Bools:
    if all(limit is None for limit in limits):
        return counts > 0
    rows = int(counts.sum())
    return np.array(
        [
            count > 0 and protects(limit, Fraction(count, rows))
            for limit, count in zip(limits, counts.tolist(), strict=True)
        ]
    )


def _sample(rows: Ints, most: int) -> Ints:
    """Rows at equal distances, as many as can be compared with all combinations."""
    if len(rows) <= max(most, 1):
        return rows
    return rows[np.linspace(0, len(rows) - 1, max(most, 1)).astype(np.int64)]


def about_joint(beliefs: Sequence[JointBelief], names: Sequence[str], values: Sequence[Name]) -> list[Finding]:
    """A finding for each column of which the others say more."""
    made = []
    for one in beliefs:
        beyond = one.allowed is not None and one.together > one.allowed
        if not beyond and one.together <= one.alone * (1 + 1e-9):
            continue
        promised = "" if one.allowed is None else f", and {percent(one.allowed)} are promised of this column"
        part = "" if one.rows == one.of else f" (of {one.rows:,} of {one.of:,} different rows)"
        detail = (
            f"whoever knows how often each combination of the {one.columns} perturbed columns occurs becomes up to "
            f"{percent(one.together)} sure of {values[one.column](one.position)} in {names[one.column]!r}{part}; by "
            f"that column alone it is {percent(one.alone)}{promised}."
        )
        advice = "Lower the coins, drop columns, or publish them as one column (mechanism 'uniform')." if beyond else ""
        made.append(Finding("caution" if beyond else "info", "all columns together", detail, advice))
    return made


# -- What a row of items says of a person's list: for who knows how often every list of the table occurs ---------------
# With n_L people of list L, and a row y of answers,
#
#     Pr[item | y] = sum over lists with the item of n_L P(y | L) / sum over all lists of n_L P(y | L)
#
# where P(y | L) may depend on the first items of L only: those that count. Items that go together speak for each other,
# so this is more than an item's own answer says.


LIST_ROWS = 1_000  # published rows that are looked at, at the most
AT_ONCE = 2**22  # numbers: rows x lists
SHOWN = 5


@dataclass(frozen=True)
class ItemBelief:
    """How sure someone becomes that a person has an item.

    Attributes:
        item: as text.
        prior: its share of the people.
        alone: when its own answer is yes, and nothing else is looked at.
        together: at most, over the rows that were looked at, by all answers of a row.
        allowed: rho2, where its share is not above rho1.
    """

    item: str
    prior: float
    alone: float
    together: float
    allowed: float | None

    @property
    def beyond(self) -> bool:
        return self.allowed is not None and self.together > self.allowed


@dataclass(frozen=True)
class ListAudit:
    """What is learnt about a column of lists.

    Attributes:
        column: of lists.
        most: how many items of a list count.
        lists: how many different ones the table has.
        looked_at: how many published rows were.
        gamma: by what the odds of any belief about a list can grow, at most.
        beliefs: of every item, those with the largest belief first.
    """

    column: str
    most: int
    lists: int
    looked_at: int
    gamma: Fraction
    beliefs: tuple[ItemBelief, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            **self.__dict__,
            "gamma": float(self.gamma),
            "epsilon": math.log(self.gamma),
            "beliefs": [belief.__dict__ for belief in self.beliefs],
        }

    def lines(self) -> list[str]:
        """For ``str`` of an audit."""
        return [
            f"{self.column}: lists of up to {self.most} of {len(self.beliefs):,} items, {self.lists:,} different ones",
            *(
                f"  {one.item}: {percent(one.prior)} before, up to {percent(one.alone)} by its own answer, up to "
                f"{percent(one.together)} by the whole row"
                for one in self.beliefs[:SHOWN]
            ),
            f"  epsilon: {math.log(self.gamma):.4g}",
        ]

    def findings(self) -> list[Finding]:
        """What to know about it."""
        worst = self.beliefs[0]
        broken = [one for one in self.beliefs if one.beyond]
        more = max(self.beliefs, key=lambda one: one.together - one.alone)
        looked = f"of {self.looked_at:,} rows, by someone who knows how often every list occurs"
        said = []
        if broken:
            said.append(
                Finding(
                    "serious",
                    "requirement",
                    f"{broken[0].item!r} is believed at {percent(broken[0].together)} after a row, allowed are "
                    f"{percent(broken[0].allowed or 1)} ({looked}).",
                    "Do not publish this release.",
                )
            )
        else:
            limit = "" if worst.allowed is None else f", allowed are {percent(worst.allowed)}"
            detail = f"an item is believed at {percent(worst.together)} at most ({worst.item!r}{limit}), {looked}."
            said.append(Finding("info", "lists", detail, ""))
        said.append(
            Finding(
                "info",
                "any belief",
                f"odds of anything about a list grow by at most the factor gamma (gamma {float(self.gamma):.4g}, "
                f"epsilon {math.log(self.gamma):.4g}), whatever was believed.",
                "",
            )
        )
        if more.together > more.alone:
            said.append(
                Finding(
                    "info",
                    "items that go together",
                    f"{more.item!r}: its own answer makes someone {percent(more.alone)} sure, all answers of a row up "
                    f"to {percent(more.together)}.",
                    "Read the bound of the row, not that of one item.",
                )
            )
        return said


def item_beliefs(
    held: Bools,
    shown: Bools,
    items: list[str],
    chances: tuple[float, float],
    limits: tuple[Fraction, Fraction] | None,
    whole: Bools | None = None,
) -> tuple[int, tuple[ItemBelief, ...]]:
    """How many different lists there are, and how sure a row makes someone of each item.

    Args:
        held: which people have which items, as far as they count.
        shown: what published rows say.
        items: their names.
        chances: a and b, of a yes with the item and without it.
        limits: rho1 and rho2, where they are required.
        whole: which people have which items, where only the first of longer lists count.
    """
    present, absent = chances
    whole = held if whole is None else whole
    lists, often = np.unique(np.concatenate([held, whole], axis=1), axis=0, return_counts=True)
    counting, every = np.split(lists.astype(np.float64), 2, axis=1)
    prior, counted = whole.mean(0), held.mean(0)
    yes = counted * present + (prior - counted) * absent
    alone = yes / (yes + (1 - prior) * absent)
    together = _by_rows(counting, every, often / often.sum(), shown.astype(np.float64), present, absent)
    beliefs = [
        ItemBelief(item, float(p), float(a), float(t), _allowed(float(p), limits))
        for item, p, a, t in zip(items, prior, alone, together, strict=True)
    ]
    return len(lists), tuple(sorted(beliefs, key=lambda one: (-one.together, one.item)))


def _by_rows(counting: Floats, every: Floats, shares: Floats, shown: Floats, present: float, absent: float) -> Floats:
    """The largest Pr[item | row] over some rows, of every item of a list. One that counts changes ln P(row) by
    ln(a / b) where the row says yes, and by ln((1 - a) / (1 - b)) where it says no; the others are the same for all."""
    yes, no = math.log(present / absent), math.log((1 - present) / (1 - absent))
    surest = np.zeros(every.shape[1])
    step = max(AT_ONCE // max(len(every), 1), 1)
    for start in range(0, len(shown), step):
        weights = (shown[start : start + step] * (yes - no) + no) @ counting.T + np.log(shares)
        weights = np.exp(weights - weights.max(1, keepdims=True))
        surest = np.maximum(surest, ((weights @ every) / weights.sum(1, keepdims=True)).max(0))
    return surest


def _allowed(prior: float, limits: tuple[Fraction, Fraction] | None) -> float | None:
    return None if limits is None or prior > limits[0] else float(limits[1])


# -- Rows together: what someone concludes who knows exactly how many rows hold each value, and sees all published rows
# (mathematics 13.5).
#
# A promise is about one row: to its attacker rows are independent draws. Whoever knows the counts f of this table also
# knows that values shown too rarely, or too often, must have been replaced. Coins and a replacing distribution make
# that computable. Let k_x rows of x be kept by their coin, K = sum k_x. The others are redrawn, whatever they hold, so
# that
#
#     Pr[k | f, g] ~ (n - K)! prod_x  p_x^k_x (1-p_x)^(f_x-k_x) r_x^(g_x-k_x) / (k_x! (f_x-k_x)! (g_x-k_x)!)
#
# g being how many rows show each value. Only K ties the values together: its distribution is a convolution, computed by
# Fourier transforms, once without each kind of value. Of the g_x rows that show x then
#
#     E[k_x + (f_x-k_x)(g_x-k_x) / (n-K)]
#
# hold it, on average over all tables that the rows can have come from: exact, up to rounding (six digits and more), for
# any number of rows.


Complex = npt.NDArray[np.complex128]
RARE = 1000
NEGLIGIBLE = 1e-18  # of the likeliest number of kept rows
ROUNDING = 1e-13  # of the likeliest K
TENTH = 1.1  # of a promise: more is said aloud
TILTS = 40  # halvings
WIDTH = 16  # standard deviations on either side that are summed over


@dataclass(frozen=True)
class Kind:
    """Values that cannot be told apart: the same counts, coin and share of replacements.

    Attributes:
        held, shown: how many rows hold, and show, each of them.
        kept: the numbers of kept rows that matter, and ``logs``: ln of their likelihood, K apart.
    """

    held: int
    shown: int
    members: Counts
    kept: Floats
    logs: Floats

    def tilted(self, log_z: float) -> Floats:
        """The probabilities of ``kept`` where every kept row has the weight z."""
        logs = self.logs + self.kept * log_z
        weights: Floats = np.exp(logs - logs.max())
        return weights / weights.sum()


def true_among_shown(channel: Channel, held: Counts, shown: Counts, rare: int = RARE) -> Floats:
    """For each value, the expected share of the rows that show it which hold it.

    0 where no row shows it, and for values of more than ``rare`` rows: of these, counts tell hardly more than a row.

    Args:
        channel: coins and replacing distribution of one cell.
        held, shown: how many rows of the cell hold, and show, each value.
        rare: values of more rows are left out.
    """
    rows = int(held.sum())
    kinds = _kinds(channel, held, shown)
    if any(np.isneginf(kind.logs.max()) for kind in kinds):  # no table can have given these rows
        return np.zeros(len(held))
    log_z = _tilt(kinds, rows)
    chances = [kind.tilted(log_z) for kind in kinds]
    centre = sum(float(q @ kind.kept) * len(kind.members) for kind, q in zip(kinds, chances, strict=True))
    spread = sum(
        float(q @ (kind.kept - q @ kind.kept) ** 2) * len(kind.members) for kind, q in zip(kinds, chances, strict=True)
    )
    size = 1 << int(np.ceil(np.log2(2 * WIDTH * np.sqrt(spread) + 64)))
    transforms = [_transform(kind.kept, q, size) for kind, q in zip(kinds, chances, strict=True)]
    without = _without_one([(one, len(kind.members)) for one, kind in zip(transforms, kinds, strict=True)])
    share = np.zeros(len(held))
    for kind, q, product in zip(kinds, chances, without, strict=True):
        if kind.shown and kind.held <= rare:
            window = round(centre - float(q @ kind.kept)) - size // 2 + np.arange(size)
            others = np.fft.irfft(product, size)[window % size]  # a transform knows K up to its size
            there = others > ROUNDING * others.max()  # (n - K)! would make mountains of what is only rounding
            reach = slice(*np.flatnonzero(there)[[0, -1]] + (0, 1))
            expected = _expected(kind, q, np.where(there, others, 0.0)[reach], window[reach], rows, log_z)
            share[kind.members] = expected / kind.shown
    return share


def _kinds(channel: Channel, held: Counts, shown: Counts) -> list[Kind]:
    features = np.stack([held, shown, channel.keep, channel.replace], axis=1)
    distinct, inverse = np.unique(features, axis=0, return_inverse=True)
    made = []
    for number, (f, g, keep, replace) in enumerate(distinct.tolist()):
        kept = np.arange(min(f, g) + 1, dtype=np.float64)
        terms = ((kept, keep / SCALE), (f - kept, 1 - keep / SCALE), (g - kept, replace / SCALE))
        logs = sum(xlogy(count, chance) - gammaln(count + 1) for count, chance in terms)
        made.append(Kind(f, g, np.flatnonzero(inverse.reshape(-1) == number), kept, np.asarray(logs)))
    return made


def _tilt(kinds: Sequence[Kind], rows: int) -> float:
    """ln z with z (n - mean K) = 1: near the middle of K's distribution, (n - K)! falls by that for each kept row.

    It need only be near: any z gives the same answer but for rounding.
    """
    lengths = np.array([len(kind.kept) for kind in kinds])
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    kept, logs = (np.concatenate([getattr(kind, name) for kind in kinds]) for name in ("kept", "logs"))
    times = np.array([len(kind.members) for kind in kinds])
    low, high = -np.log(rows + 1.0), 0.0
    for _ in range(TILTS):
        log_z = (low + high) / 2
        tilted = logs + kept * log_z
        weights = np.exp(tilted - np.repeat(np.maximum.reduceat(tilted, starts), lengths))
        mean = times @ (np.add.reduceat(weights * kept, starts) / np.add.reduceat(weights, starts))
        low, high = (log_z, high) if np.exp(log_z) * (rows - mean + 1) < 1 else (low, log_z)
    return float(low + high) / 2


def _transform(kept: Floats, chances: Floats, size: int) -> Complex:
    folded = np.zeros(size)
    np.add.at(folded, kept.astype(np.int64) % size, chances)
    return np.fft.rfft(folded)


def _without_one(transforms: Sequence[tuple[Complex, int]]) -> list[Complex]:
    """For each kind, the product of all transforms, each as often as its kind has values, but for one value of it."""
    before = [np.ones_like(transforms[0][0])]
    after = [np.ones_like(transforms[0][0])]
    for one, times in transforms:
        before.append(before[-1] * one**times)
    for one, times in reversed(transforms):
        after.append(after[-1] * one**times)
    return [
        before[place] * one ** (times - 1) * after[len(transforms) - 1 - place]
        for place, (one, times) in enumerate(transforms)
    ]


def _expected(kind: Kind, q: Floats, others: Floats, window: Counts, rows: int, log_z: float) -> float:
    """E[k + (f-k)(g-k) / (n-K)] of one value of a kind, K being its k and what the others keep.

    ``others`` are the chances of ``window``, whole numbers that follow each other.
    """
    matter = np.flatnonzero(q > NEGLIGIBLE * q.max())
    kept, chance = kind.kept[matter], q[matter]
    total = np.arange(window[0] + int(kept[0]), window[-1] + int(kept[-1]) + 1)
    left = np.maximum(rows - total, 0)
    middle = float(others @ window / others.sum())
    base = gammaln(rows + 1 - middle) - middle * log_z
    falls = np.where((total >= 0) & (total <= rows), np.exp(gammaln(left + 1) - total * log_z - base), 0.0)
    places = matter - matter[0]
    weight, by_left = (
        chance * (sliding_window_view(row, len(window)) @ others)[places]
        for row in (falls, falls / np.maximum(left, 1))
    )
    above = weight @ kept + by_left @ ((kind.held - kept) * (kind.shown - kept))
    return float(above / weight.sum()) if weight.any() else 0.0


@dataclass(frozen=True)
class Surest:
    """The protected value that rows together give away most.

    Attributes:
        position: which value, by its place in the domain.
        share: of the rows that show it, how many hold it: how sure one may be of each of them.
        shown: these rows.
        allowed: what is promised of a row alone.
    """

    position: int
    share: float
    shown: int
    allowed: Fraction

    @property
    def beyond(self) -> bool:
        """Whether it is more than a tenth above the promise."""
        return self.share > TENTH * self.allowed

    def in_words(self, name: Name) -> str:
        """What someone becomes sure of, and why the promise does not say so."""
        rows = "the row that shows" if self.shown == 1 else f"each of the {self.shown:,} rows that show"
        return (
            f"whoever knows exactly how many rows hold each value, and weighs all rows against each other, becomes "
            f"{percent(self.share)} sure of {rows} {name(self.position)}; the promise of {percent(self.allowed)} is "
            "about someone to whom rows are independent draws."
        )


def surest(part: Part, limits: Limits, cells: Sequence[tuple[Counts, Counts]], rare: int = RARE) -> Surest | None:
    """What rows together say most about a protected value; None where none is shown, or nothing is required.

    Args:
        part: with a channel for each cell, whose rows are drawn independently.
        limits: (rho1, rho2) of each value, None where it is exempt.
        cells: for each cell how many of its rows hold, and show, each of its values.
        rare: values of more rows are left out.
    """
    rows = max(sum(int(held.sum()) for held, _ in cells), 1)
    whole = np.zeros(len(part.domain), dtype=np.int64)
    for places, (held, _) in zip(part.cell_positions, cells, strict=True):
        whole[places] += held
    worst: Surest | None = None
    for channel, places, (held, shown) in zip(part.channels, part.cell_positions, cells, strict=True):
        if int(held.sum()) != int(shown.sum()):  # rows of another table, or a cell that was estimated
            return None
        shares = true_among_shown(channel, held, shown, rare)
        for place, share, count in zip(places.tolist(), shares.tolist(), shown.tolist(), strict=True):
            limit = limits[place]
            if limit is None or not protects(limit, Fraction(int(whole[place]), rows)):
                continue
            if share and (worst is None or share * worst.allowed > worst.share * limit[1]):
                worst = Surest(place, share, count, limit[1])
    return worst


def about_rows_together(gained: Surest | None, name: Name) -> list[Finding]:
    """The finding of an audit."""
    if gained is None:
        return []
    advice = "Lower rho2, or join rare values, if someone may know the exact counts." if gained.beyond else ""
    return [Finding("caution" if gained.beyond else "info", "rows together", gained.in_words(name), advice)]
