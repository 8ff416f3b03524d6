"""Folders of releases that are being written: whose they are, who holds them, and what killed runs left behind."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from deniable.core.errors import OutputError

LOCK, KEPT = "lock", "kept"
PARTIAL = ".partial-"
RESUMED = f"{PARTIAL}resumed"
YOUNG = 10  # seconds: a run that goes on makes its lock before it holds it, and is left alone for so long
GRACE = 3600  # seconds: a folder without a lock is left alone for so long


def fresh_folder(out: Path) -> Path:
    """Where a run writes that no other can go on with: nobody else knows its name."""
    return out.parent / f".{out.name}{PARTIAL}{secrets.token_hex(8)}"


def kept_folder(out: Path) -> Path:
    """Where a run that can be gone on with is written."""
    return out.parent / f".{out.name}{RESUMED}"


def is_kept(out: Path) -> bool:
    """Whether a run that was killed left parts for ``out``."""
    return (kept_folder(Path(os.path.abspath(out))) / KEPT).exists()


def make_own(partial: Path, *, exist_ok: bool) -> None:
    """Make a folder for its owner alone. Where one ``exist_ok``, its name can be guessed: someone else may have put a
    folder of theirs there, to read what is written, or a link to another one, which would be emptied."""
    partial.mkdir(mode=0o700, exist_ok=exist_ok)
    there = partial.lstat()
    if not stat.S_ISDIR(there.st_mode) or there.st_uid != os.geteuid():
        raise OutputError(
            f"{str(partial)!r} stands where the parts of a killed run are kept, and it is a link, or someone else's "
            "folder: nothing was written. Fix: remove it, or choose another output."
        )
    partial.chmod(0o700)


def empty(partial: Path) -> None:
    """Leave the lock, and what is kept for a run that goes on."""
    for entry in partial.iterdir():
        if entry.name not in (LOCK, KEPT):
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


@contextlib.contextmanager
def locked(partial: Path, *, resumes: bool) -> Iterator[None]:
    """Hold a lock in the folder for as long as this run lives: what is not locked was left behind.

    A new folder gets its lock when it is held, so that nobody sees one that is not. A folder that a run ``resumes`` may
    have the lock of another run that lives.
    """
    own = partial / LOCK if resumes else partial / f"{LOCK}.new"
    with open(own, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutputError(
                f"Another run is writing {str(partial)!r} at this moment. Fix: wait until it is done."
            ) from None
        own.rename(partial / LOCK)
        yield


def _is_abandoned(partial: Path) -> bool:
    age = time.time() - partial.stat().st_mtime
    try:
        with open(partial / LOCK) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:  # not locked yet, or no longer: it is about to be moved into place
        return age > GRACE
    except OSError:
        return False
    begun = any(entry.name != LOCK for entry in partial.iterdir())
    return begun or age > YOUNG or not partial.name.endswith(RESUMED)


def clear_away(out: Path, but: Path | None = None) -> None:
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
            if partial != but and _is_abandoned(partial):
                shutil.rmtree(partial, ignore_errors=True)
