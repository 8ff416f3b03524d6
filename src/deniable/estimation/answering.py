"""One way to an answer: a question is resolved to weighed tallies of rows, and its aggregates are estimated from them.

What differs between releases, one part or several, is in ``model``; methods other than these estimate counts only.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.errors import OptionError, QuestionError, option
from deniable.core.values import Floats, Ints
from deniable.estimation.aggregates import Aggregate, Count, columns_of, conditions_of
from deniable.estimation.asking import Asking, Options, asking
from deniable.estimation.formula import Ranges
from deniable.estimation.four_state import answer_four_state
from deniable.estimation.linear import Linear, Narrowed, paired
from deniable.estimation.mapped import Grouped, Mapped, column_of, name_of
from deniable.estimation.model import learned, one_part, several
from deniable.estimation.model.conditions import is_joint
from deniable.estimation.model.weighed import Answers, Weighed
from deniable.estimation.possible import Possible
from deniable.estimation.predicates import And, Predicate
from deniable.estimation.published import Published, with_columns
from deniable.estimation.question import Answer, Question
from deniable.estimation.questions import is_number, require_column

Labels = tuple[tuple[Hashable, ...], ...]


def answer(published: Published, question: Question) -> Answer:
    """Every aggregate of the rows that satisfy the question's condition, by group."""
    ask, options = asking(published), question.options
    for group in question.groups:
        require_column(ask.manifest, column_of(group))
    if options.method != "inverse" and not all(isinstance(one, Count) for one in question.aggregates):
        raise QuestionError(
            f"method = {options.method!r} answers counts only; sums, averages and shares are estimated with "
            f"{option('method', 'inverse')}."
        )
    if options.four_state:
        return _four_state(published, question)
    together = list(dict.fromkeys(column for one in question.aggregates for column in columns_of(one)))
    for column in together:
        require_numbers(ask, column)
    narrowed = list(dict.fromkeys(condition for one in question.aggregates for condition in conditions_of(one)))
    pairs = {column.name: column for one in question.aggregates for column in paired(columns_of(one))}
    counted = with_columns(published, tuple(pairs.values()))
    labels, blocks = _weighed(counted, question, narrowed, [*together, *pairs])
    keys, numbers, missing = [], [], _groups_wanted(question, labels)
    possible = Possible(counted, question)
    for block in blocks:  # one after the other: the tallies and weights of all groups and labels may not fit
        pieces: list[tuple[Ints, Mapping[Aggregate, Answers]]] = []
        start = 0
        for rows in block:
            linear = Linear(dict(zip([None, *narrowed], rows, strict=True)))
            here = labels[start : (start := start + rows[0].shape[1])]
            ranges = partial(possible.range, rows[0].keys, here)
            pieces.append((rows[0].keys[:missing], _estimated(question, linear, ranges)))
        keys.append(pieces[0][0])
        joined = _joined([estimated for _, estimated in pieces], axis=1)
        numbers.append({aggregate: answers.first(missing) for aggregate, answers in joined.items()})
        if missing is not None and (missing := missing - len(keys[-1])) <= 0:
            break
    return Answer(question, np.concatenate(keys), labels, _joined(numbers, axis=0))


