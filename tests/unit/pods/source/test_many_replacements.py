"""What it takes to move thousands of pods of one owner at once, as when a cluster is lost."""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import Final

import pytest

from tests import background, computing
from tests.apiserver.server import APIServer
from tests.unit.pods.bound_pods import RUNNING, new_pod
from tests.unit.pods.policies import Fixed, spread
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.kube.events import EventRecorder
from vnode.kube.informer import Informer
from vnode.pods.source import proxy_state
from vnode.pods.source.awaited_replacements import AwaitedReplacements

pytestmark = pytest.mark.looptime

COUNT: Final = 3_000
READY: Final = [{"type": "Ready", "status": "True"}]


class Owner:
    """A ReplicaSet of many pods, and what is known of them; nobody writes."""

    def __init__(self, clock: Clock) -> None:
        client = APIServer("c1", clock).client()
        self._clock, self._version = computing.WorkingClock(clock), 0
        self.proxies = Informer(client, kinds.PODS, indexes=proxy_state.INDEXES)
        self.woken = list[str]()
        events = EventRecorder(client, "vnode", clock)
        self.replacements = AwaitedReplacements(
            self.proxies, Fixed(spread()), events, self._clock, self.woken.append
        )
        self.replacements.follow()
        self.replacements.open()
        self.old = [self.put(f"old-{number}") for number in range(COUNT)]

    def put(self, name: str, status: Object = RUNNING, **fields: object) -> Object:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "uid": "web", "controller": True}
        pod = new_pod(name, "c2", status=status)
        pod["metadata"] |= {
            "ownerReferences": [owner],
            "creationTimestamp": objects.timestamp(self._clock.now()),
            **fields,
        }
        self.show(pod)
        return pod

    def show(self, pod: Object) -> None:
        self._version += 1
        metadata = {**pod["metadata"], "resourceVersion": str(self._version)}
        self.proxies.apply("MODIFIED", {**pod, "metadata": metadata})

    def delete_all(self) -> None:
        for pod in self.old:
            self.replacements.await_replacement(pod, "moved")

        deleted = objects.timestamp(self._clock.now())
        self.old = [
            self.put(objects.name(pod), deletionTimestamp=deleted, deletionGracePeriodSeconds=30)
            for pod in self.old
        ]

    def ask(self) -> int:
        """Have each pod ask; return how many wait."""
        return sum(self.replacements.waits(pod, {"status": RUNNING})[0] for pod in self.old)

    def replace(self) -> list[Object]:
        """Make the new pods, which are not ready."""
        return [self.put(f"new-{number}", status={}) for number in range(COUNT)]


async def compute() -> float:
    """Have all be done; return for how long the loop was busy, and each callback briefly."""
    with computing.steps() as steps:
        await asyncio.sleep(60)

    assert max(steps) < 0.05
    return sum(steps)


async def test_a_change_has_only_those_asked_again_who_no_longer_wait(clock: Clock) -> None:
    owner = Owner(clock)
    owner.delete_all()
    new = owner.replace()
    async with background.running(owner.replacements.run()):
        assert owner.ask() == COUNT  # nobody knows yet
        assert await compute() < 1
        assert len(owner.woken) == COUNT
        with computing.within(1):
            assert owner.ask() == COUNT

        owner.woken.clear()
        for pod in new[:3]:
            owner.show({**pod, "status": {"conditions": READY}})

        assert await compute() < 1
        assert len(owner.woken) == 3
        assert owner.ask() == COUNT - 3
        for pod in owner.old:
            owner.proxies.apply("DELETED", pod)

        await compute()
        assert not owner.replacements._rounds._found
        assert not owner.replacements._begun._moves
        assert not owner.replacements._begun._owners


async def test_a_pod_that_is_moved_keeps_no_list_of_the_others(clock: Clock) -> None:
    owner = Owner(clock)
    tracemalloc.start()
    try:
        for pod in owner.old:
            owner.replacements.await_replacement(pod, "moved")

        assert tracemalloc.get_traced_memory()[0] < COUNT * 2_000
    finally:
        tracemalloc.stop()
