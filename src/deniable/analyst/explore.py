"""A release as one page that anyone explores in a browser: no server, no network, nothing to install.

The page holds the published rows, packed by codes, and what a row counts for; its script (``explore.js``) computes what
``release.count`` computes, with the same intervals. It holds nothing that the release does not hold.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.errors import DeniableError, OptionError, did_you_mean, listing
from deniable.core.exact import SCALE
from deniable.core.part import Part, perturbed_names
from deniable.core.tally import Counter
from deniable.core.text import shown
from deniable.core.values import Ints
from deniable.estimation.asking import Asking, Options, asking
from deniable.estimation.calibration import Control
from deniable.estimation.model.columns import PerturbedColumn
from deniable.estimation.model.conditions import control_of, is_joint, often_of, perturbed_column, totals_of
from deniable.estimation.model.learned import COMBINATION, FREQUENT, model_of
from deniable.estimation.model.lineups import LineUpStates
from deniable.estimation.questions import is_number, sensitive_part
from deniable.release.folder import write_file
from deniable.release.published import with_channels
from deniable.release.release import Release
from deniable.report.tables import content_security_policy, in_html, style_sheet

MOST_ROWS = 1_000_000  # different rows in a page; of more a sample is taken, and the page says so
MOST_TEXTS = 2_000  # values of a public column that are listed to choose from
MOST_NUMBERS = 200_000  # and of one that is chosen from by its ends
MOST_ENTRIES = 2**22  # numbers of one table of weights, or members of sets
EXACT = 2**53  # whole numbers that a browser tells apart


# -- Arrays, packed into one block -------------------------------------------------------------------------------------


@dataclass
class Block:
    """Arrays one after the other, each at a multiple of 8 bytes."""

    parts: list[bytes] = field(default_factory=list)
    arrays: list[tuple[str, int, int]] = field(default_factory=list)  # type, where it begins, how many numbers
    size: int = 0

    def add(self, numbers: npt.NDArray[Any]) -> int:
        """The number of an array, by which the page names it."""
        flat = np.ascontiguousarray(numbers).reshape(-1)
        if flat.dtype.kind in "iub":
            most = int(flat.max(initial=0))
            flat = flat.astype("<u1" if most < 2**8 else "<u2" if most < 2**16 else "<u4" if most < 2**32 else "<f8")
        else:
            flat = flat.astype("<f4" if flat.dtype == np.float32 else "<f8")
        raw = flat.tobytes()
        self.arrays.append((flat.dtype.str[1:], self.size, len(flat)))
        self.parts.append(raw + bytes(-len(raw) % 8))
        self.size += len(self.parts[-1])
        return len(self.arrays) - 1

    def text(self) -> str:
        """All of it, compressed, as letters."""
        return base64.b64encode(gzip.compress(b"".join(self.parts), 6, mtime=0)).decode()


# -- Columns -----------------------------------------------------------------------------------------------------------


def values_in_json(values: pa.Array) -> tuple[str, list[Any]]:
    """What kind of values these are (number, date, time, truth or text), and how a page has them."""
    kind = values.type
    if pa.types.is_boolean(kind):
        return "truth", values.to_pylist()
    if is_number(kind):
        numbers = [float(one) if pa.types.is_decimal(kind) else one for one in values.to_pylist()]
        if all(abs(one) < EXACT for one in numbers):
            return "number", numbers
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return ("date" if pa.types.is_date(kind) else "time"), [one.isoformat() for one in values.to_pylist()]
    return "text", [str(one) for one in values.to_pylist()]


def public_column(ask: Asking, name: str) -> tuple[dict[str, Any] | None, Ints, str]:
    """A public column as the page has it, where each code's value went, and why it is left out, if it is."""
    values = ask.counter.distinct(name)
    if isinstance(values, pa.DictionaryArray):
        values = values.dictionary_decode()
    try:
        order = pc.array_sort_indices(values).to_numpy(zero_copy_only=False).astype(np.int64)
    except pa.ArrowNotImplementedError:
        return None, np.zeros(0, np.int64), f"its type, {values.type}, has no order"
    kind, listed = values_in_json(values.take(pa.array(order)))
    most = MOST_TEXTS if kind in ("text", "truth") else MOST_NUMBERS
    if len(listed) > most:
        return None, np.zeros(0, np.int64), f"it has {len(listed):,} different values"
    places = np.empty(len(listed) + 1, np.int64)
    places[order] = np.arange(len(listed))
    places[-1] = len(listed)  # missing
    return {"name": name, "kind": kind, "values": listed}, places, ""


def chosen_columns(release: Release, columns: Sequence[str] | None) -> list[str]:
    """The public columns that a page is to have."""
    known = release.manifest.public_columns
    if columns is None:
        return list(known)
    for name in columns:
        if name not in known:
            raise OptionError(
                f"There is no public column {name!r}.{did_you_mean(name, known)} They are: {listing(known, most=20)}."
            )
    return list(dict.fromkeys(columns))


