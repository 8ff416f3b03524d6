"""Verify a release: its manifest by itself, and its files against the manifest."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.audit.verify.certificate import certificate
from deniable.audit.verify.chance import RARELY
from deniable.audit.verify.checks import Certificate, Check
from deniable.audit.verify.counts import counts_check, possible_check
from deniable.audit.verify.frequencies import frequencies_check
from deniable.audit.verify.lineup_tables import table_check, table_columns
from deniable.core.errors import ManifestError, VerificationError, listing
from deniable.core.manifest import DataFile, Manifest, read_json, software, with_sentence
from deniable.core.part import Part
from deniable.core.values import Floats
from deniable.estimation.model.columns import PerturbedColumn
from deniable.release import folder as folders
from deniable.release.folder import digests, file_path
from deniable.release.published import published_counts
from deniable.release.readme import analyst_readme
from deniable.release.sign import SIGNATURE, known_fingerprint, signature_check
from deniable.release.weights import Weights
from deniable.tables import Engine, engine_named
from deniable.tables.lineups import CODE, coded_part
from deniable.tables.storage import digest_of
from deniable.tables.transforms import fits

# What no look at a release can show, said first.
_WITH_KEY = "NOT CHECKED: that the rows were really perturbed; only whoever has the table and the key can show that"
_IN_WORDS = (
    "NOT CHECKED: what the publisher says beside the sentence (`also`, `not_protected`, the options of the mechanism, "
    "that rows were shuffled); promises are numbers"
)


def verify(
    path: str | os.PathLike[str], *, signed_by: Any | None = None, engine: str | Engine = "local"
) -> Certificate:
    """Recompute a release's certificate from its own numbers; raises ``VerificationError`` naming what does not hold.

    Args:
        path: the folder of the release.
        signed_by: the Ed25519 key that must have signed it: as OpenSSH writes a public key, its file (or one in PEM),
            its fingerprint ``SHA256:..``, or an ``Ed25519PublicKey`` of the package ``cryptography``. Left out, a
            signature is checked where there is one, and who made it is left to you.
        engine: what reads its files: a name, or an object.

    >>> import pyarrow as pa, tempfile
    >>> import deniable as dn
    >>> table = pa.table({"disease": ["flu", "cold", "hiv"] * 100})
    >>> with tempfile.TemporaryDirectory() as home:
    ...     how = {"mechanism": "uniform", "privacy": dn.Privacy(rho2="1/2")}
    ...     _ = dn.publish(table, sensitive="disease", out=f"{home}/release", **how)
    ...     dn.verify(f"{home}/release")
    <Certificate: all 18 checks hold, 2 more cannot be made>
    """
    trusted = None if signed_by is None else known_fingerprint(signed_by)
    folder = Path(path)
    raw = read_json(folders.manifest_text(folder))
    computed, manifest = certificate(raw).checks, Manifest.from_dict(raw)
    looked_at = _file_checks(folder, manifest, engine_named(engine))
    checks = [Check("perturbation", True, _WITH_KEY), *computed, *looked_at, *_written_checks(folder, manifest)]
    checks.sort(key=lambda check: not check.open)  # what could not be looked at comes first
    if trusted is not None or os.path.lexists(folder / SIGNATURE):
        checks.append(signature_check(folder / SIGNATURE, digests(folder), trusted))
    return _raise_unless_it_holds(Certificate(tuple(checks)), str(folder))


def verify_manifest(manifest: Manifest, *, signed_by: Any | None = None) -> Certificate:
    """The same for a release that has no files yet, and so no signature."""
    computed = certificate(manifest.to_dict())
    if signed_by is not None:
        unsigned = Check("signature", False, "is missing: a release in memory has none. Fix: save it with sign=")
        computed = Certificate((*computed.checks, unsigned))
    return _raise_unless_it_holds(computed, "this release")


def _file_checks(folder: Path, manifest: Manifest, engine: Engine) -> list[Check]:
    unchanged = _unchanged("data", folder, manifest.data)
    checks, types = [unchanged], {column.name: column.type for column in manifest.columns}
    if unchanged.holds and manifest.data is not None:
        names, rows = engine.describe(folder / manifest.data.file, manifest.data, types)
        expected = [column.name for column in manifest.columns]
        checks.append(Check("columns", names == expected, f"{len(names)} columns, {len(expected)} in the manifest"))
        checks.append(Check("rows", rows == manifest.rows, f"{rows:,} rows, {manifest.rows:,} in the manifest"))
    checks += [*_lineup_checks(folder, manifest, engine), *_weights_checks(folder, manifest, engine)]
    return [*checks, *(_row_checks(folder, manifest, engine) if all(check.holds for check in checks) else ())]


def _lineup_checks(folder: Path, manifest: Manifest, engine: Engine) -> list[Check]:
    """Codes of line-ups come with a table that says what they stand for, and nothing else does."""
    coded = coded_part(manifest)
    if coded is None:
        return [] if manifest.lineups is None else [Check("line-ups", False, "a table of them, and rows without codes")]
    unchanged = _unchanged("line-ups", folder, manifest.lineups)
    if not unchanged.holds or manifest.lineups is None:
        return [unchanged]
    types = {name: coded.types[0] if name == "value" else str(CODE) for name in table_columns(coded)}
    table = engine.read(folder / manifest.lineups.file, manifest.lineups, types)
    if {field.name: str(field.type) for field in table.schema} != types:
        return [Check("line-ups", False, f"its columns are not {listing(list(types))} as they should be")]
    rows = zip(*(table[name].to_pylist() for name in types), strict=True)
    return [unchanged, table_check(coded, rows)]


def _weights_checks(folder: Path, manifest: Manifest, engine: Engine) -> list[Check]:
    """Weights are those that the manifest gives, where there are some."""
    weights = Weights.of(manifest)
    if manifest.weights is None:
        return [] if weights is None else [Check("weights", False, "the manifest names no file of them")]
    unchanged = _unchanged("weights", folder, manifest.weights)
    if not unchanged.holds or weights is None:
        return [unchanged] if weights else [Check("weights", False, "a file of them, and rows that have none")]
    computed = weights.table()
    types = {field.name: str(field.type) for field in computed.schema}
    table = engine.read(folder / manifest.weights.file, manifest.weights, types)
    same = table.schema.equals(computed.schema) and table.num_rows == computed.num_rows
    for name in types if same else ():
        one, other = table[name], computed[name]
        if types[name] != "double" or name.startswith(("shown_", "value_")):
            same = same and one.equals(other)
        else:
            same = same and bool(np.allclose(one.to_numpy(), other.to_numpy(), rtol=1e-6, atol=1e-9))
    detail = f"{table.num_rows:,} lines, those of the channels" if same else "say something else than the channels"
    return [unchanged, Check("table of weights", same, detail)]


def _row_checks(folder: Path, manifest: Manifest, engine: Engine) -> list[Check]:
    """Rows hold nothing that their column or cell does not have, and counts that the channel can have made."""
    assert manifest.data is not None
    path = folder / manifest.data.file
    types = {column.name: column.type for column in manifest.columns}
    table = path if manifest.data.format == "parquet" else engine.read(path, manifest.data, types)
    counter, only = engine.counter(table, manifest), manifest.parts[0]
    checks: list[Check | None] = []
    try:
        if len(manifest.parts) == 1 and only.range is None:
            (block,) = counter.tally((), (), np.zeros(1, np.int64), states=True)
            by_state = block.counts[0, 0]
            shown = by_state[: len(by_state) - only.beside_domain]
            checks += _counts_checks(manifest, only, shown)
            if not manifest.randomness.by_person:
                stated = {"rows": manifest.rows, "guarantee": manifest.guarantee, "privacy": manifest.privacy}
                checks.append(frequencies_check(only, shown, stated))
        else:
            for part in manifest.parts:
                column = PerturbedColumn.of(part, manifest.types[part.columns[0]])
                column.states(counter.distinct(column.name))
                if part.range is None and part.lineups is None:
                    shown = published_counts(part, manifest, counter).astype(np.float64)
                    checks += _counts_checks(manifest, part, shown)
    except ManifestError as problem:
        return [Check("values", False, str(problem))]
    known = Check("values", True, "every row holds a value that its column, or its cell, has")
    finer = [name for name in manifest.public_columns if _is_finer(counter.distinct, manifest, name)]
    if manifest.recoded:
        detail = (
            "columns are as coarse as stated" if not finer else f"{listing(finer)} is finer than its recoding gives"
        )
        checks.append(Check("recoded", not finer, detail))
    return [known, *(check for check in checks if check is not None)]


def _counts_checks(manifest: Manifest, part: Part, shown: Floats) -> list[Check | None]:
    """Published counts against the noisy histogram, and against what any table can have."""
    often, by_person = RARELY + math.log(len(manifest.parts)), manifest.randomness.by_person
    possible = None if by_person else possible_check(part, shown, often)
    return [counts_check(part, shown, by_person=by_person, often=often), possible]


def _is_finer(distinct: Callable[[str], pa.Array], manifest: Manifest, column: str) -> bool:
    """Whether a public column holds something that the last step of its recoding does not give."""
    steps = manifest.recoded.get(column)
    if steps is None:
        return False
    try:
        return not fits(distinct(column), steps[-1])
    except pa.ArrowException:  # not even of the type
        return True


def _written_checks(folder: Path, manifest: Manifest) -> list[Check]:
    """The sentence and the README of a release are computed from its manifest, by the version that wrote it."""
    if manifest.software != software():
        return [Check("words", True, "NOT CHECKED: the sentence and the README, which another version has written")]
    same = with_sentence(manifest).guarantee["sentence"] == manifest.guarantee["sentence"]
    detail = "says what the parts promise" if same else "is not the one that the parts give"
    checks = [Check("sentence", same, detail)]
    try:
        text = (folder / folders.README).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return [*checks, Check("README", False, f"{folders.README} is missing, or cannot be read")]
    same = text == analyst_readme(manifest)
    detail = "says what the manifest says" if same else "is not the one that the manifest gives"
    return [*checks, Check("README", same, detail), Check("words", True, _IN_WORDS)]


def _unchanged(what: str, folder: Path, file: DataFile | None) -> Check:
    try:
        path = file_path(folder, file)
    except ManifestError as problem:
        return Check(what, False, str(problem))
    if file is None or not path.exists():
        return Check(what, False, f"{path.name} is missing")
    try:
        same = digest_of(path) == file.sha256
    except ManifestError as problem:
        return Check(what, False, str(problem))
    return Check(what, same, "SHA-256 as in the manifest" if same else f"{path.name} was changed: other SHA-256")


def _raise_unless_it_holds(computed: Certificate, what: str) -> Certificate:
    if not computed.holds:
        lines = "\n".join(f"- {check.what}: {check.detail}" for check in computed.failures)
        raise VerificationError(f"{what} does not hold what it promises:\n{lines}")
    return computed
