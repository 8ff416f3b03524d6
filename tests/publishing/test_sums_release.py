"""Requirements on sums, from a user's hand to the release: what is kept, what is not published, what is refused."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scipy import stats

import deniable as dn
from deniable.core.errors import RequirementError, VerificationError
from deniable.core.manifest import Manifest
from deniable.mechanisms import MECHANISMS, Decoys
from deniable.planning.planner import compare

SMALL = dn.SmallSums(error=0.3, below=3, at_least=0.6)
LARGE = dn.LargeSums(error=0.1, above=1000, at_most=0.05)
PRIVACY = dn.Privacy(rho2="1/4", small_sums=SMALL, large_sums=LARGE)
FALSE_ALARM = 1e-6


def table_of(rows: int = 14_000, m: int = 20) -> pa.Table:
    random = np.random.default_rng(3)
    share = np.arange(1, m + 1) ** -0.5
    codes = random.choice(m, rows, p=share / share.sum())
    member = random.random(rows) < np.where(codes < 6, 0.5, 0.2)
    return pa.table({"member": member, "value": codes, "other": random.integers(0, 12, rows)})


def publish(table: pa.Table, key: int = 0, **options: object) -> dn.Release:
    given = {"privacy": PRIVACY, "mechanism": Decoys(leftovers="drop"), "sensitive": "value", **options}
    columns = [given["sensitive"]] if isinstance(given["sensitive"], str) else given["sensitive"]
    given.setdefault("domain", {name: pc.unique(table[name]).drop_null().to_pylist() for name in columns})
    return dn.publish(table, key=key.to_bytes(32, "big"), **given)  # type: ignore[arg-type]


def test_a_requirement_on_sums_finds_the_size_and_is_in_the_manifest(tmp_path: Path) -> None:
    release = publish(table_of(), out=tmp_path / "r")
    c = release.manifest.options["c"]
    assert SMALL.holds(c)
    assert not SMALL.holds(c - 1)
    raw = json.loads((tmp_path / "r" / "manifest.json").read_text())
    assert raw["privacy"]["small_sums"] == {"error": "3/10", "below": 3, "at_least": "3/5"}
    assert raw["privacy"]["large_sums"] == {"error": "1/10", "above": 1000, "at_most": "1/20"}
    assert Manifest.from_dict(raw).to_dict() == raw
    checked = {check.what for check in dn.verify(tmp_path / "r").checks}
    assert {"decoy groups", "posterior", "small sums", "large sums"} <= checked
    readme = (tmp_path / "r" / "README.md").read_text()
    assert "exact binomial tail" in readme
    assert "nor is a histogram" in readme


def test_what_a_manifest_says_of_sums_is_recomputed(tmp_path: Path) -> None:
    publish(table_of(), out=tmp_path / "r")
    path = tmp_path / "r" / "manifest.json"
    raw = json.loads(path.read_text())

    def failing(changed: dict[str, object]) -> str:
        path.write_text(json.dumps(changed))
        with pytest.raises(VerificationError) as error:
            dn.verify(tmp_path / "r")
        return str(error.value)

    (part,) = raw["parts"]
    promised = part["promise"]
    said = failing({**raw, "parts": [{**part, "promise": {**promised, "c": 3}, "groups": {**part["groups"], "c": 3}}]})
    assert "posterior: 1/3, allowed 0.25" in said
    assert "small sums: off with probability 0.5556" in said
    many = {"error": "1/10", "above": 100, "at_most": "1/20"}
    said = failing({**raw, "parts": [{**part, "promise": {**promised, "large_sums": many}}]})
    assert "- large sums: off with probability" in said
    assert "required large sums" in said
    assert "required large sums" in failing({**raw, "privacy": {**raw["privacy"], "large_sums": many}})
    (told,) = publish(table_of(), privacy=None, mechanism="decoys:c=7").manifest.to_dict()["parts"]
    assert "a noisy histogram tells them" in failing({**raw, "parts": [{**told, "promise": promised}]})
    assert "required small sums" in failing({**raw, "parts": [told]})


@pytest.mark.parametrize("sensitive", ["value", ["value", "other"]])
def test_no_histogram_is_published_where_small_sums_must_be_uncertain(sensitive: str | list[str]) -> None:
    """Noise of epsilon 1 tells a count of 3 exactly with probability .46; 60 % were promised to be off."""
    release = publish(table_of(), sensitive=sensitive)
    assert all(part.marginal is None and part.mixture is None for part in release.manifest.parts)
    with pytest.raises(RequirementError, match=r"marginals = True does not go with small_sums.*Fix:"):
        publish(table_of(), sensitive=sensitive, marginals=True)
    large = publish(table_of(), sensitive=sensitive, privacy=dn.Privacy(large_sums=LARGE))
    assert all(part.marginal is not None for part in large.manifest.parts)


def test_nothing_in_a_release_tells_small_sums_better_than_promised() -> None:
    """The manifest depends on what the owner asked for and on the list of values, not on draws and not on counts."""
    values = np.repeat(np.arange(30), [*[40] * 25, 3, 3, 2, 1, 1])
    table = pa.table({"member": values % 2 == 0, "value": values})
    asked = dn.Privacy(small_sums=SMALL)
    manifests = [publish(table, key, privacy=asked).manifest.to_json() for key in range(3)]
    assert len(set(manifests)) == 1
    moved = values.copy()
    moved[np.flatnonzero(values == 25)[:2]] = 0  # 3 rows become 1
    other = pa.table({"member": table["member"], "value": moved})
    assert publish(other, privacy=asked).manifest.to_json() == manifests[0]
    told = {publish(each, privacy=None).manifest.to_json() for each in (table, other)}
    assert len(told) == 2  # with a noisy histogram they differ


@pytest.mark.long
def test_questions_are_answered_without_a_histogram_and_intervals_cover() -> None:
    """The channel is made from the release's own counts; false alarm below 1e-6 for each mean.

    Power: published rows, counted as they are, are off by two standard errors and rejected by the same limit.
    """
    table = table_of()
    member, codes = (table[name].to_numpy() for name in ("member", "value"))
    asked = ([0, 1, 2, 3, 4, 5], [3], [19])
    keys = 40
    covered, misses, naive = 0, [], []
    for key in range(keys):
        release = publish(table, key, privacy=None, mechanism=Decoys(c=3, leftovers="drop"), marginals=False)
        shown = release.table["value"].to_numpy()
        inside = release.table["member"].to_numpy()
        for values in asked:
            true = int((member & np.isin(codes, values)).sum())
            found = release.count({"member": True, "value": values})
            assert math.isfinite(found.stderr)
            covered += found.low <= true <= found.high
            misses.append((found.value - true) / found.stderr)
            naive.append((int((inside & np.isin(shown, values)).sum()) - true) / found.stderr)
    assert stats.binom.cdf(covered, 3 * keys, 0.95) > FALSE_ALARM
    limit = stats.norm.isf(FALSE_ALARM / 2) / math.sqrt(keys)
    assert (np.abs(np.array(misses).reshape(keys, -1).mean(0)) < limit).all()
    assert (np.abs(np.array(naive).reshape(keys, -1).mean(0)) > limit).any()


def test_two_columns_without_a_histogram_are_answered() -> None:
    table = table_of()
    release = publish(table, sensitive=["value", "other"])
    found = release.count({"value": [0, 1, 2], "other": [0, 1, 2, 3, 4, 5]})
    frame = table.to_pandas()
    true = int((frame["value"].isin([0, 1, 2]) & (frame["other"] < 6)).sum())
    assert abs(found.value - true) < 6 * found.stderr
    assert release.sql("SELECT COUNT(*) AS n FROM release WHERE value = 3").num_rows == 1


def test_exempt_missing_values_are_answered_without_a_histogram() -> None:
    table = table_of()
    missing = np.arange(table.num_rows) % 5 == 0
    holed = table.set_column(1, "value", pa.array(table["value"].to_numpy(), mask=missing))
    release = publish(holed, missing="exempt")
    found = release.count({"value": 0})
    true = int(((table["value"].to_numpy() == 0) & ~missing).sum())
    assert abs(found.value - true) < 6 * found.stderr
    assert release.count({"value": None}).value == missing.sum()


@pytest.mark.parametrize("name", [name for name in MECHANISMS if name != "decoys"])
@pytest.mark.parametrize("rho", [{}, {"rho1": "1/3", "rho2": "1/2"}])
def test_every_other_mechanism_refuses_a_requirement_on_sums(name: str, rho: dict[str, str]) -> None:
    for sums in ({"small_sums": SMALL}, {"large_sums": LARGE}):
        for adversary in ("frequency", "any-prior"):
            asked = dn.Privacy(**rho, **sums, adversary=adversary)  # type: ignore[arg-type]
            with pytest.raises(RequirementError, match="decoy groups alone promise something about sums"):
                publish(table_of(600, 4), privacy=asked, mechanism=name)


def test_per_value_requirements_with_sums_are_not_half_kept() -> None:
    asked = dn.Privacy(per_value={0: ("1/3", "1/2")}, small_sums=SMALL)
    for name in ("fine-grain", "designed", "pram"):
        with pytest.raises(RequirementError, match="decoy groups alone"):
            publish(table_of(600, 4), privacy=asked, mechanism=name)
    assert publish(table_of(), privacy=asked).manifest.options["c"] == 7


def test_the_planner_finds_the_size_and_auto_takes_it() -> None:
    counts = dict.fromkeys(range(60), 1000)
    found = compare(counts, PRIVACY)
    assert found.recommended.name == "decoys"
    assert found.recommended.plan is not None
    assert found.recommended.plan.options["c"] == 7
    assert "Groups of 7" in found.reason
    with pytest.raises(RequirementError, match=r"epsilon_limit=None, or mechanism='decoys'"):
        dn.plan(counts, PRIVACY, "auto")
    assert dn.plan(counts, PRIVACY, "auto", epsilon_limit=None).options["c"] == 7
    assert publish(table_of(), mechanism="auto", epsilon_limit=None).manifest.mechanism == "decoys"


def test_an_owner_can_audit_a_release_without_a_histogram() -> None:
    table = table_of()
    release = publish(table)
    (part,) = dn.audit(table, release).parts
    assert part.worst_protected == Fraction(1, 7)


def test_columns_share_the_size_that_large_sums_allow_all_of_them() -> None:
    """Alone, the columns would take the largest size that each allows: 7 and 11."""
    asked = dn.Privacy(large_sums=LARGE)
    sizes = [publish(table_of(), sensitive=name, privacy=asked).manifest.options["c"] for name in ("value", "other")]
    assert len(set(sizes)) == 2
    both = publish(table_of(), sensitive=["value", "other"], privacy=asked)
    assert both.manifest.options["c"] == min(sizes)
