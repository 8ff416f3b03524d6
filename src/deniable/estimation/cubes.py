"""All combinations of conditions on several columns at once: 2^k counts from one tally (OLAP 2, 6; mathematics 6)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.core.errors import OptionError
from deniable.estimation.aggregates import count_of
from deniable.estimation.answering import require_one_part_options
from deniable.estimation.answers import counted_table
from deniable.estimation.asking import Options
from deniable.estimation.many import linear_method
from deniable.estimation.model.conditions import Conditions, Labels
from deniable.estimation.model.several import say_condition, weighed
from deniable.estimation.model.swapped import swapped_columns, swapped_in
from deniable.estimation.model.weighed import Answers
from deniable.estimation.predicates import And, Leaf, Where, conjunction, not_
from deniable.estimation.published import Floats, Published


def cube(published: Published, conditions: Mapping[str, Any], where: Where | None, options: Options) -> pa.Table:
    """All 2^k combinations of conditions on k columns: for each whether it holds, then value, stderr and interval."""
    if options.calibrate:
        raise OptionError("calibrate=True is not for cubes, whose combinations add up. Fix: leave calibrate out.")
    require_one_part_options(options)
    condition = conjunction(conditions)
    predicate = And((*conjunction(where).parts, *condition.parts))  # a column may be asked about and narrowed down, too
    joint = Conditions(published.manifest, published.counter(), predicate)
    say_condition(joint, Labels((), ()))
    if joint.wide:
        return _cube_by_counts(published, conditions, where, options)
    (block,) = joint.counter.tally((), joint.leaves, joint.classes)
    counts = block.counts[0].sum(1).reshape(-1, *joint.tensor.shape)
    fitted = joint.tensor.likelihood(counts) if options.method == "mle" else joint.tensor.invert(counts)
    inverse = joint.tensor.invert(counts)
    swapped = swapped_in(joint.tensor, joint.perturbed_names, swapped_columns(joint.manifest))
    pairs = sum(one.of_label(inverse, one.whole(inverse)) for one in swapped)  # each combination is a label
    variance = np.maximum(joint.tensor.squares(counts) - inverse + pairs, 0.0)
    possible = joint.by_pattern(counts.reshape(len(counts), -1).sum(1))
    return _cube_table(joint, condition, (fitted.reshape(-1), variance.reshape(-1), possible), options.z)


def _cube_by_counts(
    published: Published, conditions: Mapping[str, Any], where: Where | None, options: Options
) -> pa.Table:
    """The cube one count at a time, where a column's channel cannot be seen through its conditions."""
    named = list(conditions.items())
    combinations = list(product((False, True), repeat=len(named)))
    given = conjunction(where).parts
    counts = []
    for bits in combinations:
        own = conjunction({name: c if bit else not_(c) for bit, (name, c) in zip(bits, named, strict=True)})
        # By the columns' channels alone: no cube is calibrated, or its combinations would not add up.
        predicate = And((*given, *own.parts))
        _, (rows,) = weighed(published.manifest, published.counter(), predicate, (), (), (), calibrate=False)
        counts.append(count_of(rows, method=linear_method(options)))
    truth = {name: [bits[place] for bits in combinations] for place, name in enumerate(conditions)}
    return counted_table(truth, Answers.joined(counts, axis=1), options.z)


def _cube_table(joint: Conditions, condition: And, of_patterns: tuple[Floats, Floats, Floats], z: float) -> pa.Table:
    """Patterns as combinations of the conditions that are asked about, where all others hold."""
    value, variance, possible = of_patterns
    number = len(joint.flat)
    patterns = np.arange(2**number)
    places = {id(leaf): number - 1 - place for place, (_, leaf) in enumerate(joint.flat) if leaf is not None}
    bit = {leaf: ((patterns >> place) & 1).astype(bool) for leaf, place in places.items()}
    wanted = [leaf for leaf in condition.parts if isinstance(leaf, Leaf)]
    kept = np.ones(len(patterns), bool)
    for leaf in bit.keys() - {id(leaf) for leaf in wanted}:
        kept &= bit[leaf]
    key = np.zeros(len(patterns), np.int64)
    for one in wanted:
        key = key * 2 + bit[id(one)]
    size = 2 ** len(wanted)
    total = np.bincount(key[kept], weights=value[kept], minlength=size)
    variances = np.bincount(key[kept], weights=variance[kept], minlength=size)
    most = np.zeros(size)
    np.maximum.at(most, key[kept], possible[kept])  # rows that satisfy what is public
    columns = {
        leaf.column: ((np.arange(size) >> (len(wanted) - 1 - place)) & 1).astype(bool)
        for place, leaf in enumerate(wanted)
    }
    none = np.zeros(size)
    value, error, least, largest = (one[None, :].astype(np.float64) for one in (total, variances, none, most))
    return counted_table(columns, Answers(value, error, error, least, largest, whole=True), z)