def _groups_wanted(question: Question, labels: Labels) -> int | None:
    """The groups that have the first rows of a result, each with all labels; one at least, and None for all."""
    return None if question.first is None else max(1, -(-question.first // max(len(labels), 1)))


def _estimated(question: Question, linear: Linear, ranges: Ranges) -> dict[Aggregate, Answers]:
    """Every aggregate of some rows."""
    numbers, options = {}, question.options
    for aggregate in question.aggregates:
        numbers[aggregate] = aggregate.estimate(linear, options.method, options.z, ranges)  # type: ignore[arg-type]
    return numbers


def _joined(parts: Sequence[Mapping[Aggregate, Answers]], axis: int) -> dict[Aggregate, Answers]:
    return {aggregate: Answers.joined([part[aggregate] for part in parts], axis) for aggregate in parts[0]}


def _weighed(
    published: Published, question: Question, narrowed: Sequence[Narrowed], columns: Sequence[str]
) -> tuple[Labels, Iterable[Iterable[Sequence[Weighed]]]]:
    """The labels, and block by block the rows, weighed by the question's condition and each further one."""
    if is_joint(published.manifest):
        require_one_part_options(question.options)
        labels, rows = several.weighed(
            published.manifest,
            published.counter(),
            question.where,
            narrowed,
            question.groups,
            columns,
            question.options.calibrate,
        )
        return labels, [[rows]]
    ask = asking(published)
    spread = None if ask.learned is None else learned.spread_of(ask)
    return one_part.weighed(ask, question.where, narrowed, question.groups, columns, question.options, spread)


def _four_state(published: Published, question: Question) -> Answer:
    """Counts by the four-state estimate, of all rows and of those that satisfy further conditions."""
    options, groups = question.options, [group for group in question.groups if isinstance(group, str)]
    if len(groups) < len(question.groups):
        raise QuestionError(f"method = {options.method!r} groups by columns only, not by functions of them.")
    keys, labels, count = answer_four_state(published, question.where, options, groups)
    numbers: dict[Aggregate, Answers] = {}
    for aggregate in question.aggregates:
        assert isinstance(aggregate, Count)
        if aggregate.narrowed is None:
            numbers[aggregate] = count
            continue
        where = And((question.where, aggregate.narrowed.condition))
        some, some_labels, counted = answer_four_state(published, where, options, groups)
        numbers[aggregate] = counted.spread(
            places_among(keys.tolist(), some.tolist()), places_among(labels, some_labels)
        )
    return Answer(question, keys, labels, numbers)


def places_among(wanted: Iterable[Iterable[Hashable]], there: Iterable[Iterable[Hashable]]) -> Ints:
    """Where each of some keys stands among others; -1 where it does not."""
    place = {tuple(key): i for i, key in enumerate(there)}
    return np.array([place.get(tuple(key), -1) for key in wanted], dtype=np.int64)


def row_weights(published: Published, where: Predicate, numbers: Mapped | None = None) -> Floats:
    """One weight a row, in the order of the table; their sum is the uncalibrated estimate of how many satisfy, or of
    what numbers of a sensitive column add up to over those that do."""
    if is_joint(published.manifest):
        return several.row_weights(published.manifest, published.counter(), where, numbers)
    return one_part.row_weights(asking(published), where, numbers)


def row_numbers(published: Published, column: str, missing: float) -> Floats:
    """A public column of numbers, of every row in the order of the table; refused where it holds none."""
    require_numbers(asking(published), column)
    counter = published.counter()
    values = pc.cast(counter.distinct(column), pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.append(values, missing)[counter.coded((column,), ()).keys[:, 0]]


def require_one_part_options(options: Options) -> None:
    """Refuse what is not for releases of several parts."""
    if options.four_state:
        raise OptionError(f"method = {options.method!r} answers counts, not cubes. Fix: group_by the columns.")
    if options.method == "shrunk":
        raise OptionError(
            "method = 'shrunk' is for releases of one sensitive column, not swapped: choose 'inverse' or 'mle'."
        )


def require_numbers(ask: Asking, column: str) -> None:
    """Refuse to add up a column that is not public, or holds no numbers."""
    require_column(ask.manifest, column)
    if column in ask.manifest.sensitive_columns:
        raise QuestionError(
            f"{column!r} is sensitive: its published values are perturbed, so they cannot be added up. "
            f"Ask for counts by value instead: group by {column!r}."
        )
    values = ask.counter.distinct(column)
    if not is_number(values.type) and not pa.types.is_boolean(values.type) and not pa.types.is_null(values.type):
        raise QuestionError(
            f"Column {column!r} is of type {values.type}: only numbers can be added up or averaged. Ask for counts by "
            f"value instead: group by {column!r}."
        )


def interval(numbers: Answers, z: float) -> tuple[Floats, Floats]:
    """The ends of the intervals, within what is possible (``estimation.limits``)."""
    return numbers.limits(z)


def group_columns(ask: Asking, groups: Sequence[Grouped], grouped: Answer) -> dict[str, pa.Array]:
    """The group columns of a result: public groups outside, sensitive values inside."""
    inner = len(grouped.labels)
    arrays: dict[str, pa.Array] = {}
    public = [group for group in groups if column_of(group) not in ask.manifest.sensitive_columns]
    hidden = [group for group in groups if group not in public]
    for group in groups:
        if group in public:
            values = ask.counter.distinct(column_of(group))
            codes = grouped.keys[:, public.index(group)]
            places = pa.array(np.repeat(codes, inner), mask=np.repeat(codes == len(values), inner))
            arrays[name_of(group)] = values.take(places)
        else:
            part = hidden.index(group)
            labels = pa.array([label[part] for label in grouped.labels])
            arrays[name_of(group)] = labels.take(pa.array(np.tile(np.arange(inner), len(grouped.keys))))
    return arrays
