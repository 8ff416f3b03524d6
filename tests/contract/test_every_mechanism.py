"""One suite that every mechanism passes on every engine: what a user may rely on whatever they choose.

Releases that need no options of their own are published once, and shared by the tests that look at them.
"""

import importlib
import json
import sys
from functools import cache
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import deniable as dn
from deniable import mechanisms
from deniable.core.manifest import Manifest, schema
from tests.contract import cases
from tests.contract.cases import MADE, VALUES, N, people


@cache
def _partitioned():
    """The engine beside this file; processes that it starts must find it by its name, so it is on the path."""
    folder = str(Path(__file__).parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module("partitioned").PartitionedEngine()


MANY = 20_000  # where errors are compared with their standard errors, and counts must not be anything else's number
MANIFESTS = jsonschema.Draft202012Validator(schema())  # whose own soundness is tested with publishing
ENGINES = {"local": lambda: "local", "partitioned": _partitioned}
UNBIASED = [name for name in MADE if name != "redraw" and "decoys" not in name]
LEFT_OUT = {"decoys, rows left out": N % 3}


@pytest.fixture(scope="module")
def table():
    return people(N)


@pytest.fixture(scope="module")
def many():
    return people(MANY)


@pytest.fixture(scope="module", params=ENGINES)
def engine(request):
    return request.param


def publish(table, name, engine="local", **options):
    return cases.publish(table, name, ENGINES[engine](), **options)


@pytest.fixture(scope="module")
def published(table):
    """The release of a mechanism on an engine, in memory and by one thread: made when it is first asked for."""
    return cache(lambda name, engine="local": publish(table, name, engine, threads=1))


@pytest.fixture(scope="module")
def published_many(many):
    return cache(lambda name: publish(many, name))


def test_every_registered_mechanism_is_in_this_suite():
    """But for lists, which are no values: publishing/test_lists_release.py."""
    known = {made()[0].name for made in MADE.values()}
    assert set(mechanisms.MECHANISMS) - {"items"} <= known


@pytest.mark.parametrize("name", MADE)
def test_rows_and_public_columns_are_kept(table, published, name, engine):
    release = published(name, engine)
    lost = LEFT_OUT.get(name, 0)
    assert release.table.num_rows == release.manifest.rows == N - lost
    public = release.manifest.public_columns
    before, after = (sorted(zip(*(t[c].to_pylist() for c in public), strict=True)) for t in (table, release.table))
    assert len(before) - len(after) == (lost if public else 0)
    assert set(after) <= set(before)
    if not lost:
        assert after == before


@pytest.mark.parametrize("name", MADE)
def test_both_engines_give_the_same_release(table, published, name):
    one, other = published(name, "local"), published(name, "partitioned")
    assert one.table.equals(other.table)
    assert one.manifest.to_json() == other.manifest.to_json()
    plain, again = (publish(table, name, engine, shuffle=False) for engine in ENGINES)
    assert plain.table.equals(again.table)


@pytest.mark.parametrize("name", MADE)
def test_the_same_key_gives_the_same_release_and_threads_do_not_matter(table, published, name):
    first, second = published(name), publish(table, name, threads=4, batch_rows=777)
    assert first.table.equals(second.table)
    assert first.manifest.to_json() == second.manifest.to_json()


@pytest.mark.parametrize("name", MADE)
def test_a_release_is_saved_verified_and_opened(table, name, tmp_path, engine):
    release = publish(table, name, engine, out=tmp_path / "r")
    verified = dn.verify(tmp_path / "r")
    in_part = [check.what for check in verified.unchecked if check.required]
    assert in_part == (["frequencies in cells"] if name.startswith("small-domain") else [])
    raw = json.loads((tmp_path / "r" / "manifest.json").read_text())
    MANIFESTS.validate(raw)
    assert Manifest.from_dict(raw).to_dict() == raw
    assert dn.open_release(tmp_path / "r").table.equals(release.table)


@pytest.mark.parametrize("name", MADE)
def test_the_guarantee_speaks_and_the_limits_are_said(published, name):
    guarantee = published(name).manifest.guarantee
    assert len(guarantee["sentence"]) > 20
    assert len(guarantee["not_protected"]) >= 2


@pytest.mark.parametrize("name", MADE)
def test_no_exact_count_is_in_the_manifest(many, published_many, name):
    raw = json.loads(published_many(name).manifest.to_json())
    for part in raw["parts"]:
        part.pop("marginal")
    text = json.dumps(raw)
    for separator in ',:[]{}"':
        text = text.replace(separator, " ")
    counts = {str(c) for c in np.unique(many["disease"].to_numpy(zero_copy_only=False), return_counts=True)[1]}
    assert not counts & set(text.split())


@pytest.mark.parametrize("name", MADE)
def test_counts_are_answered_with_an_interval(published, name, engine):
    estimate = published(name, engine).count(where={"sex": "F", "disease": ["a", "b"]})
    assert estimate.low <= estimate.value <= estimate.high


@pytest.mark.parametrize("name", UNBIASED)
def test_counts_are_within_six_standard_errors_of_the_truth(many, published_many, name):
    release = published_many(name)
    frame = many.to_pandas()
    for sex in "FM":
        for value in VALUES:
            estimate = release.count(where={"sex": sex, "disease": value})
            truth = int(((frame["sex"] == sex) & (frame["disease"] == value)).sum())
            assert abs(estimate.value - truth) < 6 * estimate.stderr


@pytest.mark.parametrize("name", MADE)
def test_a_file_and_a_table_give_the_same_release(table, published, name, tmp_path, engine):
    import pyarrow.parquet as pq

    pq.write_table(table, tmp_path / "t.parquet")
    written = publish(tmp_path / "t.parquet", name, engine, out=tmp_path / "r")
    assert written.table.equals(published(name).table)