# -- What rows count for -----------------------------------------------------------------------------------------------


@dataclass
class Packed:
    """What a page is made of: a description, and arrays."""

    meta: dict[str, Any]
    block: Block

    def set_table(self, states: LineUpStates) -> dict[str, Any] | None:
        """Line-ups: scores of values, whose sum over a set is its weight; None where they are too many."""
        design, m = states.design, states.design.m
        if m * m > MOST_ENTRIES or design.sets.members.size > MOST_ENTRIES:
            return None
        scores = states.scores(np.eye(m))
        return {
            "kind": "sets",
            "m": m,
            "exempt": states.exempt,
            "size": design.size,
            "members": self.block.add(design.sets.members),
            "distribution": self.block.add(design.distribution),
            "inclusion": self.block.add(design.inclusion),
            "truth": design.share_true,
            "scores": self.block.add(scores),
        }

    def cells(self, ask: Asking) -> dict[str, Any] | None:
        """Coins cell by cell, or one matrix; None where that is too large."""
        states = ask.states
        if isinstance(states, LineUpStates):
            table = self.set_table(states)
            return None if table is None else {**table, "often": self.block.add(ask.often[0])}
        if states.mixture is not None:
            if states.m**2 > MOST_ENTRIES:
                return None
            made = {"positions": self.block.add(np.arange(states.m))}
            replaced = self.block.add(states.mixture.mean(axis=1))
            weights = self.block.add(states.weights(np.eye(states.m)))
            further = {"channel": self.block.add(states.mixture), "often": self.block.add(ask.often[0])}
            return {"kind": "cells", "cells": [{**made, "replaced": replaced, "weights": weights, **further}]}
        cells = []
        for channel, positions, often in zip(states.channels, states.positions, ask.often, strict=True):
            one: dict[str, Any] = {"positions": self.block.add(positions), "often": self.block.add(often)}
            one["kept"] = self.block.add(channel.coins)
            one["replaced"] = self.block.add(channel.replacing)
            if channel.keep.all():
                one["coins"] = self.block.add(channel.coins)
            elif channel.m**2 > MOST_ENTRIES:
                return None
            elif channel.invertible:
                one["weights"] = self.block.add(channel.weights(np.eye(channel.m)))
            cells.append(one)  # with neither: whatever a row shows, it tells the replacing distribution
        return {"kind": "cells", "cells": cells}

    def control(self, known: Control | None) -> dict[str, Any] | None:
        """What the whole table shows, and the noisy histogram; None where none is published."""
        if known is None:
            return None
        return {
            "total": self.block.add(known.total),
            "counts": self.block.add(known.counts),
            "variance": known.variance,
            "noisy": self.block.add(known.noisy.astype(np.uint8)),
        }

    def factor(self, column: PerturbedColumn, counter: Counter) -> dict[str, Any] | None:
        """A column that was perturbed by itself, beside others."""
        often = {"often": self.block.add(often_of(counter, column))}
        if not column.hidden:
            return {"kind": "coin", "coin": column.coin, "masses": self.block.add(column.masses), **often}
        if column.design is not None:
            table = self.set_table(LineUpStates(column.design, column.exempt))
            return None if table is None else {**table, **often}
        factor = column.factor()
        if factor.size**2 > MOST_ENTRIES:
            return None
        every = np.eye(factor.size)
        weights, channel = self.block.add(factor.weights(every)), self.block.add(factor.apply(every).T)
        return {"kind": "matrix", "weights": weights, "channel": channel, **often}


