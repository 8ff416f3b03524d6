"""Going on with a publication that was killed: what must be the same, and where finished parts are kept."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from deniable.core.errors import OptionError
from deniable.engines.base import Dataset, Job, Resumes
from deniable.engines.batch.kept_parts import KeptParts
from deniable.engines.randomness import Keystream, Secret
from deniable.mechanisms import Mechanism
from deniable.release.folder import spool_in
from deniable.release.partial import KEPT

WORDS = 4  # 256 bits


def require_resumable(
    resume: bool,
    out: object,
    secret: Secret,
    dataset: Dataset,
    mechanism: str | Mechanism,
    *,
    shuffle: bool,
    series: bool,
) -> None:
    """Refuse what cannot be gone on with."""
    if not resume:
        return
    if out is None:
        raise OptionError("resume=True goes on with a folder, and out is left out. Fix: out=FOLDER.")
    if secret.fresh:
        raise OptionError(
            "resume=True needs the key of the run that was killed, and without a key file it is forgotten. "
            "Fix: key_file=FILE."
        )
    if series:
        raise OptionError("resume=True is not for a series, whose file says what was published. Fix: leave it out.")
    if not shuffle:
        raise OptionError("resume=True keeps parts of the shuffle. Fix: leave out shuffle=False.")
    if not isinstance(dataset, Resumes):
        raise OptionError("resume=True is for one machine: a cluster repeats lost tasks by itself. Fix: leave it out.")


@contextlib.contextmanager
def rows_of(
    dataset: Dataset, job: Job, partial: Path, identity: tuple[Secret, Keystream] | None, said: list[str]
) -> Iterator[Iterable[pa.Table]]:
    """The published rows, spooled in a folder not yet in place; what an earlier run finished is not perturbed again
    where there is an ``identity``: the key, and what is drawn from it for this publication. ``said`` takes what its
    owner should know."""
    if identity is None:
        with spool_in(partial) as spool:
            yield dataset.execute(job, spool)
        return
    assert isinstance(dataset, Resumes)
    secret, draws = identity
    numbers = {"key": Keystream(secret, "resume"), "job": draws.subkey("resume")}
    named = {name: keys.words(0, WORDS).tobytes().hex() for name, keys in numbers.items()}
    kept = KeptParts(partial / KEPT, named)
    said += kept.said
    done = False
    try:
        yield dataset.execute_in_parts(job, kept)
        done = True
    finally:
        if done or not kept.rows:  # published, or nothing to go on with
            shutil.rmtree(partial / KEPT, ignore_errors=not done)
