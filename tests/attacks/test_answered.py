"""Nothing is answered from a release that would not verify."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.manifest import Manifest
from deniable.release.readme import analyst_readme

ROWS = 4_000
MUTATIONS = 60
OPTIONS: dict[str, dict[str, Any]] = {
    "uniform": {"privacy": dn.Privacy("1/4", "1/2")},
    "lineup": {"privacy": dn.Privacy("1/4", "1/2")},
    "small-domain": {"privacy": dn.Privacy("1/4", "1/2")},
    "synthetic": {"privacy": dn.Privacy(epsilon=3), "domain": list("abcdefgh")},
}


@pytest.fixture(scope="module", params=OPTIONS)
def release(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(4)
    value = rng.choice(list("abcdefgh"), ROWS, p=[0.2, 0.18, 0.16, 0.14, 0.12, 0.1, 0.06, 0.04])
    table = pa.table({"sex": rng.choice(["F", "M"], ROWS), "age": rng.integers(20, 60, ROWS), "value": value})
    out = tmp_path_factory.mktemp("answered") / "release"
    dn.publish(table, sensitive="value", mechanism=request.param, key=bytes(32), out=out, **OPTIONS[request.param])
    return out


def numbers(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every number of a manifest, those in words included."""
    if isinstance(node, dict | list):
        for key, inner in node.items() if isinstance(node, dict) else enumerate(node):
            yield from numbers(inner, (*path, key))
    elif isinstance(node, int | float) and not isinstance(node, bool):
        yield path


def changed(raw: Any, path: tuple[Any, ...], by: Any) -> Any:
    made = copy.deepcopy(raw)
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = by(inner[path[-1]])
    return made


def answered(folder: Path) -> bool:
    """Whether a count comes back."""
    try:
        dn.open_release(folder).count({"sex": "F", "value": "c"})
    except dn.DeniableError:
        return False
    return True


def verified(folder: Path) -> bool:
    try:
        dn.verify(folder)
    except dn.DeniableError:
        return False
    return True


def test_no_change_of_a_number_is_answered_that_verify_refuses(release: Path) -> None:
    path = release / "manifest.json"
    sound = path.read_text()
    raw, random = json.loads(sound), Random(1)
    places = list(numbers(raw))
    assert answered(release)
    assert verified(release)
    refused = 0
    try:
        for place in random.sample(places, min(MUTATIONS, len(places))):
            by = random.choice([lambda n: n + 1000, lambda n: 0, lambda n: n * 2 + 1, lambda n: -n - 1])
            path.write_text(json.dumps(changed(raw, place, by)))
            if not verified(release):
                refused += 1
                assert not answered(release), place
    finally:
        path.write_text(sound)
    assert refused > MUTATIONS / 4


def test_a_count_of_the_noisy_histogram_that_is_raised_by_a_thousand_is_not_answered(tmp_path: Path) -> None:
    """It gave 747.8 (742 to 753.7) for 873."""
    rng = np.random.default_rng(5)
    table = pa.table({"sex": rng.choice(["F", "M"], 9_000), "value": rng.choice(list("abcde"), 9_000)})
    how: dict[str, Any] = {"mechanism": "uniform", "privacy": dn.Privacy(rho2="1/2"), "key": bytes(32)}
    dn.publish(table, sensitive="value", out=tmp_path / "r", **how)
    raw = json.loads((tmp_path / "r" / "manifest.json").read_text())
    raw["parts"][0]["marginal"]["counts"][2] += 1000
    (tmp_path / "r" / "manifest.json").write_text(json.dumps(raw))
    with pytest.raises(dn.VerificationError, match="would not verify, so answers from it would mean nothing"):
        dn.open_release(tmp_path / "r").count({"value": "c"})


def test_what_rows_show_is_refused_by_the_first_question(tmp_path: Path) -> None:
    """Rows of another table, whose digest the manifest was given."""
    rng = np.random.default_rng(6)
    how: dict[str, Any] = {
        "mechanism": "uniform",
        "privacy": dn.Privacy("1/4", "1/2"),
        "key": bytes(32),
        "format": "csv",
    }
    table = pa.table({"sex": ["F", "M"] * 4_000, "value": rng.choice(list("abcde"), 8_000)})
    dn.publish(table, sensitive="value", out=tmp_path / "r", **how)
    data = tmp_path / "r" / "data.csv"
    data.write_text(data.read_text().replace(",b\n", ",a\n").replace(',"b"\n', ',"a"\n'))
    raw = json.loads((tmp_path / "r" / "manifest.json").read_text())
    raw["data"]["sha256"] = hashlib.sha256(data.read_bytes()).hexdigest()
    (tmp_path / "r" / "manifest.json").write_text(json.dumps(raw))
    (tmp_path / "r" / "README.md").write_text(analyst_readme(Manifest.from_dict(raw)))
    opened = dn.open_release(tmp_path / "r")
    with pytest.raises(dn.VerificationError, match="would not verify"):
        opened.count({"value": "c"})


def test_what_the_manifest_shows_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    table = pa.table({"sex": ["F", "M"] * 500, "value": list("abcde") * 200})
    how: dict[str, Any] = {"mechanism": "uniform", "privacy": dn.Privacy(rho2="1/2"), "key": bytes(32)}
    dn.publish(table, sensitive="value", out=tmp_path / "r", **how)
    raw = json.loads((tmp_path / "r" / "manifest.json").read_text())
    raw["guarantee"]["rho2"] = "1/3"
    (tmp_path / "r" / "manifest.json").write_text(json.dumps(raw))
    with pytest.raises(dn.VerificationError, match="Fix: get the release again"):
        dn.open_release(tmp_path / "r")