def pack(release: Release, columns: Sequence[str] | None = None) -> Packed:
    """The page's content.

    Args:
        release: the release.
        columns: the public columns to have; left out: all.
    """
    published = with_channels(release)
    ask, manifest, packed = asking(published), release.manifest, Packed({}, Block())
    left_out, public, moved = [], [], []
    for name in chosen_columns(release, columns):
        column, places, why = public_column(ask, name)
        if column is None:
            left_out.append([name, f"{why}: more than a page lets one choose from"])
        else:
            public.append(column)
            moved.append(places)
    left_out += [[name, "it was not asked for when the page was made"] for name in manifest.public_columns
                 if columns is not None and name not in columns]  # fmt: skip
    names = [column["name"] for column in public]
    joint = is_joint(manifest)
    sensitive, columns_shown = _several_parts(packed, published, left_out) if joint else _one_part(packed, ask)
    codes = ask.counter.coded([*names, *columns_shown], (), states=not joint)
    keys = [places[codes.keys[:, i]] for i, places in enumerate(moved)]
    if joint:
        for i, name in enumerate(columns_shown):
            shows = perturbed_column(manifest, name).states(ask.counter.distinct(name))
            keys.append(shows[codes.keys[:, len(names) + i]])
    else:
        keys.append(codes.states)
    if ask.learned is not None:
        keys.append(_combinations(ask))
    rows, often, share = distinct_rows(np.stack(keys, axis=1), MOST_ROWS)
    if share < 1 and ask.learned is not None:
        raise OptionError(
            f"The page would hold more than {MOST_ROWS:,} different rows, and of a learned release no sample can be "
            f"taken. Fix: name fewer public columns, such as --columns {','.join(names[:3])}"
        )
    for i, column in enumerate(public):
        column["codes"] = packed.block.add(rows[:, i])
        column["missing"] = bool((rows[:, i] == len(column["values"])).any())
    for column in sensitive:
        column["codes"] = packed.block.add(rows[:, len(public) + (column["part"] if joint else 0)])
    about = manifest.about
    packed.meta |= {
        "name": shown(manifest.name),
        "rows": manifest.rows,
        "packed": len(rows),
        "often": packed.block.add(often),
        "share": share,
        "joint": joint,
        "public": public,
        "sensitive": sensitive,
        "left_out": left_out,
        "learned": None if ask.learned is None else _learned(packed, ask, rows[:, -1]),
        "is_learned": ask.learned is not None,
        "made": None if about is None else about.date,
        "publisher": None if about is None else about.publisher,
    }
    return packed


def distinct_rows(keys: Ints, most: int) -> tuple[Ints, Ints, float]:
    """The different rows, how often each stands in the table, and the share of the table's rows that they are of: every
    row is in a sample, or not, by itself."""
    rows, often = _counted(keys)
    if len(rows) <= most:
        return rows, often, 1.0
    share = round(0.95 * most / len(keys), 9)
    taken = np.random.Generator(np.random.PCG64(len(keys))).random(len(keys)) < share
    return *_counted(keys[taken]), share


def _counted(keys: Ints) -> tuple[Ints, Ints]:
    code = np.zeros(len(keys), np.int64)
    size = 1
    for column in keys.T:
        width = int(column.max(initial=0)) + 1
        if size * width >= 2**62:
            code = np.unique(code, return_inverse=True)[1].astype(np.int64)
            size = int(code.max(initial=0)) + 1
        code, size = code * width + column, size * width
    _, first, often = np.unique(code, return_index=True, return_counts=True)
    return keys[first], often


def _one_part(packed: Packed, ask: Asking) -> tuple[list[dict[str, Any]], list[str]]:
    """The sensitive columns of one part, whose states rows show."""
    layout, control = ask.manifest, ask.control(Options())
    sensitive = []
    for name in layout.sensitive_columns:
        every = sensitive_part(layout, name)
        column, places = _listed(name, every)
        sensitive.append({**column, "part": 0, "of": packed.block.add(places)})
    model = packed.cells(ask)
    packed.meta["model"] = model
    packed.meta["domain"] = len(layout.domain)
    packed.meta["unbiased"] = bool(ask.states.unbiased)
    packed.meta["control"] = packed.control(control)
    return ([] if model is None else sensitive), []


def _listed(name: str, every: Sequence[Hashable]) -> tuple[dict[str, Any], Ints]:
    """A sensitive column's different values, missing last, and which of them each of some values is."""
    known = list(dict.fromkeys(value for value in every if value is not None))
    array = pa.array(known)
    kind, values = values_in_json(array)
    place = {value: i for i, value in enumerate(known)}
    places = np.array([len(known) if value is None else place[value] for value in every], np.int64)
    return {"name": name, "kind": kind, "values": values, "missing": None in every}, places


def _several_parts(packed: Packed, published: Any, left_out: list[list[str]]) -> tuple[list[dict[str, Any]], list[str]]:
    """Columns that were perturbed each by itself, and those of them that a page can ask about."""
    manifest = published.manifest
    sensitive: list[dict[str, Any]] = []
    columns_shown: list[str] = []
    for part in manifest.parts:
        why = ""
        if len(part.columns) > 1:
            why = "it is compounded with other columns, which this page cannot combine with the rest"
        else:
            (name,) = part.columns
            try:
                column = PerturbedColumn.of(part, manifest.types[name])
                factor = packed.factor(column, published.counter())
            except DeniableError as problem:
                factor, why = None, str(problem)
            if factor is None and not why:
                why = "its weights are too many for a page"
        if why:
            left_out += [[name, why] for name in part.columns]
            continue
        assert factor is not None
        kind, values = values_in_json(column.values)
        missing = len(column.masses) > len(column.values)
        one = {
            "name": name,
            "kind": kind,
            "values": values,
            "missing": missing or column.exempt,
            "part": len(columns_shown),
        }
        control = packed.control(control_of(manifest, published.counter(), column))
        total = packed.block.add(totals_of(published.counter(), column))
        further = {**_swapped(part, column), **_item(part), "control": control, "total": total}
        sensitive.append({**one, "factor": factor, "exempt": column.exempt, **further})
        columns_shown.append(name)
    return sensitive, columns_shown


