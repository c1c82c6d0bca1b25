"""Targets that find a place, or claim to, when the pod must not be there any more."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.pods.clusters import SourceCluster, apart
from tests.unit.pods.targets import Target, is_silent, only, rejects, reserves
from vnode.api import keys, kinds, objects
from vnode.api.errors import ServerError, TooManyRequests, Unreachable

pytestmark = pytest.mark.looptime


async def test_a_late_reservation_does_not_overrule_anti_affinity(clock):
    target = Target("c2", clock, rejects)
    source = SourceCluster(clock, target)
    async with source.running():
        labels = {"app": "a"}
        source.add("big", cpu="1", labels=labels, spec=apart("a"))
        await source.until_said("big", "no room here")
        target.answer = reserves
        source.add("small", labels=labels, spec=apart("a"))
        await source.until_bound("small")
        target.set_room(cpu="4")
        reserves(target, target.candidate("big"))
        await source.until_said("big", "didn't match pod anti-affinity rules")
        await asyncio.sleep(100)
        assert not source.node_of("big")
        assert target.find("big") is None


async def test_a_late_reservation_does_not_overrule_topology_spread(clock):
    target, other = Target("c2", clock, rejects), Target("c3", clock, rejects)
    source = SourceCluster(clock, target, other)
    constraint = {
        "topologyKey": "target",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }
    spec = {"topologySpreadConstraints": [constraint]}
    async with source.running():
        source.add("late", cpu="1", labels={"app": "a"}, spec=spec)
        await asyncio.sleep(30)
        assert target.find("late") is not None
        target.answer = reserves
        source.add("early", labels={"app": "a"}, spec=only(target))
        await source.until_bound("early")
        reserves(target, target.candidate("late"))
        await source.until_said("late", "would be 2, maxSkew is 1")
        reserves(other, other.candidate("late"))
        await source.until_bound("late")
        assert source.node_of("late") == other.node


async def test_late_reservations_of_two_pods_that_must_not_meet_bind_only_one(clock):
    target = Target("c2", clock, rejects)
    source = SourceCluster(clock, target)
    async with source.running():
        for name in ("a", "b"):
            source.add(name, cpu="1", labels={"app": "a"}, spec=apart("a"))

        await source.until_said("a", "no room here")
        await asyncio.sleep(100)
        found = [target.find(name) for name in ("a", "b")]
        for candidate in found:
            if candidate is not None:
                reserves(target, candidate)

        await source.server.until(lambda: bool(source.node_of("a") or source.node_of("b")))
        await asyncio.sleep(100)
        assert not (source.node_of("a") and source.node_of("b"))


async def test_filters_are_asked_again_before_a_pod_is_bound(clock):
    """Meanwhile its target was cordoned."""
    target = Target("c2", clock, is_silent)
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p")
        await asyncio.sleep(5)
        source.cordon(target)
        reserves(target, target.candidate("p"))
        await source.until_said("p", "cordoned")
        assert not source.node_of("p")
        assert target.find("p") is None
        target.answer = reserves
        source.cordon(target, False)
        await source.until_bound("p")


@pytest.mark.parametrize("error", [None, Unreachable("lost"), ServerError(500, "", "")])
async def test_a_pod_is_not_bound_to_a_candidate_that_may_have_been_deleted(clock, error):
    """The source has asked for that, and its watch is behind; nor is it left as it is."""
    target = Target("c2", clock, is_silent)
    target.lets_go = False
    source = SourceCluster(clock, target)

    def fall_silent(_request):
        target.server.silence_watches(kinds.POD_CHAPERONS)
        return True

    async with source.running():
        source.add("p")
        await asyncio.sleep(5)
        target.server.fail(error, verb="delete", when=fall_silent, after=True)
        source.cordon(target)
        reserves(target, target.candidate("p"))
        await source.until_said("p", "cordoned")
        assert objects.is_terminating(target.candidate("p"))
        source.cordon(target, False)
        await source.until_said("p", "being deleted")
        assert not source.node_of("p")
        assert target.asked("delete") > 1
        target.answer, target.lets_go = reserves, True
        target.remove(target.candidate("p"))
        target.server.cut_watches()
        await source.until_bound("p")
        assert not objects.is_terminating(target.candidate("p"))


async def test_a_candidate_that_could_not_be_deleted_may_still_win(clock):
    target = Target("c2", clock, is_silent)
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p")
        await asyncio.sleep(5)
        target.server.fail(TooManyRequests(429, "", ""), verb="delete", times=None)
        source.cordon(target)
        reserves(target, target.candidate("p"))
        await source.until_said("p", "cordoned")
        assert target.asked("delete")
        source.cordon(target, False)
        await source.until_bound("p")
        assert target.asked("create") == 1


@pytest.mark.parametrize("bound", [False, True])
async def test_a_target_cannot_claim_a_pod_that_must_not_be_there(clock, bound):
    """Unless the pod is bound there, and no event has told of that yet."""
    target = Target("c2", clock, is_silent)
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p")
        await asyncio.sleep(5)
        source.cordon(target)
        if bound:
            source.server.silence_watches(kinds.PODS)
            source.change("p", spec={"nodeName": target.node})

        target.annotate(target.candidate("p"), **{keys.IS_ALLOWED: "true"})
        await source.until_said("p", "cordoned")
        await asyncio.sleep(10)
        assert (target.find("p") is None) is not bound
        assert source.bindings == []


async def test_no_candidate_goes_where_another_pod_came_meanwhile(clock):
    silent, other = Target("c2", clock, is_silent), Target("c3", clock)
    other.taints = [{"key": "k", "effect": "PreferNoSchedule"}]
    source = SourceCluster(clock, silent, other)
    async with source.running():
        source.add("a", labels={"app": "a"}, spec=apart("a"))
        await asyncio.sleep(0.5)
        assert silent.find("a") is not None
        source.add("b", labels={"app": "a"}, spec=only(other) | apart("a"))
        await source.until_bound("b")
        await asyncio.sleep(10)
        assert not source.node_of("a")
        assert other.asked("create") == 1


async def test_a_reservation_stands_though_it_is_what_makes_its_target_full(clock):
    target = Target("c2", clock, rejects, cpu="1")
    source = SourceCluster(
        clock, target, plugins={"plugins": {"disabled": [{"name": "CandidateProbe"}]}}
    )
    async with source.running():
        source.add("p", cpu="1")
        await source.until_said("p", "no room here")
        target.set_room(cpu="0")
        reserves(target, target.candidate("p"))
        await source.until_bound("p")


async def test_a_reserved_candidate_stays_if_a_former_leader_has_bound_its_pod(clock):
    """Our informer does not have the binding yet, and the pod may not be there by our filters."""
    target = Target("c2", clock, is_silent)
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p")
        await asyncio.sleep(5)
        source.server.silence_watches(kinds.PODS)
        source.change("p", spec={"nodeName": target.node})
        source.cordon(target)
        reserves(target, target.candidate("p"))
        await asyncio.sleep(5)
        assert not objects.is_terminating(target.candidate("p"))


async def test_a_term_that_ends_awaits_the_bindings_that_it_has_asked_for(clock):
    target = Target("c2", clock, reserves)
    source = SourceCluster(clock, target)
    asked = asyncio.Event()

    def reserve(_request):
        asked.set()
        return True

    source.server.fail(
        None, verb="create", kind=kinds.PODS, subresource="binding", when=reserve, delay=2.0
    )
    async with source.running():
        source.add("p")
        await asked.wait()

    assert source.node_of("p") == target.node
