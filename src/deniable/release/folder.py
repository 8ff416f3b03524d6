"""Release folders: written whole or not at all, read back, and only what their manifest speaks of."""

from __future__ import annotations

import errno
import glob
import os
import re
import stat
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

import pyarrow as pa

from deniable.core.errors import ManifestError, OutputError, is_unicode, option
from deniable.core.manifest import DataFile, Manifest, read_json
from deniable.release.commit import Commit, cannot_write
from deniable.release.readme import analyst_readme
from deniable.release.sign import SIGNATURE, Signer, sign_files
from deniable.release.weights import Weights
from deniable.tables import Engine
from deniable.tables.lineups import code_table, coded_part
from deniable.tables.storage import digest_of, digest_of_parts, model_table, parts_of, read_model, write_table

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


# -- Release folders: written whole or not at all, and read back -------------------------------------------------------


MANIFEST = "manifest.json"
README = "README.md"
LINEUPS, MODEL, WEIGHTS = "lineups", "tables", "weights"
FORMATS = ("parquet", "csv")
FILES = {
    MANIFEST,
    README,
    SIGNATURE,
    *(f"{name}.{form}" for name in ("data", LINEUPS, MODEL, WEIGHTS) for form in FORMATS),
}
TABLES = {".csv", ".tsv", ".gz", ".parquet", ".arrow", ".feather", ".xlsx", ".xls", ".sav", ".dta", ".sas7bdat"}
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # s3a:, hdfs: and the like, as a Path has them
LARGEST_MANIFEST = 2**29  # bytes: a domain of 4 million values takes less


def release_folder(commit: Commit, out: Path, overwrite: bool, inputs: Sequence[str | os.PathLike[str]] = ()) -> Path:
    """An empty folder that becomes ``out`` with everything else of the commit.

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
    commit.hold(out)
    _require_room(out, overwrite, inputs)
    return commit.folder(out, partial(_require_room, out, overwrite))


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
    with Commit() as commit:
        commit.write(require_writable(path, inputs=inputs, table=table), text, private=private)


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


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a release folder."""
    try:
        manifest = Manifest.from_dict(read_json(manifest_text(folder)))
        if manifest.tables is None:
            return manifest
        path = unchanged_file(folder, manifest.tables)
        parts = [read_model(path, manifest.tables, part) if part.learned else part for part in manifest.parts]
        return replace(manifest, parts=tuple(parts))
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
    folder: Path,
    manifest: Manifest,
    pieces: Iterable[pa.Table],
    schema: pa.Schema,
    form: str,
    engine: Engine,
    signer: Signer | None = None,
) -> Manifest:
    """Write data, line-ups, a model and weights where there are some, manifest, README and a signature into a folder
    not yet in place."""
    data = engine.write(pieces, schema, folder / f"data.{form}", form)
    manifest = replace(manifest, data=data, lineups=None, tables=None, weights=None)
    if (coded := coded_part(manifest)) is not None:
        listed = code_table(coded)
        written = engine.write([listed], listed.schema, folder / f"{LINEUPS}.{form}", form)
        manifest = replace(manifest, lineups=written)
    for part in manifest.parts:
        if part.learned is not None:
            manifest = replace(manifest, tables=_beside(folder, MODEL, model_table(part.learned), form))
    if (weights := Weights.of(manifest)) is not None:
        manifest = replace(manifest, weights=_beside(folder, WEIGHTS, weights.table(), form))
    (folder / MANIFEST).write_text(manifest.to_json(), encoding="utf-8")
    (folder / README).write_text(analyst_readme(manifest), encoding="utf-8")
    if signer is not None:
        published = [folder / name for name in sorted(FILES) if (folder / name).exists()]
        signed = sign_files({path.name: digest_of(path) for path in published}, signer)
        (folder / SIGNATURE).write_text(signed, encoding="utf-8")
    return manifest


def _beside(folder: Path, name: str, table: pa.Table, form: str) -> DataFile:
    """A small table beside the rows."""
    path = folder / f"{name}.{form}"
    return DataFile(path.name, form, write_table([table], table.schema, path, form))
