from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.unit.scheduling import costs
from vnode.api import identity, keys, names
from vnode.api.target_key import TargetKey
from vnode.kube.store import Store
from vnode.runtime.link import MOST_ALIKE, Link
from vnode.runtime.link_health import LinkHealth
from vnode.runtime.links import Links


def make_link(namespace="ns", name="c2", clock=None):
    return Link(
        TargetKey(namespace, name),
        SimpleNamespace(),
        chaperons=SimpleNamespace(store=Store({"parent-uid": lambda o: [o["uid"]]})),
        summaries=SimpleNamespace(store=Store()),
        health=LinkHealth(False, "Connecting", "", None),
    )


def test_a_target_key_knows_its_node_and_finalizer():
    key = TargetKey("team-a", "c2")
    assert key.node_name == "admiralty-team-a-c2-d2b2a8a1b2"
    assert key.finalizer == "multicluster.admiralty.io/team-a-c2-0ba4508354"
    assert str(key) == "team-a/c2"
    assert str(TargetKey("", "c2")) == "c2"


def test_listeners_hear_of_health_only_when_it_changes():
    link, heard = make_link(), []
    link.on_health(lambda: heard.append(link.health.reason))
    link.set_health(LinkHealth(True, "Connected", "", None))
    link.set_health(LinkHealth(True, "Connected", "", "later"))
    link.set_health(LinkHealth(False, "Unreachable", "", "later"))
    assert heard == ["Connected", "Unreachable"]


def test_a_target_covers_its_namespace_and_a_cluster_target_covers_all():
    links, near, wide = Links(), make_link(), make_link("", "wide")
    links.add(near)
    links.add(wide)
    assert links.covering("ns") == [near, wide]
    assert links.covering("other") == [wide]


def test_subscribers_hear_of_present_and_future_links():
    links, heard = Links(), []
    first, second = make_link(), make_link("", "wide")
    links.add(first)
    links.subscribe(lambda link: heard.append(("+", link)), lambda link: heard.append(("-", link)))
    links.add(second)
    links.remove(first)
    assert heard == [("+", first), ("+", second), ("-", first)]
    assert links.get(second.node_name) is second
    assert links.get(first.node_name) is None


def test_removing_a_replaced_link_leaves_its_successor():
    links, old, new = Links(), make_link(), make_link()
    links.add(old)
    links.remove(old)
    links.add(new)
    links.remove(old)
    assert links.get(new.node_name) is new
    assert len(links) == 1


def test_a_target_runs_vnode_if_its_summary_says_so():
    link = make_link()
    assert link.summary is None
    assert not link.runs_vnode
    annotations = {keys.AGENT_VERSION: "0.1.0"}
    link.summaries.store.put({"metadata": {"name": keys.SUMMARY_NAME, "annotations": annotations}})
    assert link.runs_vnode


def made(namespace, name, **annotations):
    metadata = {"name": name, "namespace": namespace, "labels": {keys.PARENT_UID: "u1"}}
    return {"metadata": {**metadata, "annotations": annotations}, "uid": "u1"}


def test_the_candidate_of_a_pod_is_found_by_the_pods_uid_and_place():
    link = make_link()
    planted = made("aaa", "p-abcde")
    chaperon = made("ns", "p-abcde")
    link.chaperons.store.put(planted)
    assert link.candidate("ns/p", "u1") is None
    link.chaperons.store.put(chaperon)
    assert link.candidate("ns/p", "u1") is chaperon
    assert link.candidate("ns/p", "u2") is None
    assert list(link.candidates({"u1": "ns/p"})) == [("u1", chaperon)]
    assert list(link.candidates({})) == []


@pytest.mark.parametrize("name", ["p-abcde", names.chaperon("p", "u1")])
def test_of_many_chaperons_of_one_pod_few_are_looked_at(name):
    """Its target may say of all chaperons that they are that pod's."""
    link = make_link()
    chaperon = made("ns", name)
    link.chaperons.store.put(chaperon)
    alone = costs.bytecodes(lambda: link.candidate("ns/p", "u1"))
    assert link.candidate("ns/p", "u1") is chaperon
    for number in range(3000):
        link.chaperons.store.put(made("aaa", f"c{number}"))

    assert costs.bytecodes(lambda: link.candidate("ns/p", "u1")) < alone * (MOST_ALIKE + 2)
    assert link.candidate("ns/p", "u1") in (chaperon, None)


def test_a_chaperon_of_the_pods_own_name_is_found_among_many():
    link, chaperon = make_link(), made("ns", names.chaperon("p", "u1"))
    for number in range(2 * MOST_ALIKE):
        link.chaperons.store.put(made("ns", f"p-{number:05}"))

    link.chaperons.store.put(chaperon)
    assert link.candidate("ns/p", "u1") is chaperon


@pytest.mark.parametrize("pod", ["p", "p" * 60, "a.b-c"])
def test_a_chaperon_is_called_as_its_source_calls_it(pod):
    """Admiralty's name no cluster, and have any five characters at the end."""
    derived = names.chaperon(pod, "u1")
    ours = {keys.PARENT_CLUSTER_UID: "us"}
    other = f"{pod}-"[:58] + "bcdfg"
    key = f"ns/{pod}"
    assert identity.is_chaperon_of(made("ns", derived, **ours), key, "u1")
    assert identity.is_chaperon_of(made("ns", derived), key, "u1")
    assert identity.is_chaperon_of(made("ns", other), key, "u1")
    assert not identity.is_chaperon_of(made("ns", other, **ours), key, "u1")
    assert not identity.is_chaperon_of(made("ns", derived + "b"), key, "u1")
    assert not identity.is_chaperon_of(made("ns", "x" + derived[1:]), key, "u1")
    assert not identity.is_chaperon_of(made("aaa", derived, **ours), key, "u1")


def test_which_cluster_a_target_is_is_known_when_its_summary_says_so():
    link = make_link()
    assert link.cluster_uid is None
    link.summaries.store.put({"metadata": {"name": "singleton"}})
    assert link.cluster_uid == ""
    annotations = {"vnode.dev/cluster-uid": "u"}
    link.summaries.store.put({"metadata": {"name": "singleton", "annotations": annotations}})
    assert link.cluster_uid == "u"


def test_links_of_other_namespaces_cost_a_pod_nothing_and_leave_the_order_as_it_was():
    links, wide, near = Links(), make_link("", "wide"), make_link()
    gone = make_link("", "gone")
    for link in (make_link("ns", "first"), wide, gone, near):
        links.add(link)

    links.remove(gone)
    alone = costs.bytecodes(lambda: links.covering("ns"))
    for number in range(200):
        links.add(make_link(f"other-{number}"))

    assert costs.bytecodes(lambda: links.covering("ns")) == alone
    assert [link.target.name for link in links.covering("ns")] == ["first", "wide", "c2"]
    assert links.covering("") == [wide]
    links.remove(near)
    assert near not in links.covering("ns")
