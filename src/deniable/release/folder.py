"""Release folders: written whole or not at all, read back, and only what their manifest speaks of."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from deniable.core.errors import DeniableError, ManifestError, OutputError, is_unicode, option
from deniable.core.interruption import held_off, put_in_place
from deniable.core.manifest import DataFile, Manifest, read_json
from deniable.release.readme import analyst_readme
from deniable.release.sign import SIGNATURE, Signer, sign_files
from deniable.tables import Engine
from deniable.tables.lineups import code_table, coded_part
from deniable.tables.storage import digest_of, digest_of_parts, parts_of

# -- A release's files as they are read: only what its manifest speaks of, and not changed since -----------------------


def file_path(folder: Path, file: DataFile | None) -> Path:
    """A published file; a manifest may only name a file of its own folder."""
    if file is None:
        raise ManifestError("manifest.json names no data file.")
    if Path(file.file).name != file.file:
        raise ManifestError("manifest.json names a data file outside the release.")
    return folder / file.file


def unchanged_file(folder: Path, file: DataFile | None) -> Path:
    """A published file that has the digest in its manifest, which is computed once for each state of the file."""
    path = file_path(folder, file)
    assert file is not None
    try:
        parts = [(part.absolute(), part.stat()) for part in parts_of(path)]
        if not all(stat.S_ISREG(about.st_mode) for _, about in parts):
            raise ManifestError(f"{path.name} of the release is no file.")
        digests = [_digest(part, about.st_ino, about.st_size, about.st_mtime_ns) for part, about in parts]
        names = [part.name for part, _ in parts]
        present = digest_of_parts(zip(names, digests, strict=True)) if path.is_dir() else digests[0]
    except OSError as problem:
        raise ManifestError(
            f"{path.name} of the release cannot be read: {problem.strerror}. Fix: get the release again."
        ) from None
    if present != file.sha256:
        raise ManifestError(
            f"{path.name} was changed since it was published (its SHA-256 differs from the one in manifest.json), so "
            "answers from it would mean nothing. Fix: get the release again; `deniable verify` says what else differs."
        )
    return path


def require_shape(names: Sequence[str], rows: int, manifest: Manifest) -> None:
    """Refuse a table that has other columns or rows than its manifest says."""
    if list(names) != [column.name for column in manifest.columns]:
        raise ManifestError("manifest.json is damaged: it names other columns than the release's table has.")
    if rows != manifest.rows:
        raise ManifestError(f"manifest.json is damaged: it speaks of {manifest.rows:,} rows, and there are {rows:,}.")


@lru_cache(maxsize=4096)
def _digest(path: Path, *_: int) -> str:
    return digest_of(path)


def digests(folder: Path) -> dict[str, str | None]:
    """The SHA-256 of everything in a folder but its signature; None for what is neither a file nor a table in parts."""
    return {path.name: _own_digest(path) for path in folder.iterdir() if path.name != SIGNATURE}


def _own_digest(path: Path) -> str | None:
    try:
        return None if path.is_symlink() or not (path.is_file() or path.is_dir()) else digest_of(path)
    except ManifestError:
        return None


# -- Folders of releases that are being written: whose they are, who holds them, and what killed runs left behind ------


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


# -- Release folders: written whole or not at all, and read back -------------------------------------------------------


MANIFEST = "manifest.json"
README = "README.md"
LINEUPS = "lineups"
FORMATS = ("parquet", "csv")
FILES = {MANIFEST, README, SIGNATURE, *(f"{name}.{form}" for name in ("data", LINEUPS) for form in FORMATS)}
TABLES = {".csv", ".tsv", ".gz", ".parquet", ".arrow", ".feather", ".xlsx", ".xls", ".sav", ".dta", ".sas7bdat"}
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # s3a:, hdfs: and the like, as a Path has them
LARGEST_MANIFEST = 2**29  # bytes: a domain of 4 million values takes less


@contextlib.contextmanager
def new_folder(out: Path, overwrite: bool, inputs: Sequence[str | os.PathLike[str]] = ()) -> Iterator[Path]:
    """A temporary folder beside ``out`` that becomes ``out`` when the block succeeds, and vanishes when it does not.

    Only a folder that is a release and nothing else is ever replaced, and none that holds one of the ``inputs``.
    """
    if ADDRESS.match(str(out)):
        raise OutputError(
            f"The output {str(out)!r} is an address, and a release is a folder that is written here and moved into "
            "place when it is whole. Fix: a folder on a file system that all machines share, and copy it from there."
        )
    out = Path(os.path.abspath(out))
    if not is_unicode(str(out)):
        raise OutputError(f"The output {str(out)!r} is no valid Unicode. Fix: choose another name.")
    partial = fresh_folder(out)
    clear_away(out)
    _require_room(out, overwrite, inputs)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        partial.mkdir(mode=0o700)
        with locked(partial):
            try:
                yield partial
                _to_disk(partial)  # which takes long, so the lock is held
                (partial / LOCK).unlink()
                partial.chmod(0o777 & ~_umask())
                with held_off():
                    _rename(partial, out, overwrite)
                    put_in_place(out)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
    except OSError as error:
        raise cannot_write(out, error) from None


@contextlib.contextmanager
def spool_in(partial: Path) -> Iterator[Path]:
    """A private folder for perturbed rows on their way into a release."""
    spool = partial / "spool"
    spool.mkdir(mode=0o700)
    yield spool
    spool.rmdir()


def _require_room(out: Path, overwrite: bool, inputs: Sequence[str | os.PathLike[str]] = ()) -> None:
    for given in inputs:
        if Path(given).resolve().is_relative_to(out.resolve()):
            raise OutputError(f"The input {str(given)!r} lies in the output {str(out)!r}. Fix: choose another folder.")
    if not os.path.lexists(out):
        return
    if not overwrite:
        raise OutputError(
            f"The output {str(out)!r} exists already. Fix: choose another folder, or {option('overwrite', True)}."
        )
    if out.is_symlink() or not out.is_dir():
        raise OutputError(f"{str(out)!r} is not a folder of its own, so it is not overwritten. Fix: another folder.")
    names = {entry.name for entry in out.iterdir()}
    strange = sorted(names - FILES)
    if names and MANIFEST not in names:
        raise OutputError(f"{str(out)!r} is not a release, so it is not overwritten. Fix: choose another folder.")
    if strange:
        raise OutputError(
            f"{str(out)!r} holds more than a release ({strange[0]!r}), so it is not overwritten. "
            "Fix: choose another folder, or move the other files away."
        )


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


def _to_disk(partial: Path) -> None:
    for entry in partial.rglob("*"):
        if entry.is_file():
            with entry.open("rb") as file:
                os.fsync(file.fileno())


def _rename(partial: Path, out: Path, overwrite: bool) -> None:
    """Rename; whatever appeared at ``out`` in the meantime stays, unless it is a release that may be replaced."""
    _require_room(out, overwrite)
    if not overwrite or not os.path.lexists(out):
        try:
            partial.rename(out)  # fails where a folder with files has appeared
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
            raise OutputError(f"The output {str(out)!r} appeared while it was written. It was left alone.") from None
        return
    old = out.parent / f".{out.name}.replaced-{secrets.token_hex(8)}"
    out.rename(old)
    try:
        partial.rename(out)
    except OSError:
        old.rename(out)
        raise
    shutil.rmtree(old, ignore_errors=True)


def write_file(
    path: Path,
    text: str | bytes,
    *,
    inputs: Sequence[str | os.PathLike[str]] = (),
    private: bool = False,
    table: bool = False,
) -> None:
    """Write a text file, the whole of it or nothing; never over one of the ``inputs``, nor over a release's own files,
    and over a table only where it is a ``table`` itself.

    A ``private`` file is readable by its owner alone.
    """
    real = require_writable(path, inputs=inputs, table=table)
    temporary = real.parent / f".{real.name}.{secrets.token_hex(8)}"
    try:
        mode = 0o600 if private else 0o666 & ~_umask()
        try:
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                file.write(text.encode() if isinstance(text, str) else text)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(real)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from None


def require_writable(path: Path, *, inputs: Sequence[str | os.PathLike[str]] = (), table: bool = False) -> Path:
    """The file that ``write_file`` would write; refused where it would refuse: for asking before the work is done."""
    target = Path(os.path.abspath(path))
    if any(target.resolve() == Path(file).resolve() for given in inputs for file in _files_of(given)):
        raise OutputError(f"The output {str(path)!r} is an input: it is not overwritten. Fix: choose another name.")
    if target.is_dir():
        raise OutputError(f"The output {str(path)!r} is a folder. Fix: name a file.")
    real = target.resolve()  # a link stays a link
    if not real.parent.is_dir():
        raise cannot_write(path, OSError(errno.ENOTDIR if real.parent.exists() else errno.ENOENT, ""))
    if real.name in FILES and (real.parent / MANIFEST).exists():
        raise OutputError(f"The output {str(path)!r} is a file of a release. Fix: choose another name.")
    if real.suffix.lower() in TABLES and real.exists() and not table:
        raise OutputError(f"The output {str(path)!r} is a table: it is not overwritten. Fix: choose another name.")
    if real.exists() and not real.is_file():
        raise OutputError(f"The output {str(path)!r} is a pipe or a device. Fix: name a file.")
    return real


def _files_of(given: str | os.PathLike[str]) -> list[str]:
    """The files that a path, or a pattern, stands for."""
    text = os.fspath(given)
    return [text] if os.path.exists(text) or not glob.has_magic(text) else glob.glob(text, recursive=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a release folder."""
    try:
        return Manifest.from_dict(read_json(manifest_text(folder)))
    except ManifestError as problem:
        raise ManifestError(with_fix(str(problem))) from None


