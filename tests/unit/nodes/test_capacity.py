from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import keys, objects, resources
from vnode.api.identity import Identity
from vnode.nodes import capacity
from vnode.nodes.capacity import Usage


def make_node(name, *, ready="True", cordoned=False, labels=None, taints=(), **amounts):
    return capacity.trim_node(
        {
            "metadata": {"name": name, "labels": labels or {}, "annotations": {"bulk": "x"}},
            "spec": {"unschedulable": cordoned, "taints": list(taints)},
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": ready}],
                "images": ["bulk"],
            },
        }
    )


def make_pod(name, node, cpu="100m"):
    container = {"resources": {"requests": {"cpu": cpu}}, "image": "bulk"}
    return capacity.trim_pod(
        {
            "metadata": {"name": name, "namespace": "ns", "labels": {"bulk": "x"}},
            "spec": {"nodeName": node, "containers": [container]},
        }
    )


def free(*nodes, usage=None):
    made = capacity.summary(nodes, usage or Usage())
    return json.loads(objects.annotations(made)[keys.FREE_RESOURCES])


def test_amounts_of_a_node_are_parsed_as_it_is_read():
    node = make_node("a", cpu="1500m", memory="4Gi", odd="many")
    assert node["allocatable"] == node["capacity"] == {"cpu": 1500, "memory": 4 * 2**30}


def test_ready_and_schedulable_nodes_are_summed():
    taint = {"key": "gpu", "effect": "NoSchedule"}
    made = capacity.summary(
        [
            make_node("a", cpu="2", memory="4Gi", pods="110"),
            make_node("b", cpu="1500m", memory="4Gi", taints=[taint]),
            make_node("lost", cpu="8", ready="Unknown"),
            make_node("cordoned", cpu="8", cordoned=True),
        ],
        Usage(),
    )
    assert made["capacity"] == {"cpu": "3500m", "memory": "8Gi", "pods": "110"}
    assert made["allocatable"] == made["capacity"]
    assert objects.name(made) == keys.SUMMARY_NAME
    assert objects.annotations(made)[keys.AGENT_VERSION]


def test_labels_with_one_value_among_those_that_have_them_are_common():
    nodes = [
        make_node("a", labels={"os": "linux", "zone": "1", "gpu": "yes"}),
        make_node("b", labels={"os": "linux", "zone": "2"}),
    ]
    assert capacity.common_labels(nodes) == {"os": "linux", "gpu": "yes"}
    assert capacity.common_labels([]) == {}


def test_what_is_free_is_what_pods_do_not_ask_for():
    usage = Usage()
    usage.change(None, make_pod("p", "a", "500m"))
    usage.change(None, make_pod("q", "elsewhere", "1"))
    found = free(
        make_node("a", cpu="2", pods="10"), make_node("b", cpu="1", pods="20"), usage=usage
    )
    assert found == {
        "sum": {"cpu": "2500m", "pods": "29"},
        "largest": {"cpu": "1500m", "pods": "20"},
        "nodes": 2,
    }


def test_an_overcommitted_node_takes_nothing_from_the_others():
    usage = Usage()
    usage.change(None, make_pod("p", "a", "5"))
    assert free(make_node("a", cpu="2"), make_node("b", cpu="1"), usage=usage)["sum"]["cpu"] == "1"


def test_a_cluster_without_nodes_has_nothing():
    assert free() == {"sum": {}, "largest": {}, "nodes": 0}


def test_one_unreadable_amount_hides_neither_node_nor_pod():
    assert free(make_node("a", cpu="2", memory="much"))["sum"] == {"cpu": "2"}
    assert make_pod("p", "a", "much")["requests"] == {resources.PODS: 1}


def test_trimmed_objects_keep_nothing_that_is_not_read():
    assert "bulk" not in str(make_pod("p", "a"))
    assert "bulk" not in str(make_node("a"))


@pytest.mark.parametrize("change", [{"deletionTimestamp": "now"}])
def test_a_node_that_is_being_removed_is_not_usable(change):
    node = make_node("a")
    node["metadata"] |= change
    assert not capacity.is_usable(node)


pods = st.tuples(
    st.sampled_from("pqrs"), st.sampled_from(["", "a", "b"]), st.sampled_from(["100m", "2", "0"])
)
steps = st.lists(st.tuples(pods, st.booleans()), max_size=40)


@given(steps)
def test_running_sums_equal_a_sum_over_all_pods(changes):
    usage, present = Usage(), {}
    for (name, node, cpu), gone in changes:
        old = present.pop(name, None)
        new = None if gone else make_pod(name, node, cpu)
        if new is not None:
            present[name] = new

        if old or new:
            before = {place: dict(usage.of(place)) for place in "ab"}
            changed = usage.change(old, new)
            assert changed or before == {place: dict(usage.of(place)) for place in "ab"}

    for place in "ab":
        expected = {}
        for pod in present.values():
            if pod["spec"]["nodeName"] == place:
                expected = resources.add(expected, pod["requests"])

        assert usage.of(place) == {name: amount for name, amount in expected.items() if amount}

    for pod in present.values():
        usage.change(pod, None)

    assert usage._sums == {}
    assert usage._counted == {}


def test_a_summary_says_which_cluster_it_is_of():
    made = capacity.summary([], capacity.Usage(), Identity("c1", "uid-of-c1"))
    annotations = made["metadata"]["annotations"]
    assert (annotations[keys.CLUSTER_NAME], annotations[keys.CLUSTER_UID]) == ("c1", "uid-of-c1")
    assert keys.CLUSTER_UID not in capacity.summary([], capacity.Usage())["metadata"]["annotations"]
