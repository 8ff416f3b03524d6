"""OLAP Figures 9 to 12: Zipfian tables of independent columns, by the number of columns, rows, and interval width."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from deniable.estimation.model.tensor import Factor, Tensor
from deniable.lab.draws import stream_of
from deniable.lab.rival import generator
from deniable.planning.candidates import INDEPENDENCE, Chart, Series, line
from deniable.planning.prediction import Spread, spread
from reproduction.criteria import limit
from reproduction.items import Item, yes

SKEW = 0.5
LEAST = 5  # rows of the rarest value; at this skew a table then has ten rows per value (OLAP 7)
ROWS = (1_000, 10_000, 100_000)
COLUMNS = (1, 2, 4, 6, 8, 10)
COINS = (0.2, 0.5, 0.7, 0.9)
WIDTHS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
MOST_DRAWS = 5  # of the large tables: an l1 distance over hundreds of shares hardly varies
REPEATS = 2000  # of one column's count, which costs nothing to draw
Bits = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Errors = tuple[Spread, Spread, Spread]
ESTIMATED = ("as published", "iterative", "inversion")
PANELS = ((1, "iterative"), (2, "inversion"))


def l1_errors(bits: Bits, masses: Sequence[float], coin: float, draws: int, label: str) -> Errors:
    """The l1 distance of the 2^k shares from the truth: as published, by iteration, by inversion (OLAP 7).

    Uniform replacement of a number is, for its predicate, a coin of probability b: only the bits are drawn.
    """
    b = np.array(masses)
    tensor = Tensor(tuple(Factor(coin, np.array([1 - mass, mass])) for mass in b))
    true = shares(bits)
    distances: tuple[list[float], list[float], list[float]] = ([], [], [])
    for draw in range(draws):
        rng = generator(stream_of(1, draw, label))
        kept = rng.random(bits.shape) < coin
        seen = shares(np.where(kept, bits, rng.random(bits.shape) < b))
        likeliest = tensor.likelihood(seen * len(bits)) / len(bits)  # of counts: how near it comes is a matter of rows
        for drawn, estimate in zip(distances, (seen, likeliest, tensor.invert(seen)), strict=True):
            drawn.append(float(np.abs(estimate - true).sum()))
    published, iterative, inverse = map(spread, distances)
    return published, iterative, inverse


def independence(bits: Bits) -> float:
    """The l1 distance from the truth of the single columns' exact shares, multiplied: what anyone can say."""
    product = np.ones(())
    for share in bits.mean(axis=0):
        product = np.multiply.outer(product, [1 - share, share])
    return float(np.abs(product - shares(bits)).sum())


def shares(bits: Bits) -> Floats:
    """The share of rows in each of the 2^k patterns, one axis per column."""
    k = bits.shape[1]
    keys = bits.astype(np.int64) @ (1 << np.arange(k)[::-1])
    return np.bincount(keys, minlength=2**k).reshape((2,) * k) / len(bits)


