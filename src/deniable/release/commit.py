"""What is written together is in place together, or was never there: one protocol for every file that is written.

A run holds a lock for each of its targets (`.NAME.lock`, which dies with it). What it writes is prepared beside the
target in a folder that its owner alone can open (`.NAME.TOKEN`, mode 0700), and brought to the disk. Then the targets
are switched one by one, and the last switch, that of the release, decides: before it a record of what was intended
stands in every one of those folders, and whoever comes next undoes the others if the last switch was not done. A folder
is exchanged with the one that it replaces in one step (renameat2), so there is a release at every moment; where the
system cannot do that, the next run puts the old one back.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import functools
import json
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from deniable.core.errors import DeniableError, OutputError
from deniable.core.interruption import held_off, put_in_place


def cannot_write(out: Path, error: OSError) -> DeniableError:
    """An operating system's refusal to write, in words."""
    if isinstance(error, DeniableError):
        return error
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return OutputError(f"The disk is full: {str(out)!r} was not written. Fix: free space, or use another disk.")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return OutputError(f"No permission to write {str(out)!r}. Fix: choose a folder that you may write to.")
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return OutputError(f"{str(out)!r} cannot be a folder: a part of that path is a file. Fix: choose another path.")
    if error.errno == errno.ENOENT:
        home = str(out.parent)
        return OutputError(
            f"{str(out)!r} cannot be written: there is no folder {home!r}. Fix: make it, or name another."
        )
    return OutputError(f"{str(out)!r} cannot be written: {error.strerror or error}. Fix: choose another path.")


# -- Renaming as Linux can: two names exchanged in one step, or a name that is taken only if nobody has it -------------


NO_REPLACE, EXCHANGE = 1, 2
AT_FDCWD = -100
NOT_HERE = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTTY)  # this system, or this file system, cannot


@functools.cache
def _renameat2() -> Callable[..., int] | None:
    function: Callable[..., int] | None = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    return function


def _renamed(old: Path, new: Path, how: int) -> bool:
    """Whether it was done, and not impossible here."""
    rename = _renameat2()
    if rename is None:
        return False
    if rename(AT_FDCWD, os.fsencode(old), AT_FDCWD, os.fsencode(new), how) == 0:
        return True
    number = ctypes.get_errno()
    if number in NOT_HERE:
        return False
    raise OSError(number, os.strerror(number), str(new))


def synced(path: Path) -> None:
    """Bring a file or a folder, and all that is in it, to the disk."""
    if path.is_dir() and not path.is_symlink():
        for entry in path.iterdir():
            synced(entry)
        with contextlib.suppress(OSError):  # a file system whose folders cannot be synced writes them at once
            _synced(path)
    else:
        _synced(path)


def _synced(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# -- Who writes a target at this moment, and what those who died have left beside it -----------------------------------


PATIENCE = 60.0  # seconds to wait for a run that writes a file which many share
LEFT = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{16}")
NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EBADF)  # a file system without any
NEW, OLD, INTENT = "new", "old", "intent"


@dataclass(frozen=True)
class Lock:
    """A target that this run alone writes; None stands for one where nothing can be locked."""

    path: Path
    descriptor: int

    @classmethod
    def on(cls, target: Path, patience: float) -> Lock | None:
        """The lock on a target, waited for; refused where another run keeps it for longer."""
        path, until = target.parent / f".{target.name}.lock", time.monotonic() + patience
        descriptor = -1
        try:
            while True:
                try:
                    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                except OSError:  # nothing can be written there, so that nothing can be forgotten
                    return None
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                        return cls(path, descriptor)
                except FileNotFoundError:
                    pass  # its holder has just removed it: a lock that nobody else would find is none
                except OSError as problem:
                    if problem.errno in NO_LOCKS:
                        os.close(descriptor)
                        return None
                    if time.monotonic() >= until:
                        os.close(descriptor)
                        raise OutputError(
                            f"Another run is writing {str(target)!r} at this moment. Fix: wait until it is done, and "
                            "then run this again."
                        ) from None
                    time.sleep(0.02)
                os.close(descriptor)
        except KeyboardInterrupt:  # between opening and locking: nobody else would remove what was made
            with contextlib.suppress(OSError):
                os.close(descriptor)
            _unlocked(path)
            raise

    def release(self) -> None:
        """Let go."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)
        os.close(self.descriptor)


def _unlocked(path: Path) -> None:
    """Remove a lock that nobody holds."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
        finally:
            os.close(descriptor)


