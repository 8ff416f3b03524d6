"""Results that several researchers ask for at once."""

from __future__ import annotations

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from deniable.collection.server.app import Results
from deniable.core.errors import warn_caller


class Slow(Results):
    """A release that warns of each question after others have come and gone, in a fixed order."""

    def __init__(self) -> None:
        self.second_is_in, self.first_is_out = threading.Event(), threading.Event()

    def release(self) -> Any:
        return self

    def sql(self, sql: str) -> pa.Table:
        if sql == "second":
            self.second_is_in.set()
            assert self.first_is_out.wait(30)
        else:
            assert self.second_is_in.wait(30)
        warn_caller(f"much noise in the {sql}", UserWarning)
        return pa.table({"n": [1.0]})


def test_questions_at_once_are_told_their_own_warnings() -> None:
    """Python's list of warnings is one for all threads: a question that ended took the warnings of the others away."""
    results, before = Slow(), (warnings.showwarning, list(warnings.filters))
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.submit(results.ask, "first"), threads.submit(results.ask, "second")
        assert first.result(30)["warnings"] == ["much noise in the first"]
        results.first_is_out.set()
        assert second.result(30)["warnings"] == ["much noise in the second"]
    assert (warnings.showwarning, list(warnings.filters)) == before
