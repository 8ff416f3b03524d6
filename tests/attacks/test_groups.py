"""Forgers who change one of the two tables of a release of groups, with the digests and the README to match."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.core.manifest import Manifest
from deniable.release.readme import analyst_readme

Forger = Callable[[pa.Table, pa.Table], tuple[pa.Table, pa.Table]]
MADE: dict[str, dict[str, Any]] = {
    "anatomy": {"mechanism": "anatomy:l=4", "privacy": dn.Privacy(rho2="1/4")},
    "generalize": {"mechanism": "generalize:k=10,l=3", "privacy": dn.Privacy(rho2="1/3")},
    "perturbed-generalization": {
        "mechanism": "perturbed-generalization",
        "privacy": dn.Privacy(rho1="1/4", rho2="1/3"),
    },
}


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng, n, home = np.random.default_rng(1), 600, tmp_path_factory.mktemp("groups")
    sex, job = rng.choice(["m", "f"], n), rng.choice(list("abcdefgh"), n)
    table = pa.table({"age": rng.integers(20, 60, n), "sex": sex, "job": job})
    for name, how in MADE.items():
        dn.publish(table, sensitive="job", key=bytes(range(32)), out=home / name, **how)
    return home


def exchanged(table: pa.Table, name: str, values: Any) -> pa.Table:
    field = table.schema.field(name)
    return table.set_column(table.column_names.index(name), name, pa.array(values, field.type))


def men_have_a(rows: pa.Table, groups: pa.Table) -> tuple[pa.Table, pa.Table]:
    """All men in groups with an a, all women in others."""
    cells, jobs = groups["cell"].to_numpy(), np.array(groups["job"].to_pylist())
    having = np.unique(cells[jobs == "a"])
    men, others = np.array(rows["sex"].to_pylist()) == "m", np.setdiff1d(cells, having)
    chosen = np.where(men, np.resize(having, len(men)), np.resize(others, len(men)))
    return exchanged(rows, "cell", chosen), groups


def moved(rows: pa.Table, groups: pa.Table) -> tuple[pa.Table, pa.Table]:
    return exchanged(rows, "cell", rows["cell"].to_numpy() + 1_000), groups


def unknown(rows: pa.Table, groups: pa.Table) -> tuple[pa.Table, pa.Table]:
    return exchanged(rows, "cell", [None, *rows["cell"].to_pylist()[1:]]), groups


def noted(rows: pa.Table, groups: pa.Table) -> tuple[pa.Table, pa.Table]:
    """A column of the forger's own: it may hold anything."""
    return rows, groups.append_column("note", pa.array(["x"] * groups.num_rows))


def more(rows: pa.Table, groups: pa.Table) -> tuple[pa.Table, pa.Table]:
    """As many groups again, which no row is in."""
    return rows, pa.concat_tables([groups, exchanged(groups, "cell", groups["cell"].to_numpy() + 1_000)])


def uncounted(rows: pa.Table, groups: pa.Table) -> tuple[pa.Table, pa.Table]:
    return rows, exchanged(groups, "rows", [None, *groups["rows"].to_pylist()[1:]])


def none_at_all(rows: pa.Table, groups: pa.Table) -> tuple[pa.Table, pa.Table]:
    return rows, exchanged(groups, "rows", np.zeros(groups.num_rows, np.int64))


def halves(rows: pa.Table, groups: pa.Table) -> tuple[pa.Table, pa.Table]:
    place = groups.column_names.index("rows")
    return rows, groups.set_column(place, "rows", pa.array(groups["rows"].to_numpy() / 2))


def turned(rows: pa.Table, groups: pa.Table) -> tuple[pa.Table, pa.Table]:
    return rows, groups.take(pa.array(np.arange(groups.num_rows)[::-1]))


def twice(rows: pa.Table, groups: pa.Table) -> tuple[pa.Table, pa.Table]:
    return rows, pa.concat_tables([groups, groups.slice(0, 1)])


