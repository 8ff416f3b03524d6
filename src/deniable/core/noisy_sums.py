"""Small sums private, large sums accurate, by discrete Laplace noise (mathematics 7; SPLU Def. 1, 2).

The owner answers k counts, each with noise P(z) ~ b^|z|, b = e^(-epsilon/k). Large sums are about one answer:

    Pr[|z| >= h] = 2 b^h / (1 + b),   h = ceil(e f),   which falls as f grows

Small sums are about all k answers together: whoever asks the same count again and again averages the noise out. Let T
be any whole number that is estimated for a count f from all answers by a rule that prefers no count: T - f is as likely
to be anything whatever f is, as for a mean or a median, rounded. A count that is d larger makes no event more than
e^(epsilon d) times as likely. So if T is within w of f with probability q, it is within w of each of f + (2w+1) j with
q a^|j| or more, a = e^(-epsilon (2w+1)); these never happen together, sum_j q a^|j| <= 1, and

    Pr[|T - f| > w] >= 2a / (1 + a),   w = floor(e f)

For a single answer and w = 0 this is what the noise does, exactly: 2/3 at epsilon = ln 2.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction

from deniable.core.sums import LargeSums, SmallSums

DIGITS = Decimal(1).scaleb(-12)  # that a tail is rounded to, to the safe side
CLOSER = 1e-12  # by which an epsilon is moved until it holds


def small_reached(sums: SmallSums, epsilon: float) -> Fraction:
    """What every estimate from all answers is off by more than the error with, at the least; rounded down.

    >>> round(float(small_reached(SmallSums(error="0.3", below=3, at_least="0.5"), math.log(2))), 4)
    0.6667
    """
    width = math.floor(sums.error * sums.below)  # the widest of f = 1..alpha, which has the smallest bound
    with localcontext() as context:
        context.prec = 40
        a = (-Decimal(epsilon) * (2 * width + 1)).exp()
        return Fraction((2 * a / (1 + a)).quantize(DIGITS, ROUND_FLOOR))


def large_reached(sums: LargeSums, epsilon: float) -> Fraction:
    """How likely one answer with noise of this epsilon is off by the error, at the threshold; rounded up."""
    with localcontext() as context:
        context.prec = 40
        b = (-Decimal(epsilon)).exp()
        return Fraction((2 * b ** math.ceil(sums.error * sums.above) / (1 + b)).quantize(DIGITS, ROUND_CEILING))


def largest_epsilon(sums: SmallSums) -> float:
    """The largest epsilon of all answers together that keeps small sums uncertain."""
    width = math.floor(sums.error * sums.below)
    epsilon = math.log((2 - sums.at_least) / sums.at_least) / (2 * width + 1)
    while small_reached(sums, epsilon) < sums.at_least:
        epsilon *= 1 - CLOSER
    return epsilon


def smallest_epsilon(sums: LargeSums) -> float:
    """The smallest epsilon of one answer that keeps large sums accurate, by halving: the tail falls with epsilon."""
    low, high = 0.0, 1.0
    while large_reached(sums, high) > sums.at_most:
        low, high = high, 2 * high
    while high - low > CLOSER * high:
        middle = (low + high) / 2
        low, high = (middle, high) if large_reached(sums, middle) > sums.at_most else (low, middle)
    return high
