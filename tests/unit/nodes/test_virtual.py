from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from vnode.api import keys, objects, target_key
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.kube import leases
from vnode.nodes import virtual
from vnode.runtime.link_health import LinkHealth

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TARGET = TargetKey("team", "c2")
HEALTHY = LinkHealth(True, "Connected", "the target answers", NOW)


def make_status(node, health=HEALTHY, now=NOW, port=10250, **offer):
    return virtual.status(
        node,
        health=health,
        capacity=offer,
        allocatable=offer,
        address="10.0.0.1",
        port=port,
        server_version="v1.36.3+k3s1",
        now=now,
    )


@pytest.mark.parametrize("target", [TARGET, TargetKey("", "wide"), TargetKey("a-b", "c-d")])
def test_a_node_tells_which_target_it_stands_for(target):
    assert target_key.of_node(virtual.registration(target)) == target


@pytest.mark.parametrize(
    "labels",
    [
        {},
        {keys.PROVIDER_LABEL: "other", keys.TARGET_NAMESPACE: "team", keys.TARGET_NAME: "c2"},
        {keys.PROVIDER_LABEL: keys.PROVIDER},
        {keys.PROVIDER_LABEL: keys.PROVIDER, keys.TARGET_NAME: "other"},
    ],
)
def test_a_node_that_others_made_stands_for_no_target(labels):
    node = {"metadata": {"name": TARGET.node_name, "labels": labels}}
    assert target_key.of_node(node) is None


def test_our_taint_joins_those_of_others():
    theirs = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}
    stale = {**keys.PROVIDER_TAINT, "value": "old"}
    node = {"spec": {"taints": [stale, theirs]}}
    assert virtual.tainted(node) == [theirs, keys.PROVIDER_TAINT]
    assert virtual.tainted({}) == [keys.PROVIDER_TAINT]
    dated = {**keys.PROVIDER_TAINT, "timeAdded": "2026-01-01T00:00:00Z"}
    assert virtual.tainted({"spec": {"taints": [theirs, dated]}}) is None


def test_one_bad_amount_does_not_hide_the_others():
    listed: dict[str, str | int] = {
        "cpu": "2000m",
        "memory": "1024Mi",
        "pods": 110,
        "a": "x",
        "b": "-1",
        "c": "0",
    }
    assert virtual.offered(listed) == {"cpu": "2", "memory": "1Gi", "pods": "110", "c": "0"}
    assert virtual.offered(None) == {}


def condition(node: Object, type_: str) -> Object:
    found = objects.condition(node, type_)
    assert found is not None
    return found


def test_a_condition_keeps_its_time_until_it_changes():
    later = NOW + timedelta(minutes=1)
    first = {"status": make_status({})}
    same = {"status": make_status(first, now=later)}
    lost = {"status": make_status(first, LinkHealth(False, "Gone", "away", later), later)}
    assert condition(same, "Ready")["lastTransitionTime"] == objects.timestamp(NOW)
    assert condition(same, "Ready")["lastHeartbeatTime"] == objects.timestamp(later)
    assert condition(lost, "Ready")["lastTransitionTime"] == objects.timestamp(later)
    assert condition(lost, "MemoryPressure")["lastTransitionTime"] == objects.timestamp(NOW)


def test_a_status_is_shown_whatever_its_spelling_and_additions():
    wanted = make_status({}, cpu="2")
    node = {"status": {**wanted, "capacity": {"cpu": "2000m", "example.com/more": "1"}}}
    node["status"]["conditions"] = [*wanted["conditions"], {"type": "Theirs", "status": "True"}]
    assert virtual.has_status(node, make_status(node, now=NOW + timedelta(hours=1), cpu="2"))


@pytest.mark.parametrize(
    "other",
    [
        make_status({}, cpu="3"),
        make_status({}, cpu="2", memory="1Gi"),
        make_status({}, port=10251, cpu="2"),
        make_status({}, port=None, cpu="2"),
        make_status({}, LinkHealth(False, "Gone", "away", NOW), cpu="2"),
    ],
)
def test_a_status_that_differs_is_not_shown(other):
    assert not virtual.has_status({"status": make_status({}, cpu="2")}, other)


def test_the_version_of_the_cluster_is_read_by_version_parsers():
    assert make_status({})["nodeInfo"]["kubeletVersion"].startswith("v1.36.3-vnode-")


def test_a_lease_belongs_to_its_node_and_lasts_four_renewals():
    lease = leases.build_for_node("n", "u", NOW)
    assert lease["metadata"]["namespace"] == "kube-node-lease"
    assert lease["metadata"]["ownerReferences"][0]["uid"] == "u"
    assert lease["spec"]["holderIdentity"] == "n"
    assert lease["spec"]["leaseDurationSeconds"] == 40
    assert lease["spec"]["renewTime"] == "2026-01-01T00:00:00.000000Z"
