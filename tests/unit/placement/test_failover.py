"""Pods of lost clusters are replaced when their policy says so, and no faster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests import background
from tests.apiserver.links import following
from tests.apiserver.server import APIServer
from tests.unit.placement.moving_environment import AwaitedPods
from tests.unit.pods.policies import Fixed, spread
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import ServerError
from vnode.kube.events import EventRecorder
from vnode.kube.informer import Informer
from vnode.placement.failover import deciding
from vnode.placement.failover.controller import Failovers
from vnode.pods.source import proxy_state
from vnode.scheduling.placement.failover import Failover, Purge
from vnode.scheduling.placement.policy import Policy

pytestmark = pytest.mark.looptime


class LosingEnvironment:
    """A source whose virtual nodes are lost; its proxies have a finalizer."""

    def __init__(self, clock: Clock, failover: Failover | None) -> None:
        self.server = APIServer("c1", clock)
        self.policies = Fixed(spread(failover=failover))
        self.replacements = AwaitedPods()
        self._clock = clock

    @asynccontextmanager
    async def leading(self) -> AsyncIterator[None]:
        client = self.server.client()
        nodes = Informer(client, kinds.NODES)
        proxies = Informer(client, kinds.PODS, trim=proxy_state.trim, indexes=proxy_state.INDEXES)
        events = EventRecorder(client, "vnode", self._clock)
        failovers = Failovers(
            client,
            proxies,
            nodes,
            lambda node: proxies.store.by_index(proxy_state.NODE_INDEX, node),
            self.policies,
            self.replacements,
            events=events,
            clock=self._clock,
        )
        running = background.running(failovers.run(), events.run())
        async with following(nodes, proxies), running:
            yield

    def change_policy(self, policy: Policy | None) -> None:
        self.policies.policy = policy
        for changed in self.policies.listeners:
            changed()

    def add_node(self, name: str) -> None:
        self.server.add(kinds.NODES, {"metadata": {"name": name}, "spec": {}})

    def lose(self, node: str, key: str = "not-ready") -> None:
        """Mark a node as lost, with the taints that the node lifecycle controller sets."""
        added = objects.timestamp(self._clock.now())
        taint = {"key": f"node.kubernetes.io/{key}", "effect": "NoExecute", "timeAdded": added}
        self._taint(node, [{**taint, "effect": "NoSchedule"}, taint])

    def find(self, node: str) -> None:
        self._taint(node, [])

    def _taint(self, node: str, taints: list[Any]) -> None:
        self.server.change(kinds.NODES, node, "", lambda obj: obj["spec"].update(taints=taints))

    def add(self, name: str, node: str = "n1", *, priority: int = 0, marked: bool = True) -> None:
        metadata = {
            "name": name,
            "namespace": "default",
            "finalizers": ["example.com/kept"],
            "annotations": {keys.FAILOVER: ""} if marked else {},
        }
        spec = {"nodeName": node, "priority": priority, "containers": [{"name": "c", "image": "i"}]}
        self.server.add(kinds.PODS, {"metadata": metadata, "spec": spec})

    def ending(self) -> list[str]:
        """List the pods that terminate, in the order of their deletions."""
        return [
            each.name
            for each in self.server.received("delete", kinds.PODS)
            if objects.is_terminating(self.server.find(kinds.PODS, each.name, "default") or {})
        ]

    def event_messages(self) -> list[str]:
        return [e["message"] for e in self.server.all(kinds.EVENTS) if e["reason"] == "FailedOver"]


@pytest.fixture
def make(clock: Clock) -> Any:
    def made(failover: Failover | None = None, nodes: int = 1, pods: int = 3) -> LosingEnvironment:
        env = LosingEnvironment(clock, failover)
        for number in range(1, nodes + 1):
            env.add_node(f"n{number}")

        for number in range(pods):
            env.add(f"web-{number}", f"n{number % nodes + 1}")

        return env

    return made


async def test_pods_are_evicted_when_their_cluster_has_been_lost_for_long_enough(make: Any) -> None:
    env = make(Failover(60))
    async with env.leading():
        await asyncio.sleep(1000)
        env.lose("n1")
        await asyncio.sleep(58)
        assert env.ending() == []
        await asyncio.sleep(3)
        assert env.ending() == ["web-0", "web-1", "web-2"]
        why = "moved by placementpolicy/web (failover): node n1 has been lost for 60 s"
        assert env.event_messages() == [why] * 3
        assert env.replacements.why == dict.fromkeys(env.ending(), why)
        pod = env.server.find(kinds.PODS, "web-0", "default")
        disrupted = objects.condition(pod, "DisruptionTarget") or {}
        assert (disrupted["status"], disrupted["message"]) == ("True", why)


async def test_a_cluster_that_comes_back_in_time_keeps_its_pods(make: Any) -> None:
    env = make(Failover(60))
    async with env.leading():
        for _ in range(3):
            env.lose("n1")
            await asyncio.sleep(50)
            env.find("n1")
            await asyncio.sleep(20)

        assert env.ending() == []


async def test_the_time_goes_on_when_another_agent_leads(make: Any) -> None:
    env = make(Failover(60))
    env.lose("n1")
    async with env.leading():
        await asyncio.sleep(40)

    async with env.leading():
        await asyncio.sleep(25)
        assert len(env.ending()) == 3


async def test_evictions_of_a_policy_are_spread_over_all_its_clusters(make: Any) -> None:
    env = make(Failover(10, per_minute=6), nodes=2, pods=6)
    async with env.leading():
        env.lose("n1")
        env.lose("n2", "unreachable")
        await asyncio.sleep(11)
        assert len(env.ending()) == 1
        await asyncio.sleep(20)
        assert len(env.ending()) == 3
        env.find("n1")
        env.find("n2")
        await asyncio.sleep(600)
        assert len(env.ending()) == 3


async def test_pods_with_a_higher_priority_come_first(make: Any) -> None:
    env = make(Failover(10, per_minute=6))
    env.add("important", priority=10)
    async with env.leading():
        env.lose("n1")
        await asyncio.sleep(11)
        assert env.ending() == ["important"]


async def test_never_evicts_none(make: Any) -> None:
    env = make(Failover(purge=Purge.NEVER))
    async with env.leading():
        env.lose("n1")
        await asyncio.sleep(10_000)
        assert env.ending() == []
        env.change_policy(spread(failover=Failover(60)))
        await asyncio.sleep(5)
        assert len(env.ending()) == 3


@pytest.mark.parametrize("policy", [None, spread()])
async def test_pods_whose_policy_has_ended_are_evicted_as_by_kubernetes(
    make: Any, policy: Policy | None
) -> None:
    env = make(Failover(10))
    env.change_policy(policy)
    async with env.leading():
        env.lose("n1")
        await asyncio.sleep(298)
        assert env.ending() == []
        await asyncio.sleep(5)
        assert len(env.ending()) == 3


async def test_pods_that_kubernetes_evicts_are_left_to_it(make: Any) -> None:
    env = make(Failover(10), pods=0)
    env.add("own-tolerations", marked=False)
    async with env.leading():
        env.lose("n1")
        await asyncio.sleep(1000)
        assert env.ending() == []


async def test_an_eviction_that_fails_is_tried_again(make: Any) -> None:
    env = make(Failover(10))
    env.server.fail(ServerError(500, "", "no leader"), verb="delete", times=2)
    async with env.leading():
        env.lose("n1")
        await asyncio.sleep(20)
        assert sorted(set(env.ending())) == ["web-0", "web-1", "web-2"]
        assert len(env.replacements.why) == 3


def test_a_taint_without_a_time_or_of_another_kind_loses_nothing() -> None:
    def node(**taint: str) -> Any:
        return {"spec": {"taints": [taint]}}

    lost = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}
    assert deciding.lost_since(node(**lost)) is None
    at = "1970-01-01T00:01:00Z"
    assert deciding.lost_since(node(**lost, timeAdded=at)) == 60
    assert deciding.lost_since(node(**{**lost, "effect": "NoSchedule"}, timeAdded=at)) is None
    assert deciding.lost_since(node(**{**lost, "key": "mine"}, timeAdded=at)) is None
    assert deciding.lost_since({}) is None
