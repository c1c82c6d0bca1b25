"""How often the conditions of Targets are written, whatever their targets answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from tests import background
from tests.apiserver import links
from tests.apiserver.server import APIServer
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.target_key import TargetKey
from vnode.kube.events import EventRecorder
from vnode.kube.informer import Informer
from vnode.runtime import write_limits
from vnode.targets import conditions
from vnode.targets.reporting import Reporter, TargetFinding

pytestmark = pytest.mark.looptime


class Reported:
    """A source with Targets, all of which answer what `message` says."""

    def __init__(self, clock: Clock, latency: Callable[[], float] = lambda: 0.0) -> None:
        self.server = APIServer("c1", clock, latency=latency)
        self.targets = Informer(self.server.client(), kinds.TARGETS)
        self.message = ""
        self._clock = clock
        self.reporter = Reporter(
            self.server.client(),
            EventRecorder(self.server.client(), "vnode", clock),
            self._finding,
            clock,
        )

    def add(self, namespace: str, name: str) -> None:
        metadata = {"namespace": namespace, "name": name}
        if self.server.find(kinds.NAMESPACES, namespace) is None:
            self.server.add(kinds.NAMESPACES, {"metadata": {"name": namespace}})

        self.server.add(kinds.TARGETS, {"metadata": metadata, "spec": {"self": True}})

    def message_of(self, namespace: str, name: str) -> str:
        obj = self.server.find(kinds.TARGETS, name, namespace) or {}
        return str((objects.condition(obj, "Ready") or {}).get("message", ""))

    def _finding(self, key: TargetKey) -> TargetFinding | None:
        obj = self.targets.store.get(str(key))
        if obj is None:
            return None

        ready = conditions.ready(obj, False, "Failing", self.message, self._clock.now())
        return TargetFinding(obj, [ready])

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with links.following(self.targets):
            self.targets.subscribe(
                lambda _old, new: self.reporter.wake(
                    TargetKey(objects.namespace(new or {}), objects.name(new or {}))
                )
            )
            async with background.running(self.reporter.run()):
                yield


async def test_answers_that_keep_changing_are_a_few_writes_and_the_last_one_is_told(
    clock: Clock,
) -> None:
    env = Reported(clock)
    env.add("ns", "bad")
    async with env.running():
        for number in range(1000):
            env.message = f"answer {number}"
            env.reporter.wake(TargetKey("ns", "bad"))
            await asyncio.sleep(0.02)

        limit = write_limits.TARGETS
        assert 5 < env.server.count("patch", kinds.TARGETS) <= limit.burst + 20 * limit.rate + 1
        await asyncio.sleep(1 / limit.rate)
        assert env.message_of("ns", "bad") == "answer 999"


async def test_a_namespace_of_many_targets_does_not_keep_back_that_of_another(clock: Clock) -> None:
    env = Reported(clock, latency=lambda: 0.1)
    env.message = "something"
    for number in range(200):
        env.add("many", f"t{number}")

    env.add("one", "t")
    async with env.running():
        await asyncio.sleep(1)
        assert env.message_of("one", "t")
        assert not env.message_of("many", "t199")
