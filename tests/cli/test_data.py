"""`deniable data adult`, against a server on this machine that answers like OpenML."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow.parquet as pq
import pytest

ARFF = """% A comment.
@RELATION adult

@ATTRIBUTE age numeric
@ATTRIBUTE 'marital-status' {Married, 'Never married'}
@ATTRIBUTE weight real
@ATTRIBUTE class {<=50K, >50K}
@DATA
39,Married,1.5,<=50K
50,'Never married',2,>50K
% another comment
?,?,3,<=50K
"""


class OpenML:
    """What the server answers; a test may spoil it."""

    def __init__(self) -> None:
        self.arff = ARFF.encode()
        self.md5 = hashlib.md5(self.arff, usedforsecurity=False).hexdigest()
        self.status = 200
        self.description: bytes | None = None
        self.requests: list[str] = []
        self.base = ""

    def answer(self, path: str) -> bytes:
        self.requests.append(path)
        if path != "/api/v1/json/data/1590":
            return self.arff
        url = f"{self.base}/data/v1/download/adult.arff"
        about = {"data_set_description": {"id": "1590", "url": url, "md5_checksum": self.md5}}
        return self.description or json.dumps(about).encode()


@pytest.fixture
def server() -> Iterator[OpenML]:
    openml = OpenML()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = openml.answer(self.path)
            self.send_response(openml.status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        openml.base = f"http://127.0.0.1:{listening.server_port}"
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield openml
        listening.shutdown()


def test_adult_is_fetched_once_into_the_cache(run, server: OpenML, tmp_path: Path) -> None:
    for _ in range(2):
        done = run("data", "adult", DENIABLE_OPENML=server.base, XDG_CACHE_HOME=str(tmp_path))
        assert done.returncode == 0, done.stderr
    path = tmp_path / "deniable" / "adult.parquet"
    assert done.stdout.strip() == str(path)
    assert len(server.requests) == 2
    assert [p.name for p in path.parent.iterdir()] == ["adult.parquet"]
    assert pq.read_table(path).to_pylist() == [
        {"age": 39, "marital_status": "Married", "weight": 1.5, "class": "<=50K"},
        {"age": 50, "marital_status": "Never married", "weight": 2.0, "class": ">50K"},
        {"age": None, "marital_status": None, "weight": 3.0, "class": "<=50K"},
    ]


def test_json_names_the_file(run, server: OpenML, tmp_path: Path) -> None:
    done = run("data", "adult", "--cache", tmp_path / "c", "--json", DENIABLE_OPENML=server.base)
    assert json.loads(done.stdout) == {
        "file": str(tmp_path / "c" / "adult.parquet"),
        "rows": 3,
        "columns": ["age", "marital_status", "weight", "class"],
    }


def test_what_is_not_adult_is_refused_and_nothing_kept(run, server: OpenML, tmp_path: Path) -> None:
    def spoilt(message: str) -> None:
        done = run("data", "adult", "--cache", tmp_path / "c", "--quiet", DENIABLE_OPENML=server.base)
        assert done.returncode == 2
        assert message in done.stderr
        assert done.stderr.count("Error: ") == 1
        assert not (tmp_path / "c").exists() or not list((tmp_path / "c").iterdir())

    server.arff += b"1,Married,2,>50K\n"
    spoilt("checksums differ")
    server.arff = b"<html>maintenance</html>"
    server.md5 = ""
    spoilt("not a table in ARFF")
    server.description = b"<html>hello</html>"
    spoilt("does not answer like OpenML")
    server.description = b'{"data_set_description": {"url": "file:///etc/passwd"}}'
    spoilt("not a web address")
    server.status = 503
    spoilt("answers 503")


def test_without_internet_the_message_says_so(run, tmp_path: Path) -> None:
    done = run("data", "adult", "--cache", tmp_path, "--json", DENIABLE_OPENML="http://127.0.0.1:9")
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert error["type"] == "DownloadError"
    assert "cannot be reached" in error["message"]
    assert "connect to the internet" in error["message"]
    assert list(tmp_path.iterdir()) == []


def test_an_address_that_is_none_is_named(run, tmp_path: Path) -> None:
    done = run("data", "adult", "--cache", tmp_path, DENIABLE_OPENML="openml")
    assert done.returncode == 2
    assert "DENIABLE_OPENML = 'openml'" in done.stderr
