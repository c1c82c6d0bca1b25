"""How many values a JSON text has is known before they are built."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import documents

texts = st.text() | st.text(st.sampled_from('",[]{}\\\\:'))
jsons = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
)


def count(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(count, inner))


@given(jsons)
def test_what_has_no_more_values_is_never_refused(value: Any) -> None:
    """Up to the factor of two by which a value and its brackets, or its comma, are both counted."""
    assert documents.has_at_most(2 * count(value), json.dumps(value).encode())


@given(jsons)
def test_what_has_more_is_refused(value: Any) -> None:
    assert not documents.has_at_most(count(value) // 2 - 1, json.dumps(value).encode())


@pytest.mark.parametrize("text", ["," * 100, '[{"' * 50, '\\",' * 100, "\\" * 100])
def test_what_is_in_strings_does_not_count(text: str) -> None:
    assert documents.has_at_most(4, json.dumps({"a": text, "b": text}).encode())


@pytest.mark.parametrize("payload", [b'["",""' + b',""' * 100, b"[" * 100, b'{"a":"' * 100])
def test_what_is_no_json_is_counted_all_the_same(payload: bytes) -> None:
    assert not documents.has_at_most(10, payload)
