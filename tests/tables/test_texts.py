"""Bytes that are no UTF-8, in columns that say they hold text."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn

TOWNS = [b"Bern", b"Ulm", "Zürich".encode("latin1"), b"Basel"] * 50


def texts(values: list[bytes]) -> pa.Array:
    """What Arrow has of a Parquet file that says its bytes are text."""
    held = pa.array(values, pa.binary())
    return pa.StringArray.from_buffers(len(held), held.buffers()[1], held.buffers()[2])


@pytest.mark.parametrize("options", [{"sensitive": "town"}, {"sensitive": "job"}, {"sensitive": "job", "rare": 5}])
@pytest.mark.parametrize("folded", [False, True])
def test_text_that_is_not_utf8_is_refused_by_its_column_and_row(tmp_path: Path, options, folded: bool) -> None:
    held = texts(TOWNS)
    table = pa.table({"town": held.dictionary_encode() if folded else held, "job": ["cook", "judge"] * 100})
    pq.write_table(table, tmp_path / "t.parquet")
    for given in (table, tmp_path / "t.parquet"):
        with pytest.raises(
            dn.DeniableError, match=r"'town' holds text that is not UTF-8, in row 3 .* latin1. Fix: "
        ) as no:
            dn.publish(given, privacy="3/4", mechanism="uniform", **options)
        assert "rich" not in str(no.value)  # no value of the table
    dn.publish(tmp_path / "t.parquet", sensitive="job", privacy="3/4", mechanism="uniform", drop="town")


def test_a_csv_file_names_line_column_and_encoding(tmp_path: Path) -> None:
    path = tmp_path / "our file.csv"
    path.write_bytes(b"job,town\ncook,Ulm\njudge,Z\xfcrich\n")
    with pytest.raises(dn.DeniableError) as no:
        dn.publish(path, sensitive="job", privacy="3/4")
    assert "line 3 holds bytes that are no UTF-8 character in the column 'town'; most likely they are latin1" in str(
        no.value
    )
    assert f"Fix: iconv -f latin1 -t utf8 '{path}' > fixed.csv" in str(no.value)
