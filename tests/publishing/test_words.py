"""What an owner may write, and what is pointed out to them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.errors import RequirementError, TableError

TABLE = pa.table({"sex": ["F", "M"] * 300, "disease": ["flu", "cold", "gout"] * 200})


@pytest.mark.parametrize("given", ["2/3", Fraction(2, 3), 2 / 3])
def test_rho2_alone_is_a_requirement(given: object) -> None:
    whole = dn.publish(TABLE, sensitive="disease", privacy=dn.Privacy(rho2="2/3"), key=bytes(32), mechanism="uniform")
    short = dn.publish(TABLE, sensitive="disease", privacy=given, key=bytes(32), mechanism="uniform")
    if isinstance(given, float):
        assert float(Fraction(short.manifest.guarantee["rho2"])) == pytest.approx(2 / 3)
    else:
        assert short.manifest.to_json() == whole.manifest.to_json()
        assert short.table.equals(whole.table)
    assert dn.plan({"flu": 5, "cold": 5}, given, mechanism="uniform").privacy.rho2 == pytest.approx(Fraction(2, 3))
    with pytest.raises(RequirementError, match="privacy"):
        dn.publish(TABLE, sensitive="disease", privacy="two thirds", mechanism="uniform")


def test_a_series_of_counts_is_a_histogram() -> None:
    counts = pd.Series(["flu", "flu", "cold", None]).value_counts(dropna=False)
    rows = dn.Histogram.of(counts)
    assert dict(rows) == {"flu": 2, "cold": 1, None: 1}
    assert dict(dn.Histogram.of(pd.Series([3, 3, 7]).value_counts())) == {3: 2, 7: 1}
    assert dn.plan(counts, "3/4", mechanism="uniform").histogram.rows == 4
    with pytest.raises(TableError):
        dn.Histogram.of(pd.DataFrame({"a": [1]}))


def test_values_that_differ_in_case_or_blanks_are_pointed_out() -> None:
    values = ["flu", "Flu", " cold", "cold", "gout", "goat"] * 100
    release = dn.publish(pa.table({"disease": values}), sensitive="disease", privacy="1/2", mechanism="uniform")
    (warning,) = [warning for warning in release.warnings if "differ in case" in warning]
    assert "' cold' and 'cold'; 'Flu' and 'flu'" in warning
    assert "goat" not in warning
    assert not any(
        "differ in case" in warning
        for warning in dn.publish(TABLE, sensitive="disease", privacy="1/2", mechanism="uniform").warnings
    )


@pytest.mark.parametrize(("text", "encoding"), [("Müller,flu", "latin1"), ("Müller\u2019s,flu", "cp1252")])
def test_the_encoding_that_a_file_has_is_suggested(tmp_path: Path, text: str, encoding: str) -> None:
    for lines in (f"name,disease\n{text}\n", f"{text}\na,b\n"):
        (tmp_path / "t.csv").write_bytes(lines.encode(encoding))
        with pytest.raises(TableError, match=f"iconv -f {encoding}"):
            dn.publish(tmp_path / "t.csv", sensitive="disease", privacy="1/2", mechanism="uniform")


def test_an_audit_says_how_far_it_is() -> None:
    release = dn.publish(TABLE, sensitive="disease", privacy="2/3", mechanism="uniform")
    steps: list[tuple[int, int | None, str]] = []
    dn.audit(TABLE, release, progress=lambda done, total, what: steps.append((done, total, what)))
    assert (600, 600, "counting") in steps
    assert (600, 600, "reading the table") in steps
    assert [done for done, _, what in steps if what.startswith("looking")] == [0, 1, 2, 3, 4]
