"""A run takes no more memory than it may: more is refused, with the size that was asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from deniable.core import memory
from deniable.core.errors import OptionError


@pytest.mark.parametrize(("text", "size"), [("4GB", 4 * 2**30), ("1.5 G", 1.5 * 2**30), ("800MiB", 800 * 2**20)])
def test_sizes_are_read(text: str, size: float) -> None:
    assert memory.size_of(text) == size


@pytest.mark.parametrize("text", ["", "x", "-1GB", "4 elephants", "nan", "9" * 400 + "GB", "1MB", "0"])
def test_what_is_no_size_or_too_little_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match="memory"):
        memory.size_of(text)


def test_the_default_is_half_of_the_machine() -> None:
    assert memory.default_ceiling() == max(memory.LEAST, memory.of_the_machine() // 2)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps the limit")
def test_more_than_the_ceiling_is_refused_with_its_size() -> None:
    program = """
import sys
from deniable.cli import guard
from deniable.core import memory
import numpy as np
memory.keep_below(memory.size_of("768MB"))
small = np.ones(2**24)  # 128 MB do fit
guard.run(lambda: np.ones(2**27), [])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "1.00 GiB" in done.stderr
    assert "--memory SIZE" in done.stderr


def test_every_command_takes_a_ceiling() -> None:
    import typer

    from deniable.cli.main import app

    for name, command in typer.main.get_command(app).commands.items():
        inner = getattr(command, "commands", {name: command})
        assert all(
            "--memory" in option.opts for one in inner.values() for option in one.params if option.name == "memory"
        )
        assert all(any(option.name == "memory" for option in one.params) for one in inner.values()), name


def test_what_takes_a_whole_table_says_what_it_would_take(tmp_path, monkeypatch) -> None:
    from deniable.cli import ceiling

    (tmp_path / "people.csv").write_text("age,ill\n" + "30,yes\n41,no\n" * 50)

    def audit(original: str) -> None:
        raise MemoryError("malloc of size 96000000 failed")

    def verify(release: str) -> None:
        raise MemoryError("malloc of size 96000000 failed")

    def evaluate(files: str) -> None:
        raise MemoryError("malloc of size 96000000 failed")

    with pytest.raises(MemoryError, match="evaluate asks about every value"):  # these rows take next to nothing
        ceiling.with_ceiling(evaluate)(files=str(tmp_path / "people.csv"))
    monkeypatch.setitem(ceiling.HELD, "audit", (2**30, "original"))
    with pytest.raises(MemoryError, match=r"audit of 100 rows and 2 columns takes about 200\.3 GB"):
        ceiling.with_ceiling(audit)(original=str(tmp_path / "people.csv"))
    with pytest.raises(MemoryError, match="malloc"):
        ceiling.with_ceiling(verify)(release="r")
