"""`deniable verify`: does a release hold what it promises?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deniable.cli import console

BROKEN = 1  # the release was read, and does not hold what it promises


def verify(
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="The folder of a release.")],
    signed_by: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="Fail unless this Ed25519 key signed the release: a public key ('ssh-ed25519 AAAA..'), its file, or "
            "its fingerprint ('SHA256:..').",
        ),
    ] = None,
    as_json: console.AsJson = False,
) -> None:
    """Check a release: recompute its guarantee from its own numbers, and check its data against its manifest.

    Exit code 0: it holds. 1: it does not, and the message says why. 2: there is nothing to check. 3: it holds as far as
    could be checked, and what its guarantee rests on could not all be.

    Example: deniable verify release/ --signed-by publisher.pub
    """
    import deniable as dn
    from deniable.release.folder import with_fix

    try:
        report = dn.verify(release, signed_by=signed_by)
    except dn.VerificationError as problem:
        result = {"release": str(release), **problem.certificate.to_dict()}
        raise console.BadNewsError("VerificationError", with_fix(str(problem)), BROKEN, result) from None
    if as_json:
        console.emit({"release": str(release), **report.to_dict()})
    else:
        console.show(report)
    if report.holds is None:
        raise typer.Exit(report.exit_code)
