"""Forgers who state more than a release keeps, and write the sentence and the README that their manifest gives.

Each forged manifest agrees with itself, so only its numbers, and its rows, can show that a promise is not kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.manifest import Manifest, with_sentence
from deniable.release.readme import analyst_readme

Json = dict[str, Any]
LISTED = dn.Privacy(rho1="1/4", rho2="1/3", adversary="any-prior")


def table(rows: int = 6_000) -> pa.Table:
    rng = np.random.default_rng(2)
    job = rng.choice(list("abcdefgh"), rows, p=np.arange(8, 0, -1) / 36)
    return pa.table({"sex": rng.choice(["F", "M"], rows), "age": rng.integers(18, 90, rows), "job": job})


PRIVACY = dn.Privacy(rho1="1/4", rho2="1/3")
RARE = dn.Privacy(rho1="1/10", rho2="1/5")  # a to d, of 22 to 14 % of the rows, are more frequent
MUCH = dn.Privacy(rho1="1/10", rho2="3/4")
MADE: dict[str, Json] = {
    "uniform": {"mechanism": "uniform", "privacy": PRIVACY},
    "any prior": {"mechanism": "uniform", "privacy": LISTED, "domain": list("abcdefgh")},
    "bins": {"mechanism": "uniform", "sensitive": "age", "bins": {"age": [18, 40, 60, 90]}, "privacy": "1/2"},
    "decoys": {"mechanism": "decoys:c=4"},
    "frequent": {"mechanism": "uniform", "privacy": RARE},
    "frequent, no histogram": {"mechanism": "uniform", "privacy": MUCH, "marginals": False},
    "designed, no histogram": {"mechanism": "designed", "privacy": PRIVACY, "marginals": False},
    "cells": {"mechanism": "small-domain", "privacy": RARE},
    "several cells": {"mechanism": "small-domain", "privacy": "1/3"},
    "many rows in cells": {"mechanism": "small-domain", "privacy": dn.Privacy(rho1="1/4", rho2="2/3")},
    "line-ups": {"mechanism": "lineup", "privacy": dn.Privacy(rho2="1/2")},
    "columns": {"sensitive": None, "mechanism": "retention:job=0.4~identity,sex=0.7"},
}


def surer(raw: Json) -> None:
    """Half of the bound, in all places that state one."""
    for where in (raw["guarantee"], raw["privacy"], raw["parts"][0]["promise"]):
        where["rho2"] = "1/6"


def without_belief(raw: Json) -> None:
    surer(raw)
    raw["parts"][0]["promise"]["rho1"] = None


def thrice(raw: Json) -> None:
    (cell,) = raw["parts"][0]["cells"]
    cell["keep"] = [min(3 * keep, 2**32 - 2**22) for keep in cell["keep"]]
    raw["guarantee"].update(gamma=None, epsilon=None)


def counted(raw: Json) -> None:
    raw["parts"][0]["marginal"]["counts"][7] += 400


def whatever_was_believed(raw: Json) -> None:
    for where in (raw["guarantee"], raw["privacy"]):
        where["adversary"] = "any-prior"


def missed(raw: Json) -> None:
    raw["parts"][0]["marginal"]["counts"][0] -= 400


def exchanged(raw: Json) -> None:
    counts = raw["parts"][0]["marginal"]["counts"]
    counts[0], counts[6] = counts[6], counts[0]


def below(raw: Json) -> None:
    """Two thirds of the bound, of cells whose rows tell how frequent values are."""
    for where in (raw["guarantee"], raw["privacy"], raw["parts"][0]["promise"]):
        where["rho2"] = "4/9"


FORGED: dict[str, tuple[str, Callable[[Json], Any]]] = {
    "a bound without a belief": ("uniform", without_belief),
    "a bound without a belief, against any prior": ("any prior", without_belief),
    "any prior, beside a noisy histogram": ("uniform", whatever_was_believed),
    "half of epsilon": ("uniform", lambda raw: raw["guarantee"].update(epsilon=raw["guarantee"]["epsilon"] / 2)),
    "an epsilon without gamma": ("uniform", lambda raw: raw["guarantee"].update(gamma=None)),
    "other edges": ("bins", lambda raw: raw["parts"][0]["bins"]["age"].update(edges=[18.0, 40.0, 80.0, 90.0])),
    "more rows in the histogram": ("uniform", counted),
    "more rows in the histogram of cells": ("several cells", counted),
    "more rows in the histogram of decoys": ("decoys", counted),
    "another histogram of decoys": ("decoys", lambda raw: raw["parts"][0]["marginal"]["counts"].reverse()),
    "another histogram of cells": ("many rows in cells", exchanged),
    "another histogram of line-ups": ("line-ups", exchanged),
    "another histogram of one of two columns": ("columns", exchanged),
    "a bound of cells": ("many rows in cells", below),
    "fewer rows in the histogram of line-ups": ("line-ups", missed),
    "fewer rows in the histogram of one of two columns": ("columns", missed),
    "a frequent value that is not named": ("frequent", lambda raw: raw["parts"][0]["promise"].update(above=[])),
    "a frequent value that the rows tell": (
        "frequent, no histogram",
        lambda raw: raw["parts"][0]["promise"].update(above=[]),
    ),
    "larger coins that the rows tell": ("designed, no histogram", thrice),
    "more frequent values in cells": ("cells", lambda raw: raw["guarantee"].update(rho1="1/2")),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    home = tmp_path_factory.mktemp("sound")
    for name, options in MADE.items():
        rows = table(100_000 if name.startswith("many rows") else 6_000)
        dn.publish(rows, **{"sensitive": "job", "key": bytes(range(32)), "out": home / name, **options})
    return {name: home / name for name in MADE}


@pytest.mark.parametrize("name", MADE)
def test_sound_ones_hold(folders: dict[str, Path], name: str) -> None:
    in_part = "no histogram" in name or name in ("several cells", "many rows in cells")
    assert dn.verify(folders[name]).holds is (None if in_part else True)


def test_groups_of_none_are_refused_in_words(folders: dict[str, Path], tmp_path: Path) -> None:
    for file in folders["decoys"].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    raw = json.loads((tmp_path / "manifest.json").read_text())
    raw["parts"][0]["promise"]["c"] = 0
    (tmp_path / "manifest.json").write_text(json.dumps(raw))
    with pytest.raises(dn.DeniableError, match="of 0"):
        dn.verify(tmp_path)


@pytest.mark.parametrize("privacy", [{"exempt": ["a"]}, {"rho1": "1/5"}])
def test_whoever_is_surer_of_a_value_than_rho2_is_told_so(privacy: Json) -> None:
    """'a' has 45 % of the rows: more than the sentence allows, before anything is published."""
    job = np.random.default_rng(1).choice(list("abcdefgh"), 4_000, p=[0.45, 0.15, 0.1, 0.08, 0.07, 0.06, 0.05, 0.04])
    sexes = pa.array(np.where(np.arange(4_000) % 2, "F", "M"))
    required = dn.Privacy(rho2="1/3", **privacy)
    people = pa.table({"sex": sexes, "job": job})
    release = dn.publish(people, sensitive="job", privacy=required, mechanism="uniform", key=bytes(32))
    sentence = release.manifest.guarantee["sentence"]
    assert "33.3 %" in sentence
    assert "Not covered: 'a' (up to" in sentence
    assert release.verify().holds


@pytest.mark.parametrize("name", FORGED)
def test_more_is_stated_than_is_kept(folders: dict[str, Path], tmp_path: Path, name: str) -> None:
    which, change = FORGED[name]
    for file in folders[which].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    raw = json.loads((tmp_path / "manifest.json").read_text())
    change(raw)
    stated = Manifest.from_dict(raw)
    stated = with_sentence(stated)
    raw["guarantee"]["sentence"] = stated.guarantee["sentence"]
    (tmp_path / "manifest.json").write_text(json.dumps(raw))
    (tmp_path / "README.md").write_text(analyst_readme(stated), encoding="utf-8")
    with pytest.raises(dn.VerificationError):
        dn.verify(tmp_path)


def test_what_is_said_in_words_only_is_said_not_to_be_checked(folders: dict[str, Path]) -> None:
    """A forger may write anything under ``also``: whoever verifies is told, before the checks that hold."""
    untold = [check.what for check in dn.verify(folders["uniform"]).unchecked]
    assert untold == ["perturbation", "words"]
    assert [check.what for check in dn.verify(folders["uniform"]).checks[:2]] == untold
