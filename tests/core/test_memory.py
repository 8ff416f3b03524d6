"""A run takes no more memory than it may: more is refused, with the size that was asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

resource = pytest.importorskip("resource")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps the limit")


def test_more_than_the_limit_of_the_shell_is_refused_with_its_size() -> None:
    program = """
import resource
from deniable.cli import console
from deniable.core import memory
import numpy as np
resource.setrlimit(resource.RLIMIT_DATA, (768 * 2**20, resource.RLIM_INFINITY))
memory.keep_to_the_machine()
small = np.ones(2**24)  # 128 MB do fit
console.run(lambda: np.ones(2**27), [])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "1.00 GiB" in done.stderr
    assert "this one has" in done.stderr


def test_more_than_the_machine_has_is_refused_where_nobody_set_a_limit() -> None:
    from deniable.core import memory

    memory.keep_to_the_machine()
    assert resource.getrlimit(resource.RLIMIT_DATA)[0] == memory.limit() <= memory.of_the_machine()
