"""Verify a release, by the verifier beside this package, which imports nothing of it; the words of the README are
compared with those that this package writes."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deniable_verify
from deniable.core.errors import ManifestError, VerificationError
from deniable.core.manifest import Manifest, read_json
from deniable.release import folder as folders
from deniable.release.readme import analyst_readme
from deniable.release.sign import known_fingerprint
from deniable.tables.storage import model_table
from deniable_verify import Certificate, Check

if TYPE_CHECKING:
    from deniable.release.release import Release


def verify(release: str | os.PathLike[str] | Release, *, signed_by: Any | None = None) -> Certificate:
    """Recompute a release's certificate from its own numbers; raises ``VerificationError`` naming what does not hold.

    Every check holds, fails, or could not be made: ``certificate.holds`` is then None where the guarantee rests on it.

    Args:
        release: its folder, or the release itself, opened or in memory, where it has no files yet.
        signed_by: the Ed25519 key that must have signed it: as OpenSSH writes a public key, its file (or one in PEM),
            its fingerprint ``SHA256:..``, or an ``Ed25519PublicKey`` of the package ``cryptography``. Left out, a
            signature is checked where there is one, and who made it is left to you.

    >>> import pyarrow as pa, tempfile
    >>> import deniable as dn
    >>> table = pa.table({"disease": ["flu", "cold", "hiv"] * 100})
    >>> with tempfile.TemporaryDirectory() as home:
    ...     how = {"mechanism": "uniform", "privacy": dn.Privacy(rho2="1/2")}
    ...     _ = dn.publish(table, sensitive="disease", out=f"{home}/release", **how)
    ...     dn.verify(f"{home}/release")
    <Certificate: all 21 checks hold, 2 more cannot be made>
    """
    trusted = None if signed_by is None else known_fingerprint(signed_by)
    if isinstance(release, str | os.PathLike):
        return _verified(Path(release), trusted)
    if release.folder is not None:
        return _verified(release.folder, trusted)
    raw, tables = release.manifest.to_dict(), {"data": release.table}
    for part in release.manifest.parts:
        if part.learned is not None:
            tables["tables"] = model_table(part.learned)
    certificate = deniable_verify.verify_tables(raw, tables)
    if trusted is not None:
        unsigned = Check("signature", False, "is missing: a release in memory has none. Fix: save it with sign=")
        certificate = Certificate((*certificate.checks, unsigned))
    return _raise_where_it_fails(certificate, "this release")


def require_sound(folder: Path, *, rows: bool) -> None:
    """Refuse answers from a release that would not verify.

    Args:
        folder: of the release.
        rows: whether its rows are looked at, as they are before the first question.
    """
    failures = _certified(folder, None, rows=rows).failures
    if failures:
        raise VerificationError(
            f"{str(folder)!r} would not verify, so answers from it would mean nothing ({failures[0].what}: "
            f"{failures[0].detail}). Fix: get the release again from whoever published it; `deniable verify {folder}` "
            "says what else differs."
        )


def _verified(folder: Path, trusted: str | None) -> Certificate:
    try:
        return _raise_where_it_fails(_certified(folder, trusted, rows=True), str(folder))
    except deniable_verify.NoReleaseError:
        folders.manifest_text(folder)  # says what there is instead
        raise ManifestError(f"{str(folder)!r} is not a release that can be read.") from None


def _certified(folder: Path, trusted: str | None, *, rows: bool) -> Certificate:
    certificate = deniable_verify.verify(folder, signed_by=trusted, rows=rows)
    if certificate.failures:
        return certificate
    checks = [_readme_check(folder) if check.what == "README" else check for check in certificate.checks]
    return replace(certificate, checks=tuple(checks))


def _readme_check(folder: Path) -> Check:
    """The README is the one that is computed from the manifest, word by word."""
    same = (folder / folders.README).read_text(encoding="utf-8") == analyst_readme(
        Manifest.from_dict(read_json(folders.manifest_text(folder)))
    )
    detail = "says what the manifest says" if same else "is not the one that the manifest gives"
    return Check("README", same, detail)


def _raise_where_it_fails(certificate: Certificate, what: str) -> Certificate:
    if certificate.failures:
        lines = "\n".join(f"- {check.what}: {check.detail}" for check in certificate.failures)
        raise VerificationError(f"{what} does not hold what it promises:\n{lines}", certificate)
    return certificate
