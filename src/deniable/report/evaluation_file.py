"""What `deniable evaluate --json` prints, as a schema: whatever else a file holds is refused."""

from __future__ import annotations

from typing import Any

_NUMBER: dict[str, Any] = {"type": ["number", "null"]}
_SPREAD: dict[str, Any] = {"type": "object", "required": ["mean"], "additionalProperties": _NUMBER}
_BAND: dict[str, Any] = {
    "type": "object",
    "required": ["from", "to", "mean", "deviation"],
    "properties": {"from": {"type": "number", "minimum": 0}, "to": {"type": "number", "minimum": 0}},
    "additionalProperties": {"type": "number"},
}
_PAIR: dict[str, Any] = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
_ROW: dict[str, Any] = {
    "type": "object",
    "required": ["setting", "estimator", "bands", "cloud"],
    "properties": {
        "setting": {"type": "string"},
        "estimator": {"type": "string"},
        "bands": {"type": "array", "items": _BAND},
        "cloud": {"type": "array", "items": _PAIR},
        "predicted": {"type": "array", "items": _NUMBER},
    },
    "additionalProperties": _SPREAD,
}
_RESULT: dict[str, Any] = {
    "type": "object",
    "required": ["pool", "questions", "draws", "rows", "refused"],
    "properties": {
        "pool": {"type": "string"},
        "questions": {
            "type": "object",
            "propertyNames": {"pattern": "^[0-9.e-]+$"},
            "additionalProperties": {"type": "integer"},
        },
        "draws": {"type": "integer"},
        "seed": {"type": "integer"},
        "rows": {"type": "array", "items": _ROW, "minItems": 1},
        "refused": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
EVALUATION: dict[str, Any] = {
    "type": "object",
    "required": ["results"],
    "properties": {"results": {"type": "array", "items": _RESULT, "minItems": 1}},
}


def is_evaluation(content: Any) -> bool:
    """Whether a JSON document is what ``deniable evaluate --json`` prints."""
    import jsonschema

    return bool(jsonschema.Draft202012Validator(EVALUATION).is_valid(content))
