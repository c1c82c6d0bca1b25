"""Nothing stays in a cluster whose Target goes, in whichever order what belongs to it goes."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests import background
from tests.apiserver.server import APIServer
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.identity import Identity
from vnode.api.target_key import TargetKey
from vnode.cli import kubeconfigs
from vnode.cli.kubeconfigs import ClusterEndpoint
from vnode.kube.endpoint import Trust
from vnode.kube.events import EventRecorder
from vnode.runtime.links import Links
from vnode.targets import outliving
from vnode.targets.controller import TargetController
from vnode.targets.target_lister import TargetLister

pytestmark = pytest.mark.looptime
KEY = TargetKey("team", "east")


class SourceAndTarget:
    """A source with a Target, and its cluster, where a copy of a Secret is."""

    def __init__(self, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
        self.source, self.target, self._clock = (
            APIServer("c1", clock),
            APIServer("c2", clock),
            clock,
        )
        self.ending: set[str] = set()
        self.links = Links()
        text = kubeconfigs.build(ClusterEndpoint("https://c2", None), "token", "team")
        data = {"config": base64.b64encode(text).decode()}
        metadata = {"name": "kubeconfig", "namespace": "team"}
        self._secret = {"metadata": metadata, "type": "Opaque", "data": data}
        self.source.add(kinds.SECRETS, self._secret)
        metadata = {"name": KEY.name, "namespace": KEY.namespace}
        spec = {"kubeconfigSecret": {"name": "kubeconfig"}}
        self.source.add(kinds.TARGETS, {"metadata": metadata, "spec": spec})
        summary = {"metadata": {"name": keys.SUMMARY_NAME}, "capacity": {}, "allocatable": {}}
        self.target.add(kinds.NAMESPACES, {"metadata": {"name": "team"}})
        self.target.add(kinds.CLUSTER_SUMMARIES, summary)
        labels = {keys.PARENT_CLUSTER_NAME: "c1"}
        copy = {"metadata": {"name": "password", "namespace": "team", "labels": labels}}
        self.target.add(kinds.SECRETS, copy)
        monkeypatch.setattr(
            "vnode.targets.connection.RecognizedClient",
            lambda _endpoint, _recognition, name, scope: self.target.client(name=name),
        )

    def remove_secret(self) -> None:
        self.source.remove(kinds.SECRETS, "kubeconfig", "team")

    def restore_secret(self) -> None:
        self.source.add(kinds.SECRETS, self._secret)

    def remove_target(self) -> None:
        self.source.remove(kinds.TARGETS, KEY.name, KEY.namespace)

    @property
    def health(self) -> str:
        link = self.links.get(KEY.node_name)
        return link.health.reason if link else ""

    def left(self) -> list[str]:
        return [objects.name(copy) for copy in self.target.all(kinds.SECRETS)]

    @asynccontextmanager
    async def agent(self, *, leads: bool = True) -> AsyncIterator[TargetController]:
        local = self.source.client()
        targets = TargetLister(local)
        controller = TargetController(
            *(local, Identity("c1", "us"), targets, self.links),
            clock=self._clock,
            trust=lambda _key: Trust(),
            is_ending=self.ending.__contains__,
        )
        runs = [targets.run(), controller.run()]
        if leads:
            runs.append(self.lead(controller))

        async with background.running(*runs):
            await asyncio.sleep(5)
            yield controller

    async def lead(self, controller: TargetController) -> None:
        await controller.lead(EventRecorder(self.source.client(), "vnode", self._clock))


@pytest.fixture
async def env(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> SourceAndTarget:
    return SourceAndTarget(clock, monkeypatch)


@pytest.mark.parametrize("seconds", [0, 0.2, 5, 25])
async def test_a_secret_that_goes_before_its_target_leaves_nothing_there(
    seconds: float, env: SourceAndTarget
) -> None:
    async with env.agent():
        env.remove_secret()
        await asyncio.sleep(seconds)
        env.remove_target()
        await asyncio.sleep(60)
        assert env.left() == []
        assert env.health == ""


async def test_a_namespace_that_takes_its_time_leaves_nothing_there(env: SourceAndTarget) -> None:
    async with env.agent():
        env.ending.add("team")
        env.remove_secret()
        await asyncio.sleep(10 * outliving.LIFE)
        assert env.health == "Connected"  # its pods are followed to their end
        env.remove_target()
        await asyncio.sleep(60)
        assert env.left() == []


async def test_who_comes_to_lead_in_between_cleans_up(env: SourceAndTarget) -> None:
    async with env.agent(leads=False) as controller:
        env.remove_secret()
        await asyncio.sleep(2)
        env.remove_target()
        await asyncio.sleep(10)
        assert env.left() == ["password"]
        async with background.running(env.lead(controller)):
            await asyncio.sleep(60)
            assert env.left() == []


async def test_a_deleted_secret_ends_the_use_of_a_target_at_once_and_the_connection_later(
    env: SourceAndTarget,
) -> None:
    async with env.agent():
        assert env.health == "Connected"
        env.remove_secret()
        await asyncio.sleep(1)
        assert env.health == "Connecting"
        await asyncio.sleep(outliving.LIFE - 2)
        assert env.health == "Connecting"
        await asyncio.sleep(2)
        assert env.health == ""
        ready = objects.condition(env.source.all(kinds.TARGETS)[0], "Ready") or {}
        assert "there is no Secret 'kubeconfig'" in ready["message"]
        env.restore_secret()
        await asyncio.sleep(5)
        assert env.health == "Connected"


async def test_a_secret_that_is_back_soon_is_used_on(env: SourceAndTarget) -> None:
    async with env.agent():
        link = env.links.get(KEY.node_name)
        env.remove_secret()
        await asyncio.sleep(5)
        env.restore_secret()
        await asyncio.sleep(5)
        assert env.links.get(KEY.node_name) is link
        assert env.health == "Connected"
        await asyncio.sleep(2 * outliving.LIFE)
        env.remove_secret()
        await asyncio.sleep(outliving.LIFE - 2)
        assert env.health == "Connecting"  # the time begins anew