def frequencies(rows: int) -> Floats:
    """f_i ~ i^-0.5 over rows / 10 values, the rarest of which has about 5 rows."""
    raw = np.arange(1, rows // (2 * LEAST) + 1) ** -SKEW
    result: Floats = raw / raw.sum()
    return result


def half(rows: int) -> tuple[int, float]:
    """The values 1 .. j that half of the rows have: j, and its share b of the values."""
    below = np.cumsum(frequencies(rows))
    j = int(np.searchsorted(below, 0.5)) + 1
    return j, j / len(below)


def zipf_bits(rows: int, columns: int) -> Bits:
    """Which rows of a table of independent Zipfian columns satisfy each column's predicate."""
    rng = generator(stream_of(1, 0, f"olap zipf {rows} rows"))
    values = np.searchsorted(np.cumsum(frequencies(rows)), rng.random((rows, columns))) + 1
    return values <= half(rows)[0]


def figure_9(draws: int, *, rows: int = ROWS[-1], columns: Sequence[int] = COLUMNS) -> Item:
    """The error against the number of columns: exponential growth, then flat for iteration."""
    bits, b = zipf_bits(rows, max(columns)), half(rows)[1]
    grid = {
        (coin, k): l1_errors(bits[:, :k], [b] * k, coin, draws, f"olap figure 9 {k} {coin}")
        for coin in COINS
        for k in columns
    }
    growths = {
        (coin, which): [
            math.log(grid[coin, after][which].mean / grid[coin, before][which].mean) / (after - before)
            for before, after in ((columns[0], columns[2]), (columns[-2], columns[-1]))
        ]
        for coin in COINS
        for which in (1, 2)
    }
    less = limit("OLAP Figure 9", "flat")
    flat, rest = (all(growths[c, 1][1] < less * growths[c, 1][0] for c in some) for some in ((0.2, 0.5), (0.7, 0.9)))
    unbounded = all(growths[coin, 2][1] > less * growths[coin, 2][0] for coin in (0.2, 0.5))
    bounded = all(line[1].mean <= limit("OLAP Figure 9", "most") for line in grid.values())
    zero: dict[float, float] = {k: independence(bits[:, :k]) for k in columns if k > 1}
    return Item(
        "OLAP Figure 9",
        f"l1 distance of the 2^k shares on a Zipf({SKEW}) table of {rows:,} rows, iterative / inversion; {draws} "
        f"draws. Every predicate holds for half of the rows and for b = {b:.2f} of the values, a tenth as many as "
        f"rows. The columns are independent, so that independence is nearly right: off by {zero[columns[-1]]:.3g} for "
        f"{columns[-1]} columns.",
        ("p", *(f"{k} column{'s' * (k > 1)}" for k in columns)),
        tuple(
            (f"{coin:g}", *(f"{grid[coin, k][1].mean:.3g} / {grid[coin, k][2].mean:.3g}" for k in columns))
            for coin in COINS
        ),
        flat and unbounded and bounded,
        "The paper: the iterative error grows exponentially and then flattens "
        f"({yes(flat)} at p = 0.2 and 0.5, read as: the last columns add less than half as much to its logarithm, "
        f"each, as the first ones; at p = 0.7 and 0.9 {'too' if rest else 'not within these columns'}), that of "
        f"inversion does not flatten ({yes(unbounded)}), and the iterative one is at most 2 ({yes(bounded)}).",
        Chart(
            "Error against the number of columns, Zipf table",
            "columns",
            "l1 distance from the truth",
            by_coin(grid, columns, zero),
            log_y=True,
        ),
        draws=draws,
    )


def by_coin(
    grid: Mapping[tuple[float, int], Sequence[Spread]],
    places: Sequence[int],
    zero: Mapping[float, float],
    panels: Sequence[tuple[int, str]] = PANELS,
) -> tuple[Series, ...]:
    """A line for each coin and independence, in a panel for each estimator."""
    return tuple(
        series
        for which, panel in panels
        for series in (
            *(line(f"p = {coin:g}", {x: grid[coin, x][which] for x in places}, panel=panel) for coin in COINS),
            line(INDEPENDENCE, zero, panel=panel),
        )
    )


def figure_10(draws: int, *, sizes: Sequence[int] = ROWS, k: int = 8) -> Item:
    """The error against the number of rows: n^-1/2 for large n."""
    grid = {
        (coin, n): l1_errors(zipf_bits(n, k), [half(n)[1]] * k, coin, draws, f"olap figure 10 {n} {coin}")
        for coin in COINS
        for n in sizes
    }
    zero: dict[float, float] = {n: independence(zipf_bits(n, k)) for n in sizes}
    last, end = sizes[-2:]

    def slope(coin: float, which: int) -> float:
        return math.log(grid[coin, end][which].mean / grid[coin, last][which].mean) / math.log(end / last)

    judged = [coin for coin in COINS if grid[coin, last][2].mean < 1]
    straight = bool(judged) and all(abs(slope(coin, 1) + 0.5) < limit("OLAP Figure 10", "slope") for coin in judged)
    flatter = [coin for coin in COINS if slope(coin, 1) > -0.4]
    return Item(
        "OLAP Figure 10",
        f"The same for {k} columns against the number of rows, iterative / inversion; {draws} draws. The slope is that "
        f"of log error against log n over the last two sizes.",
        ("p", *(f"{n:,} rows" for n in sizes), "slope, iterative", "slope, inversion"),
        tuple(
            (
                f"{coin:g}",
                *(f"{grid[coin, n][1].mean:.3g} / {grid[coin, n][2].mean:.3g}" for n in sizes),
                *(f"{slope(coin, which):.2f}" for which in (1, 2)),
            )
            for coin in COINS
        ),
        straight,
        f"The paper: for large n the iterative error falls like n^-0.5 ({yes(straight)} at p = "
        f"{', '.join(f'{coin:g}' for coin in judged) or 'none'}, where inversion is off by less than 1 at {last:,} "
        f"rows: n is large there). "
        + (
            f"At p = {', '.join(f'{coin:g}' for coin in flatter)} these tables are too small: the iterative error is "
            "held down by the counts being 0 or more, and falls more slowly."
            if flatter
            else ""
        ),
        Chart(
            f"Error against the number of rows, {k} columns, Zipf tables",
            "rows",
            "l1 distance from the truth",
            by_coin(grid, sizes, zero),
            log_x=True,
            log_y=True,
        ),
        draws=draws,
    )


def count_errors(n: int, width: float, coin: float, repeats: int) -> tuple[float, float]:
    """The mean absolute error of one interval's share of n rows, and the share.

    Of a share f, a published row is inside with probability p + (1-p) b, of the rest with (1-p) b.
    """
    below = np.cumsum(frequencies(n))
    last = round(width * len(below))
    b = last / len(below)
    inside = round(n * float(below[last - 1]))
    rng = generator(stream_of(1, 0, f"olap figure 11 {n} {width}"))
    seen = rng.binomial(inside, coin + (1 - coin) * b, repeats) + rng.binomial(n - inside, (1 - coin) * b, repeats)
    estimate = np.clip((seen / n - (1 - coin) * b) / coin, 0, 1)  # what iteration finds for one column
    return float(np.abs(estimate - inside / n).mean()), inside / n


def figures_11_12(*, sizes: Sequence[int] = ROWS, coin: float = 0.2, repeats: int = REPEATS) -> Item:
    """One column: the error of a count against the width of its interval."""
    counted = {(width, n): count_errors(n, width, coin, repeats) for n in sizes for width in WIDTHS}
    absolute = {place: error for place, (error, _) in counted.items()}
    relative = {place: error / truth for place, (error, truth) in counted.items()}
    wide = [width for width in WIDTHS if width >= 0.1]
    by_width = [[absolute[width, n] for width in wide] for n in sizes]
    level = all(max(errors) <= limit("OLAP Figures 11 and 12", "varies") * min(errors) for errors in by_width)
    rising = all(
        list(column) == sorted(column, reverse=True) for column in ([relative[w, n] for w in WIDTHS] for n in sizes)
    )
    ratios = [absolute[width, sizes[0]] / absolute[width, sizes[-1]] for width in WIDTHS]
    expected = math.sqrt(sizes[-1] / sizes[0])
    apart = float(np.exp(np.mean(np.log(ratios))))
    tenfold = abs(apart / expected - 1) < limit("OLAP Figures 11 and 12", "tenfold")
    return Item(
        "OLAP Figures 11 and 12",
        f"One Zipf({SKEW}) column, p = {coin:g}: mean absolute / relative error of the share of rows with a value in "
        f"an interval from the first value on; {repeats:,} draws of the counts.",
        ("width", *(f"{n:,} rows" for n in sizes)),
        tuple((f"{w:g}", *(f"{absolute[w, n]:.4f} / {relative[w, n]:.3f}" for n in sizes)) for w in WIDTHS),
        level and rising and tenfold,
        f"The paper: the absolute error does not vary much with the width ({yes(level)}, read as within a factor of 2 "
        f"from width 0.1 to 0.9); the relative error grows as the width falls ({yes(rising)}); the lines for the "
        f"fewest and the most rows are a factor {expected:.3g} apart (here {apart:.3g}, {yes(tenfold)}).",
        Chart(
            "Error of one count against the width of its interval",
            "width of the interval",
            "mean error of the share",
            tuple(
                line(f"{n:,} rows", {width: numbers[width, n] for width in WIDTHS}, panel=panel)
                for panel, numbers in (("Figure 11: absolute", absolute), ("Figure 12: relative", relative))
                for n in sizes
            ),
            log_y=True,
        ),
        draws=repeats,
    )