def lowered(rows: pa.Table, groups: pa.Table) -> tuple[pa.Table, pa.Table]:
    return rows, exchanged(groups, "age low", groups["age low"].to_numpy() - 500)


def missing(rows: pa.Table, groups: pa.Table) -> tuple[pa.Table, pa.Table]:
    return rows, exchanged(groups, "age missing", groups["rows"].to_numpy())


def women(rows: pa.Table, groups: pa.Table) -> tuple[pa.Table, pa.Table]:
    return rows, exchanged(groups, "sex values", [["f"]] * groups.num_rows)


def strange(rows: pa.Table, groups: pa.Table) -> tuple[pa.Table, pa.Table]:
    if "job" in groups.column_names:
        return rows, exchanged(groups, "job", ["zz", *groups["job"].to_pylist()[1:]])
    return exchanged(rows, "job", ["zz", *rows["job"].to_pylist()[1:]]), groups


EVERYWHERE = [moved, unknown, noted, more, uncounted, none_at_all, halves, twice, strange]
BOXES = [turned, lowered, missing, women]
FORGED = [
    ("anatomy", men_have_a),
    *((name, forger) for name in MADE for forger in EVERYWHERE),
    *((name, forger) for name in ("generalize", "perturbed-generalization") for forger in BOXES),
]
SEEN_BY_VERIFY_ONLY = (lowered, missing, women)


def written(home: Path, name: str, out: Path, forger: Forger) -> Path:
    """A release with forged tables, whose manifest and README agree with them."""
    shutil.copytree(home / name, out)
    raw = json.loads((out / "manifest.json").read_text())
    tables = forger(*(pq.read_table(out / raw[which]["file"]) for which in ("data", "groups")))
    for which, table in zip(("data", "groups"), tables, strict=True):
        pq.write_table(table, out / raw[which]["file"])
        raw[which]["sha256"] = hashlib.sha256((out / raw[which]["file"]).read_bytes()).hexdigest()
    (out / "manifest.json").write_text(json.dumps(raw))
    (out / "README.md").write_text(analyst_readme(Manifest.from_dict(raw)))
    return out


@pytest.mark.parametrize("name", MADE)
def test_tables_that_are_written_anew_without_a_change_are_accepted(honest: Path, name: str, tmp_path: Path) -> None:
    assert dn.verify(written(honest, name, tmp_path / "release", lambda rows, groups: (rows, groups))).holds


@pytest.mark.parametrize(("name", "forger"), FORGED)
def test_a_table_that_does_not_go_with_the_other_is_refused(
    honest: Path, name: str, forger: Forger, tmp_path: Path
) -> None:
    forged = written(honest, name, tmp_path / "release", forger)
    with pytest.raises(dn.VerificationError, match=r"tables: |boxes: |values: "):
        dn.verify(forged)
    if forger not in SEEN_BY_VERIFY_ONLY:
        with pytest.raises(dn.DeniableError, match=r"is damaged|does not list"):
            dn.open_release(forged).count({"age": dn.between(20, 30), "job": "a"})


def tripled(rows: pa.Table, groups: pa.Table) -> tuple[pa.Table, pa.Table]:
    return rows, exchanged(groups, "rows", groups["rows"].to_numpy() * 3)


def other_groups(rows: pa.Table, groups: pa.Table) -> tuple[pa.Table, pa.Table]:
    """As many rows in each group, but others."""
    return exchanged(rows, "cell", rows["cell"].to_numpy()[::-1]), groups


@pytest.mark.parametrize(
    ("name", "forger", "said"),
    [
        ("perturbed-generalization", tripled, "that a box had as many rows as is stated"),
        ("anatomy", other_groups, "that rows, values and groups are those of the table"),
    ],
)
def test_what_the_tables_cannot_show_is_said_not_to_be_checked(
    honest: Path, name: str, forger: Forger, said: str, tmp_path: Path
) -> None:
    """Larger boxes make every count larger; whoever reads the report is not to think that somebody has counted."""
    certificate = dn.verify(written(honest, name, tmp_path / "release", forger))
    assert any(check.open and said in check.detail for check in certificate.checks)
