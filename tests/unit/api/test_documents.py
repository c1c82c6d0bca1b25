"""What users write into annotations is bounded in depth, as JSON and as YAML."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

import pytest

from vnode.api import documents, keys, saved_manifest
from vnode.api.errors import ConfigError
from vnode.pods import annotation_merge


def nested(levels: int) -> object:
    value: object = {}
    for number in range(levels - 1):
        value = [value] if number % 2 else {"a": value}

    return value


@pytest.mark.parametrize("levels", [documents.DEPTH + 1, 400, 900, 100_000])
def test_a_document_that_is_nested_deeper_than_allowed_is_refused(levels: int) -> None:
    opening, closing = "[" * levels, "]" * levels
    for text in (opening + closing, f"a: {opening}{closing}"):
        with pytest.raises(ConfigError, match="nested more than 64 levels deep"):
            documents.parse(text)


@pytest.mark.parametrize("levels", [1, 2, documents.DEPTH])
def test_one_that_is_as_deep_as_allowed_is_read(levels: int) -> None:
    value = nested(levels)
    assert documents.depth_of(value) == levels
    assert documents.parse(json.dumps(value)) == value


def test_a_saved_manifest_that_is_nested_deeper_is_none() -> None:
    affinity = {"nodeAffinity": nested(300)}
    text = json.dumps({"metadata": {}, "spec": {"containers": [], "affinity": affinity}})
    with pytest.raises(ConfigError, match="holds no pod"):
        saved_manifest.read(text)


def test_a_record_that_is_nested_deeper_counts_as_none() -> None:
    key = keys.SOURCE_POD_MANIFEST
    pod = {"metadata": {"annotations": {key: json.dumps({"a": nested(300)})}}}
    assert annotation_merge.read(pod, key) == {}


UNTYPED = re.compile(r"json\.decode\((?!msgspec\.json\.encode|payload\)|.*type=)")
"""A text that is decoded to what it says; `payload` is our own in json_patch."""
ENCODED: Final = {"pod_terms.py", "packed_specs.py"}  # what was encoded to be kept


def test_json_of_others_is_decoded_in_one_way() -> None:
    found = {
        path.name: line
        for path in Path(documents.__file__).parents[1].rglob("*.py")
        for line in path.read_text().splitlines()
        if UNTYPED.search(line)
    }
    assert set(found) == {"documents.py", *ENCODED}, found
