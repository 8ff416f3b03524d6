"""Forged releases: each is refused, whatever its manifest says of itself, and honest ones of every mechanism pass.

The forger writes files and recomputes their digests; nothing here uses the code that plans or verifies.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn

N = 6000
VALUES = list("abcdefgh")


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(2)
    job = rng.choice(VALUES, N, p=np.arange(8, 0, -1) / 36)
    return pa.table({"sex": rng.choice(["F", "M"], N), "job": job})


def publish(table: pa.Table, out: Path, mechanism: str = "uniform", key: int = 0, **options: Any) -> Path:
    privacy = None if mechanism.startswith("decoys") else dn.Privacy(rho1="1/4", rho2="1/3")
    dn.publish(table, sensitive="job", privacy=privacy, mechanism=mechanism, key=bytes([key]) * 32, out=out, **options)
    return out


def rewritten(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    path = folder / "manifest.json"
    raw = json.loads(path.read_text())
    change(raw)
    path.write_text(json.dumps(raw, indent=1, ensure_ascii=False) + "\n")


def with_data(folder: Path, data: pa.Table) -> None:
    pq.write_table(data, folder / "data.parquet")
    digest = hashlib.sha256((folder / "data.parquet").read_bytes()).hexdigest()

    def change(raw: dict[str, Any]) -> None:
        raw["data"]["sha256"] = digest
        raw["rows"] = data.num_rows

    rewritten(folder, change)


def refused(folder: Path) -> str:
    with pytest.raises(dn.DeniableError) as caught:
        dn.verify(folder)
    return str(caught.value)


CHANGES: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "coins near 1": ("uniform", lambda m: m["parts"][0]["cells"][0].update(keep=[2**32 - 2**20] * 8)),
    "coins 5 % larger": (
        "uniform",
        lambda m: m["parts"][0]["cells"][0].update(keep=[int(k * 1.05) for k in m["parts"][0]["cells"][0]["keep"]]),
    ),
    "renamed mechanism": (
        "uniform",
        lambda m: (
            m["mechanism"].update(name="other"),
            m["parts"][0]["cells"][0].update(keep=[2**32 - 2**20] * 8),
        ),
    ),
    "promise of nothing": (
        "uniform",
        lambda m: m["parts"][0].update(promise={"kind": "nothing", "why": "trust us"}),
    ),
    "promise of an unknown kind": ("uniform", lambda m: m["parts"][0].update(promise={"kind": "magic"})),
    "promise without a number": ("uniform", lambda m: m["parts"][0]["promise"].pop("gamma")),
    "promise with a number more": ("uniform", lambda m: m["parts"][0]["promise"].update(extra="1/2")),
    "smaller stated rho2": ("uniform", lambda m: m["guarantee"].update(rho2="1/4")),
    "smaller promised rho2": ("uniform", lambda m: m["parts"][0]["promise"].update(rho2="1/4")),
    "smaller gamma": ("uniform", lambda m: m["guarantee"].update(gamma="101/100")),
    "requirement nulled": (
        "uniform",
        lambda m: (m["privacy"].update(rho1=None, rho2=None), m["guarantee"].update(rho2="1/9")),
    ),
    "adversary raised": ("designed", lambda m: m["privacy"].update(adversary="any-prior")),
    "sentence rewritten": ("uniform", lambda m: m["guarantee"].update(sentence="Nobody learns anything.")),
    "limits left out": ("uniform", lambda m: m["guarantee"].update(not_protected=["Nothing."])),
    "an unknown field": ("uniform", lambda m: m.update(trusted=True)),
    "an unknown field of a part": ("uniform", lambda m: m["parts"][0].update(trusted=True)),
    "a column left out": ("uniform", lambda m: m["columns"].pop()),
    "fewer rows": ("uniform", lambda m: m.update(rows=10)),
    "another digest": ("uniform", lambda m: m["data"].update(sha256="0" * 64)),
    "data of another folder": ("uniform", lambda m: m["data"].update(file="../data.parquet")),
    "a value more": ("uniform", lambda m: m["parts"][0]["domain"].append(["z"])),
    "a value less": ("uniform", lambda m: m["parts"][0]["domain"].pop()),
    "exact histogram of another table": (
        "uniform",
        lambda m: m["parts"][0]["marginal"].update(counts=[N, 0, 0, 0, 0, 0, 0, 0]),
    ),
    "a histogram that is too short": ("uniform", lambda m: m["parts"][0]["marginal"]["counts"].pop()),
    "weights that do not add up": ("uniform", lambda m: m["parts"][0]["cells"][0]["replace"].__setitem__(0, 5)),
    "a gamma beyond all numbers": ("uniform", lambda m: m["guarantee"].update(gamma="1" + "0" * 400, epsilon=921.0)),
    "a promised gamma beyond all numbers": (
        "uniform",
        lambda m: m["parts"][0]["promise"].update(gamma="1" + "0" * 400),
    ),
    "a coin above 1": ("uniform", lambda m: m["parts"][0]["cells"][0]["keep"].__setitem__(0, 2**33)),
    "designed coins raised": (
        "designed",
        lambda m: m["parts"][0]["cells"][0].update(
            keep=[min(2 * k, 2**32 - 1) for k in m["parts"][0]["cells"][0]["keep"]]
        ),
    ),
    "permuted cells": ("small-domain", lambda m: m["parts"][0].update(cells=m["parts"][0]["cells"][::-1])),
    "cells not published": ("small-domain", lambda m: m["parts"][0].update(cells_published=False)),
    "smaller cell gamma": (
        "small-domain",
        lambda m: m["parts"][0]["promise"].update(gammas=["11/10"] * len(m["parts"][0]["promise"]["gammas"])),
    ),
    "decoys of a thousand": ("decoys:c=4", lambda m: m["parts"][0]["promise"].update(c=1000)),
    "decoys of a thousand, twice": (
        "decoys:c=4",
        lambda m: (m["parts"][0]["promise"].update(c=1000), m["parts"][0]["groups"].update(c=1000)),
    ),
    "values left out as frequent": ("designed", lambda m: m["parts"][0]["promise"].update(above=[0, 6, 7])),
    "values left out as exempt": ("designed", lambda m: m["parts"][0]["promise"].update(exempt=[0])),
    "values of a cell left out": ("small-domain", lambda m: m["parts"][0]["promise"].update(above=[5, 6, 7])),
    "single values left out": ("designed", lambda m: m["parts"][0]["promise"].update(loose=[[0, 0]])),
    "a seed called the operating system": (
        "uniform",
        lambda m: m["randomness"].update(source="operating system", seed=5),
    ),
    "a seed that is not told": ("uniform", lambda m: m["randomness"].update(source="seed", seed=None)),
    "a form that it is not": ("uniform", lambda m: m.update(form="buckets")),
    "a newer format": ("uniform", lambda m: m.update(format_version=3)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_forged_manifest_is_refused(table: pa.Table, tmp_path: Path, name: str) -> None:
    mechanism, change = CHANGES[name]
    folder = publish(table, tmp_path / "r", mechanism)
    assert not dn.verify(folder).failures
    rewritten(folder, change)
    assert refused(folder)


@pytest.mark.parametrize("mechanism", ["uniform", "small-domain"])  # designed: P f is nearly f, and counts tell nothing
def test_raw_rows_as_data_are_refused(table: pa.Table, tmp_path: Path, mechanism: str) -> None:
    folder = publish(table, tmp_path / "r", mechanism)
    shown = pq.read_table(folder / "data.parquet")
    raw = shown.set_column(shown.column_names.index("job"), "job", table["job"].cast(shown["job"].type))
    with_data(folder, raw)
    assert refused(folder)


def test_half_of_the_rows_raw_are_refused(table: pa.Table, tmp_path: Path) -> None:
    folder = publish(table, tmp_path / "r")
    shown = pq.read_table(folder / "data.parquet")
    mixed = pa.concat_arrays([table["job"][: N // 2].combine_chunks(), shown["job"][N // 2 :].combine_chunks()])
    with_data(folder, shown.set_column(1, "job", mixed))
    assert "published counts" in refused(folder)


@pytest.mark.parametrize("mechanism", ["uniform", "items:separator=;,most=1"])
def test_raw_rows_are_refused_without_a_noisy_histogram(tmp_path: Path, mechanism: str) -> None:
    """Rare values are shown less often than coins replace other values by them."""
    job = np.random.default_rng(4).choice(VALUES, 20_000, p=np.arange(8, 0, -1) / 36)
    privacy = dn.Privacy(rho1="1/10", rho2="1/4", adversary="any-prior")
    how = {"sensitive": "job", "privacy": privacy, "domain": VALUES, "key": bytes(32), "out": tmp_path / "r"}
    dn.publish(pa.table({"job": job}), mechanism=mechanism, **how)
    names = pq.read_table(tmp_path / "r" / "data.parquet").column_names
    raw = {"job": job} if mechanism == "uniform" else {name: job == name[-1] for name in names}
    with_data(tmp_path / "r", pa.table(raw))
    assert "below 0" in refused(tmp_path / "r")


def test_a_value_outside_the_domain_is_refused(table: pa.Table, tmp_path: Path) -> None:
    folder = publish(table, tmp_path / "r")
    shown = pq.read_table(folder / "data.parquet")
    with_data(folder, shown.set_column(1, "job", pa.array(["z", *shown["job"].to_pylist()[1:]])))
    assert "does not list" in refused(folder)


def test_rows_left_out_or_data_damaged_are_refused(table: pa.Table, tmp_path: Path) -> None:
    folder = publish(table, tmp_path / "r")
    data = (folder / "data.parquet").read_bytes()
    pq.write_table(pq.read_table(folder / "data.parquet").slice(10), folder / "data.parquet")
    assert refused(folder)
    (folder / "data.parquet").write_bytes(data[:-100])
    assert refused(folder)
    (folder / "data.parquet").unlink()
    assert refused(folder)


def test_a_rewritten_or_missing_readme_is_refused(table: pa.Table, tmp_path: Path) -> None:
    folder = publish(table, tmp_path / "r")
    readme = folder / "README.md"
    readme.write_text(readme.read_text().replace("33.3 %", "1 %"))
    assert "README" in refused(folder)
    readme.unlink()
    assert "README" in refused(folder)


def test_cells_that_are_said_not_to_be_published_are_refused(table: pa.Table, tmp_path: Path) -> None:
    """With a README to match, it passed."""
    folder = publish(table, tmp_path / "r", "small-domain")
    rewritten(folder, lambda raw: raw["parts"][0].update(cells_published=False))
    assert "several cells" in refused(folder)


def test_exceptions_left_out_of_the_sentence_and_the_readme_are_refused(tmp_path: Path) -> None:
    """The forger also makes the README that the forged manifest gives."""
    from deniable.core.manifest import Manifest
    from deniable.release.readme import analyst_readme

    job = np.random.default_rng(3).choice(VALUES, N, p=[0.4, 0.2, *[0.4 / 6] * 6])
    folder = publish(pa.table({"job": job}), tmp_path / "r", "designed")

    def change(raw: dict[str, Any]) -> None:
        assert "Not covered: 'a'" in raw["guarantee"]["sentence"]
        raw["guarantee"]["sentence"] = raw["guarantee"]["sentence"].split(" Not covered")[0]

    rewritten(folder, change)
    raw = json.loads((folder / "manifest.json").read_text())
    (folder / "README.md").write_text(analyst_readme(Manifest.from_dict(raw)))
    assert "sentence" in refused(folder)


@pytest.mark.parametrize(
    "mechanism", ["uniform", "designed", "identity", "small-domain", "pram", "fine-grain", "decoys:c=4"]
)
def test_honest_releases_pass(table: pa.Table, tmp_path: Path, mechanism: str) -> None:
    for key in range(20):
        publish(table.slice(0, 2000), tmp_path / f"{key}", mechanism, key)
        assert not dn.verify(tmp_path / f"{key}").failures
