"""The key of a publication: one source of randomness, and a new key file that stays only where it opens something."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from deniable.core.errors import OptionError


def one_source_of_randomness(key_file: Path | None, new_key_file: Path | None, seed: int | None) -> None:
    """Refuse several of them."""
    given = {"--key-file": key_file, "--new-key-file": new_key_file, "--seed": seed}
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise OptionError(f"{' and '.join(names)} contradict each other. Fix: give one of them, or none.")


@contextlib.contextmanager
def new_key(path: Path | None, out: Path) -> Iterator[Path | None]:
    """A new key in a file, if one is wanted; without a release it does not stay."""
    if path is None:
        yield None
        return
    from deniable.engines.randomness import Secret

    Secret.generate().write(path, outside=out)
    try:
        yield path
    except BaseException:
        path.unlink(missing_ok=True)
        raise
