"""Answers by group: counts, sums and averages of the rows that satisfy a predicate."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.errors import QuestionError
from deniable.estimation.asking import Asking, Options, asking
from deniable.estimation.four_state import answer_four_state
from deniable.estimation.joint import is_joint
from deniable.estimation.likelihood import likelihood_counts
from deniable.estimation.linear import Answers, Weighing, without_claim
from deniable.estimation.multidimensional import answer_parts
from deniable.estimation.predicates import Predicate
from deniable.estimation.published import Block, Bools, Floats, Ints, Parameters, Published
from deniable.estimation.questions import Asked, require_column, sensitive_part

SET_ENTRIES = 2**22  # weights computed at a time


@dataclass(frozen=True, eq=False)
class Grouped:
    """Answers by group: codes of the public group columns, sets of the sensitive ones, and a number per aggregate."""

    keys: Ints
    labels: tuple[tuple[Hashable, ...], ...]
    count: Answers
    sums: Mapping[str, Answers]
    means: Mapping[str, Answers]


def answer(
    published: Published,
    predicate: Predicate,
    options: Options,
    groups: Sequence[str] = (),
    values: Sequence[str] = (),
) -> Grouped:
    """Counts, sums and averages of the rows that satisfy a predicate, by group."""
    ask = asking(published)
    for column in groups:
        require_column(ask.manifest, column)
    if values and options.method != "inverse":
        raise QuestionError(
            f"method = {options.method!r} answers counts only; sums and averages are estimated with method='inverse'."
        )
    if options.four_state:
        keys, labels, count = answer_four_state(published, predicate, options, groups)
        return Grouped(keys, labels, count, {}, {})
    bounds = {column: number_bounds(ask, column) for column in values}
    if is_joint(published.manifest):
        return Grouped(*answer_parts(published, predicate, options, groups, values))
    asked = ask.resolver().resolve(predicate)
    public = [column for column in groups if column not in ask.manifest.sensitive_columns]
    labels, sets = sensitive_groups(ask.manifest, [column for column in groups if column not in public], asked)
    found = [
        _answer_block(ask, block, sets, options, bounds)
        for block in ask.counter.tally(public, asked.leaves, asked.classes, values)
    ]
    return Grouped(
        np.concatenate([keys for keys, *_ in found]),
        labels,
        Answers.joined([count for _, count, _, _ in found], axis=0),
        {v: Answers.joined([sums[v] for _, _, sums, _ in found], axis=0) for v in values},
        {v: Answers.joined([means[v] for _, _, _, means in found], axis=0) for v in values},
    )


def _answer_block(
    ask: Asking, block: Block, sets: Bools, options: Options, bounds: Mapping[str, tuple[float, float]]
) -> tuple[Ints, Answers, dict[str, Answers], dict[str, Answers]]:
    counts: list[Answers] = []
    sums: dict[str, list[Answers]] = {v: [] for v in bounds}
    means: dict[str, list[Answers]] = {v: [] for v in bounds}
    control = ask.control(options)
    rows = block.counts.sum(axis=(0, 2))
    tally = block.counts.reshape(len(block.counts), sets.shape[1] * ask.states.count)
    claim = (lambda a: a) if ask.states.unbiased else without_claim
    for start in range(0, len(sets), step := max(1, SET_ENTRIES // tally.shape[1])):
        chosen = sets[start : start + step]
        weighing = Weighing.of(ask.states, chosen, control, rows)
        counts.append(claim(by_method(ask, block.counts, chosen, weighing.counts(tally), options)))
        for v, limits in bounds.items():
            sums[v].append(claim(weighing.sums(block.moments[v], limits)))
            means[v].append(claim(weighing.means(block.moments[v], limits, options.z)))
    one = {v: Answers.joined(parts, axis=1) for v, parts in sums.items()}
    other = {v: Answers.joined(parts, axis=1) for v, parts in means.items()}
    return block.keys, Answers.joined(counts, axis=1), one, other


def by_method(ask: Asking, counts: Floats, sets: Bools, linear: Answers, options: Options) -> Answers:
    """The linear estimate as it is, shrunk, or replaced by the maximum likelihood estimate."""
    if options.method == "mle":
        shape = counts.shape
        fitted = likelihood_counts(ask.states, counts.reshape(-1, shape[-1])).reshape(*shape[:2], -1)
        value = np.einsum("gtx,jtx->gj", fitted, sets.astype(np.float64), optimize=True)
        return Answers(value, linear.raw, linear.raw, linear.smallest, linear.largest)
    if options.method == "shrunk":
        return ask.shrinkage().shrunk(linear, counts.sum(axis=2), sets)
    return linear


def number_bounds(ask: Asking, column: str) -> tuple[float, float]:
    """The smallest and largest value of a public numeric column."""
    require_column(ask.manifest, column)
    if column in ask.manifest.sensitive_columns:
        raise QuestionError(
            f"{column!r} is sensitive: its published values are perturbed, so they cannot be added up. "
            f"Ask for counts by value instead: group by {column!r}."
        )
    values = ask.counter.distinct(column)
    kind = values.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise QuestionError(f"Column {column!r} is of type {kind}: only numbers can be added up or averaged.")
    ends = pc.min_max(values).as_py()
    return (0.0, 0.0) if ends["min"] is None else (float(ends["min"]), float(ends["max"]))


def sensitive_groups(
    manifest: Parameters, columns: Sequence[str], asked: Asked
) -> tuple[tuple[tuple[Hashable, ...], ...], Bools]:
    """The groups that sensitive columns form: their values, and for each its sets [groups, classes, m]."""
    if not columns:
        return ((),), asked.sets[None, :, :]
    parts = list(zip(*(sensitive_part(manifest, column) for column in columns), strict=True))
    labels = list(dict.fromkeys(parts))
    place = {label: i for i, label in enumerate(labels)}
    member = np.zeros((len(labels), len(parts)), bool)
    member[[place[part] for part in parts], np.arange(len(parts))] = True
    asked_for = (member @ asked.sets.any(axis=0)).astype(bool)
    chosen = np.flatnonzero(asked_for)
    sets = member[chosen][:, None, :] & asked.sets[None, :, :]
    return tuple(labels[i] for i in chosen), sets


def interval(found: Answers, z: float) -> tuple[Floats, Floats]:
    """The ends of the intervals: value -+ z stderr, cut to what is possible, always holding the value."""
    half = z * np.sqrt(found.variance)
    low = np.minimum(np.clip(found.value - half, found.smallest, found.largest), found.value)
    high = np.maximum(np.clip(found.value + half, found.smallest, found.largest), found.value)
    return low, high


def group_columns(ask: Asking, names: Sequence[str], found: Grouped) -> dict[str, pa.Array]:
    """The group columns of a result: public groups outside, sensitive values inside."""
    inner = len(found.labels)
    arrays: dict[str, pa.Array] = {}
    public = [name for name in names if name not in ask.manifest.sensitive_columns]
    hidden = [name for name in names if name not in public]
    for name in names:
        if name in public:
            values = ask.counter.distinct(name)
            codes = found.keys[:, public.index(name)]
            places = pa.array(np.repeat(codes, inner), mask=np.repeat(codes == len(values), inner))
            arrays[name] = values.take(places)
        else:
            part = hidden.index(name)
            one = pa.array([label[part] for label in found.labels])
            arrays[name] = one.take(pa.array(np.tile(np.arange(inner), len(found.keys))))
    return arrays
