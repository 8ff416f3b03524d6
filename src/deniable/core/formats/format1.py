"""Manifests of format 1, read as format 2: what stood in options and bases is said by parts and promises."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from deniable.core.errors import ManifestError

_CLOSED = re.compile(r"\[(\S+), (\S+)[)\]]")
_OPEN = re.compile(r"below (\S+)|(\S+) and above")
_RIVALS = ("anatomy", "generalize", "laplace")
_USUAL = ("1/10", "19/20")  # OLAP's example of rho1 and rho2, where a column had no requirement


def as_format_2(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest in format 2; refused where it promises in a way that format 1 did not have."""
    try:
        return _upgraded(raw)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as damage:
        raise ManifestError(
            f"manifest.json of format 1 is damaged: {type(damage).__name__} {str(damage)[:80]}."
        ) from None


def _upgraded(raw: Mapping[str, Any]) -> dict[str, Any]:
    mechanism, options = raw["mechanism"]["name"], raw["mechanism"]["options"]
    data = raw["data"]
    if mechanism in _RIVALS:
        raise ManifestError(f"A release by {mechanism!r} publishes no perturbed rows, and is not read any more.")
    guarantee = {name: raw["guarantee"][name] for name in _GUARANTEE}
    parts = [_part(part, number, raw) for number, part in enumerate(raw["sensitive"])]
    return {
        "format": raw["format"],
        "format_version": 2,
        "software": raw["software"],
        "name": raw["name"],
        "mechanism": {"name": mechanism, "options": options},
        "rows": raw["rows"],
        "columns": raw["columns"],
        "parts": parts,
        "privacy": None if raw["privacy"] is None else {"small_sums": None, "large_sums": None, **raw["privacy"]},
        "guarantee": guarantee,
        "randomness": raw["randomness"],
        "data": data,
    }


_GUARANTEE = ("adversary", "rho1", "rho2", "gamma", "epsilon", "sentence", "also", "not_protected")


def _part(part: Mapping[str, Any], number: int, raw: Mapping[str, Any]) -> dict[str, Any]:
    options, mechanism = raw["mechanism"]["options"], raw["mechanism"]["name"]
    named = {column["name"]: column["type"] for column in raw["columns"]}
    types = raw.get("extra", {}).get("types") or [named[name] for name in part["columns"]]
    column = options.get("columns", {}).get(part["columns"][0], {}) if mechanism == "retention" else {}
    swapped = int(column.get("rows", raw["rows"])) if column.get("replacing") == "swapping" else None
    grouped = {"c": int(options["c"]), "kind": options["grouping"]} if mechanism == "decoys" else None
    return {
        "columns": part["columns"],
        "types": types,
        "missing": part["missing"],
        "domain": part["domain"],
        "range": part["range"] and {"step": 1, "missing": False, **part["range"]},
        "cells": part["cells"],
        "cells_published": part["cells_published"],
        "marginal": part["marginal"],
        "mixture": part["mixture"],
        "swapped": swapped,
        "groups": grouped,
        "strata": list(options.get("strata") or ()) if mechanism == "pram" else [],
        "bins": _bins(part, types),
        "requirement": _requirement(column),
        "promise": _promise(part, number, column, raw),
    }


def _bins(part: Mapping[str, Any], types: Sequence[str]) -> dict[str, Any]:
    """Columns of text whose values are all labels of bins were binned numbers."""
    made = {}
    for place, (column, kind) in enumerate(zip(part["columns"], types, strict=True)):
        labels = {entry[place] for entry in part["domain"]} - {None}
        edges = bins_of(labels) if kind == "string" and labels else None
        if edges is not None:
            made[column] = edges
    return made


def bins_of(labels: set[Any]) -> dict[str, Any] | None:
    """The bins that have these labels, which may leave out some of them; None where they are no labels of bins.

    >>> bins_of({"[10, 20)", "below 5"})
    {'edges': [4.0, 5.0, 10.0, 20.0, 21.0], 'open_ends': True}
    >>> bins_of({"flu"}) is None
    True
    """
    ends: set[float] = set()
    open_ends, closed = False, False
    for label in labels:
        match = (_CLOSED.fullmatch(label) or _OPEN.fullmatch(label)) if isinstance(label, str) else None
        if match is None:
            return None
        open_ends |= match.re is _OPEN
        closed |= str(label).endswith("]")
        try:
            ends |= {float(edge) for edge in match.groups() if edge is not None}
        except ValueError:
            return None
    edges = sorted(ends)
    if open_ends:
        edges = [edges[0] - 1, *edges, edges[-1] + 1]
    elif not closed:  # the last bin holds no rows
        edges = [*edges, edges[-1] + 1] if edges else edges
    return {"edges": edges, "open_ends": open_ends} if len(edges) > 2 else None


def _requirement(column: Mapping[str, Any]) -> dict[str, Any] | None:
    if "breach" in column:
        s, rho1, rho2 = column["breach"]
        return {"rho1": rho1, "rho2": rho2, "adversary": "frequency", "s": s}
    if "privacy" in column:
        stated = column["privacy"]
        return {"rho1": stated["rho1"], "rho2": stated["rho2"], "adversary": stated["adversary"], "s": None}
    return None


