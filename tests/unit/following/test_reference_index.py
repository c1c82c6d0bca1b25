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

    def candidate(self, uid):
        return {} if uid in self.candidates else None


def pod(name="p", node="", uid="", phase="Pending", **more):
    spec = {"volumes": [{"name": "v", "configMap": {"name": "m"}}]} | more
    if node:
        spec["nodeName"] = node

    metadata = {"name": name, "namespace": "ns", "uid": uid or name}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


@pytest.fixture
def woken():
    return []


@pytest.fixture
def users(woken, clock):
    return ReferenceIndex(woken.append, clock)


async def test_a_bound_pod_uses_what_it_refers_to_in_its_own_target(users, woken):
    users.see(None, pod(node="n1"))
    assert users.need(Key("n1", MAP), Link("n1")) is Need.WANTED
    assert users.need(Key("n2", MAP), Link("n2")) is Need.NONE
    assert woken == [Key("n1", MAP)]
    assert users.on("n1") == [Key("n1", MAP)]
    assert users.in_namespace("ns")


async def test_a_copy_is_wanted_until_its_last_user_is_gone(users, woken):
    users.see(None, pod("a", node="n1"))
    users.see(None, pod("b", node="n1"))
    users.see(pod("a", node="n1"), None)
    assert users.need(Key("n1", MAP), Link()) is Need.WANTED
    woken.clear()
    users.see(pod("b", node="n1"), None)
    assert users.need(Key("n1", MAP), Link()) is Need.NONE
    assert woken == [Key("n1", MAP)]
    assert users.on("n1") == []
    assert not users.in_namespace("ns")


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_a_finished_pod_uses_nothing(users, phase):
    users.see(None, pod(node="n1"))
    users.see(None, pod(node="n1", phase=phase))
    assert users.need(Key("n1", MAP), Link()) is Need.NONE


async def test_a_change_of_status_wakes_nobody(users, woken):
    users.see(None, pod(node="n1"))
    woken.clear()
    users.see(pod(node="n1"), pod(node="n1", phase="Running"))
    assert woken == []


async def test_what_a_target_says_keeps_a_copy_but_does_not_bring_one(users):
    users.see(None, pod(uid="u"))
    assert users.need(Key("n1", MAP), Link("n1", "u")) is Need.TOLERATED
    assert users.need(Key("n1", MAP), Link("n1", "another")) is Need.NONE


async def test_a_claim_holds_while_there_is_a_candidate(users, woken):
    waiting = pod(uid="u")
    users.see(None, waiting)
    assert users.claim(waiting, "n1") == [Key("n1", MAP)]
    assert users.need(Key("n1", MAP), Link()) is Need.CLAIMED
    assert users.need(Key("n2", MAP), Link("n2")) is Need.NONE
    assert (users.on("n1"), users.on("n2")) == ([Key("n1", MAP)], [])
    await asyncio.sleep(61)
    assert users.need(Key("n1", MAP), Link()) is Need.NONE
    assert users.need(Key("n1", MAP), Link("n1", "u")) is Need.WANTED
    woken.clear()
    users.release("ns/p", "u", "n1")
    assert woken == [Key("n1", MAP)]
    assert users.need(Key("n1", MAP), Link()) is Need.NONE
    assert users.on("n1") == []


async def test_the_end_of_a_namesakes_candidate_leaves_a_claim_as_it_is(users):
    """As of a pod of a StatefulSet, whose chaperon may outlive it."""
    users.see(None, pod(uid="u"))
    users.see(pod(uid="u"), None)
    users.see(None, pod(uid="w"))
    users.claim(pod(uid="w"), "n1")
    users.release("ns/p", "u", "n1")
    assert users.need(Key("n1", MAP), Link()) is Need.CLAIMED


async def test_binding_ends_the_claims_elsewhere(users, woken):
    waiting = pod(uid="u")
    users.see(None, waiting)
    users.claim(waiting, "n1")
    users.claim(waiting, "n2")
    woken.clear()
    users.see(waiting, pod(uid="u", node="n1"))
    assert set(woken) == {Key("n1", MAP), Key("n2", MAP)}
    assert users.need(Key("n1", MAP), Link()) is Need.WANTED
    assert users.need(Key("n2", MAP), Link("n2", "u")) is Need.NONE


async def test_a_namesake_inherits_no_claim(users):
    users.see(None, pod(uid="u"))
    users.claim(pod(uid="u"), "n1")
    users.see(pod(uid="u"), pod(uid="w"))
    assert users.need(Key("n1", MAP), Link()) is Need.NONE


async def test_a_reference_that_is_added_is_wanted(users):
    """As of an ephemeral container."""
    users.see(None, pod(node="n1"))
    secret = Ref(kinds.SECRETS, "ns", "s")
    users.see(None, pod(node="n1", imagePullSecrets=[{"name": "s"}]))
    assert users.need(Key("n1", secret), Link()) is Need.WANTED
    assert users.need(Key("n1", MAP), Link()) is Need.WANTED


async def test_complaints_go_to_the_pods_concerned(users):
    users.see(None, pod("here", node="n1"))
    users.see(None, pod("there", node="n2"))
    users.see(None, pod("waiting"))
    users.claim(pod("waiting"), "n1")
    assert sorted(about["name"] for about in users.about(Key("n1", MAP))) == ["here", "waiting"]
