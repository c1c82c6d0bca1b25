"""Pods whose workloads are not counted yet are held, and others are placed meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from tests import background
from tests.computing import BusyClock
from tests.unit.pods.policies import Fixed, entry, spread
from tests.unit.scheduling.builders import pod
from vnode.planning.workload_counts import FEW
from vnode.pods.source.uncounted_pods import UncountedPods
from vnode.scheduling import queued_pod
from vnode.scheduling.cache import Cache
from vnode.scheduling.queue import SchedulingQueue

WAITING = ("p0", "p1")


class Uncounted:
    """A namespace of so many pods, of which two are to be placed, and one of another namespace."""

    def __init__(self, pods: int) -> None:
        self.cache, clock = Cache(), BusyClock()
        self.policies = Fixed(spread(entry("a"), group_by="app"))
        self.queue = SchedulingQueue(clock, lambda queued: (queued.added,), {})
        self.pods = UncountedPods(self.policies, self.cache.workloads, self.queue, clock)
        for number in range(pods):
            made = pod(f"p{number}", labels={"app": "web"})
            self.cache.set_pod(made)
            if f"p{number}" in WAITING:
                self.queue.add(made)

        self.queue.add(pod("other", namespace="other", labels={"app": "web"}))

    async def held(self, pods: int) -> dict[str, bool]:
        """Take so many pods, as soon as they are ready, and return of each whether it is held."""
        found = {}
        for _ in range(pods):
            queued = await self.queue.pop()
            assert queued.attempts == 1
            found[queued.uid] = self.pods.hold(queued)

        return found


async def test_pods_are_held_until_their_namespace_is_counted_and_others_are_not() -> None:
    uncounted = Uncounted(FEW + 1)
    assert await uncounted.held(3) == {"p0": True, "p1": True, "other": False}
    assert {uncounted.queue.place(uid) for uid in WAITING} == {queued_pod.HELD}
    async with background.running(uncounted.pods.run()):
        await asyncio.sleep(0)
        assert not uncounted.cache.workloads.is_counted("default", "app")
        assert await uncounted.held(2) == {"p0": False, "p1": False}

    assert uncounted.cache.workloads.is_counted("default", "app")


@pytest.mark.parametrize("pods", [2, FEW])
async def test_of_few_pods_none_is_held(pods: int) -> None:
    assert not any((await Uncounted(pods).held(3)).values())


async def test_pods_are_released_when_their_policy_groups_otherwise_meanwhile() -> None:
    uncounted = Uncounted(FEW + 1)
    await uncounted.held(3)
    uncounted.policies.change(spread(entry("a"), group_by="tier"))
    uncounted.cache.workloads.keep("default", lambda _namespace: ("tier",))
    async with background.running(uncounted.pods.run()):
        assert await uncounted.held(2) == {"p0": True, "p1": True}
        assert not uncounted.cache.workloads.is_counted("default", "app")
        assert await uncounted.held(2) == {"p0": False, "p1": False}