def _swapped(part: Part, column: PerturbedColumn) -> dict[str, Any]:
    if part.swapped is None or not 0 < column.coin < 1:
        return {}
    return {"swapped": part.swapped, "rounding": (part.swapped / (SCALE * column.coin)) ** 2}


def _item(part: Part) -> dict[str, Any]:
    return {} if part.item is None else {"list": part.item.list, "item": part.item.item}


# -- Learned releases: what their model may be off by ------------------------------------------------------------------


def _learned(packed: Packed, ask: Asking, places: Ints) -> dict[str, Any] | None:
    """The model's uncertainty, and which combination of levels each packed row has; nothing where it is too large for a
    page, which then gives counts and says that their intervals are asked for elsewhere."""
    uncertainty = model_of(ask).uncertainty
    learner, design = uncertainty.learner, uncertainty.learner.design
    if max(learner.K * learner.m, learner.K**2, uncertainty.joint.size) > MOST_ENTRIES:
        return None
    add, seen = packed.block.add, learner.seen
    codes = [one.codes + start for one, start in zip(design.levels, design.offsets, strict=False)]
    look = design.look.indices.reshape(len(design.rows), -1)
    return {
        "combinations": len(design.rows),
        "place": add(places),
        "m": learner.m,
        "K": learner.K,
        "seen": len(seen),
        "frequent": np.argsort(-np.exp(learner.base), kind="stable")[:FREQUENT].tolist(),
        "rows": add(design.rows.astype(np.int64)),
        "levels": [add(one) for one in codes],
        "look": [add(column) for column in look.T],
        "joint": add(uncertainty.joint),
        "normal": add(uncertainty.normal.astype(np.float32)),
        "base": add(learner.base),
        "expected": add(np.asarray(uncertainty.expected, np.float64)),
        "size": add(np.asarray(uncertainty.size, np.float64)),
        "prior": add(uncertainty.prior),
        "noise": add(1 / learner.weight),
        "together": add(uncertainty.together),
        "explains": add(uncertainty.explains),
        "pairs": [[i, j, effect] for i, j, effect in uncertainty.pairs],
        "sizes": [one.size for one in design.levels],
        "offsets": design.offsets.tolist(),
    }


def _combinations(ask: Asking) -> Ints:
    """Which combination of levels each row has; one more for rows whose values were not learned."""
    model = model_of(ask)
    rows, known = model.counter.coded([COMBINATION], ask.exempt), model.counter.distinct(COMBINATION)
    inside = rows.patterns == 2 ** len(ask.exempt) - 1
    return np.where(inside, known.to_numpy(zero_copy_only=False)[rows.keys[:, 0]], len(model.keys))


# -- The page ----------------------------------------------------------------------------------------------------------


@cache
def _own(name: str) -> str:
    return files("deniable.analyst").joinpath(name).read_text(encoding="utf-8")


def in_script(content: object) -> str:
    """JSON that no script element ends in, whatever its texts hold."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def page(release: Release, columns: Sequence[str] | None = None) -> str:
    """The page as HTML.

    Args:
        release: the release.
        columns: the public columns to have; left out: all.
    """
    packed, manifest = pack(release, columns), release.manifest
    guarantee = manifest.guarantee
    content = {**packed.meta, "arrays": packed.block.arrays}
    style, script = style_sheet() + _own("explore.css"), _own("explore.js")
    promised = "".join(f"<li>{in_html(line)}</li>" for line in guarantee["also"])
    limits = "".join(f"<li>{in_html(line)}</li>" for line in guarantee["not_protected"])
    return _own("explore.html").format(
        policy=content_security_policy(style, script),
        title=in_html(f"Explore '{packed.meta['name']}'"),
        lead=in_html(_lead(release)),
        sentence=in_html(guarantee["sentence"]),
        promised=promised,
        limits=limits,
        style=style,
        script=script,
        meta=in_script(content),
        block=packed.block.text(),
    )


def _lead(release: Release) -> str:
    names = shown(perturbed_names(release.manifest.parts), 200)
    return (
        f"{release.manifest.rows:,} rows. What they show of {names} was changed: how many people have a value is "
        "estimated here, with an interval."
    )


def write(release: Release, out: str | os.PathLike[str], columns: Sequence[str] | None = None) -> Path:
    """Write the page into a file.

    Args:
        release: the release.
        out: the file.
        columns: the public columns to have; left out: all.
    """
    path = Path(out)
    write_file(path, page(release, columns))
    return path
