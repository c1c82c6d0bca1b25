from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import objects

leaves = st.one_of(st.booleans(), st.integers(), st.text(max_size=3), st.just({}), st.just([]))
fields = st.sampled_from("abcd")
trees = st.dictionaries(
    fields,
    st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(fields, inner, max_size=4)
        ),
        max_leaves=12,
    ),
    max_size=4,
)


def merge(target, patch):
    """Merge a patch into a target, by the words of RFC 7386, section 2."""
    if not isinstance(patch, dict):
        return patch

    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge(result.get(name), value)

    return result


@given(trees, trees)
def test_a_merge_patch_turns_the_old_object_into_the_new_one(old, new):
    before = copy.deepcopy((old, new))
    assert merge(old, objects.merge_diff(old, new)) == new
    assert (old, new) == before


@given(trees)
def test_equal_objects_need_no_patch(tree):
    assert objects.merge_diff(tree, copy.deepcopy(tree)) == {}


@given(trees, trees)
def test_a_patch_is_empty_only_between_equal_objects(old, new):
    assert bool(objects.merge_diff(old, new)) == (old != new)


def test_lists_are_replaced_whole():
    assert objects.merge_diff({"a": [1, 2]}, {"a": [1]}) == {"a": [1]}


@pytest.mark.parametrize(
    ("namespace", "name", "key"), [("ns", "pod", "ns/pod"), ("", "node", "node")]
)
def test_keys_are_joined_and_split_alike(namespace, name, key):
    assert objects.join_key(namespace, name) == key
    assert objects.split_key(key) == (namespace, name)


@pytest.mark.parametrize(
    "obj", [{}, {"metadata": None, "spec": None, "status": None}, {"metadata": {"labels": None}}]
)
def test_reading_what_is_absent_gives_empty_values(obj):
    assert objects.key(obj) == objects.uid(obj) == objects.resource_version(obj) == ""
    assert objects.labels(obj) == objects.annotations(obj) == objects.spec(obj) == {}
    assert objects.status(obj) == {}
    assert objects.finalizers(obj) == []
    assert not objects.is_terminating(obj)
    assert objects.controller_uid(obj) == ""
    assert objects.controller_reference(obj) is None
    assert objects.condition(obj, "Ready") is None


def test_the_controlling_owner_is_told_from_other_owners():
    owners = [{"uid": "1"}, {"uid": "2", "controller": True}]
    obj = {"metadata": {"ownerReferences": owners}}
    assert objects.controller_uid(obj) == "2"
    assert objects.controller_reference(obj) == owners[1]


def test_a_reference_names_the_object_with_its_uid():
    obj = {"metadata": {"name": "p", "namespace": "n", "uid": "u"}}
    assert objects.reference(obj, "Pod", "v1") == {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "p",
        "namespace": "n",
        "uid": "u",
    }
    assert "namespace" not in objects.reference({"metadata": {"name": "n"}}, "Node", "v1")


def test_times_are_written_in_utc_and_read_back():
    moment = datetime(2026, 5, 4, 3, 2, 1, 5, tzinfo=timezone(timedelta(hours=2)))
    assert objects.timestamp(moment) == "2026-05-04T01:02:01Z"
    assert objects.micro_timestamp(moment) == "2026-05-04T01:02:01.000005Z"
    assert objects.parse_timestamp("2026-05-04T01:02:01Z") == datetime(
        2026, 5, 4, 1, 2, 1, tzinfo=UTC
    )
    assert objects.parse_timestamp("yesterday") is None


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59"])
def test_a_moment_that_nobody_can_compute_with_is_none(text):
    assert objects.parse_timestamp(text) is None


def test_creation_is_read_as_text_that_sorts_by_time_and_as_a_moment():
    obj = {"metadata": {"creationTimestamp": "2026-05-04T01:02:01Z"}}
    assert objects.created(obj) == "2026-05-04T01:02:01Z"
    assert objects.created_at(obj) == datetime(2026, 5, 4, 1, 2, 1, tzinfo=UTC)


@pytest.mark.parametrize("metadata", [{}, {"creationTimestamp": None}, {"creationTimestamp": "?"}])
def test_what_does_not_say_when_it_was_created_has_no_moment(metadata):
    assert objects.created_at({"metadata": metadata}) is None


@pytest.mark.parametrize(("status", "is_true"), [("True", True), ("False", False), (None, False)])
def test_a_condition_holds_only_while_its_status_is_true(status, is_true):
    obj = {"status": {"conditions": [{"type": "Ready", "status": status}]}}
    assert objects.is_ready(obj) is is_true
    assert objects.is_condition_true(obj, "Ready") is is_true
    assert not objects.is_condition_true(obj, "Scheduled")
