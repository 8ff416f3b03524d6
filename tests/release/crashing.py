"""A program that runs commands in forks of itself, and ends each at a stated file operation: before it, or after it.

It reads a line of JSON for each run (``words``, ``home``, ``point``, ``signal``) and prints one when the run has ended:
the exit code and the operations that it came to. Operations are those that write below ``home``: each is two points,
2 i before it and 2 i + 1 after it.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq

import deniable
import deniable.cli.main
import deniable.publishing.publish
from deniable.cli.entry import main
from deniable.release import commit

PATHS = ("mkdir", "rename", "replace", "unlink", "remove", "rmdir", "link", "chmod", "fsync")
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Operations:
    """Counts operations, and ends this process at a point among them."""

    def __init__(self, home: str, point: int | None, number: int) -> None:
        self.home, self.point, self.number = home, point, number
        self.names: list[str] = []
        self.is_inside = False

    def watched(self, name: str, function: Callable[..., Any], writes: Callable[..., bool]) -> Callable[..., Any]:
        def operation(*args: Any, **options: Any) -> Any:
            if self.is_inside or not writes(*args, **options):
                return function(*args, **options)
            self.is_inside = True  # one operation may be made of others
            place = len(self.names)
            self.names.append(name)
            try:
                self._at(2 * place)
                try:
                    return function(*args, **options)
                finally:
                    self._at(2 * place + 1)
            finally:
                self.is_inside = False

        return operation

    def _at(self, point: int) -> None:
        if point == self.point:
            self.is_inside = False
            os.kill(os.getpid(), self.number)

    def is_below(self, path: Any, *_: Any, **options: Any) -> bool:
        with contextlib.suppress(TypeError):
            return "dir_fd" in options or os.path.abspath(os.fspath(path)).startswith(self.home)
        return True  # an open file

    def watch(self) -> None:
        for name in PATHS:
            setattr(os, name, self.watched(name, getattr(os, name), self.is_below))
        opened = lambda path, flags, *_, **more: bool(flags & WRITES) and self.is_below(path, **more)  # noqa: E731
        os.open = self.watched("open", os.open, opened)
        writing = lambda path, mode="r", *_, **__: mode[0] in "wax" and self.is_below(path)  # noqa: E731
        builtins.open = io.open = self.watched("open", open, writing)  # type: ignore[assignment]
        commit._renamed = self.watched("renameat2", commit._renamed, self.is_below)
        for name in ("__init__", "close"):
            method = self.watched(f"parquet {name}", getattr(pq.ParquetWriter, name), lambda *_, **__: True)
            setattr(pq.ParquetWriter, name, lambda *args, _method=method, **options: _method(*args, **options))


def run(order: dict[str, Any]) -> dict[str, Any]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.environ.update(order.get("environment", {}))
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1):
            os.dup2(nowhere, stream)
        os.dup2(writing, 2)
        operations = Operations(order["home"], order["point"], order["signal"])
        operations.watch()
        sys.argv = ["deniable", *order["words"]]
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(stream, "r" if not stream else "w") for stream in (0, 1, 2))
        code = 70
        try:
            main()
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 0
        finally:
            sys.stderr.flush()
            os.write(writing, b"\0" + json.dumps([code, operations.names]).encode())
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        talk, _, said = stream.read().partition(b"\0")
    _, status = os.waitpid(child, 0)
    code, names = json.loads(said) if said else (os.waitstatus_to_exitcode(status), [])
    return {"code": code, "operations": names, "talk": talk.decode(errors="replace")}


if __name__ == "__main__":
    assert deniable.__all__
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)
