"""A series of learned releases: one budget for all, nothing for a table that has not changed, and an end."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.errors import ManifestError, OptionError, RequirementError, SecretError
from deniable.mechanisms import Lineup, Synthetic
from deniable.release.release import open_release

ROWS, TIMES = 4_000, 4


def people(month: int) -> pa.Table:
    """Every month some people change, and some are new."""
    rng = np.random.default_rng(0)
    ill = rng.choice(["cold", "flu", "none"], ROWS, p=[0.2, 0.3, 0.5])
    ill[: 100 * month] = "cold"
    return pa.table({"sex": rng.choice(["F", "M"], ROWS), "age": rng.integers(18, 90, ROWS), "ill": ill})


def published(series: Path, month: int = 0, **options: Any) -> dn.Release:
    asked = {"sensitive": "ill", "mechanism": "synthetic", "privacy": dn.Privacy(epsilon=2), "publications": TIMES}
    return dn.publish(people(month), series=series, **{**asked, **options})


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_all_publications_together_stay_within_one_budget(tmp_path: Path) -> None:
    series = tmp_path / "s"
    releases = [published(series, month) for month in range(TIMES)]
    promises = [release.manifest.parts[0].promise for release in releases]
    spent = sum(release.manifest.parts[0].learned.epsilon for release in releases)  # type: ignore[union-attr]
    assert 1.99 < spent <= 2
    for number, (release, promise) in enumerate(zip(releases, promises, strict=True), start=1):
        assert (promise.number, promise.publications) == (number, TIMES)
        assert math.exp(spent) <= promise.gamma
        sentence = release.manifest.guarantee["sentence"]
        assert "the 4 releases that its series may have multiply, all together, the odds" in sentence
        assert "at most 7.39 (epsilon 2)" in sentence
        assert f"This is number {number}: {25 * number} % is spent." in sentence
        assert release.verify().holds
    noise = [release.manifest.parts[0].learned.measured[0].counts for release in releases]  # type: ignore[union-attr]
    assert not any((one == other).all() for one, other in itertools.pairwise(noise))


def test_a_table_that_has_not_changed_is_published_as_it_was_for_nothing(tmp_path: Path, monkeypatch: Any) -> None:
    series = tmp_path / "s"
    for number, month in enumerate((0, 1, 0, 1)):
        published(series, month, out=tmp_path / str(number), format="csv")
        monkeypatch.setenv("SOURCE_DATE_EPOCH", "1900000000")  # some years later
    first, second, again, once_more = (contents(tmp_path / str(number)) for number in range(4))
    assert again == first
    assert once_more == second
    assert first != second
    assert len(json.loads(series.read_text())["done"]) == 2
    assert open_release(tmp_path / "2").manifest.guarantee["sentence"].count("number 1: 25 %") == 1


def test_another_name_or_other_columns_are_a_further_look(tmp_path: Path) -> None:
    series = tmp_path / "s"
    for options in ({}, {"name": "other"}, {"drop": "age"}, {"mechanism": Synthetic(listing="table")}):
        published(series, **options)  # type: ignore[arg-type]
    assert len(json.loads(series.read_text())["done"]) == 4
    with pytest.raises(RequirementError, match="is spent: 4 tables were published"):
        published(series, 1)
    published(series)  # as it was


def test_what_the_budget_is_for_is_fixed(tmp_path: Path) -> None:
    series = tmp_path / "s"
    published(series)
    for options in ({"privacy": dn.Privacy(epsilon=3)}, {"sensitive": "age", "bins": {"age": [0, 50, 100]}}):
        with pytest.raises(OptionError, match="another requirement, other sensitive columns"):
            published(series, 1, **options)
    with pytest.raises(OptionError, match="was begun for 4"):
        published(series, 1, publications=5)
    published(series, 1, publications=None)
    assert len(json.loads(series.read_text())["done"]) == 2


def test_a_failed_publication_costs_nothing(tmp_path: Path) -> None:
    series = tmp_path / "s"
    with pytest.raises(OptionError, match="tables names 'nowhere'"):
        published(series, mechanism=Synthetic(tables=(("nowhere",),)))
    assert not series.exists()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("kept")
    with pytest.raises(dn.DeniableError):
        published(series, out=tmp_path / "out")
    assert not series.exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"publications": None}, "Fix: publications=12"),
        ({"publications": 0}, "publications = 0 is not allowed"),
        ({"series": None}, "publications divides the budget of a series"),
        ({"mechanism": Lineup(), "privacy": dn.Privacy(rho2="3/4")}, "publications divides the budget of a series"),
        ({"privacy": dn.Privacy(rho2="3/4")}, "Fix: rho1='1/20', or epsilon='1'"),
        ({"privacy": dn.Privacy(epsilon="1/100")}, "in each of 4 publications is too small"),
        ({"changes": 3}, "changes is about rows that are drawn one by one"),
        ({"new_people": True}, "new_people is about rows"),
        ({"seed": 1}, "series has a key of its own"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_to_do(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises((OptionError, RequirementError), match=said) as refused:
        published(**{"series": tmp_path / "s", **options})
    assert "Fix: " in str(refused.value)
    assert not (tmp_path / "s").exists()


def test_a_file_that_was_changed_or_can_be_read_by_others_is_refused(tmp_path: Path) -> None:
    series = tmp_path / "s"
    published(series)
    sound = series.read_text()
    series.write_text(sound.replace('"publications": 4', '"publications": 9'))
    with pytest.raises(ManifestError, match="was changed or damaged"):
        published(series, 1)
    series.write_text(sound)
    series.chmod(0o644)
    with pytest.raises(SecretError, match="can be read by others"):
        published(series, 1)


def test_people_with_several_rows_share_each_part_of_the_budget(tmp_path: Path) -> None:
    table = people(0).append_column("who", pa.array(np.arange(ROWS) // 2))
    asked: dict[str, Any] = {"sensitive": "ill", "mechanism": "synthetic", "privacy": dn.Privacy(epsilon=4)}
    release = dn.publish(table, series=tmp_path / "s", publications=2, person="who", **asked)
    learned, promise = release.manifest.parts[0].learned, release.manifest.parts[0].promise
    assert learned is not None
    assert 0.99 < learned.epsilon <= 1
    assert (promise.together, promise.publications) == (2, 2)
    assert release.verify().holds
    assert "epsilon 4" in release.manifest.guarantee["sentence"]


def test_what_is_said_of_a_list_is_of_all_publications_and_never_too_little(tmp_path: Path) -> None:
    release = published(
        tmp_path / "s", publications=12, mechanism=Synthetic(delta=1e-6), privacy=dn.Privacy(epsilon=12)
    )
    assert "with probability 1.2e-05 at most" in release.manifest.guarantee["sentence"]
    assert release.choice is None or release.choice.expected == {}  # nobody asked the model yet