@dataclass(eq=False)
class Staged:
    """A target, and the folder beside it in which its new content is prepared.

    Attributes:
        check: refuses, at the last moment, to replace what must not be replaced.
        inode: of the new content, by which it is known wherever it stands.
    """

    target: Path
    place: Path
    check: Callable[[], None] = lambda: None
    inode: int = 0

    @property
    def new(self) -> Path:
        return self.place / NEW

    @property
    def old(self) -> Path:
        return self.place / OLD

    def switch(self) -> None:
        """Put the new content where the target is; what was there stays in the folder beside it."""
        self.check()
        if not os.path.lexists(self.target):
            if not _renamed(self.new, self.target, NO_REPLACE):
                self.new.rename(self.target)
        elif not self.new.is_dir():
            self.new.replace(self.target)
        elif not _renamed(self.new, self.target, EXCHANGE):
            self.target.rename(self.old)
            self.new.rename(self.target)

    def undo(self) -> None:
        """Put back what the target was, where it was switched or about to be."""
        if _inode(self.target) == self.inode and self.inode:
            os.replace(self.old, self.target) if os.path.lexists(self.old) else self.target.rename(self.new)
        elif not os.path.lexists(self.target) and os.path.lexists(self.old):
            self.old.rename(self.target)


def _inode(path: Path) -> int:
    try:
        return path.lstat().st_ino
    except OSError:
        return 0


def settle(folder: Path) -> None:
    """Settle what dead runs have left in a folder, before something that stands there is found to be in the way."""
    _sweep(folder, None)


def _sweep(folder: Path, target: Path | None) -> None:
    """Settle what dead runs have left in a folder: of the target that is locked, and of all that nobody writes."""
    with contextlib.suppress(PermissionError):  # a folder that may be written to, and not listed
        for left in list(folder.iterdir()):
            known = LEFT.fullmatch(left.name)
            with contextlib.suppress(OSError, OutputError):
                if known is None or not _is_ours(left):
                    continue
                named = folder / known["name"]
                lock = None if named == target else Lock.on(named, 0)
                if named == target or lock is not None:
                    _settle(left)
                if lock is not None:
                    lock.release()


def _is_ours(left: Path) -> bool:
    """Nobody else can have made it: what a stranger leaves in a shared folder is no record of ours."""
    about = left.lstat()
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid() and not about.st_mode & 0o077


def _settle(left: Path) -> None:
    """Undo what a dead run has switched, unless it came to the last one, and remove what it left."""
    steps = _intended(left)
    if not steps:
        name = LEFT.fullmatch(left.name)
        assert name is not None
        Staged(left.parent / name["name"], left).undo()  # a release that was about to be replaced
        shutil.rmtree(left, ignore_errors=True)
        return
    last = steps[-1]
    with contextlib.suppress(FileNotFoundError), open(last.place / INTENT, "rb") as record:
        fcntl.flock(record, fcntl.LOCK_EX)  # another run may be settling it from another of its folders
        if _inode(last.new) == last.inode:  # the last switch was not done
            for step in steps:
                step.undo()
    for step in steps:  # the last one in the end: as long as it is there, what was intended is known
        shutil.rmtree(step.place, ignore_errors=True)
    shutil.rmtree(left, ignore_errors=True)


def _intended(left: Path) -> list[Staged]:
    """What a dead run was about to switch; nothing where it was not yet about to."""
    try:
        steps = []
        for place, inode in json.loads((left / INTENT).read_text(encoding="utf-8")):
            known = LEFT.fullmatch(Path(place).name)
            if known is None or (os.path.lexists(place) and not _is_ours(Path(place))):
                return []
            steps.append(Staged(Path(place).parent / known["name"], Path(place), inode=int(inode)))
        return steps
    except (OSError, ValueError, TypeError):
        return []  # cut off: nothing is switched before every record is on the disk


# -- A commit: what it stages is in place together when its block ends well, and nowhere when it does not --------------


