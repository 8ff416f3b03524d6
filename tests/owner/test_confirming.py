"""What a publisher commits to, and what an auditor confirms: every row drawn again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from typer.testing import CliRunner

import deniable as dn
from deniable.cli.main import app
from deniable.core.errors import OptionError
from deniable.owner.confirming import commitment, confirmed
from deniable.owner.project import Project
from deniable.release.release import Release
from deniable.tables.keys import Secret

SECRET = Secret.from_key(bytes(range(32)))
NAME = "survey 2026, 5b1f0c44"


def people(seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    ages, jobs = rng.integers(18, 90, 4000), rng.choice(["nurse", "clerk", "cook", "judge"], 4000)
    return pa.table({"name": [f"Person {n}" for n in range(4000)], "age": ages, "job": jobs})


def planned(**more: Any) -> Project:
    project = Project.proposed(people(), "job").with_role("name", "drop").with_role("age", "public", "bands:10")
    return replace(project, requirement={"rho1": "1/3", "rho2": "2/3"}, **{"mechanism": "uniform", **more})


def published(out: Path, project: Project, table: pa.Table | None = None, **more: Any) -> Path:
    dn.publish(
        people() if table is None else table,
        **project.arguments(),
        **{"key": SECRET.key, "name": NAME, **more},
        out=out,
    )
    return out


def words(certificate: Any) -> dict[str, str]:
    return {check.what: check.word for check in certificate.checks}


@pytest.mark.parametrize("mechanism", ["uniform", "lineup", "synthetic"])
@pytest.mark.parametrize("options", [{}, {"format": "csv", "shuffle": False}])
def test_an_honest_release_is_confirmed_to_the_row(tmp_path: Path, mechanism: str, options: dict[str, Any]) -> None:
    project = planned(mechanism=mechanism)
    committed = commitment(people(), project, SECRET)
    found = confirmed(people(), published(tmp_path / "r", project, **options), project, SECRET, committed)
    assert words(found) == {
        "perturbed rows": "not checked", "commitment": "holds", "rows": "holds", "numbers": "holds"
    }  # fmt: skip
    assert found.exit_code == 0
    assert found.checks[0].what == "perturbed rows"  # what nobody can show comes first


def test_without_a_commitment_the_key_may_have_been_chosen(tmp_path: Path) -> None:
    found = confirmed(people(), published(tmp_path / "r", planned()), planned(), SECRET)
    assert (words(found)["commitment"], found.exit_code) == ("not checked", 3)


def forge(folder: Path) -> None:
    """One row shows another value, in a release that is sound otherwise."""
    release = dn.open_release(folder)
    jobs = release.table["job"].to_pylist()
    jobs[0] = next(job for job in sorted(set(jobs)) if job != jobs[0])
    place = release.table.column_names.index("job")
    table = release.table.set_column(place, release.table.schema.field(place), [pa.array(jobs)])
    Release(replace(release.manifest, data=None), table=table).save(folder, overwrite=True)


def test_one_row_that_was_not_drawn_is_seen(tmp_path: Path) -> None:
    folder = published(tmp_path / "r", planned())
    forge(folder)
    assert words(confirmed(people(), folder, planned(), SECRET))["rows"] == "FAILS"


OTHER: dict[str, tuple[dict[str, Any], Project, Secret, pa.Table]] = {
    "another key": ({"key": bytes(32)}, planned(), Secret.from_key(bytes(32)), people()),
    "another table": ({}, planned(), SECRET, people(2)),
    "another requirement": ({}, replace(planned(), requirement={"rho1": "1/3", "rho2": "3/4"}), SECRET, people()),
    "other bands": ({}, planned().with_role("age", "public", "bands:20"), SECRET, people()),
}


@pytest.mark.parametrize("what", OTHER)
def test_what_was_chosen_after_the_name_was_known_is_seen(tmp_path: Path, what: str) -> None:
    """Drawn honestly, by another key, table or choice than the one that was committed to."""
    options, project, secret, table = OTHER[what]
    committed = commitment(people(), planned(), SECRET)
    found = words(confirmed(table, published(tmp_path / "r", project, table, **options), project, secret, committed))
    assert (found["commitment"], found["rows"]) == ("FAILS", "holds")


def test_another_name_gives_other_rows(tmp_path: Path) -> None:
    one, other = (published(tmp_path / name, planned(), name=name, shuffle=False) for name in ("a", "b"))
    shown = [dn.open_release(folder).table["job"].to_pylist() for folder in (one, other)]
    assert shown[0] != shown[1]


def test_a_commitment_tells_nothing_without_the_key() -> None:
    assert commitment(people(), planned(), SECRET) != commitment(people(), planned(), Secret.from_key(bytes(32)))
    decided = planned().accepting("rows alone", ["age"], "All are known.")
    assert commitment(people(), decided, SECRET) == commitment(people(), planned(), SECRET)  # it changes no draw


def test_what_a_file_of_categories_says_is_committed_to(tmp_path: Path) -> None:
    """It decides what is published as much as the name of the file does."""
    path, commitments = tmp_path / "ages.csv", []
    for old in (60, 65):
        lines = [f"{age},{'old' if age >= old else 'young'}\n" for age in range(18, 90)]
        path.write_text("".join(lines), encoding="utf-8")
        project = planned().with_role("age", "public", f"hierarchy:{path}")
        commitments.append(commitment(people(), project, SECRET))
    assert commitments[0] != commitments[1]


def test_a_series_is_refused(tmp_path: Path) -> None:
    table = people().append_column("id", pa.array(range(4000)))
    project = replace(planned(), columns=Project.proposed(table, "job").columns).with_role("name", "drop")
    project = project.with_role("id", "row_id").with_role("age", "public", "")
    out = published(tmp_path / "r", project, table, key=None, series=tmp_path / "s")
    with pytest.raises(OptionError, match="belongs to a series"):
        confirmed(table, out, project, SECRET)


def test_the_commands_do_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pa_csv.write_csv(people(), "people.csv")
    planned().write(Path("plan.toml"))
    Path("my.key").write_text(SECRET.key.hex())
    Path("my.key").chmod(0o600)
    run = CliRunner().invoke
    asked = ["--project", "plan.toml", "--key-file", "my.key"]
    committed = run(app, ["commit", "people.csv", *asked]).stdout.strip()
    assert json.loads(run(app, ["commit", "people.csv", *asked, "--json"]).stdout) == {"commitment": committed}
    made = run(app, ["publish", "people.csv", *asked, "--name", NAME, "--out", "r", "-q"])
    assert made.exit_code in (0, 3), made.output
    shown = run(app, ["audit", "people.csv", "r", "--for-auditor", *asked, "--commitment", committed])
    assert shown.exit_code == 0
    assert shown.stdout.splitlines()[0].startswith("--   perturbed rows: NOT CHECKED: no receiver can see")
    assert run(app, ["audit", "people.csv", "r", "--for-auditor", *asked]).exit_code == 3
    forge(Path("r"))
    told = run(app, ["audit", "people.csv", "r", "--for-auditor", *asked, "--commitment", committed, "--json"])
    assert (told.exit_code, json.loads(told.stdout)["holds"]) == (1, False)
    lacking = run(app, ["audit", "people.csv", "r", "--for-auditor", "--key-file", "my.key"])
    assert lacking.exit_code == 2
    for more in (["--attacks"], ["--details"], ["--out", "audit.txt"], ["--page", "page.html"]):
        refused = run(app, ["audit", "people.csv", "r", "--for-auditor", *asked, *more])
        assert refused.exit_code == 2
        assert "do not go with it" in refused.output.replace("\n", " ")
    assert not Path("audit.txt").exists()
    assert "go together" in lacking.output
