"""A Target that waits for the clean-up goes after it, also if it was deleted while no agent ran."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests import background
from tests.apiserver.server import APIServer
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.kube.endpoint import Trust
from vnode.kube.events import EventRecorder
from vnode.runtime.links import Links
from vnode.targets import finalizing
from vnode.targets.controller import TargetController
from vnode.targets.target_lister import TargetLister

pytestmark = pytest.mark.looptime
OTHERS = "example.com/kept"


class Cluster:
    """A source with a Target that leads to itself, where a copy is left."""

    def __init__(self, clock: Clock, monkeypatch: pytest.MonkeyPatch, spec: Object) -> None:
        self.server, self._clock = APIServer("c1", clock), clock
        metadata = {"name": "gone", "namespace": "team", "finalizers": [keys.CLEAN_UP]}
        self.server.add(kinds.TARGETS, {"metadata": metadata, "spec": spec})
        labels = {keys.PARENT_CLUSTER_NAME: "c1"}
        copy = {"metadata": {"name": "copy", "namespace": "team", "labels": labels}}
        self.server.add(kinds.CONFIG_MAPS, copy)
        monkeypatch.setattr(
            "vnode.targets.connection.RecognizedClient",
            lambda _endpoint, _recognition, name, scope: self.server.client(name=name),
        )

    async def delete(self) -> None:
        await self.server.client().delete(kinds.TARGETS, "gone", "team")

    @asynccontextmanager
    async def agent(self, *, leads: bool = True) -> AsyncIterator[None]:
        local = self.server.client()
        targets = TargetLister(local)
        controller = TargetController(
            *(local, Identity("c1", "u"), targets, Links()),
            clock=self._clock,
            trust=lambda _key: Trust(),
        )
        runs = [targets.run(), controller.run()]
        if leads:
            runs.append(controller.lead(EventRecorder(local, "vnode", self._clock)))

        async with background.running(*runs):
            yield

    def target(self) -> Object | None:
        return self.server.find(kinds.TARGETS, "gone", "team")

    def copies(self) -> list[str]:
        return [objects.name(copy) for copy in self.server.all(kinds.CONFIG_MAPS)]


async def test_a_target_goes_once_its_cluster_is_clean(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(clock, monkeypatch, {"self": True})
    async with cluster.agent():
        await asyncio.sleep(10)
        await cluster.delete()
        assert (cluster.target() is None, cluster.copies()) == (False, ["copy"])
        await asyncio.sleep(30)
        assert (cluster.target(), cluster.copies()) == (None, [])


@pytest.mark.parametrize("seconds", [0.5, 2, 3.5])
async def test_an_agent_that_is_started_later_cleans_up(
    seconds: float, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(clock, monkeypatch, {"self": True})
    async with cluster.agent():
        await asyncio.sleep(10)
        await cluster.delete()
        await asyncio.sleep(seconds)

    await asyncio.sleep(10 * finalizing.TIMEOUT)
    async with cluster.agent():
        await asyncio.sleep(30)
        assert (cluster.target(), cluster.copies()) == (None, [])


async def test_a_target_that_cannot_be_reached_goes_after_a_while(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(clock, monkeypatch, {"kubeconfigSecret": {"name": "none"}})
    async with cluster.agent():
        await cluster.delete()
        await asyncio.sleep(finalizing.TIMEOUT - 5)
        assert cluster.target() is not None
        await asyncio.sleep(10)
        assert (cluster.target(), cluster.copies()) == (None, ["copy"])


async def test_who_does_not_lead_leaves_it_to_the_leader(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(clock, monkeypatch, {"self": True})
    async with cluster.agent(leads=False):
        await cluster.delete()
        await asyncio.sleep(10 * finalizing.TIMEOUT)
        assert (cluster.target() is None, cluster.copies()) == (False, ["copy"])


async def test_finalizers_of_others_stay(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(clock, monkeypatch, {"self": True})
    cluster.server.change(
        *(kinds.TARGETS, "gone", "team"), lambda obj: obj["metadata"]["finalizers"].append(OTHERS)
    )
    async with cluster.agent():
        await cluster.delete()
        await asyncio.sleep(60)
        left = cluster.target()
        assert left is not None
        assert objects.finalizers(left) == [OTHERS]