@dataclass
class Commit:
    """Files and folders that are written together; the one staged as ``last`` decides.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     with Commit() as commit:
    ...         commit.write(Path(home, "key"), "secret", private=True)
    ...         folder = commit.folder(Path(home, "release"))
    ...         _ = Path(folder, "rows").write_text("..")
    ...     sorted(path.name for path in Path(home).iterdir())
    ['key', 'release']
    """

    _staged: list[Staged] = field(default_factory=list)
    _last: Staged | None = None
    _locks: dict[Path, Lock | None] = field(default_factory=dict)
    _made: list[Path] = field(default_factory=list)

    def __enter__(self) -> Commit:
        return self  # nothing is on the disk yet, so nothing is left where a signal comes between this and the block

    def hold(self, target: Path, patience: float = 0.0) -> Path:
        """Let nobody else write this target until the block ends; what a dead run left of it is settled at once."""
        target = target.resolve()  # a link stays a link
        if target not in self._locks and target.parent.is_dir():
            self._locks[target] = None
            self._locks[target] = lock = Lock.on(target, patience)
            _sweep(target.parent, None if lock is None else target)
        return target

    def folder(self, out: Path, check: Callable[[], None] = lambda: None) -> Path:
        """A folder to fill, which becomes ``out`` in the last step; ``check`` refuses what must not be replaced."""
        try:
            missing = [parent for parent in (out.parent, *out.parent.parents) if not parent.exists()]
            out.parent.mkdir(parents=True, exist_ok=True)
            self._made += [parent.parent for parent in missing]
            self._last = self._stage(out, 0.0, check)
            self._last.new.mkdir()
        except OSError as problem:
            raise cannot_write(out, problem) from None
        return self._last.new

    def write(
        self,
        path: Path,
        content: str | bytes,
        *,
        private: bool = False,
        patience: float = PATIENCE,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Stage a file; a ``private`` one is readable by its owner alone."""
        try:
            staged = self._stage(path, patience, check)
            mode = 0o600 if private else 0o666
            with os.fdopen(os.open(staged.new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                file.write(content.encode() if isinstance(content, str) else content)
        except OSError as problem:
            raise cannot_write(path, problem) from None

    def _stage(self, target: Path, patience: float, check: Callable[[], None]) -> Staged:
        target = self.hold(target, patience)
        staged = Staged(target, target.parent / f".{target.name}.{secrets.token_hex(8)}", check)
        self._staged.append(staged)  # before it is made: what a signal cuts off is cleared away as well
        staged.place.mkdir(mode=0o700)
        return staged

    def __exit__(self, _: type[BaseException] | None, problem: BaseException | None, __: TracebackType | None) -> None:
        if not self._locks:
            return
        steps, ready = sorted(self._staged, key=lambda one: one is self._last), False
        try:
            try:
                if steps and problem is None:
                    self._prepare(steps)
                    ready = True
                elif steps and isinstance(problem, OSError):
                    raise problem
            finally:
                with held_off():
                    try:
                        if ready:
                            self._switch(steps)
                    finally:
                        self._clear(steps)
        except OSError as error:
            raise cannot_write(steps[-1].target, error) from None

    def _prepare(self, steps: list[Staged]) -> None:
        """Everything is on the disk, with the old files at hand and what is intended recorded, before a switch."""
        for step in steps:
            step.inode = _inode(step.new)
            if len(steps) > 1 and step.target.is_file() and not step.new.is_dir():
                shutil.copy2(step.target, step.old)
        if len(steps) > 1:
            record = json.dumps([[str(step.place), step.inode] for step in steps])
            for step in steps:
                (step.place / INTENT).write_text(record, encoding="utf-8")
        for step in steps:
            synced(step.place)
        for parent in {*(step.target.parent for step in steps), *self._made}:
            with contextlib.suppress(OSError):
                _synced(parent)

    def _switch(self, steps: list[Staged]) -> None:
        try:
            for step in steps:
                step.switch()
                with contextlib.suppress(OSError):
                    _synced(step.target.parent)
        except BaseException:
            for step in reversed(steps):
                step.undo()
            raise
        if self._last is not None:
            put_in_place(self._last.target)

    def _clear(self, steps: list[Staged]) -> None:
        for step in steps:  # the last one in the end, as where a dead run is settled
            shutil.rmtree(step.place, ignore_errors=True)
        for lock in self._locks.values():
            if lock is not None:
                lock.release()
