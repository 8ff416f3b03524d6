"""Someone who knows how often every list occurs, and reads a released row with nothing but its files.

Nothing of the package computes here: beliefs come from the integers of manifest.json and the Parquet file.
"""

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.mechanisms import Items

N = 6_000
RHO1, RHO2 = 0.2, 0.5


@pytest.fixture(scope="module")
def lists():
    """Lists in which items go together: whoever has c has d and e, too."""
    rng = np.random.default_rng(8)
    draws = rng.random(N)
    return [("c", "d", "e") if x < 0.15 else ("a", "b") if x < 0.4 else ("a",) if x < 0.7 else () for x in draws]


@pytest.fixture(scope="module")
def folder(lists, tmp_path_factory):
    out = tmp_path_factory.mktemp("lists") / "release"
    table = pa.table({"number": pa.array(range(N)), "d": [list(held) for held in lists]})
    privacy = dn.Privacy(rho1=RHO1, rho2=RHO2)
    dn.publish(table, sensitive="d", mechanism=Items(most=3), privacy=privacy, out=out, key=bytes(32), shuffle=False)
    return out


def attacker(folder, lists):
    """Pr[list | row] of every row, over the lists that occur, from the files alone."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    rows = pq.read_table(folder / "data.parquet")
    names = [part["columns"][0] for part in manifest["parts"]]
    items = [part["item"]["item"] for part in manifest["parts"]]
    shown = np.column_stack([rows[name].to_numpy() for name in names]).astype(bool)
    often = Counter(lists)
    kinds = sorted(often)
    likelihood = np.ones((len(shown), len(kinds)))
    for place, part in enumerate(manifest["parts"]):
        (cell,) = part["cells"]
        keep, yes = cell["keep"][0] / 2**32, cell["replace"][1] / 2**32
        lacks = (1 - keep) * yes
        for number, kind in enumerate(kinds):
            chance = keep + lacks if items[place] in kind else lacks
            likelihood[:, number] *= np.where(shown[:, place], chance, 1 - chance)
    joint = likelihood * np.array([often[kind] for kind in kinds])
    return kinds, joint / joint.sum(1, keepdims=True)


def test_nobody_becomes_surer_of_anything_about_a_list_than_allowed(folder, lists):
    """Of single items, of several together, of how many there are: all that was believed at up to rho1."""
    kinds, beliefs = attacker(folder, lists)
    statements = {
        "has c": [("c" in kind) for kind in kinds],
        "has d and e": [{"d", "e"} <= set(kind) for kind in kinds],
        "has three": [len(kind) == 3 for kind in kinds],
        "is c, d, e": [kind == ("c", "d", "e") for kind in kinds],
    }
    often = Counter(lists)
    for words, true in statements.items():
        before = sum(often[kind] for kind, holds in zip(kinds, true, strict=True) if holds) / N
        assert before <= RHO1, words
        after = beliefs[:, np.array(true)].sum(1).max()
        assert after <= RHO2, words
        assert after > before + 0.05, words  # an attack that learns nothing shows nothing


def test_beliefs_are_what_they_say(folder, lists):
    """Of the rows about which the attacker is so sure, that share is right: the numbers of the manifest are those used.

    With coins that are 5 % off, beliefs are off by more than the tolerance here.
    """
    kinds, beliefs = attacker(folder, lists)
    place = kinds.index(("c", "d", "e"))
    truth = np.array([held == ("c", "d", "e") for held in lists])
    sure = beliefs[:, place]
    expected, spread = sure.sum(), np.sqrt((sure * (1 - sure)).sum())
    assert abs(truth.sum() - expected) < 5 * spread
    score = ((truth - sure) * (sure - sure.mean())).sum()
    assert abs(score) < 5 * np.sqrt((sure * (1 - sure) * (sure - sure.mean()) ** 2).sum())


def test_answers_come_as_often_as_the_manifest_says(folder, lists):
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    rows = pq.read_table(folder / "data.parquet")
    for part in manifest["parts"]:
        (cell,) = part["cells"]
        keep, yes = cell["keep"][0] / 2**32, cell["replace"][1] / 2**32
        has = np.array([part["item"]["item"] in held for held in lists])
        shown = rows[part["columns"][0]].to_numpy().astype(bool)
        for group, chance in ((has, keep + (1 - keep) * yes), (~has, (1 - keep) * yes)):
            spread = np.sqrt(chance * (1 - chance) / group.sum())
            assert abs(shown[group].mean() - chance) < 5.2 * spread


def test_two_answers_of_a_row_are_drawn_apart(folder, lists):
    """Given the list, answers about two items are independent: the bound of the row is a product."""
    rows = pq.read_table(folder / "data.parquet")
    empty = np.array([held == () for held in lists])
    shown = np.column_stack([rows[f"d={item}"].to_numpy() for item in "abcde"]).astype(float)[empty]
    correlations = np.corrcoef(shown.T)[np.triu_indices(5, 1)]
    assert np.abs(correlations).max() < 5.2 / np.sqrt(empty.sum())


def test_items_beyond_those_that_count_are_believed_in_too():
    """Only the first item counts, and whoever has it has others: beliefs are about the whole list."""
    rng = np.random.default_rng(3)
    lists = [[("a", "c"), ("b", "c"), ("b",), ("c", "a", "b")][kind] for kind in rng.integers(0, 4, 2_000)]
    table = pa.table({"d": [list(one) for one in lists]})
    release = dn.publish(
        table,
        sensitive="d",
        mechanism=Items(most=1, beyond="first"),
        privacy=dn.Privacy(rho1="1/5", rho2="4/5"),
        key=bytes(32),
        shuffle=False,
    )
    channel = release.manifest.parts[0].channels[0]
    keep, yes = int(channel.keep[0]) / 2**32, int(channel.replace[1]) / 2**32
    lacks, has = (1 - keep) * yes, keep + (1 - keep) * yes
    often = Counter(lists)
    rows = {tuple(row.values()) for row in release.table.to_pylist()}
    for belief in dn.audit(table, release).lists.beliefs:
        surest = 0.0
        for row in rows:
            joint = {}
            for kind, number in often.items():
                yes = [has if item == kind[0] else lacks for item in "abc"]
                joint[kind] = number * np.prod([p if y else 1 - p for y, p in zip(row, yes, strict=True)])
            holds = sum(weight for kind, weight in joint.items() if belief.item in kind)
            surest = max(surest, holds / sum(joint.values()))
        assert belief.together == pytest.approx(surest, abs=1e-9)
        assert belief.prior == pytest.approx(sum(belief.item in one for one in lists) / len(lists))
        answered = {kind: has if kind[0] == belief.item else lacks for kind in often}
        own = sum(number * answered[kind] for kind, number in often.items() if belief.item in kind)
        assert belief.alone == pytest.approx(own / sum(number * answered[kind] for kind, number in often.items()))
