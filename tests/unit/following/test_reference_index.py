from __future__ import annotations

import asyncio

import pytest

from vnode.api import kinds
from vnode.following.reference_index import Key, Need, ReferenceIndex
from vnode.following.references import Ref

pytestmark = pytest.mark.looptime

MAP = Ref(kinds.CONFIG_MAPS, "ns", "m")


class Link:
    """A target, with the UIDs of the pods that it says to have candidates of."""

    def __init__(self, node_name="n1", *candidates):
        self.node_name = node_name
        self.candidates = set(candidates)

    def candidate(self, _key, uid):
        return {} if uid in self.candidates else None


def pod(name="p", node="", uid="", phase="Pending", **more):
    spec = {"volumes": [{"name": "v", "configMap": {"name": "m"}}]} | more
    if node:
        spec["nodeName"] = node

    metadata = {"name": name, "namespace": "ns", "uid": uid or name}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def on(index, node):
    return [key for key in index.keys_on(node) if key is not None]


@pytest.fixture
def woken():
    return []


@pytest.fixture
def index(woken, clock):
    return ReferenceIndex(woken.append, clock)


async def test_where_many_pending_pods_use_an_object_a_copy_stays_until_fewer_do(index, woken):
    pods = [pod(f"p{number}") for number in range(101)]
    for each in pods:
        index.on_pod(None, each)

    key = Key("n1", MAP)
    assert not index.concerns(key)
    assert index.need(key, Link("n1")) is Need.TOLERATED
    assert woken == []
    index.on_pod(pods[-1], None)
    assert woken == [key]
    assert index.need(key, Link("n1")) is Need.NONE
    assert index.need(key, Link("n1", "p99")) is Need.TOLERATED


async def test_where_many_candidates_are_announced_an_object_is_wanted_meanwhile(index):
    key = Key("n1", MAP)
    for number in range(101):
        each = pod(f"p{number}")
        index.on_pod(None, each)
        index.announce(each, "n1")

    await asyncio.sleep(100)
    assert index.concerns(key)
    assert index.need(key, Link("n1")) is Need.ANNOUNCED
    assert index.need(key, Link("n1", "p0")) is Need.WANTED
    index.release("ns/p100", "p100", "n1")
    assert index.need(key, Link("n1")) is Need.TOLERATED


async def test_a_bound_pod_uses_what_it_refers_to_in_its_own_target(index, woken):
    index.on_pod(None, pod(node="n1"))
    assert index.need(Key("n1", MAP), Link("n1")) is Need.WANTED
    assert index.need(Key("n2", MAP), Link("n2")) is Need.NONE
    assert woken == [Key("n1", MAP)]
    assert on(index, "n1") == [Key("n1", MAP)]
    assert index.in_namespace("ns")


async def test_a_copy_is_wanted_until_its_last_user_is_gone(index, woken):
    index.on_pod(None, pod("a", node="n1"))
    index.on_pod(None, pod("b", node="n1"))
    index.on_pod(pod("a", node="n1"), None)
    assert index.need(Key("n1", MAP), Link()) is Need.WANTED
    woken.clear()
    index.on_pod(pod("b", node="n1"), None)
    assert index.need(Key("n1", MAP), Link()) is Need.NONE
    assert woken == [Key("n1", MAP)]
    assert on(index, "n1") == []
    assert not index.in_namespace("ns")


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_a_finished_pod_uses_nothing(index, phase):
    index.on_pod(None, pod(node="n1"))
    index.on_pod(None, pod(node="n1", phase=phase))
    assert index.need(Key("n1", MAP), Link()) is Need.NONE


async def test_a_change_of_status_wakes_nobody(index, woken):
    index.on_pod(None, pod(node="n1"))
    woken.clear()
    index.on_pod(pod(node="n1"), pod(node="n1", phase="Running"))
    assert woken == []


async def test_what_a_target_says_keeps_a_copy_but_does_not_bring_one(index):
    index.on_pod(None, pod(uid="u"))
    assert index.need(Key("n1", MAP), Link("n1", "u")) is Need.TOLERATED
    assert index.need(Key("n1", MAP), Link("n1", "another")) is Need.NONE


async def test_an_announcement_holds_while_there_is_a_candidate(index, woken):
    waiting = pod(uid="u")
    index.on_pod(None, waiting)
    assert index.announce(waiting, "n1") == [Key("n1", MAP)]
    assert index.need(Key("n1", MAP), Link()) is Need.ANNOUNCED
    assert index.need(Key("n2", MAP), Link("n2")) is Need.NONE
    assert (on(index, "n1"), on(index, "n2")) == ([Key("n1", MAP)], [])
    await asyncio.sleep(61)
    assert index.need(Key("n1", MAP), Link()) is Need.NONE
    assert index.need(Key("n1", MAP), Link("n1", "u")) is Need.WANTED
    woken.clear()
    index.release("ns/p", "u", "n1")
    assert woken == [Key("n1", MAP)]
    assert index.need(Key("n1", MAP), Link()) is Need.NONE
    assert on(index, "n1") == []


async def test_the_end_of_a_namesakes_candidate_leaves_an_announcement_as_it_is(index):
    """As of a pod of a StatefulSet, whose chaperon may outlive it."""
    index.on_pod(None, pod(uid="u"))
    index.on_pod(pod(uid="u"), None)
    index.on_pod(None, pod(uid="w"))
    index.announce(pod(uid="w"), "n1")
    index.release("ns/p", "u", "n1")
    assert index.need(Key("n1", MAP), Link()) is Need.ANNOUNCED


async def test_binding_ends_the_announcements_elsewhere(index, woken):
    waiting = pod(uid="u")
    index.on_pod(None, waiting)
    index.announce(waiting, "n1")
    index.announce(waiting, "n2")
    woken.clear()
    index.on_pod(waiting, pod(uid="u", node="n1"))
    assert set(woken) == {Key("n1", MAP), Key("n2", MAP)}
    assert index.need(Key("n1", MAP), Link()) is Need.WANTED
    assert index.need(Key("n2", MAP), Link("n2", "u")) is Need.NONE


async def test_a_namesake_inherits_no_announcement(index):
    index.on_pod(None, pod(uid="u"))
    index.announce(pod(uid="u"), "n1")
    index.on_pod(pod(uid="u"), pod(uid="w"))
    assert index.need(Key("n1", MAP), Link()) is Need.NONE


async def test_a_reference_that_is_added_is_wanted(index):
    """As of an ephemeral container."""
    index.on_pod(None, pod(node="n1"))
    secret = Ref(kinds.SECRETS, "ns", "s")
    index.on_pod(None, pod(node="n1", imagePullSecrets=[{"name": "s"}]))
    assert index.need(Key("n1", secret), Link()) is Need.WANTED
    assert index.need(Key("n1", MAP), Link()) is Need.WANTED


async def test_complaints_go_to_the_pods_concerned(index):
    index.on_pod(None, pod("here", node="n1"))
    index.on_pod(None, pod("there", node="n2"))
    index.on_pod(None, pod("waiting"))
    index.announce(pod("waiting"), "n1")
    assert sorted(about["name"] for about in index.involved_objects(Key("n1", MAP))) == [
        "here",
        "waiting",
    ]
