"""How much memory a run may take: half of the machine's, unless its owner says otherwise.

The operating system keeps the ceiling: an allocation above it fails inside this process, as a ``MemoryError`` that says
how much was asked for, instead of taking the machine with it.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from deniable.core.errors import OptionError

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
LEAST = 512 * 2**20  # what Python, NumPy and Arrow take before the first row
_CGROUP = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def size_of(text: str) -> int:
    """A size in bytes, from words such as ``4GB``, ``1.5G`` or ``800 MiB``.

    >>> size_of("2GB") == 2 * 2**30, size_of("512m") == 512 * 2**20
    (True, True)
    """
    match = re.fullmatch(r"\s*([0-9]{1,15}(?:\.[0-9]{1,3})?)\s*([KMGT]?)(?:i?B)?\s*", text, re.IGNORECASE)
    if match is None:
        raise OptionError(f"memory = {text[:40]!r} is no size. Fix: --memory 4GB, or 800MB.")
    size = int(float(match[1]) * _UNITS[match[2].upper()])
    if size < LEAST:
        raise OptionError(
            f"memory = {text!r} is too little: deniable takes {LEAST >> 20} MB before it reads a row. "
            f"Fix: --memory {LEAST >> 20}MB or more."
        )
    return size


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


def default_ceiling() -> int:
    """Half of the machine's memory."""
    return max(LEAST, of_the_machine() // 2)


def ceiling() -> int:
    """What this process may take: as ``keep_below`` has it, or all memory of the machine where nothing was said."""
    if sys.platform != "linux":
        return of_the_machine()
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
    return of_the_machine() if soft == resource.RLIM_INFINITY else min(soft, of_the_machine())


def keep_below(ceiling: int) -> None:
    """From now on this process, and each one that it starts, fails to allocate more than ``ceiling`` bytes."""
    if sys.platform != "linux":  # elsewhere the limit exists, and is not kept
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        ceiling = min(ceiling, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (ceiling, hard))
