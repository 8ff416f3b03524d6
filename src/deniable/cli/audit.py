"""`deniable audit`: what attackers learn from a release, for its owner."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from deniable.cli import console
from deniable.core.errors import OptionError, OutputError

STDOUT = 1  # the file that a shell gave us, whatever prints to it now


def audit(
    original: Annotated[
        str, typer.Argument(metavar="TABLE", help="The table that was published: a file, or a pattern.")
    ],
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="The folder of the release.")],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the audit to this file (mode 0600) instead of the terminal."),
    ] = None,
    attacks: Annotated[
        bool,
        typer.Option("--attacks", help="Also play the attackers on these rows: how often is each right?"),
    ] = False,
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write one page in plain words for the data protection officer (HTML, mode 0600): what is given "
            "away, before and after, the decision, who approved.",
        ),
    ] = None,
    project: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The project file of the table: what its owner decided, and who approved."),
    ] = None,
    for_auditor: Annotated[
        bool,
        typer.Option(
            "--for-auditor",
            help="Only draw every row again, with --key-file and --project, and say whether they are those of the "
            "release.",
        ),
    ] = False,
    key_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --for-auditor: the key of the release.")
    ] = None,
    commitment: Annotated[
        str | None,
        typer.Option(metavar="HEX", help="With --for-auditor: what `deniable commit` said before the release."),
    ] = None,
    details: Annotated[
        bool,
        typer.Option("--details", help="Also print the figures behind the decision, as --attacks and --out do."),
    ] = False,
    quiet: console.Quiet = False,
    as_json: console.AsJson = False,
) -> None:
    """See, before anyone else does, what attackers learn from a release.

    The audit holds exact figures of the original table: keep it. It is never written into the folder of the release.
    Exit code 0: it may be published. 3: something is to be decided first. 1: it must not be published. 2: the audit
    could not be made. With --for-auditor 0: the release is what table, project and key make of its name. 1: it is not.
    3: nobody had committed to them.

    Example: deniable audit patients.csv release/ --attacks --out audit.txt
    """
    from deniable import report as reports
    from deniable.owner.audit import audit as run
    from deniable.owner.project import Project
    from deniable.owner.statement import statement
    from deniable.release.folder import require_writable, write_file
    from deniable.release.release import open_release
    from deniable.report.page import to_html

    for place in (out, page):
        if place is not None:
            reports.refuse_inside(place, release)
            require_writable(place, inputs=[original])
    _refuse_redirected(release)
    if for_auditor or key_file is not None or commitment is not None:
        if out is not None or page is not None or attacks or details:
            raise OptionError(
                "--for-auditor draws rows again and looks at nothing else: --out, --page, --attacks and --details do "
                "not go with it. Fix: leave them out, and run a second command for them."
            )
        _confirm(original, release, project, key_file, commitment, for_auditor, as_json)
        return
    known = None if project is None else Project.read(project)
    with console.progress_bar(shown=not quiet and not as_json) as progress:
        figures = run(original, release, attacks=attacks, progress=progress)
    if known is not None:
        figures = replace(figures, decision=figures.decision.with_decisions(known.decisions))
    if page is not None:
        content = statement(original, open_release(release).manifest, figures, known)
        write_file(page, to_html(content), inputs=[original], private=True)
        console.say(f"The page for the data protection officer is {page}. It is for you alone.")
    result = {"release": str(release), **figures.to_dict()}
    if out is not None:
        text = json.dumps(result, indent=2, ensure_ascii=False) if as_json else str(figures)
        write_file(out, text + "\n", inputs=[original], private=True)
        console.say(f"The audit is in {out}. It is for you alone.")
        if as_json:
            console.emit({"release": str(release), "audit": str(out), "verdict": figures.decision.verdict})
    elif as_json:
        console.emit(result)
    else:
        console.show(
            str(figures) if details or attacks else "\n".join([figures.title, *figures.decision.lines(fine=True)])
        )
    if figures.decision.exit_code:
        raise typer.Exit(figures.decision.exit_code)


def _confirm(
    original: str,
    release: Path,
    project: Path | None,
    key_file: Path | None,
    committed: str | None,
    for_auditor: bool,
    as_json: bool,
) -> None:
    """Every row drawn again, beside those of the release."""
    from deniable.owner.confirming import confirmed
    from deniable.owner.project import Project
    from deniable.tables.keys import Secret

    if project is None or key_file is None or not for_auditor:
        raise OptionError(
            "--for-auditor, --key-file and --project go together: all three are needed to draw rows again. Fix: "
            "--for-auditor --key-file FILE --project FILE."
        )
    certificate = confirmed(original, release, Project.read(project), Secret.read(key_file), committed)
    if as_json:
        console.emit({"release": str(release), **certificate.to_dict()})
    else:
        console.show(certificate)
    raise typer.Exit(certificate.exit_code)


def _refuse_redirected(release: Path) -> None:
    """Refuse to print into the release, where a shell was told to (``> release/audit.txt``)."""
    try:
        printed = os.fstat(STDOUT)
    except OSError:  # closed
        return
    for path in release.rglob("*") if stat.S_ISREG(printed.st_mode) else ():
        if path.is_file() and os.path.samestat(path.stat(), printed):
            raise OutputError(
                f"The output goes to {str(path)!r}, inside the release, and what is for the owner must never be "
                "published. Fix: remove that file, and choose one outside of the release folder."
            )
