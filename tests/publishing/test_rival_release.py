"""Groups and answers are remembered, and their owner is warned, as for perturbed rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.errors import OptionError, OutputError, RequirementError

PRIVACY = dn.Privacy("1/8", "1/3")
CODES = [f"{letter}{number}" for letter in "ABCD" for number in range(5)]


def people(rows: int = 2_000) -> pa.Table:
    draw = np.random.default_rng(3)
    code = draw.choice(CODES, rows)
    return pa.table({"name": [f"p{row}" for row in range(rows)], "chapter": [one[0] for one in code], "code": code})


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "my.key"
    path.write_text("ab" * 32 + "\n")
    path.chmod(0o600)
    return path


def publish(mechanism: str, key_file: Path, **options: object) -> dn.Release:
    return dn.publish(people(), sensitive="code", privacy=PRIVACY, mechanism=mechanism, key_file=key_file, **options)


@pytest.mark.parametrize("mechanism", ["anatomy", "generalize", "perturbed-generalization", "laplace"])
def test_a_second_look_is_refused_whichever_comes_first(key_file: Path, mechanism: str) -> None:
    publish(mechanism, key_file)
    publish(mechanism, key_file)  # the same once more is no second look
    ledger = key_file.with_name("my.key.ledger")
    assert len(json.loads(ledger.read_text())) == 1
    with pytest.raises(RequirementError, match="second look"):
        publish("uniform", key_file)
    publish("uniform", key_file, again=True)
    ledger.unlink()
    publish("uniform", key_file)
    with pytest.raises(RequirementError, match="second look"):
        publish(mechanism, key_file)
    publish(mechanism, key_file, again=True)
    assert len(json.loads(ledger.read_text())) == 2


def test_what_is_not_published_is_not_remembered(key_file: Path, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="publishes no rows"):
        publish("laplace", key_file, out=tmp_path / "r")
    assert not key_file.with_name("my.key.ledger").exists()


def test_rows_that_are_not_published_have_no_order(key_file: Path) -> None:
    with pytest.raises(OptionError, match="publishes no rows, so there is nothing that shuffle=False"):
        publish("laplace", key_file, shuffle=False)


def test_public_columns_beside_groups_are_warned_of(key_file: Path, tmp_path: Path) -> None:
    for options in ({}, {"out": tmp_path / "r"}):
        name, gives = publish("anatomy", key_file, **options).warnings
        assert "'name' looks like an identifier" in name
        assert "'chapter' gives 'code' away (each sensitive value has one of its values)" in gives
        assert "(0 % by the frequencies)" in gives.partition(" and surer than")[0]  # each of a group's is as likely
    assert publish("anatomy", key_file, drop=["name", "chapter"], again=True).warnings == ()


@pytest.mark.parametrize("mechanism", ["anatomy", "generalize", "laplace"])
def test_values_that_are_spelt_in_two_ways_are_warned_of(mechanism: str) -> None:
    table = pa.table({"age": [row % 40 for row in range(400)], "ill": ["flu", "Flu ", "cold", "gout"] * 100})
    release = dn.publish(table, sensitive="ill", mechanism=mechanism, privacy=dn.Privacy("1/3", "2/3"))
    assert any("differ in case or blanks only" in warning for warning in release.warnings)


def test_of_many_values_groups_are_looked_into_too() -> None:
    draw = np.random.default_rng(4)
    number = draw.permutation(np.arange(12_000) % 3_000)
    table = pa.table({"chapter": number // 100, "code": [f"c{one}" for one in number]})
    (warning,) = dn.publish(table, sensitive="code", mechanism="anatomy", privacy=dn.Privacy(rho2="1/3")).warnings
    assert "'chapter' gives 'code' away (each sensitive value has one of its values)" in warning


def test_public_columns_that_are_made_coarser_are_not(key_file: Path) -> None:
    assert publish("generalize", key_file).warnings == ()


@pytest.mark.parametrize("mechanism", ["anatomy:l=2", "generalize:k=2,l=1", "generalize:k=2,l=2"])
@pytest.mark.parametrize("left_out", [{"rho1": "1/100"}, {"exempt": CODES}])
def test_groups_state_no_rho2_that_they_do_not_keep(
    tmp_path: Path, mechanism: str, left_out: dict[str, object]
) -> None:
    """Where a requirement covers no value of the table any l was taken: rho2 was stated all the same, and verify failed
    what was published."""
    table, how = people().drop(["name"]), {"sensitive": "code", "privacy": dn.Privacy(rho2="1/3", **left_out)}
    with pytest.raises(RequirementError, match=r"more than rho2 allows. Fix: l=3"):
        dn.publish(table, mechanism=mechanism, **how)
    with pytest.raises(RequirementError, match="exempt names 'Z9', which is not a value"):
        dn.publish(table, sensitive="code", privacy=dn.Privacy(rho2="1/3", exempt=["Z9"]), mechanism=mechanism)
    dn.publish(table, mechanism=mechanism.replace("l=1", "l=3").replace("l=2", "l=3"), out=tmp_path / "release", **how)
    assert dn.verify(tmp_path / "release").holds
