"""What a target answers of a pod takes little of the agent that shows it, whatever it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from tests import computing
from tests.apiserver.server import APIServer
from tests.unit.dashboard.test_pages import NODE, NOW, pod, target
from tests.unit.dashboard.test_site import FakeLiveModel
from vnode.api import keys, kinds, names
from vnode.api.clock import Clock, SystemClock
from vnode.api.objects import Object
from vnode.dashboard.site import Site
from vnode.insight import collecting
from vnode.insight.facts import Facts, TargetFacts
from vnode.kube.client import Client
from vnode.targets import model


def event(number: int, involved: str) -> Object:
    metadata = {"name": f"e{number}", "namespace": "default"}
    about = {"kind": "Pod", "name": "web", "namespace": "default", "uid": involved}
    last = f"2026-01-02T03:{number // 60 % 60:02d}:{number % 60:02d}Z"
    said = {"type": "Warning", "reason": "Said", "message": f"no {number}"}
    return {"metadata": metadata, "involvedObject": about, "lastTimestamp": last, **said}


class Clusters:
    """A pod, its delegate, and what their target has of it."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.source, self.remote = APIServer("c1", clock), APIServer("c2", clock)
        self.source.add(kinds.TARGETS, {**target(), "spec": {}})
        self.source.add(kinds.PODS, pod("web", NODE))
        owned = {keys.PARENT_UID: "web"}
        parent = {keys.PARENT_NAME: "web", keys.PARENT_NAMESPACE: "default"}
        name = names.chaperons("web", "web")[0]
        metadata: Object = {"name": name, "namespace": "default", "labels": owned}
        self.chaperon = {"metadata": {**metadata, "annotations": parent}, "spec": {}}
        self.remote.add(kinds.POD_CHAPERONS, self.chaperon)
        self.delegate = pod(name, "machine", metadata={"uid": "there"})

    async def facts(self) -> TargetFacts:
        self.remote.add(kinds.PODS, self.delegate)

        @asynccontextmanager
        async def connect(_local: Client, _target: Object) -> AsyncIterator[Client]:
            yield self.remote.client()

        client = self.source.client()
        found = await collecting.collect(
            client, "web", "default", agent_namespace="vnode", clock=self.clock, connect=connect
        )
        [of_target] = found.targets
        return of_target


@pytest.mark.looptime
async def test_of_many_events_the_last_are_read_and_of_too_many_none(clock: Clock) -> None:
    clusters = Clusters(clock)
    for number in range(500):
        clusters.remote.add(kinds.EVENTS, event(number, "there"))

    found = await clusters.facts()
    assert [each["message"] for each in found.events] == [f"no {n}" for n in range(400, 500)]
    for number in range(500, 6000):
        clusters.remote.add(kinds.EVENTS, event(number, "there"))

    found = await clusters.facts()
    assert (found.events, found.error) == ([], "")
    assert found.delegate is not None


@pytest.mark.looptime
async def test_a_target_with_too_many_chaperons_of_a_pod_could_not_be_read(clock: Clock) -> None:
    clusters = Clusters(clock)
    clusters.chaperon["spec"] = {"text": "x" * 5_000_000}
    clusters.remote.add(kinds.POD_CHAPERONS, clusters.chaperon)
    assert "more than" in (await clusters.facts()).error


@pytest.mark.looptime
async def test_a_delegate_that_names_thousands_of_objects_has_few_looked_up(clock: Clock) -> None:
    clusters = Clusters(clock)
    variables = [{"secretRef": {"name": f"s{number:04d}"}} for number in range(3000)]
    clusters.delegate["spec"]["containers"] = [{"name": "main", "envFrom": variables}]
    found = await clusters.facts()
    assert len(found.missing) == collecting.MOST_LOOKED_UP
    assert clusters.remote.count("get", kinds.SECRETS) == collecting.MOST_LOOKED_UP


class HostileModel(FakeLiveModel):
    """Knows a pod of which its target tells more than any cluster has."""

    async def facts(self, _namespace: str, _name: str) -> Facts:
        web = pod("web", NODE)
        told = [event(number, "there") for number in range(5000)]
        key = model.key_of(target())
        return Facts(web, NOW, targets=(TargetFacts(key, target(), delegate=web, events=told),))


async def test_a_long_story_is_not_made_in_the_event_loop() -> None:
    live_model: Any = HostileModel()
    assert isinstance(live_model.clock, SystemClock)
    async with TestClient(TestServer(Site(live_model, "/base").app())) as client:
        with computing.steps() as steps:
            async with client.get("/base/pods/default/web") as answer, asyncio.timeout(30):
                assert "no 4999" in await answer.text()

        assert max(steps) < 0.03
