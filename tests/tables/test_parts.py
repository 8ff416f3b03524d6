"""Published tables in parts, and the digest of tables in pieces."""

import hashlib
import subprocess

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.core.errors import ManifestError
from deniable.release.folder import MANIFEST
from deniable.release.readme import DIGITS
from deniable.release.release import Release
from deniable.tables import engine_named
from deniable.tables.content import PIECE_ROWS, digest_of_piece
from deniable.tables.storage import StoredRows, digest_of, part_name, parts_of


@pytest.fixture
def release(tmp_path):
    """A release in a folder, its table in three parts."""
    rng = np.random.default_rng(0)
    table = pa.table({"age": rng.integers(0, 90, 900), "d": rng.choice(list("abc"), 900)})
    made = dn.publish(
        table, sensitive="d", privacy=dn.Privacy(rho2="1/2"), key=bytes(32), out=tmp_path / "r", mechanism="uniform"
    )
    rows = made.table
    in_parts(tmp_path / "r", [rows.slice(0, 300), rows.slice(300, 100), rows.slice(400)])
    return tmp_path / "r", rows


def in_parts(folder, pieces):
    """Replace the table of a release by parts, and its digest."""
    data = folder / "data.parquet"
    before = digest_of(data)
    data.unlink()
    data.mkdir()
    for number, piece in enumerate(pieces):
        pq.write_table(piece, data / part_name(number), row_group_size=120)
    for name, digits in ((MANIFEST, None), ("README.md", DIGITS)):  # a citation has the beginning of the digest
        text = (folder / name).read_text()
        assert before[:digits] in text
        (folder / name).write_text(text.replace(before[:digits], digest_of(data)[:digits]))


def test_a_release_in_parts_is_read_verified_and_asked(release, tmp_path):
    folder, rows = release
    opened, whole = dn.open_release(folder), Release(dn.open_release(folder).manifest, table=rows)
    assert opened.table.equals(rows)
    assert dn.verify(folder).holds
    where = {"age": dn.between(10, 40), "d": ["a", "b"]}
    assert opened.count(where) == whole.count(where)
    saved = opened.save(tmp_path / "one")
    assert (tmp_path / "one" / "data.parquet").is_file()
    assert saved.table.equals(rows)
    dn.publish(rows, sensitive="d", privacy=dn.Privacy(rho2="1/2"), out=folder, overwrite=True, mechanism="uniform")
    assert (folder / "data.parquet").is_file()


def test_the_digest_is_what_sha256sum_says(release):
    folder, _ = release
    data = folder / "data.parquet"
    listing = subprocess.run(f"cd '{data}' && sha256sum *", shell=True, capture_output=True, check=True).stdout
    assert digest_of(data) == hashlib.sha256(listing).hexdigest()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: (data / part_name(1)).write_bytes((data / part_name(2)).read_bytes()),
        lambda data: (data / part_name(1)).unlink(),
        lambda data: (data / part_name(3)).write_bytes((data / part_name(2)).read_bytes()),
        lambda data: (data / part_name(2)).rename(data / part_name(7)),
        lambda data: (data / "notes.txt").write_text("x"),
        lambda data: (data / part_name(9)).symlink_to(data / part_name(0)),
        lambda data: (data / part_name(9)).mkdir(),
        lambda data: [part.unlink() for part in list(data.iterdir())],
    ],
)
def test_parts_that_were_changed_added_or_lost_are_found(release, spoil):
    folder, _ = release
    spoil(folder / "data.parquet")
    with pytest.raises(dn.VerificationError, match=r"- data: "):
        dn.verify(folder)
    refused = (ManifestError, dn.VerificationError)  # what the folder shows when it is opened, what rows show later
    with pytest.raises(refused):
        dn.open_release(folder).count({"d": "a"})
    with pytest.raises(refused):
        _ = dn.open_release(folder).table


def test_parts_are_signed_as_one_file(release, tmp_path):
    folder, rows = release
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "k")], check=True)
    saved = tmp_path / "signed"
    dn.open_release(folder).save(saved, sign=tmp_path / "k")
    assert dn.verify(saved, signed_by=str(tmp_path / "k.pub")).holds
    in_parts(saved, [rows])
    with pytest.raises(dn.VerificationError, match="signature"):
        dn.verify(saved, signed_by=str(tmp_path / "k.pub"))


def test_rows_are_cut_at_row_groups(release):
    folder, rows = release
    stored = StoredRows.at(folder / "data.parquet")
    cut = stored.cut(200)
    assert stored.rows == 900
    assert [piece.rows for piece in cut] == [240, 60, 100, 240, 240, 20]
    assert pa.chunked_array([c for piece in cut for c in piece.column("age").chunks]).equals(rows["age"])
    assert stored.column("d").cast(pa.string()).equals(rows["d"].cast(pa.string()))
    assert len(parts_of(folder / "data.parquet")) == 3


def test_the_digest_of_a_table_is_that_of_its_pieces():
    numbers = np.arange(PIECE_ROWS + 5)
    table = pa.table({"n": numbers, "t": pa.array(numbers % 3).cast(pa.large_string())})
    opened = engine_named("local").open(table)
    pieces = [table.slice(0, PIECE_ROWS), table.slice(PIECE_ROWS)]
    parts = [digest_of_piece(piece.combine_chunks(), number == 0) for number, piece in enumerate(pieces)]
    assert opened.digest() == hashlib.sha256(b"".join(parts)).hexdigest()
    small = engine_named("local").open(pieces[1])
    assert small.digest() == digest_of_piece(pieces[1].combine_chunks(), True).hex()
    assert small.digest() != opened.digest()
