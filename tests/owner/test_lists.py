"""What the answers of a row say together about its items, against Bayes' rule written out."""

import numpy as np

from deniable.owner.together import item_beliefs


def by_hand(held, shown, present, absent):
    """Pr[item | row], the largest over all rows, list by list."""
    surest = np.zeros(held.shape[1])
    for row in shown:
        total, having = 0.0, np.zeros(held.shape[1])
        for person in held:
            chance = 1.0
            for has, says in zip(person, row, strict=True):
                yes = present if has else absent
                chance *= yes if says else 1 - yes
            total += chance
            having += chance * person
        surest = np.maximum(surest, having / total)
    return surest


def test_beliefs_by_all_answers_of_a_row_are_those_of_bayes_rule():
    rng = np.random.default_rng(4)
    for _ in range(20):
        first = rng.random((40, 1)) < 0.4
        held = np.hstack([first, first & (rng.random((40, 1)) < 0.8), rng.random((40, 2)) < 0.2])
        shown = rng.random((30, 4)) < 0.5
        absent, present = sorted(rng.uniform(0.05, 0.95, 2))
        lists, beliefs = item_beliefs(held, shown, list("abcd"), (present, absent), None)
        together = {belief.item: belief.together for belief in beliefs}
        alone = {belief.item: belief.alone for belief in beliefs}
        expected, prior = by_hand(held, shown, present, absent), held.mean(0)
        assert lists == len(np.unique(held, axis=0))
        assert np.allclose([together[item] for item in "abcd"], expected, rtol=1e-9)
        single = prior * present / (prior * present + (1 - prior) * absent)
        assert np.allclose([alone[item] for item in "abcd"], single, rtol=1e-12)
