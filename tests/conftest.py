"""What tests of several rooms share."""

from __future__ import annotations

import hashlib
import itertools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html.parser import HTMLParser

import pytest
from hypothesis import HealthCheck, settings

from deniable.tables.keys import Secret

# The same examples on every run, and however long they take on a busy machine, so that a red build is about the change;
# `make fuzz` looks for new ones.
SLOW = [HealthCheck.too_slow]  # how busy the machine is, again
settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=SLOW)
settings.register_profile("new", derandomize=False, deadline=None, suppress_health_check=SLOW, print_blob=True)
os.environ["DENIABLE_MEMORY"] = ""  # the user's own is not a test's to write
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "same")
settings.load_profile(PROFILE)

collect_ignore = ["spark/spark_cluster.py"]  # a program that a test starts, where there is Spark

ALLOWED = {"p", "b", "table", "thead", "tbody", "tr", "th", "td"}
ALIGNED = {"text-align: left", "text-align: right"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The file that takes longest goes first: at the end one worker would have it alone."""
    items.sort(key=lambda item: item.path.name != "test_crashes.py")


@contextmanager
def keys_of(name: str) -> Iterator[None]:
    """Releases without a key of their own draw theirs from a name: red on one run is red on the next."""
    generate, number = Secret.generate, itertools.count()

    def drawn() -> Secret:
        return Secret(hashlib.sha256(f"{name} {next(number)}".encode()).digest(), "operating system")

    Secret.generate = drawn  # type: ignore[method-assign]
    try:
        yield
    finally:
        Secret.generate = generate  # type: ignore[method-assign]


if PROFILE == "same":

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(item: pytest.Item) -> Iterator[object]:
        with keys_of(item.nodeid):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest) -> Iterator[object]:
        """What several tests share does not hang on which of them came first."""
        with keys_of(f"{fixturedef.baseid} {fixturedef.argname} {request.param_index}"):
            return (yield)


if sys.platform == "linux":
    import resource

    MEMORY = resource.getrlimit(resource.RLIMIT_DATA)

    def pytest_runtest_teardown() -> None:
        """A command that ran inside this process has set a limit; the next test is not held to it."""
        resource.setrlimit(resource.RLIMIT_DATA, MEMORY)


class Notebook(HTMLParser):
    """What a notebook shows of a value: its paragraphs, and the rows of its tables. Anything but plain HTML fails."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.paragraphs: list[str] = []
        self.rows: list[list[str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED, tag
        assert all(name == "style" and value in ALIGNED for name, value in attrs), attrs
        self.open.append(tag)
        if tag == "p":
            self.paragraphs.append("")
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "p" in self.open:
            self.paragraphs[-1] += data
        else:
            self.rows[-1][-1] += data

    @property
    def text(self) -> str:
        """Everything, a line for each paragraph and row."""
        return "\n".join([*self.paragraphs, *(" | ".join(row) for row in self.rows)])


@pytest.fixture
def notebook() -> Callable[[object], Notebook]:
    """A value as a notebook shows it."""

    def show(value: object) -> Notebook:
        page = Notebook()
        page.feed(value._repr_html_())  # type: ignore[attr-defined]
        page.close()
        assert not page.open
        return page

    return show
