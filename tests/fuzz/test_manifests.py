"""What is wrong with a manifest is found when it is read: everything after that may trust it."""

from __future__ import annotations

import json
import os
from itertools import islice
from pathlib import Path
from random import Random

import pytest

import deniable as dn
from deniable.core.errors import ManifestError
from deniable.core.manifest import Manifest, read_json
from fuzz import manifests
from fuzz.case import judged
from fuzz.releases import make


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make(tmp_path_factory.mktemp("releases"))


def test_sound_manifests_pass_and_come_back_the_same(releases: dict[str, Path]) -> None:
    for folder in releases.values():
        text = (folder / "manifest.json").read_text()
        assert Manifest.from_json(text).to_json() == text


@pytest.mark.filterwarnings("ignore")
def test_mutated_manifests_are_answered_or_refused_in_words(tmp_path: Path) -> None:
    tried = list(islice(((case.about, judged(case)) for case in manifests.cases(Random(14), tmp_path)), 120))
    assert [(about, end.problem) for about, end in tried if end.verdict == "failed"] == []
    assert {end.verdict for _, end in tried} == {"answered", "refused"}


# The first edit that each place outside of a schema's reach needs; what made 56 places fail once.
DAMAGE = [
    ("uniform", ("rows",), 10**15, "more rows"),
    ("uniform", ("guarantee", "rho2"), "1e999999999", "no probability"),
    ("uniform", ("guarantee", "rho2"), "1/0", "no probability"),
    ("uniform", ("guarantee", "gamma"), "9" * 5000, "no ratio"),
    ("uniform", ("privacy", "rho1"), "3/2", "no probability"),
    ("uniform", ("columns", 0, "name"), "age", "named twice"),
    ("uniform", ("columns", 0, "role"), "sensitive", "not about its sensitive columns"),
    ("uniform", ("parts", 0, "columns", 0), "sex", "not about its sensitive columns"),
    ("uniform", ("parts", 0, "types", 0), "list<item: string>", "cannot be perturbed"),
    ("uniform", ("parts", 0, "types", 0), "int64", "not of its column's type"),
    ("uniform", ("parts", 0, "domain", 1), ["a"], "twice"),
    ("uniform", ("parts", 0, "domain", 1), ["a", "b"], "one entry per column"),
    ("uniform", ("parts", 0, "cells", 0, "values", 0), 99, "not in the domain"),
    ("uniform", ("parts", 0, "cells", 0, "replace", 0), 1, "probability distribution"),
    ("uniform", ("parts", 0, "cells"), [], "nothing says how"),
    ("uniform", ("parts", 0, "marginal", "counts"), [1], "one count per value"),
    ("uniform", ("parts", 0, "marginal", "epsilon"), 1e-300, "noise of the histogram"),
    ("uniform", ("parts", 0, "bins"), {"sex": {"edges": [0, 1, 2], "open_ends": False}}, "not perturbed"),
    ("uniform-bins", ("parts", 0, "bins", "age", "edges", 1), 10**6, "do not rise"),
    ("recoded", ("recoded", "age", 0, "limit"), "80", "recoded/age/0/limit"),
    ("recoded", ("recoded", "age", 1, "width"), 0, "number above 0"),
    ("recoded", ("recoded", "age", 1, "kind"), "prefix", "has other fields"),
    ("recoded", ("recoded", "sex", 0, "map"), [["F"]], "pairs"),
    ("recoded", ("recoded", "sex", 0, "map"), [["F", "f"], ["F", "m"]], "twice"),
    ("recoded", ("recoded", "disease", 0, "below"), 1, "whole number from 2"),
    ("recoded", ("recoded", "nowhere"), [{"kind": "snap", "grid": 1}], "does not publish"),
    ("recoded", ("recoded", "age"), [{"kind": "snap", "grid": 1}] * 20, "too many steps"),
    ("uniform", ("data", "file"), "../data.parquet", "outside the release"),
    ("uniform", ("mechanism", "options"), {"x": 10**40}, "a number or a text that no release has"),
    ("uniform", ("name",), "\ud800", "a number or a text that no release has"),
    ("retention", ("parts", 1, "range", "step"), 1e-9, "whole steps"),
    ("retention", ("parts", 1, "range", "high"), 10**12, "points"),
    ("retention", ("parts", 1, "range", "high"), 3, "is empty"),
    ("retention", ("parts", 2, "range", "high"), "tomorrow", "a date to a date"),
    ("decoys", ("parts", 0, "mixture"), [[1.0]], "a row and a column per value"),
    ("decoys", ("parts", 0, "groups", "c"), 10**9, "larger than any table"),
    ("small-domain", ("columns", -1, "name"), "box", "no column 'cell'"),
]


@pytest.mark.parametrize(("name", "place", "value", "message"), DAMAGE)
def test_damage_is_named(releases: dict[str, Path], name: str, place, value, message: str) -> None:
    raw = json.loads((releases[name] / "manifest.json").read_text())
    manifests.at(raw, place[:-1])[place[-1]] = value
    with pytest.raises(ManifestError, match=message):
        read_json(json.dumps(raw))


def test_nesting_without_end_and_numbers_without_end_are_refused(releases: dict[str, Path]) -> None:
    raw = json.loads((releases["uniform"] / "manifest.json").read_text())
    raw["mechanism"]["options"] = {"x": json.loads("[" * 500 + "]" * 500)}
    with pytest.raises(ManifestError, match="nested"):
        read_json(json.dumps(raw))
    for text in ("[" * 100_000, "9" * 10_000, '{"rows": NaN}', '{"rows": 1e999}'):
        with pytest.raises(ManifestError):
            read_json(text)


def test_a_changed_file_is_not_asked_and_looked_at_once(releases: dict[str, Path], tmp_path: Path, monkeypatch) -> None:
    from deniable.release import folder as files

    read = []
    monkeypatch.setattr(files, "digest_of", lambda path, real=files.digest_of: read.append(path) or real(path))
    manifests.place_release(releases["uniform"], tmp_path / "r", (releases["uniform"] / "manifest.json").read_text())
    for _ in range(3):
        dn.open_release(tmp_path / "r").count({"disease": "a"})
    assert len(read) == 1
    data = (tmp_path / "r" / "data.parquet").read_bytes()
    os.unlink(tmp_path / "r" / "data.parquet")
    (tmp_path / "r" / "data.parquet").write_bytes(data + b" ")
    with pytest.raises(ManifestError, match="changed since it was published"):
        dn.open_release(tmp_path / "r").count({"disease": "a"})


def test_a_manifest_that_is_no_file_or_too_large_is_not_read(tmp_path: Path, monkeypatch) -> None:
    from deniable.release import folder

    os.mkfifo(tmp_path / "manifest.json")
    with pytest.raises(ManifestError, match="no file"):
        dn.open_release(tmp_path)
    os.unlink(tmp_path / "manifest.json")
    (tmp_path / "manifest.json").write_text("{}" * 100)
    monkeypatch.setattr(folder, "LARGEST_MANIFEST", 100)
    with pytest.raises(ManifestError, match="larger than"):
        dn.open_release(tmp_path)
