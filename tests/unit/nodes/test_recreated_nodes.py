"""A virtual Node that somebody deletes, while its Target exists, is made anew as it was."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from tests import background
from tests.apiserver import links
from tests.apiserver.server import APIServer
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.nodes import controller, former_nodes, virtual
from vnode.nodes.controller import NodeController
from vnode.nodes.former_nodes import FormerNodes
from vnode.runtime.links import Links

pytestmark = pytest.mark.looptime

TARGET = TargetKey("ns", "t")
NAME = TARGET.node_name
GPU = {"key": "example.com/gpu", "effect": "NoSchedule"}


class RecreatingEnvironment:
    """A source with one Target, which exists until the test removes it."""

    def __init__(self, clock: Clock) -> None:
        self.server, self.target = APIServer("c1", clock), APIServer("t", clock)
        summary: Object = {
            "metadata": {"name": keys.SUMMARY_NAME, "labels": {"topology.kubernetes.io/zone": "a"}}
        }
        self.target.add(kinds.CLUSTER_SUMMARIES, summary | {"capacity": {"cpu": "4"}})
        self.link = links.link_to(self.target, TARGET, Identity("c1", "us"), clock)
        self.links, self.keys = Links(), [TARGET]
        self.changed: Callable[[TargetKey], None] = lambda _key: None
        self.links.add(self.link)
        self.clock = clock
        self.nodes = controller.informer(self.server.client())
        self.former = FormerNodes(self.nodes, lambda name: name == NAME and bool(self.keys))

    @asynccontextmanager
    async def leading(self) -> AsyncIterator[None]:
        targets: Any = SimpleNamespace(
            wait_synced=lambda: asyncio.sleep(0),
            keys=lambda: self.keys,
            exists=lambda key: key in self.keys,
            subscribe_each=self._subscribe,
            fits=lambda _: True,
            knows=lambda _: True,
        )
        nodes = NodeController(
            self.server.client(),
            self.nodes,
            self.links,
            targets,
            advertise_address="10.0.0.1",
            port_of=lambda _name: 10251,
            former=self.former,
            clock=self.clock,
        )
        async with links.connected(self.link), background.running(nodes.run()):
            await asyncio.sleep(1)
            yield

    def _subscribe(self, changed: Callable[[TargetKey], None]) -> None:
        self.changed = changed

    @property
    def node(self) -> Object:
        node = self.server.find(kinds.NODES, NAME)
        assert node is not None
        return node

    def edit(self, **spec: Any) -> None:
        self.server.change(kinds.NODES, NAME, "", lambda node: node["spec"].update(spec))

    def label(self, key: str, value: str) -> None:
        self.server.change(
            kinds.NODES, NAME, "", lambda node: node["metadata"]["labels"].update({key: value})
        )


@pytest.fixture
async def env(clock: Clock) -> AsyncIterator[RecreatingEnvironment]:
    env = RecreatingEnvironment(clock)
    async with links.following(env.nodes):
        yield env


def is_ready(node: Object) -> bool:
    return (objects.condition(node, "Ready") or {}).get("status") == "True"


async def test_it_has_at_once_what_people_had_written_on_it(env: RecreatingEnvironment) -> None:
    async with env.leading():
        lost = [{"key": key, "effect": "NoExecute"} for key in keys.NODE_FAILURES]
        env.edit(unschedulable=True, taints=[keys.PROVIDER_TAINT, GPU, *lost])
        env.label("example.com/region", "north")
        before = env.node
        env.server.remove(kinds.NODES, NAME)
        await asyncio.sleep(1)
        assert objects.uid(env.node) != objects.uid(before)
        assert env.node["spec"]["unschedulable"] is True
        assert env.node["spec"]["taints"] == [keys.PROVIDER_TAINT, GPU]
        assert objects.labels(env.node) == objects.labels(before)
        assert is_ready(env.node)
        [created] = [r.body for r in env.server.received("create", kinds.NODES)][1:]
        assert created["spec"]["unschedulable"] is True  # no pod slips in meanwhile


async def test_it_is_described_at_once_however_often_it_is_deleted(
    env: RecreatingEnvironment,
) -> None:
    """A cloud controller deletes it every five seconds, for as long as it is not ready."""
    async with env.leading():
        env.edit(unschedulable=True)
        links.set_healthy(env.link, False, env.clock)
        for _ in range(50):
            await asyncio.sleep(5)
            assert not is_ready(env.node)
            assert objects.condition(env.node, "Ready") is not None
            env.server.remove(kinds.NODES, NAME)

        links.set_healthy(env.link, True, env.clock)
        await asyncio.sleep(1)
        assert is_ready(env.node)
        assert env.node["spec"]["unschedulable"] is True
        assert env.node["status"]["capacity"] == {"cpu": "4"}


async def test_another_leader_makes_it_as_it_was(env: RecreatingEnvironment) -> None:
    """Each replica has seen it."""
    async with env.leading():
        env.edit(unschedulable=True)
        await asyncio.sleep(1)

    env.server.remove(kinds.NODES, NAME)
    await asyncio.sleep(20)
    async with env.leading():
        assert env.node["spec"]["unschedulable"] is True


async def test_the_node_of_a_new_target_begins_anew(env: RecreatingEnvironment) -> None:
    async with env.leading():
        env.edit(unschedulable=True)
        await asyncio.sleep(1)
        env.keys.clear()
        env.changed(TARGET)
        await asyncio.sleep(1)
        assert env.server.find(kinds.NODES, NAME) is None
        env.keys.append(TARGET)
        env.changed(TARGET)
        await asyncio.sleep(1)
        assert not env.node["spec"].get("unschedulable")


def test_labels_that_we_applied_come_from_the_target_again() -> None:
    """What it does not have any more is not kept as if people had written it."""
    applied = {"f:metadata": {"f:labels": {"f:zone": {}}}}
    entry = {"manager": "vnode", "operation": "Apply", "fieldsV1": applied}
    former: Object = {
        "metadata": {
            "name": NAME,
            "labels": {"zone": "a", "mine": "b", "type": "other", "kubernetes.io/hostname": "c"},
            "annotations": {keys.CORDONED_BY_SET: "true", "flannel.alpha/ip": "10.0.0.1"},
            "managedFields": [entry],
        },
        "spec": {"unschedulable": True},
    }
    made = former_nodes.with_former(virtual.registration(TARGET), former)
    assert objects.labels(made)["mine"] == "b"
    assert not {"zone", "kubernetes.io/hostname"} & objects.labels(made).keys()
    assert objects.labels(made)["type"] == "virtual-kubelet"
    assert objects.annotations(made) == {keys.CORDONED_BY_SET: "true"}
