"""A collection server in a process of its own, and a client that shares no code with ours."""

from __future__ import annotations

import http.client
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TOKEN = "token-for-the-tests-0123456789"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """`deniable collect serve` in a process."""

    def __init__(self, survey: Path, store: str, home: Path, rate: int = 0) -> None:
        self.survey, self.store, self.port, self.rate = survey, store, free_port(), rate
        self.token_file = home / "token"
        self.token_file.write_text(TOKEN)
        self.log = home / "server.log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        arguments = ["collect", "serve", str(self.survey), "--store", self.store, "--port", str(self.port)]
        arguments += ["--token-file", str(self.token_file), "--rate", str(self.rate)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([sys.executable, "-m", "deniable", *arguments], stdout=log, stderr=log)
        until = (
            time.monotonic() + 180
        )  # on a busy machine imports take a while; a server that has ended is seen at once
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise AssertionError(self.log.read_text())
            try:
                if self.get("/healthz")[0] == 200:
                    return
            except OSError:
                time.sleep(0.05)
        raise AssertionError("the server does not answer")

    def stop(self, how: int = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(how)
        return self.process.wait(timeout=60)

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, dict[str, str]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
            sent = {"Content-Type": "application/json"} if raw is not None else {}
            connection.request(method, path, raw, {**sent, **{k.replace("_", "-"): v for k, v in headers.items()}})
            answer = connection.getresponse()
            content = answer.read()
            told = (
                json.loads(content) if answer.getheader("content-type", "").startswith("application/json") else content
            )
            return answer.status, told, {key.lower(): value for key, value in answer.getheaders()}
        finally:
            connection.close()

    def get(self, path: str, token: str | None = None) -> tuple[int, Any]:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        status, told, _ = self.request("GET", path, **headers)
        return status, told

    def post(self, path: str, body: Any, **headers: str) -> tuple[int, Any]:
        status, told, _ = self.request("POST", path, body, **headers)
        return status, told


@contextmanager
def serving(survey: Path, store: str, home: Path, rate: int = 0) -> Iterator[Server]:
    server = Server(survey, store, home, rate)
    server.start()
    try:
        yield server
    finally:
        if server.process is not None and server.process.poll() is None:
            server.process.kill()
            server.process.wait(timeout=60)


def new_id() -> str:
    return secrets.token_hex(16)


@contextmanager
def postgres() -> Iterator[str]:
    """A real PostgreSQL of its own in a temporary folder; it is stopped at the end."""
    home = Path(tempfile.mkdtemp(prefix="deniable-pg-"))
    data, port = home / "data", free_port()
    prefix: list[str] = []
    if os.geteuid() == 0:  # it refuses to run as root
        shutil.chown(home, "nobody", "nogroup")
        prefix = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "env", f"HOME={home}"]
    make = [*prefix, "initdb", "-D", str(data), "-U", "tester", "--auth=trust", "-E", "UTF8", "--no-sync"]
    subprocess.run(make, check=True, cwd=home, stdout=subprocess.DEVNULL)
    options = ["-p", str(port), "-k", str(home), "-c", "listen_addresses=127.0.0.1"]
    with (home / "log").open("wb") as log:
        process = subprocess.Popen([*prefix, "postgres", "-D", str(data), *options], cwd=home, stdout=log, stderr=log)
    try:
        until = (
            time.monotonic() + 180
        )  # on a busy machine imports take a while; a server that has ended is seen at once
        while time.monotonic() < until:
            ready = ["pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port), "-U", "tester", "-d", "postgres"]
            if subprocess.run(ready, check=False).returncode == 0:
                break
            assert process.poll() is None, (home / "log").read_text()
            time.sleep(0.05)
        yield f"postgresql://tester@127.0.0.1:{port}/postgres"
    finally:
        process.send_signal(signal.SIGQUIT)
        process.wait(timeout=60)
        shutil.rmtree(home, ignore_errors=True)
