"""What the API server remembers of our writes on a Node."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from vnode.nodes import written

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def _entry(fields, *, manager="vnode", operation="Apply", subresource=""):
    found = {"manager": manager, "operation": operation, "fieldsV1": fields}
    return {**found, "subresource": subresource} if subresource else found


def _node(*entries, heartbeat="2026-01-02T03:03:05Z"):
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": heartbeat}
    return {
        "metadata": {"name": "n", "uid": "u", "managedFields": list(entries)},
        "status": {"conditions": [ready]},
    }


def test_what_was_applied_is_remembered_and_nothing_that_others_did():
    labels = {"f:metadata": {"f:labels": {".": {}, "f:a": {}}, "f:annotations": {"f:p": {}}}}
    others = {"f:metadata": {"f:labels": {"f:theirs": {}}}}
    status = {"f:status": {"f:capacity": {"f:cpu": {}}, "f:allocatable": {"f:cpu": {}}}}
    node = _node(
        _entry(labels),
        _entry(others, manager="kubectl"),
        _entry(others, operation="Update"),
        _entry(status, subresource="status"),
    )
    found = written.recall(node, NOW, 1000.0)
    wanted = {"metadata": {"labels": {"a": "1"}, "annotations": {"p": "2"}}}
    assert found.uid == "u"
    assert found.description == written.described(wanted)
    assert found.offer == written.offered({"capacity": {"cpu": "1"}, "allocatable": {"cpu": "1"}})
    assert found.status_at == 1000.0 - timedelta(minutes=1).total_seconds()


def test_a_node_without_a_status_of_ours_is_due_at_once():
    assert written.recall(_node(), NOW, 1000.0).status_at == float("-inf")


def test_a_heartbeat_from_the_future_is_one_of_now():
    status = _entry({"f:status": {"f:capacity": {"f:cpu": {}}}}, subresource="status")
    node = _node(status, heartbeat="2026-01-02T04:00:00Z")
    assert written.recall(node, NOW, 1000.0).status_at == 1000.0
