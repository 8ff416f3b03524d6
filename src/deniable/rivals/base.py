"""Rivals: mechanisms that publish something else than perturbed rows. They are here to be compared with."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.arrays import Bools, Codes, Ints
from deniable.core.channel import Channel
from deniable.core.errors import ColumnError, ManifestError, OptionError, did_you_mean
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Histogram
from deniable.core.manifest import Column, Manifest, Randomness, guarantee_dict, privacy_dict, software
from deniable.core.part import COUNT_EPSILON, Part
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.engines.base import CELL, Scan
from deniable.engines.batch.values import plain_type
from deniable.engines.noise import discrete_laplace
from deniable.engines.request import Request
from deniable.estimation.aggregates import Count
from deniable.estimation.asking import Options
from deniable.estimation.predicates import Leaf, comparing, require_known
from deniable.estimation.question import Answerer, Question
from deniable.mechanisms.base import Mechanism


@dataclass(frozen=True, eq=False)
class RivalRelease:
    """What a rival publishes.

    Attributes:
        rows: the first table, in pieces; a folder may be given for tables larger than memory.
        groups: the second table, in pieces.
        answerer: instead of tables, who answers from the original, which stays with its owner.
        beside: the sensitive column, where public ones are published as they are.
    """

    manifest: Manifest
    schema: pa.Schema | None = None
    rows: Callable[[Path | None], Iterable[pa.Table]] | None = None
    groups: Callable[[], Iterable[pa.Table]] | None = None
    answerer: Answerer | None = None
    beside: Scan | None = None


class Rival(Mechanism):
    """A mechanism without channels: it has a guarantee, and no plan."""

    def plan(self, histogram: Histogram, privacy: Privacy | None, *, public: Histogram | None = None) -> Plan:
        """Refused: what it does depends on rows, not on the histogram alone."""
        raise OptionError(
            f"mechanism {self.name!r} has no plan of channels: it can be published and evaluated, but not planned from "
            f"a histogram. Fix: dn.publish(..., mechanism={self.name!r})."
        )

    @abstractmethod
    def guarantee(self, histogram: Histogram, privacy: Privacy | None) -> Guarantee:
        """What it promises; refused when a requirement asks for more."""

    @abstractmethod
    def published(self, request: Request) -> RivalRelease:
        """What it publishes of a table."""


def noisy_histogram(request: Request, histogram: Histogram) -> Histogram | None:
    """What numbers that depend on the table are computed from: its histogram with noise, every count at least one."""
    if request.privacy is None or request.privacy.adversary != "frequency":
        return None
    stream = request.keys.subkey("marginal", hashlib.sha256(histogram.counts.tobytes()).hexdigest())
    counts = histogram.counts + discrete_laplace(stream, histogram.m, COUNT_EPSILON)
    return Histogram(histogram.domain, np.maximum(counts, 1))


def manifest_of(
    mechanism: Rival,
    request: Request,
    guarantee: Guarantee,
    scan: Scan,
    schema: pa.Schema,
    rows: int,
    channel: Channel | None = None,
    **more: Any,
) -> Manifest:
    """The manifest of a release of groups or answers; ``channel`` perturbs the values of whatever rows it shows."""
    roles = {CELL: "cell", **dict.fromkeys(request.sensitive, "sensitive")}
    part = Part(
        columns=request.sensitive,
        types=tuple(str(kind) for kind in scan.encoder.types),
        missing=request.missing,
        promise=guarantee.promises[0],
        domain=scan.histogram.domain,
        channels=() if channel is None else (channel,),
        cell_positions=() if channel is None else (np.arange(channel.m),),
        cells_published=mechanism.form in ("buckets", "boxes"),
        bins={name: bins for name, bins in request.dataset.bins.items() if name in request.sensitive},
    )
    return Manifest(
        name=request.name,
        software=software(),
        mechanism=mechanism.name,
        options=more.get("options", mechanism.options),
        form=mechanism.form,
        rows=rows,
        columns=tuple(Column(field.name, str(field.type), roles.get(field.name, "public")) for field in schema),
        parts=(part,),
        privacy=privacy_dict(request.privacy),
        guarantee=guarantee_dict(guarantee),
        randomness=Randomness(request.secret.source, request.secret.seed, request.shuffle, "row number"),
    )


def codes_of(request: Request, encoder: Any) -> Codes:
    """The sensitive column as codes, in memory."""
    return np.concatenate([encoder.encode(batch) for batch in batches(request, list(request.sensitive))])


def codes_and_rows(request: Request, encoder: Any) -> tuple[Ints, pa.Table]:
    """The sensitive column as codes, and the public columns, all in memory."""
    codes, tables = [], []
    for batch in batches(request, [*request.public, *request.sensitive]):
        codes.append(encoder.encode(batch).astype(np.int64))
        tables.append(pa.Table.from_batches([batch]).select(list(request.public)))
    rows = pa.concat_tables(tables).combine_chunks()
    plain = [pa.field(f.name, plain_type(f.type)) for f in rows.schema]
    return np.concatenate(codes), rows.cast(pa.schema(plain))


def batches(request: Request, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Some columns of the table, with progress."""
    done = 0
    for batch in request.dataset.batches(columns):
        done += batch.num_rows
        request.progress(done, request.dataset.rows, "grouping")
        yield batch


