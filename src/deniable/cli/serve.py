"""`deniable serve`: a release behind the PostgreSQL protocol, for BI tools and drivers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from deniable.cli import console


def serve(
    *,
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="The folder of a release.")],
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option("--port", metavar="PORT", min=0, max=65535, help="The port to listen at; 0: any that is free."),
    ] = 5433,
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", metavar="FILE", help="A file with the token; left out: one is made, and told."),
    ] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", metavar="N", min=0.1, help="The time that a question has.")
    ] = 60.0,
    as_json: console.AsJson = False,
) -> None:
    """Serve a release to BI tools, psql and drivers, which ask it as a PostgreSQL database. Stops at Ctrl-C or SIGTERM.

    SELECT .. FROM release means what `deniable query` means by it; the token is the password. There is no TLS: leave it
    on this machine, or put a tunnel (ssh -L) in front of it.

    Example: deniable serve release/ --port 5433
    """
    import asyncio
    import contextlib
    import secrets
    import signal

    import deniable as dn
    from deniable.analyst.serve import serve as serving
    from deniable.core.errors import OptionError

    opened = dn.open_release(release)
    token = secrets.token_urlsafe(16) if token_file is None else token_file.read_text(encoding="utf-8").strip()
    if not 8 <= len(token.encode()) <= 1000:
        raise OptionError(f"The token in {str(token_file)!r} has {len(token)} letters. Fix: 8 to 1,000 of them.")

    def ready(number: int) -> None:
        if as_json:
            print(json.dumps({"host": host, "port": number, "token": token}), file=sys.__stdout__, flush=True)
            return
        console.say(f"psql:     psql 'host={host} port={number} dbname=release user=analyst'")
        console.say(f"Password: {token}" if token_file is None else f"Password: the token in {token_file}")

    async def until_stopped() -> None:
        running = asyncio.ensure_future(serving(opened, token, host=host, port=port, seconds=seconds, ready=ready))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await running

    try:
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(until_stopped())
    except OSError as problem:
        raise OptionError(f"{host}:{port} cannot be listened at: {problem.strerror}. Fix: another --port.") from None
