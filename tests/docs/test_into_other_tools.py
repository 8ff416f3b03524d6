"""The examples of "Into other tools" run, and what they print is what deniable answers and the truth allows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "how-to" / "into-other-tools.md"


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the page's examples leave behind, run in order."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    left: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("page"))
        exec("".join(blocks), left)
    return left


def test_the_weighted_groupby_is_group_by(names: dict[str, Any]) -> None:
    release, by = names["release"], names["by"]
    answered = release.group_by("smoker", where={"state": "ill"}, calibrate=False).to_pydict()
    for smoker, value, stderr in zip(answered["smoker"], answered["value"], answered["stderr"], strict=True):
        assert by.loc[smoker, "ill"] == pytest.approx(value)
        assert by.loc[smoker, "stderr"] == pytest.approx(stderr)


def test_the_regressions_find_the_risk_that_was_put_in(names: dict[str, Any]) -> None:
    original = names["ill"].astype(float)
    design = np.column_stack([np.ones(len(original)), names["smoker"].astype(float), names["age"].astype(float)])
    truth = np.linalg.lstsq(design, original, rcond=None)[0][1]
    error = names["errors"][1]
    assert abs(names["coefficients"][1] - truth) < 5 * error
    assert error < 0.03


def test_the_classifier_finds_the_odds_of_the_original(names: dict[str, Any]) -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    original = np.column_stack([names["smoker"].astype(float), (names["age"] - 50) / 20])
    truth = linear.LogisticRegression(C=1e6).fit(original, names["ill"])
    assert names["model"].coef_[0] == pytest.approx(truth.coef_[0], abs=0.25)
    published = names["frame"]["state"] == "ill"  # what is published in place of the truth gives far lower odds
    naive = linear.LogisticRegression(C=1e6).fit(names["public"], published)
    assert abs(naive.coef_[0, 0] - truth.coef_[0, 0]) > 0.4
