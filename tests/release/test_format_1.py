"""Releases of format 1, stored before format 2 was made: they are read, verified, and answer as they did."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

import deniable as dn
from deniable.core.errors import ManifestError
from deniable.core.manifest import read_json

STORED = Path(__file__).parent.parent / "fixtures" / "format-1"
NAMES = sorted(path.name for path in STORED.iterdir())
CLOSE = 1e-9


def where_of(told: dict[str, Any]) -> dict[str, Any]:
    def condition(value: Any) -> Any:
        if isinstance(value, dict):
            return dn.between(*value["between"]) if "between" in value else dn.not_(value["not"])
        return value

    return {column: condition(value) for column, value in told.items()}


def test_there_is_a_release_of_every_mechanism_that_wrote_format_1() -> None:
    written = {json.loads((STORED / name / "manifest.json").read_text())["mechanism"]["name"] for name in NAMES}
    kinds = ("uniform", "small-domain", "fine-grain", "identity", "designed", "pram", "redraw", "decoys", "retention")
    assert written == {*kinds}


@pytest.mark.parametrize("name", NAMES)
def test_it_verifies(name: str) -> None:
    assert dn.verify(STORED / name).holds


@pytest.mark.parametrize("column", [None, "x", 3, [1]])
def test_a_damaged_option_that_its_parts_are_made_of_is_refused_in_words(column: Any) -> None:
    raw = json.loads((STORED / "retention-identity" / "manifest.json").read_text())
    raw["mechanism"]["options"]["columns"]["job"] = column
    with pytest.raises(ManifestError, match=r"manifest\.json of format 1 is damaged"):
        read_json(json.dumps(raw))


@pytest.mark.parametrize("name", NAMES)
def test_it_answers_as_it_did(name: str) -> None:
    """Estimates by the channels alone, to 1e-9 of the rows; what is public is now counted exactly."""
    release = dn.open_release(STORED / name)
    # A channel of decoy groups is published to six digits; its columns are now made to add up to 1 before it is used.
    rounded = any(part.groups is not None for part in release.manifest.parts)
    close = {"rel": 1e-3, "abs": 0.02} if rounded else {"rel": CLOSE, "abs": CLOSE * release.manifest.rows}
    for told in json.loads((STORED / name / "answers.json").read_text()):
        if "group_by" in told:
            table = release.group_by(told["group_by"], **told["options"])
            known = {(row["sex"], row["job"]): (row["value"], row["stderr"]) for row in table.to_pylist()}
            assert known.keys() == {(sex, job) for sex, job, _, _ in told["rows"]}
            for sex, job, value, error in told["rows"]:
                assert known[sex, job] == pytest.approx((value, error), **close)
            continue
        where = where_of(told["where"])
        if "mean" in told:
            estimate = release.mean(told["mean"], where, **told["options"])
        else:
            estimate = release.count(where, **told["options"])
        public = not set(where) & set(release.manifest.sensitive_columns)
        if public and "mean" not in told:
            assert estimate.stderr == 0
            assert estimate.value == pytest.approx(round(told["value"]), rel=CLOSE)
            assert estimate.value == pytest.approx(told["value"], abs=0.01)
            continue
        if told["options"].get("method", "").startswith("four-state"):  # their errors were not those of the draws
            assert estimate.value == pytest.approx(told["value"], **close)
            assert estimate.stderr > 0
            assert estimate.low <= estimate.value <= estimate.high
            continue
        estimate = dataclasses.replace(estimate, slope=0.0)  # intervals of counts are lopsided now
        got = (estimate.value, estimate.stderr, estimate.low, estimate.high)
        assert got == pytest.approx(tuple(told[key] for key in ("value", "stderr", "low", "high")), **close)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_written_back_as_format_2_and_stays_what_it_was(name: str, tmp_path: Path) -> None:
    release = dn.open_release(STORED / name)
    release.save(tmp_path / "again")
    assert json.loads((tmp_path / "again" / "manifest.json").read_text())["format_version"] == 2
    assert dn.verify(tmp_path / "again").holds
    assert dn.open_release(tmp_path / "again").table.equals(release.table)
