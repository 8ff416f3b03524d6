"""Lists as they are written: list columns, JSON, separators; missing, doubled and surplus items."""

import numpy as np
import pyarrow as pa
import pytest

from deniable.core.errors import DeniableError
from deniable.core.transforms import Unfolding
from deniable.tables.transforms import lists_of, places_of, with_lists

ITEMS = pa.array(["a", "b", "c"], pa.large_string())
EXPECTED = np.array([[1, 1, 0], [0, 0, 0], [0, 0, 0], [0, 0, 1]], dtype=bool)
WRITTEN = {
    "list": (pa.array([["a", "b"], [], None, ["c", "c"]]), Unfolding()),
    "large list": (pa.array([["a", "b"], [], None, ["c"]], pa.large_list(pa.string())), Unfolding()),
    "dictionary": (
        pa.array([["a", "b"], [], None, ["c"]], pa.list_(pa.string())).cast(
            pa.list_(pa.dictionary(pa.int32(), pa.string()))
        ),
        Unfolding(),
    ),
    "JSON": (pa.array(['["a", "b"]', "[]", None, '["c"]']), Unfolding()),
    "separator": (pa.array(["a; b", "", None, ";c;"]), Unfolding(separator=";")),
    "dictionary of texts": (pa.array(["a|b", "", None, "c"]).dictionary_encode(), Unfolding(separator="|")),
}


@pytest.mark.parametrize("written", WRITTEN)
def test_lists_read_the_same_however_they_are_written(written):
    column, how = WRITTEN[written]
    assert np.array_equal(places_of("d", column, ITEMS, how), EXPECTED)


def test_whole_numbers_are_items_by_their_text():
    rows, items = lists_of("d", pa.array([[250], [401, 250]]), Unfolding())
    assert (rows.tolist(), items.to_pylist()) == ([0, 1, 1], ["250", "401", "250"])
    assert lists_of("d", pa.array(["[250, 7]"]), Unfolding())[1].to_pylist() == ["250", "7"]


def test_the_first_items_count_each_once():
    column = pa.array([["c", "c", "b", "a"], ["a"], ["b", "a", "c"]])
    held = places_of("d", column, ITEMS, Unfolding(most=2, beyond="first"))
    assert held.astype(int).tolist() == [[0, 1, 1], [1, 0, 0], [1, 1, 0]]


@pytest.mark.parametrize(
    ("column", "how", "words"),
    [
        (pa.array([["a", "b", "c"]]), Unfolding(most=2), "more than most = 2"),
        (pa.array([["a", "x"]]), Unfolding(), "declared domain"),
        (pa.array([["a", None]]), Unfolding(), "missing items"),
        (pa.array(['{"a": 1}']), Unfolding(), "no JSON array"),
        (pa.array(["a;b"]), Unfolding(), "no JSON array"),
        (pa.array(["[true]"]), Unfolding(), "no JSON array"),
        (pa.array(["[" * 100_000]), Unfolding(), "no JSON array"),
    ],
)
def test_what_is_no_list_is_refused_without_naming_an_item(column, how, words):
    with pytest.raises(DeniableError, match=words) as refusal:
        places_of("d", column, ITEMS, how)
    assert "'x'" not in str(refusal.value)


def test_a_person_draws_anew_for_every_list():
    held = np.array([[True, False], [True, False], [True, True]])
    names = with_lists(pa.array(["p", "p", "p"]), held).to_pylist()
    assert names[0] == names[1] != names[2]
    assert with_lists(pa.array([None, "q"]), held[:2]).to_pylist()[0] is None
