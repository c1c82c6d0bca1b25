"""A target goes back to Admiralty, or its agent is down: pods there end, and none is harmed.

Chaperons have vnode's finalizer, which nobody there takes off. As with Admiralty, the end of a
chaperon then has Kubernetes delete the delegate.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.pods.bound_pods import SPACE, BoundTarget, World
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Denied

pytestmark = pytest.mark.looptime


@pytest.fixture
async def world(clock: Clock) -> World:
    return World(clock)


def add_delegate(target: BoundTarget, uid: str = "web") -> None:
    labels = {keys.PARENT_UID: uid}
    metadata = {"name": "delegate", "namespace": SPACE, "labels": labels}
    target.server.add(kinds.PODS, {"metadata": metadata, "status": {"phase": "Running"}})


def go_silent(target: BoundTarget) -> None:
    """Tell the link that the agent is silent, as a heartbeat monitor does after a while."""
    target.link.set_agent_silent(False)
    target.link.set_agent_silent(True)


def sound_again(target: BoundTarget) -> None:
    target.link.set_agent_silent(False)


async def test_a_pod_that_is_deleted_ends_once_no_delegate_is_left(world: World) -> None:
    world.target.add(world.add(), phase="Running")
    add_delegate(world.target)
    async with world.running():
        go_silent(world.target)
        await world.delete()
        await asyncio.sleep(5)
        assert world.target.chaperon() is None  # so that its delegate is deleted
        assert world.pod() is not None
        world.target.server.remove(kinds.PODS, "delegate", SPACE)
        await asyncio.sleep(5)
        assert world.pod() is None


async def test_a_pod_that_was_ending_when_the_agent_left_ends_too(world: World) -> None:
    world.target.add(world.add(), phase="Running")
    add_delegate(world.target)
    async with world.running():
        await world.delete()
        await asyncio.sleep(60)
        assert world.target.chaperon() is not None
        go_silent(world.target)
        await asyncio.sleep(5)
        assert world.target.chaperon() is None
        sound_again(world.target)  # which does not bring the finalizer back
        await asyncio.sleep(5)
        assert world.pod() is not None
        world.target.server.remove(kinds.PODS, "delegate", SPACE)
        await asyncio.sleep(5)
        assert world.pod() is None


async def test_a_candidate_that_lost_goes_too(world: World) -> None:
    world.target.add(world.add(node="another"), allowed=False)
    async with world.running():
        go_silent(world.target)
        await asyncio.sleep(5)
        assert world.target.chaperon() is None


async def test_a_chaperon_that_somebody_deletes_there_goes_and_its_pod_with_it(
    world: World,
) -> None:
    chaperon = world.target.add(world.add(), phase="Running")
    async with world.running():
        go_silent(world.target)
        name = objects.name(chaperon)
        await world.target.server.client("user").delete(kinds.POD_CHAPERONS, name, SPACE)
        await asyncio.sleep(5)
        assert world.target.chaperon() is None
        assert world.is_ending()


async def test_pods_that_nobody_deletes_run_on_as_they_are(world: World) -> None:
    world.target.add(world.add(), phase="Running")
    async with world.running():
        before = world.target.chaperon()
        go_silent(world.target)
        await asyncio.sleep(600)
        sound_again(world.target)
        await asyncio.sleep(60)
        assert world.target.chaperon() == before
        assert not world.is_ending()
        assert world.target.writes == []


async def test_a_change_waits_for_an_agent_that_is_down_and_is_not_undone(world: World) -> None:
    added = world.target.add(world.add(metadata={"annotations": {"a": "1"}}), phase="Running")
    assert objects.annotations(added)["a"] == "1"
    async with world.running():
        go_silent(world.target)
        world.change(lambda pod: pod["metadata"]["annotations"].update(a="2"))
        await asyncio.sleep(60)
        assert objects.annotations(world.pod() or {})["a"] == "2"
        assert world.target.writes == []
        sound_again(world.target)
        await asyncio.sleep(5)
        assert '"a":"2"' in objects.annotations(world.target.chaperon() or {})[keys.SENT]


async def test_the_grace_period_of_a_deletion_waits_for_an_agent_that_is_down(
    world: World,
) -> None:
    world.target.add(world.add(), phase="Running")
    async with world.running():
        go_silent(world.target)
        fault = world.target.server.fail(
            Denied(403, "Forbidden", "no"), verb="delete", kind=kinds.POD_CHAPERONS, times=None
        )
        await world.delete(grace=7)
        await asyncio.sleep(5)
        found = objects.annotations(world.target.chaperon() or {})
        assert found[keys.GRACE_PERIOD] == "7"
        fault.clear()


async def test_a_finalizer_that_may_not_be_taken_off_is_tried_again(world: World) -> None:
    world.target.add(world.add(), phase="Running")
    async with world.running():
        go_silent(world.target)
        fault = world.target.server.fail(
            Denied(403, "Forbidden", "no"), verb="patch", kind=kinds.POD_CHAPERONS, times=None
        )
        await world.delete()
        await asyncio.sleep(20)
        assert world.target.chaperon() is not None
        fault.clear()
        await asyncio.sleep(60)
        assert world.target.chaperon() is None
        assert world.pod() is None


async def test_before_the_summary_of_a_target_is_known_no_finalizer_is_taken_off(
    world: World,
) -> None:
    world.target.add(world.add(), phase="Running")
    world.target.server.remove(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)
    async with world.running():
        await world.delete()
        await asyncio.sleep(60)
        assert world.target.chaperon() is not None


async def test_a_chaperon_that_others_let_go_of_says_nothing_about_its_delegate(
    world: World,
) -> None:
    world.target.add(world.add(), phase="Running")
    add_delegate(world.target)
    async with world.running():
        go_silent(world.target)
        error = Denied(403, "Forbidden", "no")
        world.target.server.fail(error, verb="patch", kind=kinds.POD_CHAPERONS, times=None)
        await world.delete()
        await asyncio.sleep(5)
        world.target.remove()
        await asyncio.sleep(5)
        assert world.pod() is not None
        world.target.server.remove(kinds.PODS, "delegate", SPACE)
        await asyncio.sleep(5)
        assert world.pod() is None