# -- answering counts --------------------------------------------------------------------------------------------------


class CountsOnly:
    """An answerer of single counts, and of nothing else."""

    published = None

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest

    def refusal(self, question: Question) -> str | None:
        """Whatever is more than one count; options that mean nothing here are not passed over."""
        name = self.manifest.mechanism
        if question.aggregates != (Count(),) or question.groups:
            return (
                f"A release by {name!r} answers count(where=...) only: it is here to be compared with. "
                "Fix: publish with another mechanism for sums, averages, group-bys and SQL."
            )
        plain, given = Options(), question.options
        other = [option for option in ("method", "calibrate") if getattr(given, option) != getattr(plain, option)]
        if other:
            raise OptionError(
                f"A release by {name!r} has one way to count: {', '.join(other)} does not go with it. "
                "Fix: count(where=..., confidence=0.95)."
            )
        return None

    def split(self, question: Question) -> tuple[list[Leaf], Bools]:
        """The conditions on public columns, and which entries of the domain satisfy those on sensitive ones."""
        part = self.manifest.parts[0]
        wanted = np.ones(part.m, dtype=bool)
        rest = []
        for leaf in question.where.parts if not isinstance(question.where, Leaf) else (question.where,):
            assert isinstance(leaf, Leaf)
            if leaf.column in part.columns:
                wanted &= self._domain_mask(part, leaf)
            elif leaf.column in self.manifest.public_columns:
                rest.append(leaf)
            else:
                known = [*part.columns, *self.manifest.public_columns]
                raise ColumnError(f"The release has no column {leaf.column!r}.{did_you_mean(leaf.column, known)}")
        return rest, wanted

    @staticmethod
    def _domain_mask(part: Part, leaf: Leaf) -> Bools:
        own = part.column_values(leaf.column)
        require_known(leaf.column, pa.array(list(dict.fromkeys(own))).drop_null(), leaf.named, sensitive=True)
        return holds_for(leaf, pa.array(own))


def matching_rows(leaves: Iterable[Leaf], table: pa.Table, *, named: bool = False) -> Bools:
    """Which rows satisfy conditions on public columns; ``named`` values must occur."""
    matching = np.ones(table.num_rows, dtype=bool)
    for leaf in leaves:
        values = table[leaf.column].combine_chunks()
        if named:
            require_known(leaf.column, values, leaf.named, sensitive=False)
        matching &= holds_for(leaf, values)
    return matching


def places_in(part: Part, table: pa.Table) -> Ints:
    """Where the values that a table shows stand in the domain of a part."""
    if not {*part.columns} <= {*table.column_names}:
        raise ManifestError("manifest.json is damaged: the release's tables do not have the columns that it names.")
    shown = zip(*(table[name].to_pylist() for name in part.columns), strict=True)
    place = {value if len(part.columns) > 1 else (value,): number for number, value in enumerate(part.domain)}
    places = np.array([place.get(value, -1) for value in shown], dtype=np.int64)
    if (places < 0).any():
        raise ManifestError("The release's tables hold a sensitive value that its manifest does not list.")
    return places


def holds_for(leaf: Leaf, values: pa.Array) -> Bools:
    """Which values satisfy a condition, missing ones among them."""
    with comparing(leaf.column, values.type):
        holds = leaf.test(values)
    settled = pc.if_else(pc.is_null(values), pa.scalar(leaf.missing), pc.fill_null(holds, False))
    return np.asarray(settled.to_numpy(zero_copy_only=False), dtype=bool)
