"""The first pods of a namespace in a target wait for its Services, and no others."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.conftest import LoopClock
from tests.unit.following.fleet import SOON, FollowingFleet
from vnode.api import kinds, objects
from vnode.api.errors import Denied
from vnode.api.objects import Object
from vnode.following import first_pods
from vnode.following.config import FollowingConfig

pytestmark = pytest.mark.looptime


def now() -> float:
    return asyncio.get_running_loop().time()


async def bind(fleet: FollowingFleet) -> None:
    """Have a pod on the node of the first target, and return once its agent has heard of it."""
    heard = asyncio.Event()

    def on_pod(_old: Object | None, new: Object | None) -> None:
        if new is not None and objects.node_name(new):
            heard.set()

    fleet.proxies.subscribe(on_pod)
    fleet.add_pod()
    await heard.wait()


async def waited(fleet: FollowingFleet, name: str = "web") -> float:
    """Have a pod wait, and return for how long."""
    pod = fleet.source.find(kinds.PODS, name, "ns")
    assert pod is not None
    began = now()
    await fleet.following.ensure_bound(pod, fleet.link)
    return now() - began


async def test_services_are_there_before_the_first_pod_runs(clock: LoopClock) -> None:
    fleet = FollowingFleet(clock)
    fleet.add_original(kinds.SERVICES)
    async with fleet.running():
        await asyncio.sleep(SOON)
        assert not fleet.copy(kinds.SERVICES)
        await bind(fleet)
        assert await waited(fleet)
        assert fleet.copy(kinds.SERVICES)


async def test_later_pods_do_not_wait_until_all_have_left(clock: LoopClock) -> None:
    fleet = FollowingFleet(clock)
    fleet.add_original(kinds.SERVICES)
    async with fleet.running():
        await bind(fleet)
        fleet.gpu.freeze()
        first = asyncio.create_task(waited(fleet))
        second = asyncio.create_task(waited(fleet))
        await asyncio.sleep(SOON)
        assert not first.done()
        assert not second.done(), "it is one of the first, too"
        fleet.gpu.thaw()
        assert await first
        assert await second
        fleet.gpu.freeze()
        assert not await waited(fleet)
        fleet.gpu.thaw()
        fleet.remove_pod()
        await asyncio.sleep(60)
        assert not fleet.copy(kinds.SERVICES)
        await bind(fleet)
        assert await waited(fleet)
        assert fleet.copy(kinds.SERVICES)


async def test_a_target_that_does_not_answer_is_waited_for_some_seconds(clock: LoopClock) -> None:
    fleet = FollowingFleet(clock)
    fleet.add_original(kinds.SERVICES)
    async with fleet.running():
        await bind(fleet)
        fleet.gpu.freeze()
        assert await waited(fleet) == pytest.approx(first_pods.TIMEOUT, abs=0.1)


async def test_a_target_that_refuses_services_is_not_waited_for(clock: LoopClock) -> None:
    fleet = FollowingFleet(clock)
    fleet.add_original(kinds.SERVICES)
    fleet.gpu.fail(Denied(403, "Forbidden", "no"), verb="create", kind=kinds.SERVICES, times=None)
    async with fleet.running():
        await bind(fleet)
        assert await waited(fleet) < SOON


async def test_another_cluster_behind_a_name_gets_services_first(clock: LoopClock) -> None:
    fleet = FollowingFleet(clock)
    fleet.add_original(kinds.SERVICES)
    async with fleet.running():
        await bind(fleet)
        assert await waited(fleet)
        fleet.links.remove(fleet.link)
        fleet.links.add(fleet.link)
        assert await waited(fleet)


async def test_without_services_nobody_waits(clock: LoopClock) -> None:
    fleet = FollowingFleet(clock)
    async with fleet.running():
        await bind(fleet)
        assert not await waited(fleet)


async def test_services_that_do_not_follow_are_not_waited_for(clock: LoopClock) -> None:
    fleet = FollowingFleet(clock, follows=FollowingConfig(services=False))
    fleet.add_original(kinds.SERVICES)
    async with fleet.running():
        await bind(fleet)
        assert not await waited(fleet)
