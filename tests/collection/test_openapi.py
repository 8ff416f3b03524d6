"""The OpenAPI document against the server: thousands of made-up requests, valid and not, never an internal error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.collection.serving import TOKEN, serving
from tests.collection.surveys import EVERY_KIND

pytest.importorskip("fastapi", reason="needs the extra 'collect'")
PLACE = os.environ.get("DENIABLE_SCHEMATHESIS", "")
needs_schemathesis = pytest.mark.skipif(
    not Path(PLACE, "schemathesis").is_dir(), reason="needs schemathesis: set DENIABLE_SCHEMATHESIS to its folder"
)
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


@pytest.mark.long
@needs_schemathesis
def test_no_request_makes_the_server_fail(tmp_path: Path) -> None:
    survey = tmp_path / "survey.toml"
    survey.write_text(EVERY_KIND, encoding="utf-8")
    with serving(survey, str(tmp_path / "responses.db"), tmp_path) as server:
        for header in ([], ["--header", f"Authorization: Bearer {TOKEN}"]):
            command = [sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()", "run"]
            command += [f"{server.url}/openapi.json", "--max-examples", "150", "--seed", "1", "--checks", CHECKS]
            command += ["--phases", "examples,coverage,fuzzing", "--request-timeout", "60", "--workers", "2", *header]
            environment = {
                **os.environ,
                "PYTHONPATH": PLACE,
                "HYPOTHESIS_STORAGE_DIRECTORY": str(tmp_path / "hypothesis"),
            }
            done = subprocess.run(
                command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900, check=False
            )
            assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
            assert "POST /responses" in done.stdout or "generated" in done.stdout
        assert "internal error" not in server.log.read_text()
