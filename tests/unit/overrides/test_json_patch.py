"""Operations of RFC 6902, as jsonpatch applies them but for missing parents."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import documents
from vnode.api.errors import ConfigError
from vnode.overrides import json_patch
from vnode.overrides.json_patch import Operation

NAMES = st.sampled_from(["a", "b", "a/b", "m~n", "0", "1", ""])
SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "x", "y"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
DOCUMENTS = st.dictionaries(NAMES, VALUES, max_size=4)
PATHS = st.lists(NAMES | st.just("-"), min_size=1, max_size=3).map(tuple)
OPERATIONS = st.builds(
    Operation,
    st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]),
    PATHS,
    VALUES,
    PATHS,
)


def patched(document: Any, *operations: Operation) -> Any:
    """Apply operations to a copy."""
    result = copy.deepcopy(document)
    json_patch.apply(result, operations)
    return result


def attempt(document: Any, *operations: Operation) -> tuple[Any, str]:
    """Apply operations to a copy; return what becomes of it, and why that fails."""
    try:
        return patched(document, *operations), ""
    except ConfigError as error:
        return None, str(error)


def add(path: str, value: Any = 1) -> Operation:
    return Operation("add", json_patch.pointer(path), value)


def as_json(operation: Operation) -> dict[str, Any]:
    path, origin = json_patch.text_of(operation.path), json_patch.text_of(operation.origin)
    return {"op": operation.op, "path": path, "value": operation.value, "from": origin}


@given(DOCUMENTS, st.lists(OPERATIONS, max_size=3))
def test_what_jsonpatch_can_apply_comes_out_equal(
    document: Any, operations: list[Operation]
) -> None:
    try:
        wanted = jsonpatch.apply_patch(document, [as_json(each) for each in operations])
    except Exception:  # noqa: BLE001 - whatever it raises, it does not apply
        return

    if any(each.op == "move" and each.path == each.origin for each in operations):
        return

    found, error = attempt(document, *operations)
    if error:
        # jsonpatch compares with ==, for which True is 1, and finds indexes in texts.
        assert "(test " in error or "has no parts" in error or "there is no" in error
    else:
        assert json_patch.equal(found, wanted)


@given(DOCUMENTS, OPERATIONS)
def test_an_operation_is_applied_or_says_which_it_is(document: Any, operation: Operation) -> None:
    _result, error = attempt(document, operation)
    assert not error or error.startswith(f"patches[0] ({operation.op} /")


@given(DOCUMENTS, PATHS, VALUES)
def test_what_was_added_is_there_and_goes_by_remove(document: Any, path: Any, value: Any) -> None:
    try:
        result = patched(document, Operation("add", path, value))
    except ConfigError:
        return

    if json_patch.APPEND not in path:
        assert patched(result, Operation("test", path, value)) == result
        patched(result, Operation("remove", path))


@pytest.mark.parametrize(
    ("document", "path", "wanted"),
    [
        ({}, "/a/b/c", {"a": {"b": {"c": 1}}}),
        ({}, "/a/-", {"a": [1]}),
        ({}, "/a/0", {"a": [1]}),
        ({}, "/a/0/b", {"a": [{"b": 1}]}),
        ({"a": None}, "/a/b", {"a": {"b": 1}}),
        ({"a": []}, "/a/-/b", {"a": [{"b": 1}]}),
        ({}, "/a~1b/m~0n", {"a/b": {"m~n": 1}}),
        ({"a": [1, 3]}, "/a/1", {"a": [1, 1, 3]}),
    ],
)
def test_parents_that_are_missing_are_made(document: Any, path: str, wanted: Any) -> None:
    if path == "/a/0/b":
        document = {"a": [{}]}

    assert patched(document, add(path)) == wanted


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        (Operation("remove", ("b",)), 'there is no "b"'),
        (Operation("replace", ("b",), 1), 'there is no "b"'),
        (Operation("test", ("a",), 1), r"the pod has \[0\], not 1"),
        (Operation("test", ("a", "0"), False), "the pod has 0, not false"),
        (Operation("add", ("a", "7"), 1), "the list has no element 7"),
        (Operation("add", ("a", "01"), 1), '"01" is no index of a list'),
        (Operation("add", ("a", "0", "b"), 1), "has no parts"),
        (Operation("move", ("a", "b"), None, ("a",)), "cannot move into itself"),
        (Operation("copy", ("b",), None, ("c",)), 'there is no "c"'),
        (Operation("mix", ("b",)), "no operation"),
    ],
)
def test_a_failure_says_which_operation_and_why(operation: Operation, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        patched({"a": [0]}, operation)


@pytest.mark.parametrize("text", ["a", "/a~2", "/~"])
def test_what_is_no_pointer_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="no JSON pointer"):
        json_patch.pointer(text)


def test_a_value_is_not_shared_with_the_operation() -> None:
    value: dict[str, int] = {}
    document = patched({}, Operation("add", ("a",), value), add("/a/b"))
    assert (document, value) == ({"a": {"b": 1}}, {})


def test_copies_that_double_each_time_end() -> None:
    copies = [Operation("copy", ("a", str(n)), None, ("a",)) for n in range(64)]
    with pytest.raises(ConfigError, match="bytes are copied"):
        patched({"a": {"x": "y" * 64}}, *copies)


def deeper(op: str, number: int) -> list[Operation]:
    """Return operations that each put what the one before has made 240 levels deeper, or so."""
    names = [f"/n{each}" for each in range(number + 1)]
    down = "/x" * 239
    return [
        Operation(op, json_patch.pointer(to + down), None, json_patch.pointer(origin))
        for origin, to in itertools.pairwise(names)
    ]


@pytest.mark.parametrize("op", ["move", "copy"])
def test_operations_do_not_nest_a_pod_without_end(op: str) -> None:
    _, why = attempt({"n0": {}}, *deeper(op, 63))
    assert why.startswith(f"patches[0] ({op} /n1/x/x")
    assert why.endswith("the pod would be nested more than 64 levels deep")


@pytest.mark.parametrize("levels", [65, 15_000])
def test_a_value_that_is_nested_too_deeply_is_refused(levels: int) -> None:
    value: Any = "x"
    for _ in range(levels):
        value = {"a": value}

    assert "deep" in attempt({}, add("/a", value))[1]


@given(DOCUMENTS, st.lists(OPERATIONS | st.sampled_from(deeper("move", 3)), max_size=8))
def test_whatever_is_applied_is_no_deeper_than_a_document_may_be(
    document: Any, operations: list[Operation]
) -> None:
    made, _ = attempt(document, *operations)
    assert made is None or documents.depth_of(made) <= documents.DEPTH
