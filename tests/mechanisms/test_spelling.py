"""Mechanisms in one line of text."""

import pytest

from deniable.core.errors import OptionError
from deniable.mechanisms import Decoys, Designed, SmallDomain, mechanism_named


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("decoys:c=5", Decoys(c=5)),
        ("decoys:c=4,grouping=balanced", Decoys(c=4, grouping="balanced")),
        ("small-domain:cost=bound", SmallDomain(cost="bound")),
        ("decoys: c = 3", Decoys(c=3)),
        ("designed:profile=0.01+0.05,replacing=optimised", Designed("optimised", profile=(0.01, 0.05))),
        ("designed:", Designed()),
    ],
)
def test_options_follow_the_name(text, made):
    assert mechanism_named(text) == made


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("decoy:c=5", "Did you mean 'decoys'"),
        ("decoys:cc=5", "has no option 'cc'"),
        ("decoys:c", "is no option"),
        ("decoys:c=", "is no option"),
        ("decoys:c=five", "c = 'five'"),
        ("decoys:c=5,c=6", "gives c twice"),
        ("pram:coins=0.5", r"Pram\(coins=\.\.\.\)"),
        ("fine-grain:weights=3", r"FineGrain\(weights=\.\.\.\)"),
        ("small-domain:categories=3", r"SmallDomain\(categories=\.\.\.\)"),
        ("small-domain:keep_apart=a+b", r"SmallDomain\(keep_apart=\.\.\.\)"),
        ("small-domain:min_rows=x", "min_rows = 'x'"),
        ("anatomy:l=3", "is a rival"),
        ("uniform:p=1", "'p'"),
    ],
)
def test_what_is_not_understood_is_named(text, said):
    with pytest.raises(OptionError, match=said):
        mechanism_named(text)
