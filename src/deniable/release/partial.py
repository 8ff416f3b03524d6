"""Folders of releases that are being written: whose they are, who holds them, and what killed runs left behind."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

LOCK = "lock"
PARTIAL = ".partial-"
GRACE = 3600  # seconds: a folder without a lock is left alone for so long


def fresh_folder(out: Path) -> Path:
    """Where a run writes: nobody else knows its name."""
    return out.parent / f".{out.name}{PARTIAL}{secrets.token_hex(8)}"


@contextlib.contextmanager
def locked(partial: Path) -> Iterator[None]:
    """Hold a lock in the folder for as long as this run lives: what is not locked was left behind.

    The folder gets its lock when it is held, so that nobody sees one that is not.
    """
    own = partial / f"{LOCK}.new"
    with open(own, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        own.rename(partial / LOCK)
        yield


def _is_abandoned(partial: Path) -> bool:
    try:
        with open(partial / LOCK) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:  # not locked yet, or no longer: it is about to be moved into place
        return time.time() - partial.stat().st_mtime > GRACE
    except OSError:
        return False
    return True


def clear_away(out: Path) -> None:
    """What killed runs left behind: partial folders that nobody holds, and a release that was about to be replaced."""
    if not out.parent.is_dir():
        return
    for old in out.parent.glob(f".{glob.escape(out.name)}.replaced-*"):
        if os.path.lexists(out):
            shutil.rmtree(old, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):  # another run, which lives, has put it or its own release there
                old.rename(out)
    for partial in out.parent.glob(f".{glob.escape(out.name)}{PARTIAL}*"):
        with contextlib.suppress(OSError):
            if _is_abandoned(partial):
                shutil.rmtree(partial, ignore_errors=True)
