"""Nothing is dropped silently where a report would become too large."""

from __future__ import annotations

import pyarrow as pa
import pytest

import deniable as dn
from deniable import report
from deniable.analyst.evidence import COMPARED, DRAWN


def owner_page(values: int, mechanism: str = "uniform") -> str:
    """The owner's report on a few rows of each of so many values."""
    rows = 2 * max(1, 500 // values)
    table = pa.table({"sex": ["F", "M"] * (values * rows // 2), "code": [f"v{i:04}" for i in range(values)] * rows})
    release = dn.publish(table, sensitive="code", privacy="1/4", mechanism=mechanism, key=bytes(32))
    audited = dn.audit(table, release).to_dict()
    return report.render(report.document(release, audience="owner", audit=audited), "md")


def test_what_is_not_compared_is_said() -> None:
    text = owner_page(COMPARED + 1)
    assert f"Not compared here: the column has {COMPARED + 1} values, and a report plans for up to {COMPARED}" in text


def test_what_is_not_drawn_is_said() -> None:
    text = owner_page(DRAWN + 1)
    assert f"the column has {DRAWN + 1} values, and they are for up to {DRAWN}" in text
    assert "Not compared" not in text


def test_a_small_table_leaves_nothing_out() -> None:
    pytest.importorskip("altair", reason="needs the extra report")
    text = owner_page(8)
    for words in ("Not compared", "are not drawn"):
        assert words not in text
