"""`deniable pool` and `deniable join`: releases of several owners as one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deniable.cli import console

if TYPE_CHECKING:
    from deniable.release.release import Release

Out = Annotated[Path, typer.Option(metavar="FOLDER", help="Write the combined release here.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a release that is already there.")]


def pool(
    *,
    releases: Annotated[list[Path], typer.Argument(metavar="RELEASE..", help="The folders of two releases or more.")],
    out: Out,
    overwrite: Overwrite = False,
    as_json: console.AsJson = False,
) -> None:
    """Put the rows of several releases together: the same columns of other people, perturbed in the same way.

    Example: deniable pool north south --out both
    """
    import deniable as dn

    _save(dn.pool([dn.open_release(folder) for folder in releases]), out, overwrite, as_json=as_json)


def join(
    *,
    left: Annotated[Path, typer.Argument(metavar="LEFT", help="The folder of a release.")],
    right: Annotated[Path, typer.Argument(metavar="RIGHT", help="The folder of another, about the same people.")],
    on: Annotated[str, typer.Option(metavar="COLUMN", help="The public column that names a row in both.")],
    out: Out,
    overwrite: Overwrite = False,
    as_json: console.AsJson = False,
) -> None:
    """Put the columns of two releases about the same people together, matched by a public column.

    Rows without a partner are left out.

    Example: deniable join jobs diseases --on id --out both
    """
    import deniable as dn

    _save(dn.join(dn.open_release(left), dn.open_release(right), on), out, overwrite, as_json=as_json)


def _save(combined: Release, out: Path, overwrite: bool, *, as_json: bool) -> None:
    saved = combined.save(out, overwrite=overwrite)
    if as_json:
        console.emit({"release": str(out), "rows": saved.manifest.rows, "columns": list(saved.manifest.types)})
    else:
        console.show(f"{saved}\nWrote {out}.")
