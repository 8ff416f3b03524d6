"""Every check of the verifier is needed: where it finds nothing, a forged release passes that it alone refuses."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import deniable_verify
from deniable_verify import coverage

BAD = Path(__file__).parents[2] / "docs" / "reference" / "vectors" / "bad"
# check -> a forged release that only this check refuses
REFUSED_BY = {
    "_computed": "half-of-epsilon",
    "promise_checks": "a-promise-of-an-unknown-kind",
    "readme_check": "a-readme-that-leaves-limits-out",
    "_file_checks": "other-rows-under-the-same-digest",
    "_table_checks": "fewer-rows",
    "shape_check": "fewer-rows",
    "model_table_check": "noisy-tables-in-another-order",
    "lineup_table_check": "codes-of-other-sets",
    "weight_table_check": "weights-of-another-channel",
    "checks.guarded": "labels-of-no-column",
    "counts.counts_check": "a-histogram-of-other-rows",
    "counts.possible_check": "original-rows",
    "counts.frequencies_check": "a-frequent-value-that-rows-tell",
    "coverage.stated_checks": "a-promise-for-nobody",
    "coverage.own_checks": "a-requirement-of-a-column-that-is-not-kept",
    "coverage.above_checks": "a-rare-value-that-is-called-frequent",
    "coverage.single_checks": "single-values-that-are-not-kept",
    "folder.entries_check": "originals-beside-the-data",
    "folder.digest_check": "other-rows-under-the-same-digest",
    "folder.parquet_check": "bytes-after-the-columns",
    "learned.numbers_check": "noisy-tables-in-another-order",
    "learned.model_checks": "parameters-of-other-tables",
    "learned.base_check": "shares-of-other-tables",
    "learned.learning_check": "parameters-of-other-tables",
    "learned.dealing_check": "rows-that-are-not-the-models",
    "manifest.software_check": "an-unknown-version",
    "manifest.channels_check": "shares-that-do-not-add-up",
    "manifest.noise_check": "noise-that-is-smaller-than-stated",
    "manifest.bins_check": "edges-of-other-bins",
    "manifest.amplification_check": "a-smaller-gamma",
    "manifest.requirement_check": "a-stronger-requirement",
    "manifest.seed_check": "a-seed-that-is-not-told",
    "manifest.sound_checks": "labels-of-no-column",
    "promises.amplification.recheck": "a-belief-that-grows-further",
    "promises.amplification.gamma_check": "amplification-above-its-gamma",
    "promises.amplification.belief_checks": "a-belief-that-grows-further",
    "promises.amplification._unnamed": "a-frequent-value-that-is-not-named",
    "promises.cells.recheck": "a-cell-above-its-gamma",
    "promises.cells._inside_cells": "a-cell-above-its-gamma",
    "promises.decoys.recheck": "groups-of-fewer-values",
    "promises.frequency.recheck": "a-posterior-above-rho2",
    "promises.frequency.posterior_check": "a-posterior-above-rho2",
    "promises.items.recheck": "a-row-of-items-above-its-budget",
    "promises.line_ups.recheck": "sets-that-take-beliefs-away",
    "promises.line_ups._amplification": "sets-above-their-gamma",
    "promises.line_ups._posteriors": "a-posterior-of-sets-above-rho2",
    "promises.odds.recheck": "a-table-that-is-not-paid-for",
    "promises.per_value.recheck": "a-value-above-its-own-limit",
    "promises.relative_prior.recheck": "a-breach-of-a-range",
    "promises.relative_prior._replacements": "replacements-unlike-the-column",
    "rows.row_checks": "a-value-outside-the-domain",
    "rows.copies_check": "a-public-copy",
    "rows.recoded_check": "a-column-finer-than-stated",
    "sentence.sentence_check": "a-sentence-that-numbers-do-not-give",
    "signature.signature_check": "another-readme-after-signing",
}
# What fails nowhere because it only says what is not checked, or is held to by a release too large to be kept here.
ELSEWHERE = {
    "mechanism_check": "says what is not known",
    "promises.by_nothing": "promises nothing; what is stated beside it is held to by coverage.stated_checks",
    "counts._in_cells": "tests/attacks/test_restated.py: a bound of cells, of 100,000 rows",
}


def checks() -> Iterator[tuple[str, Any]]:
    """Every function of the verifier that returns checks."""
    inner = pkgutil.walk_packages(deniable_verify.__path__, "deniable_verify.")
    for module in [deniable_verify, *(importlib.import_module(one.name) for one in inner)]:
        for name, function in vars(module).items():
            own = inspect.isfunction(function) and function.__module__ == module.__name__
            if own and "Check" in str(inspect.signature(function).return_annotation):
                yield f"{module.__name__}.{name}".removeprefix("deniable_verify."), function


FUNCTIONS = dict(checks())


def nothing(*_: Any, **__: Any) -> Any:
    return []


def holds(*_: Any, **__: Any) -> Any:
    return Check("anything", True, "")  # type: ignore[name-defined]  # noqa: F821  # of the module that it is put into


def refused(name: str) -> bool:
    return bool(deniable_verify.verify(BAD / name).failures)


def put_in_place(monkeypatch: pytest.MonkeyPatch, function: Any, stub: Callable[..., Any]) -> None:
    monkeypatch.setattr(function, "__code__", stub.__code__)


def test_every_check_has_a_release_that_it_alone_refuses() -> None:
    assert set(REFUSED_BY) | set(ELSEWHERE) == set(FUNCTIONS)
    assert {path.name for path in BAD.iterdir()} >= set(REFUSED_BY.values())


@pytest.mark.parametrize("name", REFUSED_BY)
def test_without_a_check_a_forged_release_passes(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    function, forged = FUNCTIONS[name], REFUSED_BY[name]
    assert refused(forged)
    one = str(inspect.signature(function).return_annotation) == "Check"
    put_in_place(monkeypatch, function, holds if one else nothing)
    assert not refused(forged)


def test_a_bound_for_single_values_that_is_always_0_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,142 tests passed where this one number had become unable to fail."""
    put_in_place(monkeypatch, coverage.at_least, lambda *_: 0)
    assert Fraction(0) == coverage.at_least({}, [], [], 0)
    assert not refused("single-values-that-are-not-kept")


@pytest.mark.parametrize("name", ["a-link-out-of-the-folder", "originals-in-metadata", "an-unknown-field"])
def test_several_ways_of_one_check_are_refused_by_it(name: str) -> None:
    assert refused(name)
