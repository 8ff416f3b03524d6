"""Publish by perturbed generalization: boxes of public values, and of each one perturbed row. For comparison.

Boxes are cut on the whole table at once, so it is held in memory, as codes. Only the row that is drawn of a box is
perturbed: what the others would have shown is never seen.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from deniable.core.arrays import Codes, Ints
from deniable.core.channel import Channel
from deniable.core.errors import ColumnError, OptionError
from deniable.core.histogram import Histogram
from deniable.core.part import COUNT_EPSILON
from deniable.engines.base import CELL
from deniable.engines.batch.kernel import Kernel
from deniable.engines.batch.shuffling import order_of
from deniable.engines.noise import discrete_laplace
from deniable.engines.randomness import Keystream
from deniable.engines.request import Request
from deniable.rivals.base import RivalRelease, batches, manifest_of
from deniable.rivals.generalize.axes import axes_of_rows
from deniable.rivals.generalize.boxes import box_table, box_texts
from deniable.rivals.generalize.mondrian import mondrian

if TYPE_CHECKING:
    from deniable.rivals.perturbed_generalization.mechanism import PerturbedGeneralization


def published_sample(mechanism: PerturbedGeneralization, request: Request) -> RivalRelease:
    """One row with ranges and a perturbed value for each box, and the boxes."""
    _check(request)
    scan = request.scan(request.sensitive, request.domain)
    public = noisy_histogram(request, scan.histogram)
    guarantee = mechanism.guarantee(scan.histogram, request.privacy, public)
    channel = mechanism.channel(scan.histogram, request.privacy, public)
    codes = np.concatenate([scan.encoder.encode(batch) for batch in batches(request, list(request.sensitive))])
    everybody = np.arange(len(codes))
    axes = axes_of_rows(request.dataset, request.public, everybody, request.progress)
    groups = mondrian(list(axes.values()), np.zeros(len(codes), np.int8), mechanism.k, 1)
    boxes = box_table(axes, groups)
    member = one_of_each(groups, request.keys.subkey("sample"))
    shown = perturbed(channel, codes[member], request.keys.subkey("draws"))
    order = order_of(request.keys.subkey("order").words(0, len(member)))
    own = pa.array(order, pa.int64())
    values = dict(zip(request.sensitive, scan.encoder.decode(shown[order]), strict=True))
    rows = pa.table({**{name: box_texts(boxes, name).take(own) for name in axes}, **values, CELL: own})
    manifest = manifest_of(mechanism, request, guarantee, scan, rows.schema, len(member), channel=channel)
    return RivalRelease(manifest, rows.schema, lambda _: [rows], lambda: [boxes])


def one_of_each(groups: Ints, stream: Keystream) -> Ints:
    """A row of each group, drawn evenly: the first of the group in a random order of all rows."""
    order = order_of(stream.words(0, len(groups)))
    _, first = np.unique(groups[order], return_index=True)
    member: Ints = order[first]
    return member


def perturbed(channel: Channel, codes: Codes, stream: Keystream) -> Codes:
    """What rows show, by the kernel that perturbs every release."""
    kernel = Kernel([channel], [np.arange(channel.m)])
    return kernel.perturb(codes, stream.words(0, len(codes)))


def noisy_histogram(request: Request, histogram: Histogram) -> Histogram | None:
    """What numbers that depend on the table are computed from: its histogram with noise, every count at least one."""
    if request.privacy is None or request.privacy.adversary != "frequency":
        return None
    stream = request.keys.subkey("marginal", hashlib.sha256(histogram.counts.tobytes()).hexdigest())
    counts = histogram.counts + discrete_laplace(stream, histogram.m, COUNT_EPSILON)
    return Histogram(histogram.domain, np.maximum(counts, 1))


def _check(request: Request) -> None:
    if not request.public:
        raise ColumnError(
            "mechanism 'perturbed-generalization' needs a public column: without one there is nothing to generalize. "
            "Fix: publish another column, or use mechanism='uniform'."
        )
    if CELL in (*request.public, *request.sensitive):
        raise ColumnError(f"The table has a column {CELL!r}, which the release needs for itself. Fix: rename it.")
    if not request.shuffle:
        raise OptionError(
            "mechanism 'perturbed-generalization' publishes a row of each box, in random order. Fix: leave out "
            "shuffle=False."
        )
    if request.privacy is not None and request.privacy.adversary == "any-prior" and request.domain is None:
        raise OptionError(
            "The values of the sensitive column are not declared: adversary 'any-prior' covers whatever was believed, "
            "and that a value is listed because someone holds it is evidence. Fix: domain=[..] with every value that "
            "the column may hold."
        )
