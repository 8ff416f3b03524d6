"""The memory of the machine: what does not fit is refused in words, and nothing is killed for it.

An allocation above the limit fails inside this process, as a ``MemoryError`` that says how much was asked for. A lower
limit is the shell's to set (``ulimit -d``), and is kept.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

_CGROUP = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def in_words(size: float) -> str:
    """A size as people read it.

    >>> in_words(3 * 2**40), in_words(3 * 2**30), in_words(5_000_000)
    ('3.0 TB', '3.0 GB', '5 MB')
    """
    if size >= 2**40:
        return f"{size / 2**40:.1f} TB"
    return f"{size / 2**30:.1f} GB" if size >= 2**30 else f"{size / 2**20:.0f} MB"


def of_the_machine() -> int:
    """The memory of this machine, or of the container that this runs in."""
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for file in _CGROUP:
        try:
            sizes.append(int(file.read_text()))
        except (OSError, ValueError):  # no container, or one without a limit
            continue
    return min(sizes)


def limit() -> int:
    """What this process may take: all memory of the machine, or less where its shell says so."""
    if sys.platform != "linux":  # elsewhere the limit exists, and is not kept
        return of_the_machine()
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
    return of_the_machine() if soft == resource.RLIM_INFINITY else min(soft, of_the_machine())


def keep_to_the_machine() -> None:
    """From now on this process, and each one that it starts, fails to allocate more than the machine has."""
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (limit(), resource.getrlimit(resource.RLIMIT_DATA)[1]))
