"""Several rows of one person: k rows that hold one value are one look, not k (mathematics 13.9)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.errors import DeniableError

VISITS = 60
PRIVACY = dn.Privacy(rho2="1/3")


def visits(people: int = 1_000) -> pa.Table:
    rng = np.random.default_rng(2)
    ill = rng.choice(list("abcdefgh"), people, p=np.arange(8, 0, -1) / 36)
    return pa.table({"person": np.repeat(np.arange(people), VISITS), "ill": np.repeat(ill, VISITS)})


def right_guesses(table: pa.Table, release: dn.Release) -> float:
    """An attacker who knows which rows are one person's guesses the value that they show most often."""
    shown = np.array(release.table["ill"].to_pylist()).reshape(-1, VISITS)
    guessed = [Counter(rows.tolist()).most_common(1)[0][0] for rows in shown]
    return float(np.mean(np.array(guessed) == np.array(table["ill"].to_pylist())[::VISITS]))


@pytest.mark.parametrize("mechanism", ["uniform", "designed", "small-domain"])
def test_whoever_adds_up_a_persons_rows_learns_what_one_row_says(mechanism: str) -> None:
    table = visits()
    options = {"sensitive": "ill", "privacy": PRIVACY, "mechanism": mechanism, "key": bytes(32), "shuffle": False}
    alone = right_guesses(table, dn.publish(table, **options, drop="person"))
    together = dn.publish(table, **options, person="person")
    if mechanism == "small-domain":  # the attack works where rows are drawn one by one
        assert alone > 0.55
    assert alone > right_guesses(table, together) + 0.02
    # Of 1,000 people at most a third is guessed, but for 5 standard deviations.
    assert right_guesses(table, together) < 1 / 3 + 5 * np.sqrt(2 / 9 / 1_000)
    rows = np.array(together.table["ill"].to_pylist()).reshape(-1, VISITS)
    assert (rows == rows[:, :1]).all()
    assert together.manifest.randomness.row_identity == "person and value"
    assert any("looked at k times" in line for line in together.manifest.guarantee["not_protected"])


@pytest.mark.parametrize("mechanism", ["uniform", "designed"])
def test_people_with_many_rows_are_published_honestly(mechanism: str, tmp_path: Path) -> None:
    """Counts are off by whole people: verify took them for counts that the channel does not make."""
    how = {"sensitive": "ill", "privacy": dn.Privacy(rho2="1/2"), "mechanism": mechanism, "key": bytes(32)}
    dn.publish(visits(100), person="person", out=tmp_path / "release", **how)
    (counts,) = (check for check in dn.verify(tmp_path / "release").checks if check.what == "published counts")
    assert counts.holds is None


def test_a_persons_other_value_is_drawn_by_itself() -> None:
    table = pa.table({"person": np.repeat(np.arange(4_000), 2), "ill": ["a", "b"] * 4_000})
    release = dn.publish(
        table,
        sensitive="ill",
        privacy=dn.Privacy(rho2="3/4"),
        person="person",
        key=bytes(32),
        shuffle=False,
        mechanism="uniform",
    )
    pairs = np.array(release.table["ill"].to_pylist()).reshape(-1, 2)
    truth_first, truth_second = pairs[:, 0] == "a", pairs[:, 1] == "b"
    both, alone = float((truth_first & truth_second).mean()), float(truth_first.mean() * truth_second.mean())
    assert abs(both - alone) < 5 * 0.5 / np.sqrt(4_000)


def test_rows_and_people_are_not_both_named() -> None:
    with pytest.raises(DeniableError, match="exclude each other"):
        dn.publish(visits(10), sensitive="ill", privacy=PRIVACY, person="person", row_id="person", mechanism="uniform")
    with pytest.raises(DeniableError, match="does not go with mechanism 'decoys'"):
        dn.publish(visits(100), sensitive="ill", privacy=dn.Privacy(rho2="1/2"), person="person", mechanism="decoys")


def test_an_audit_does_not_take_rows_of_a_person_that_are_published_alike_for_draws_of_their_own() -> None:
    """Sixty people of five rows, each with a value of their own. Whoever knows that weighs people against each other:
    by rows a person's value was said to be believed at far less, and five equal rows at far more."""
    table = pa.table({"person": np.repeat(np.arange(60), 5), "town": np.repeat(np.arange(60), 5)})
    table = table.append_column("ill", [[f"v{place}" for place in table["person"].to_pylist()]])
    how = {"sensitive": "ill", "privacy": dn.Privacy(rho2="3/4"), "mechanism": "uniform", "key": bytes(32)}
    by_person = dn.audit(table, dn.publish(table, person="person", **how))
    (together,) = [one for one in by_person.findings if one.what == "rows together"]
    assert "not looked at" in together.detail
    (repeated,) = [one for one in by_person.findings if one.what == "repeated rows"]
    assert repeated.grade == "info"
    assert "one draw" in repeated.detail
    by_row = dn.audit(table, dn.publish(table, drop="person", **how))
    (repeated,) = [one for one in by_row.findings if one.what == "repeated rows"]
    assert repeated.grade == "caution"