def with_fix(problem: str) -> str:
    """What is wrong with a release, and what its reader can do about it."""
    known = "Fix:" in problem or "Did you mean" in problem
    return problem if known else f"{problem.rstrip('.')}. Fix: get the release again from whoever published it."


def _beneath(folder: Path) -> str:
    """A hint at releases that lie in a folder which is none."""
    try:
        inside = sorted(one for one in folder.iterdir() if (one / MANIFEST).is_file())
    except OSError:
        return ""
    return f" Did you mean {' or '.join(repr(str(one)) for one in inside[:2])}?" if inside else ""


def manifest_text(folder: Path) -> str:
    """What manifest.json holds."""
    try:
        about = (folder / MANIFEST).stat()
        if not stat.S_ISREG(about.st_mode) or about.st_size > LARGEST_MANIFEST:
            raise ManifestError(
                f"The manifest of {str(folder)!r} is no file, or larger than {LARGEST_MANIFEST >> 20} MB, as no "
                "release's is."
            )
        return (folder / MANIFEST).read_text(encoding="utf-8")
    except FileNotFoundError:
        what = "has no manifest.json" if folder.is_dir() else "does not exist"
        hint = _beneath(folder) or " Fix: name the folder that `deniable publish` wrote."
        raise ManifestError(f"{str(folder)!r} is not a release: it {what}.{hint}") from None
    except NotADirectoryError:
        raise ManifestError(
            f"{str(folder)!r} is not a release: it is a file. Fix: name the release's folder."
        ) from None
    except UnicodeDecodeError:
        raise ManifestError(f"The manifest of {str(folder)!r} is not UTF-8 text: the release is damaged.") from None
    except OSError as error:
        raise ManifestError(f"The manifest of {str(folder)!r} cannot be read: {error.strerror or error}.") from None


def finish_folder(
    partial: Path,
    manifest: Manifest,
    pieces: Iterable[pa.Table],
    schema: pa.Schema,
    form: str,
    engine: Engine,
    signer: Signer | None = None,
) -> Manifest:
    """Write data, line-ups where there are some, manifest, README and a signature into a folder not yet in
    place."""
    manifest = replace(manifest, data=engine.write(pieces, schema, partial / f"data.{form}", form), lineups=None)
    if (coded := coded_part(manifest)) is not None:
        listed = code_table(coded)
        written = engine.write([listed], listed.schema, partial / f"{LINEUPS}.{form}", form)
        manifest = replace(manifest, lineups=written)
    (partial / MANIFEST).write_text(manifest.to_json(), encoding="utf-8")
    (partial / README).write_text(analyst_readme(manifest), encoding="utf-8")
    if signer is not None:
        published = [partial / name for name in sorted(FILES) if (partial / name).exists()]
        signed = sign_files({path.name: digest_of(path) for path in published}, signer)
        (partial / SIGNATURE).write_text(signed, encoding="utf-8")
    return manifest
