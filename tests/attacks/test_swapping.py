"""Swapping among few rows, by someone who knows how many rows hold each value and sees all that is published.

Every coin and every permutation is enumerated here in fractions, for up to six rows; beyond that, counts of swapped
rows are summed over. Nothing uses the code that plans or promises.
"""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations, permutations
from math import comb, factorial
from pathlib import Path

import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.channels import Replace
from deniable.mechanisms.retention import Retention

FULL = 2**32
Row = tuple[int, ...]


def outcomes(held: Row, p: Fraction) -> dict[Row, Fraction]:
    """Pr[published rows | true rows], over all coins and all permutations of what no coin keeps."""
    n, found = len(held), {}
    for size in range(n + 1):
        for moved in combinations(range(n), size):
            each = p ** (n - size) * (1 - p) ** size / factorial(size)
            for order in permutations(moved):
                shown = list(held)
                for place, source in zip(moved, order, strict=True):
                    shown[place] = held[source]
                found[tuple(shown)] = found.get(tuple(shown), Fraction(0)) + each
    return found


def surest(n: int, holders: int, p: Fraction) -> Fraction:
    """The largest Pr[row 0 is a holder | all published rows], all arrangements of the holders alike beforehand."""
    arrangements = [tuple(int(i in chosen) for i in range(n)) for chosen in combinations(range(n), holders)]
    shown: dict[Row, list[Fraction]] = {}
    for held in arrangements:
        for published, chance in outcomes(held, p).items():
            sums = shown.setdefault(published, [Fraction(0), Fraction(0)])
            sums[0] += chance
            sums[1] += chance * held[0]
    return max(told / whole for whole, told in shown.values() if whole)


def of_one_row(n: int, holders: int, p: Fraction) -> Fraction:
    """Pr[a holder | shown as one], from how many companions a swapped row has: sums over a binomial, no closed form."""
    back = sum(comb(n - 1, k) * (1 - p) ** k * p ** (n - 1 - k) * Fraction(1, k + 1) for k in range(n))
    own = p + (1 - p) * back
    return own + (1 - own) * Fraction(holders - 1, n - 1)


def published(n: int, holders: int, rho1: str, rho2: str, out: Path, **more: object) -> Fraction:
    """The coin that a release of n rows has."""
    rows = pa.table({"ill": ["yes"] * holders + ["no"] * (n - holders)})
    how = Retention({"ill": Replace(privacy=dn.Privacy(rho1, rho2), replacing="swapping")})
    dn.publish(rows, mechanism=how, out=out, **more)
    (part,) = json.loads((out / "manifest.json").read_text())["parts"]
    assert len(set(part["cells"][0]["keep"])) == 1
    return Fraction(part["cells"][0]["keep"][0], FULL)


@pytest.mark.parametrize(("n", "holders"), [(2, 1), (3, 1), (4, 1), (4, 2), (5, 2), (6, 1), (6, 2), (6, 3)], ids=str)
def test_nobody_becomes_surer_than_promised_however_few_rows_there_are(n: int, holders: int, tmp_path: Path) -> None:
    rho1, rho2 = Fraction(holders, n), Fraction(3, 4)
    p = published(n, holders, str(rho1), str(rho2), tmp_path / "r")
    found = surest(n, holders, p)
    assert found == of_one_row(n, holders, p)  # all rows together tell no more than the row's own
    assert found <= rho2
    assert found > rho2 - Fraction(1, 2**20)  # and no coin is given away
    assert dn.verify(tmp_path / "r").holds
    naive = (rho2 - rho1) / (1 - rho1)  # the coin of many rows
    assert surest(n, holders, naive) > rho2


def test_the_worked_numbers() -> None:
    half = Fraction(1, 2)
    assert of_one_row(2, 1, half) == surest(2, 1, half) == Fraction(7, 8)
    assert round(float(of_one_row(20, 10, half)), 3) == 0.763


@pytest.mark.parametrize("n", [20, 300, 5000])
def test_the_bound_holds_for_more_rows_too(n: int, tmp_path: Path) -> None:
    p = published(n, n // 2, "1/2", "3/4", tmp_path / "r")
    whole = 1 - p**n if n <= 300 else 1  # a power of five thousand is no more than 0, and leaves the bound above
    own = p + Fraction(whole) / n
    assert Fraction(3, 4) - Fraction(1, 10**4) < own + (1 - own) * Fraction(n // 2 - 1, n - 1) <= Fraction(3, 4)


@pytest.mark.parametrize("rows", [200, 2000])
def test_a_promise_for_more_rows_than_there_are_is_refused(rows: int, tmp_path: Path) -> None:
    out = tmp_path / "r"
    published(20, 10, "1/2", "3/4", out)
    raw = json.loads((out / "manifest.json").read_text())
    raw["parts"][0]["swapped"] = rows
    (out / "manifest.json").write_text(json.dumps(raw))
    with pytest.raises(dn.VerificationError, match="swapped rows"):
        dn.verify(out)


def test_the_coin_of_many_rows_is_refused_among_few(tmp_path: Path) -> None:
    out = tmp_path / "r"
    published(20, 10, "1/2", "3/4", out)
    raw = json.loads((out / "manifest.json").read_text())
    raw["parts"][0]["cells"][0]["keep"] = [FULL // 2 - 1] * 2
    (out / "manifest.json").write_text(json.dumps(raw))
    with pytest.raises(dn.VerificationError, match="no breach in 'ill'"):
        dn.verify(out)


def test_rows_that_do_not_swap_do_not_hide_anyone(tmp_path: Path) -> None:
    """Missing values that are published as they are: six rows swap, not a thousand."""
    rows = pa.table({"ill": ["yes"] * 3 + ["no"] * 3 + [None] * 994})
    how = Retention({"ill": Replace(privacy=dn.Privacy("1/2", "3/4"), replacing="swapping")})
    release = dn.publish(rows, mechanism=how, missing="exempt", out=tmp_path / "r")
    (part,) = release.manifest.parts
    assert part.swapped == 6
    assert surest(6, 3, Fraction(int(part.channels[0].keep[0]), FULL)) <= Fraction(3, 4)
    assert release.verify().holds


def test_a_single_row_is_not_said_to_be_protected(tmp_path: Path) -> None:
    rows = pa.table({"ill": ["yes"]})
    how = Retention({"ill": Replace(coin=0.5, replacing="swapping")})
    release = dn.publish(rows, mechanism=how, domain={"ill": ["yes", "no"]}, out=tmp_path / "r")
    assert any("published as it is" in line for line in release.manifest.guarantee["also"])
    assert release.manifest.parts[0].promise.kind == "nothing"
