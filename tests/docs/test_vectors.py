"""The test vectors beside the specification: good releases hold, and of each bad one the named check fails, alone."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import deniable as dn
import deniable_verify
from deniable_verify.promises import mechanisms

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
VECTORS = REFERENCE / "vectors"
EXPECTED: dict[str, Any] = json.loads((VECTORS / "expected.json").read_text(encoding="utf-8"))
LARGEST = 1_500_000  # bytes of all of them


NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")


def says(checks: tuple[deniable_verify.Check, ...], expected: list[str]) -> bool:
    """Whether checks say what is expected, their numbers to 1 %: other machines add them up in another order."""
    said = [f"{check.what}: {check.detail}" for check in checks]
    found, stored = (
        [float(one.replace(",", "")) for line in lines for one in NUMBER.findall(line)] for lines in (said, expected)
    )
    words = [[NUMBER.sub("", line) for line in lines] for lines in (said, expected)]
    return words[0] == words[1] and found == pytest.approx(stored, rel=0.01, abs=1e-3)


@pytest.mark.parametrize("name", EXPECTED["good"])
def test_a_good_release_holds(name: str) -> None:
    certificate, expected = deniable_verify.verify(VECTORS / "good" / name), EXPECTED["good"][name]
    assert certificate.holds is expected["holds"]
    assert [check.what for check in certificate.unchecked if check.required] == expected["unchecked"]
    assert certificate.exit_code == (3 if expected["unchecked"] else 0)
    assert says(certificate.checks, expected["says"])


@pytest.mark.parametrize("name", EXPECTED["bad"])
def test_of_a_bad_release_the_named_check_fails_and_no_other(name: str) -> None:
    certificate = deniable_verify.verify(VECTORS / "bad" / name)
    assert sorted({check.what for check in certificate.failures}) == sorted(EXPECTED["bad"][name]["fails"])
    assert certificate.exit_code == 1
    assert says(certificate.failures, EXPECTED["bad"][name]["says"])
    with pytest.raises(dn.VerificationError):
        dn.verify(VECTORS / "bad" / name)


def test_there_is_a_good_release_of_every_mechanism_and_kind_of_promise() -> None:
    raws = [json.loads((path / "manifest.json").read_text("utf-8")) for path in (VECTORS / "good").iterdir()]
    assert {raw["mechanism"]["name"] for raw in raws} == set(mechanisms()) - {"collected"}
    kinds = {part["promise"]["kind"] for raw in raws for part in raw["parts"]}
    assert kinds >= {kind for some in mechanisms().values() for kind in some} - {"nothing"}


def test_the_page_lists_them_all_and_they_are_small() -> None:
    page = (REFERENCE / "manifest.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `([a-z0-9-]+)` \| ", page.partition("## Test vectors")[2], re.MULTILINE))
    assert named == {*EXPECTED["good"], *EXPECTED["bad"]}
    there = {path.name for kind in ("good", "bad") for path in (VECTORS / kind).iterdir()}
    assert there == named
    assert sum(path.lstat().st_size for path in VECTORS.rglob("*") if path.is_file()) < LARGEST


def test_the_command_says_it_in_text_in_json_and_by_its_exit_code() -> None:
    command = [sys.executable, "-m", "deniable_verify.command"]
    for place, code, holds in (
        ("good/uniform", 0, True),
        ("good/small-domain", 3, None),
        ("bad/fewer-rows", 1, False),
    ):
        done = subprocess.run([*command, VECTORS / place, "--json"], capture_output=True, text=True, check=False)
        assert done.returncode == code
        assert json.loads(done.stdout)["holds"] is holds
        said = subprocess.run([*command, VECTORS / place], capture_output=True, text=True, check=False)
        assert said.returncode == code
        assert said.stdout.startswith("--   perturbation: NOT CHECKED")
        assert ("FAIL rows" in said.stdout) == (holds is False)
    nothing = subprocess.run([*command, VECTORS], capture_output=True, text=True, check=False)
    assert nothing.returncode == 2
    assert "no release" in nothing.stderr


def test_the_verifier_imports_nothing_of_deniable_and_no_third_package() -> None:
    program = (
        "import sys; import deniable_verify.command; from deniable_verify import verify; "
        f"verify({str(VECTORS / 'good' / 'line-ups')!r}); verify({str(VECTORS / 'good' / 'synthetic')!r}); "
        f"verify({str(VECTORS / 'good' / 'uniform-signed')!r}); "
        "print(*sorted({name.split('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    outside = set(done.stdout.split())
    assert {"deniable_verify", "numpy", "pyarrow"} <= outside
    assert not outside & {"deniable", "scipy", "duckdb", "jsonschema", "cryptography", "narwhals", "typer", "rich"}


@pytest.mark.slow
def test_they_are_what_the_script_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    runpy.run_path(str(REFERENCE / "make_vectors.py"))["main"](tmp_path / "vectors")
    os.environ.pop("SOURCE_DATE_EPOCH", None)
    made = {path.relative_to(tmp_path / "vectors") for path in (tmp_path / "vectors").rglob("*.json")}
    assert made == {path.relative_to(VECTORS) for path in VECTORS.rglob("*.json")}
    for path in made - {Path("expected.json")}:
        stored = json.loads((VECTORS / path).read_text("utf-8"))
        assert json.loads((tmp_path / "vectors" / path).read_text("utf-8")).get("parts") == stored.get("parts")
