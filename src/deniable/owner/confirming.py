"""What a publisher commits to before a receiver names the release, and what an auditor confirms who sees the table.

Draws are a function of the key, the name of the release, the table and all choices (mathematics 13.1). A commitment
fixes all of these but the name. If the receiver, who has the commitment first, then gives the name, with digits that
nobody could foresee, nothing was chosen for how the draws come out; and whoever has key and table can draw every row
again.
"""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from deniable.core.errors import OptionError, option
from deniable.owner.project import Project
from deniable.publishing.publish import publish
from deniable.release.folder import read_manifest
from deniable.release.release import open_release
from deniable.tables import engine_named
from deniable.tables.keys import Secret
from deniable_verify.checks import Certificate, Check

UNPROVABLE = Check(
    "perturbed rows",
    None,
    "no receiver can see that rows were drawn as stated: that rests on whoever confirms it with the table and the key",
    required=False,
)


def commitment(table: Any, project: Project, secret: Secret) -> str:
    """What is told to a receiver beforehand: it binds the table, the choices and the key, and tells none of them.

    Args:
        table: as for ``publish``.
        project: what becomes of its columns, and what is required.
        secret: the key.
    """
    content = engine_named("local").open(table).digest()
    recodes = repr(sorted(project.arguments()["recode"].items()))  # with what a file of categories says
    said = "\0".join(["deniable commitment", content, recodes, *project.words()])
    return hmac.new(secret.key, said.encode(), hashlib.sha256).hexdigest()


def confirmed(table: Any, folder: Path, project: Project, secret: Secret, committed: str | None = None) -> Certificate:
    """Whether a release is what this table, project and key make of its name, to the bit.

    Args:
        table: as it was published.
        folder: of the release.
        project: of the table.
        secret: the key that the release was drawn with.
        committed: what its publisher committed to.
    """
    manifest = read_manifest(folder)
    if manifest.randomness.series:
        raise OptionError(
            f"{str(folder)!r} belongs to a series, whose key is its own: it cannot be drawn again alone. Fix: confirm "
            f"releases that were published with {option('key_file', 'FILE')}."
        )
    checks = [UNPROVABLE]
    if committed is None:
        checks.append(Check("commitment", None, "none was given, so the key may have been chosen by its draws"))
    else:
        same = hmac.compare_digest(commitment(table, project, secret), committed.strip().lower())
        checks.append(Check("commitment", same, "the key, the table and the choices are those that were committed to"))
    format_ = "csv" if manifest.data is not None and manifest.data.file.endswith(".csv") else "parquet"
    with TemporaryDirectory() as home:
        again = publish(
            table,
            **project.arguments(),
            key=secret.key,
            name=manifest.name,
            shuffle=manifest.randomness.shuffled,
            format=format_,
            out=Path(home) / "again",
        )
        same = again.table.equals(open_release(folder).table)
        checks.append(Check("rows", same, f"all {manifest.rows:,} rows, drawn again, are those of the release"))
        same = again.manifest.to_dict()["parts"] == manifest.to_dict()["parts"]
        checks.append(Check("numbers", same, "channels, models and noisy counts, made again, are those of the release"))
    return Certificate(tuple(checks))