def _promise(part: Mapping[str, Any], number: int, column: Mapping[str, Any], raw: Mapping[str, Any]) -> dict[str, Any]:
    mechanism, stated, privacy = raw["mechanism"]["name"], raw["guarantee"], raw["privacy"] or {}
    if mechanism == "retention":
        return _retained(part, number, column, stated)
    if mechanism in ("decoys",):
        return _grouped(mechanism, raw["mechanism"]["options"], privacy)
    if mechanism == "pram" and raw["mechanism"]["options"].get("strata"):
        least = int(raw["mechanism"]["options"].get("min_rows", 2))
        rho2 = stated["rho2"] or _shown(stated["sentence"])
        partly = bool(privacy.get("exempt")) or privacy.get("rho1") is not None
        return {"kind": "strata", "rho2": rho2, "gammas": stated["cell_gammas"], "rows": least, "partly": partly}
    basis = stated["basis"]
    if basis == "amplification" or (mechanism in ("pram", "redraw") and stated["adversary"] == "any-prior"):
        named = {name: stated[name] for name in ("gamma", "rho1", "rho2")}
        return {"kind": "amplification", **named, "above": _above(part, privacy, raw["rows"])}
    if basis == "cells":
        return {
            "kind": "cells",
            "rho2": stated["rho2"],
            "gammas": stated["cell_gammas"],
            "rho1": privacy.get("rho1"),
            "exempt": _exempt(part, privacy),
            "above": _above(part, privacy, raw["rows"]),
            "loose": [],
        }
    if basis == "per-value":
        return {"kind": "per-value", "limits": _limits(part, privacy)}
    if basis == "frequency" or mechanism in ("pram", "redraw"):
        return {
            "kind": "frequency",
            "rho1": privacy.get("rho1"),
            "rho2": privacy.get("rho2") or (None if privacy.get("per_value") else _shown(stated["sentence"])),
            "exempt": _exempt(part, privacy),
            "per_value": _limits(part, privacy) if privacy.get("per_value") else [],
            "above": _above(part, privacy, raw["rows"]),
            "loose": [],
        }
    raise ManifestError(f"manifest.json of format 1 promises by {basis!r}, which {mechanism!r} never did.")


def _exempt(part: Mapping[str, Any], privacy: Mapping[str, Any]) -> list[int]:
    return [place for place, value in enumerate(_named(part)) if value in privacy.get("exempt", ())]


def _above(part: Mapping[str, Any], privacy: Mapping[str, Any], rows: int) -> list[int]:
    """The values that are more frequent than rho1 as far as the noisy histogram tells: format 1 did not name them."""
    if privacy.get("rho1") is None or part["marginal"] is None or privacy.get("adversary") != "frequency":
        return []
    line, exempt = Fraction(privacy["rho1"]) * rows, _exempt(part, privacy)
    slack = math.ceil(14 / part["marginal"]["epsilon"])
    counts = enumerate(part["marginal"]["counts"])
    return [place for place, count in counts if count + slack > line and place not in exempt]


def _named(part: Mapping[str, Any]) -> list[Any]:
    return [entry[0] if len(entry) == 1 else entry for entry in part["domain"]]


def _limits(part: Mapping[str, Any], privacy: Mapping[str, Any]) -> list[list[Any]]:
    """Each value's own (rho1, rho2), or the one for all that are not exempt."""
    own = {repr(value): [rho1, rho2] for value, rho1, rho2 in privacy["per_value"]}
    named = enumerate(_named(part))
    if own:
        return [[place, *own[repr(value)]] for place, value in named if repr(value) in own]
    return [[place, privacy["rho1"], privacy["rho2"]] for place, value in named if value not in privacy["exempt"]]


def _shown(sentence: str) -> str:
    """The bound that a release without a requirement states in its sentence."""
    match = re.search(r"at most ([0-9.]+) %", sentence)
    if match is None:
        raise ManifestError("manifest.json of format 1 states no bound in its sentence.")
    return str(Fraction(match.group(1)) / 100 + Fraction(1, 1000))  # it was rounded to three digits


def _grouped(mechanism: str, options: Mapping[str, Any], privacy: Mapping[str, Any]) -> dict[str, Any]:
    every = privacy.get("rho1") is None and not privacy.get("exempt")
    return {
        "kind": "decoys",
        "c": int(options["c"]),
        "rho2": privacy.get("rho2") if every else None,
        "small_sums": privacy.get("small_sums"),
        "large_sums": privacy.get("large_sums"),
    }


def _retained(
    part: Mapping[str, Any], number: int, column: Mapping[str, Any], stated: Mapping[str, Any]
) -> dict[str, Any]:
    keep = part["range"]["keep"] if part["range"] is not None else part["cells"][0]["keep"][0]
    required = _requirement(column)
    if keep >= 2**32:
        return {"kind": "nothing", "why": "published as it is"}
    if column.get("replacing", "uniform") == "uniform" and (required is None or required["s"] is None):
        beliefs = {name: None if required is None else required[name] for name in ("rho1", "rho2")}
        return {"kind": "amplification", "gamma": stated["cell_gammas"][number], **beliefs, "above": []}
    like_column = column.get("replacing", "uniform") != "uniform"
    s = Fraction(column.get("relative_prior", 1)) if like_column else Fraction(required["s"] if required else 1)
    if required is not None:
        rho1, rho2 = required["rho1"], required["rho2"]
    else:
        rho2, odds = Fraction(_USUAL[1]), Fraction(keep, 2**32 - keep)
        least = rho2 - s * odds * (1 - rho2)
        if least <= Fraction(1, 1000):
            return {"kind": "nothing", "why": "the coin leaves no belief below 95 %"}
        rho1, rho2 = str(Fraction(math.ceil(1000 * least) - 1, 1000)), _USUAL[1]
    return {"kind": "relative-prior", "s": str(s), "rho1": rho1, "rho2": rho2, "like_column": like_column}
