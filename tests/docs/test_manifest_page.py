"""The page of the manifest names every field of the format and every promise, and none that there is not."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deniable.core.manifest import schema
from deniable.core.promise import KINDS as ALL_PARTS
from deniable.core.promise import OTHER_KINDS
from deniable.release.sign import SIGNATURE
from deniable_verify.promises import mechanisms
from deniable_verify.signature import FIELDS as SIGNED_FIELDS

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "reference" / "manifest.md"
TEXT = PAGE.read_text(encoding="utf-8")


def sections() -> dict[str, str]:
    """What stands under each heading; a heading of several names stands for each of them."""
    below: dict[str, str] = {}
    for level, heading, body in re.findall(r"^(##+) (.*)\n((?:(?!##).*\n)*)", TEXT, re.MULTILINE):
        prefix = "promise " if level == "###" else ""
        below |= {prefix + name: body for name in re.findall(r"`([^`]+)`", heading) or [heading]}
    return below


KINDS_OF = mechanisms()
SECTIONS = sections()
KINDS = {**ALL_PARTS, **{kind: OTHER_KINDS[kind] for kind in OTHER_KINDS.places}}  # type: ignore[attr-defined]


def rows(section: str) -> list[str]:
    """The fields that a section's table is about."""
    return re.findall(r"^\| `([^`]+)` \| \S", SECTIONS[section], re.MULTILINE)


def objects(part: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object of a schema that has properties, and these."""
    if "properties" in part:
        yield path or "manifest.json", part["properties"]
        for name, inner in part["properties"].items():
            yield from objects(inner, f"{path}.{name}" if path else name)
    if isinstance(part.get("items"), dict):
        yield from objects(part["items"], f"{path}[]")
    if isinstance(part.get("additionalProperties"), dict):
        yield from objects(part["additionalProperties"], f"{path}.COLUMN")


FIELDS = dict(objects(schema()))
CHOICES = {
    path: [choice for one in properties.values() for choice in one.get("enum", ())]
    for path, properties in FIELDS.items()
}


def test_the_schema_is_walked_through() -> None:
    assert {"manifest.json", "parts[]", "parts[].cells[]", "parts[].bins.COLUMN", "privacy.small_sums"} <= set(FIELDS)
    assert CHOICES["parts[].range"] == ["integer", "number", "date"]


@pytest.mark.parametrize("path", FIELDS)
def test_every_property_of_the_format_is_on_the_page_and_no_other(path: str) -> None:
    assert sorted(rows(path)) == sorted(FIELDS[path])


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_promise_and_its_fields_are_on_the_page_and_no_other(kind: str) -> None:
    assert rows(f"promise {kind}") == [field.name for field in dataclasses.fields(KINDS[kind])]


def test_no_section_is_about_something_that_there_is_not() -> None:
    promises = {f"promise {kind}" for kind in KINDS}
    assert set(SECTIONS) == {*FIELDS, *promises, SIGNATURE, "Promises", "Checking a release", "Test vectors"}
    assert set(rows(SIGNATURE)) == SIGNED_FIELDS


@pytest.mark.parametrize("mechanism", KINDS_OF)
def test_a_kind_of_promise_names_the_mechanisms_that_promise_by_it(mechanism: str) -> None:
    for kind in KINDS:
        assert (f"`{mechanism}`" in SECTIONS[f"promise {kind}"].partition("\n|")[0]) == (kind in KINDS_OF[mechanism])


@pytest.mark.parametrize("path", FIELDS)
def test_every_choice_that_the_format_leaves_is_on_the_page(path: str) -> None:
    for choice in CHOICES[path]:
        assert f"`{choice}`" in SECTIONS[path]
