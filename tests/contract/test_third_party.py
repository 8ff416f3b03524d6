"""A mechanism from outside the package: it plans, publishes, answers, is verified and audited, and needs a promise."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.channels import Channel
from deniable.core.errors import InternalError
from deniable.core.promise import Amplification, Guarantee
from deniable.mechanisms import Mechanism

N = 30_000
JOB: dict[str, Any] = {"sensitive": "job", "domain": list("abcde")}


@dataclass(frozen=True)
class FairCoin(Mechanism):
    """Warner's coin: heads, the truth; tails, a value drawn uniformly."""

    shift: float = 0.0
    name: ClassVar[str] = "fair-coin"
    reveals: ClassVar[str] = "nothing beyond the columns"

    def plan(self, histogram: Any, privacy: Any, *, public: Any = None) -> dn.Plan:
        channel = Channel.of(histogram.domain, 0.5 + self.shift)
        promised = Channel.of(histogram.domain, 0.5).exact_gamma
        assert promised is not None
        guarantee = Guarantee(
            promises=(Amplification(promised),),
            adversary="any-prior",
            rho1=None,
            rho2=None,
            worst=Fraction(1),
            gamma=promised,
            not_protected=("Public columns are published as they are.",),
        )
        return dn.Plan.of_channel(self.name, histogram, channel, guarantee, privacy=privacy, options=self.options)


@dataclass(frozen=True)
class Silent(FairCoin):
    """The same without a promise."""

    name: ClassVar[str] = "silent"
    promises: ClassVar[tuple[Any, ...]] = ()

    def plan(self, histogram: Any, privacy: Any, *, public: Any = None) -> dn.Plan:
        plan = super().plan(histogram, privacy)
        guarantee = Guarantee(
            promises=self.promises, adversary="any-prior", rho1=None, rho2=None, worst=Fraction(1), gamma=None
        )
        return dn.Plan(plan.mechanism, plan.parts, privacy, guarantee)


@dataclass(frozen=True)
class Vague(Silent):
    """The same with something that is no promise."""

    name: ClassVar[str] = "vague"
    promises: ClassVar[tuple[Any, ...]] = ("trust us",)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(3)
    job = rng.choice(list("abcde"), N, p=[0.4, 0.25, 0.15, 0.12, 0.08])
    return pa.table({"sex": np.where(rng.random(N) < np.where(job < "c", 0.7, 0.3), "F", "M"), "job": job})


def test_it_publishes_and_answers(table: pa.Table) -> None:
    release = dn.publish(table, **JOB, mechanism=FairCoin(), key=bytes(32))
    frame = table.to_pandas()
    for sex in "FM":
        for job in "abcde":
            estimate = release.count({"sex": sex, "job": job})
            truth = int(((frame["sex"] == sex) & (frame["job"] == job)).sum())
            assert abs(estimate.value - truth) < 6 * estimate.stderr
    answers = release.sql("SELECT job, COUNT(*) AS n FROM release GROUP BY job")
    assert {"job", "n", "n_low", "n_high"} == set(answers.column_names)


def test_its_promise_is_rechecked(table: pa.Table, tmp_path: Path) -> None:
    dn.publish(table, **JOB, mechanism=FairCoin(), key=bytes(32), out=tmp_path / "good")
    assert dn.verify(tmp_path / "good").holds
    dn.publish(
        table,
        sensitive="job",
        domain=list("abcde"),
        mechanism=FairCoin(shift=0.025),
        key=bytes(32),
        out=tmp_path / "bad",
    )
    with pytest.raises(dn.VerificationError, match="gamma"):
        dn.verify(tmp_path / "bad")


def test_it_is_audited(table: pa.Table) -> None:
    release = dn.publish(table, **JOB, mechanism=FairCoin(), key=bytes(32))
    audited = dn.audit(table, release, attacks=True)
    assert audited.mechanism == "fair-coin"
    channel = release.manifest.parts[0].channels[0]
    assert audited.parts[0].gamma == channel.exact_gamma
    assert audited.attacks


@pytest.mark.parametrize("mechanism", [Silent(), Vague()])
def test_without_a_promise_it_cannot_publish(table: pa.Table, mechanism: Mechanism, tmp_path: Path) -> None:
    with pytest.raises(InternalError, match="promise"):
        dn.publish(table, **JOB, mechanism=mechanism, out=tmp_path / "r")
    assert not (tmp_path / "r").exists()


def test_a_promise_of_an_unknown_kind_fails_verify(table: pa.Table, tmp_path: Path) -> None:
    dn.publish(table, **JOB, mechanism=FairCoin(), key=bytes(32), out=tmp_path / "r")
    path = tmp_path / "r" / "manifest.json"
    raw = json.loads(path.read_text())
    raw["parts"][0]["promise"] = {"kind": "trust-us"}
    path.write_text(json.dumps(raw))
    with pytest.raises(dn.DeniableError, match="unknown kind"):
        dn.verify(tmp_path / "r")
