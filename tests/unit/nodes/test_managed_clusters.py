"""Taints of ManagedClusters reach their virtual nodes, and no fault of the inventory takes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from tests import background
from tests.apiserver import links
from tests.apiserver.server import APIServer
from vnode.api import keys, kinds, objects
from vnode.api.errors import Denied
from vnode.api.identity import Identity
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.kube.informer import Informer
from vnode.nodes import virtual
from vnode.nodes.controller import NodeController
from vnode.nodes.managed_clusters import ManagedClusters
from vnode.runtime import write_limits
from vnode.runtime.link import ClusterDescription
from vnode.runtime.links import Links

pytestmark = pytest.mark.looptime

TARGET = TargetKey("ns", "t")
NAME = TARGET.node_name
BERLIN = ClusterDescription({keys.OCM_CLUSTER_NAME: "berlin"}, {keys.CLUSTER_PROFILE: "f/berlin"})
CRD: Object = {
    "metadata": {"name": kinds.MANAGED_CLUSTERS.resource},
    "spec": {"versions": [{"name": "v1", "served": True}]},
    "status": {"conditions": [{"type": "Established", "status": "True"}]},
}


class TaintsEnvironment:
    """A hub with one virtual node, whose Target's profile is of the ManagedCluster berlin."""

    def __init__(self, clock: Any) -> None:
        self.clock = clock
        self.server, self.target = APIServer("hub", clock), APIServer("berlin", clock)
        self.server.add(kinds.NODES, {**virtual.registration(TARGET), "status": {}})
        metadata = {"name": keys.SUMMARY_NAME}
        self.target.add(kinds.CLUSTER_SUMMARIES, {"metadata": metadata})
        self.description = BERLIN

    @asynccontextmanager
    async def agent(self, *, tainting: bool = True) -> AsyncIterator[Any]:
        """Run an agent's controller, as after a restart."""
        client = self.server.client()
        link = links.link_to(self.target, TARGET, Identity("hub", "us"), self.clock)
        link.describe(self.description)
        nodes, known = Informer(client, kinds.NODES), Links()
        known.add(link)
        targets: Any = SimpleNamespace(
            wait_synced=nodes.synced.wait,
            keys=lambda: [TARGET],
            exists=lambda _: True,
            subscribe_each=lambda _: None,
            fits=lambda _: True,
            knows=lambda _: True,
        )
        controller = NodeController(
            *(client, nodes, known, targets),
            advertise_address="10.0.0.1",
            port_of=lambda _name: 10251,
            managed_clusters=ManagedClusters(client) if tainting else None,
            clock=self.clock,
        )
        async with (
            background.running(nodes.run()),
            links.connected(link),
            background.running(controller.run()),
        ):
            await asyncio.sleep(2)
            yield link

    def serve(self) -> None:
        self.server.add(kinds.CRDS, CRD)

    def taint(self, *listed: tuple[str, str]) -> None:
        """Have the ManagedCluster have these taints: keys and effects."""
        taints = [{"key": key, "effect": effect} for key, effect in listed]
        if self.server.find(kinds.MANAGED_CLUSTERS, "berlin") is None:
            self.server.add(
                kinds.MANAGED_CLUSTERS, {"metadata": {"name": "berlin"}, "spec": {"taints": taints}}
            )
        else:
            self.server.change(
                kinds.MANAGED_CLUSTERS, "berlin", "", lambda c: c["spec"].update(taints=taints)
            )

    @property
    def node(self) -> Object:
        return self.server.find(kinds.NODES, NAME) or {}

    @property
    def taints_synced(self) -> tuple[str, str]:
        """Status and reason of the virtual node's condition about its ManagedCluster's taints."""
        condition = objects.condition(self.node, keys.MEMBER_TAINTS_SYNCED) or {}
        return condition.get("status", ""), condition.get("reason", "")

    @property
    def taints(self) -> list[tuple[str, str]]:
        """Those of the virtual node, without vnode's own."""
        listed = objects.spec(self.node)["taints"]
        assert keys.PROVIDER_TAINT in listed
        return [(t["key"], t["effect"]) for t in listed if t != keys.PROVIDER_TAINT]


async def test_taints_follow_their_managed_cluster(clock: Any) -> None:
    env = TaintsEnvironment(clock)
    env.serve()
    env.taint(("full", "NoSelect"))
    async with env.agent():
        assert env.taints == [("full", "NoSchedule")]
        env.taint(("old", "PreferNoSelect"))
        await asyncio.sleep(2)
        assert env.taints == [("old", "PreferNoSchedule")]
        env.taint()
        await asyncio.sleep(2)
        assert env.taints == []
        assert keys.MEMBER_TAINTS not in objects.annotations(env.node)


async def test_a_kind_that_comes_later_is_noticed(clock: Any) -> None:
    env = TaintsEnvironment(clock)
    async with env.agent():
        env.taint(("full", "NoSelect"))
        await asyncio.sleep(2)
        assert env.taints == []
        env.serve()
        await asyncio.sleep(2)
        assert env.taints == [("full", "NoSchedule")]


async def test_what_went_while_no_agent_ran_goes_and_what_people_wrote_stays(clock: Any) -> None:
    env = TaintsEnvironment(clock)
    env.serve()
    env.taint(("full", "NoSelect"))
    async with env.agent():
        pass

    env.server.change(
        kinds.NODES,
        NAME,
        "",
        lambda node: node["spec"]["taints"].append({"key": "team", "effect": "NoSchedule"}),
    )
    env.taint()
    async with env.agent():
        assert env.taints == [("team", "NoSchedule")]


@pytest.mark.parametrize("fault", ["kind", "cluster", "list"])
async def test_a_fault_of_the_inventory_changes_nothing(clock: Any, fault: str) -> None:
    env = TaintsEnvironment(clock)
    env.serve()
    env.taint(("full", "NoSelect"))
    async with env.agent():
        if fault == "kind":
            env.server.remove(kinds.CRDS, kinds.MANAGED_CLUSTERS.resource)

        if fault != "list":
            env.server.remove(kinds.MANAGED_CLUSTERS, "berlin")

        await asyncio.sleep(2)
        assert env.taints == [("full", "NoSchedule")]

    if fault == "list":
        env.server.fail(
            Denied(403, "Forbidden", "no"), verb="list", kind=kinds.MANAGED_CLUSTERS, times=None
        )

    async with env.agent():
        assert env.taints == [("full", "NoSchedule")]


async def test_they_go_where_nobody_asks_for_them_any_more(clock: Any) -> None:
    env = TaintsEnvironment(clock)
    env.serve()
    env.taint(("full", "NoSelect"))
    async with env.agent() as link:
        link.describe(ClusterDescription({}, {keys.CLUSTER_PROFILE: "f/berlin"}))
        await asyncio.sleep(2)
        assert env.taints == []
        link.describe(BERLIN)
        await asyncio.sleep(2)
        assert env.taints == [("full", "NoSchedule")]

    async with env.agent(tainting=False):
        assert env.taints == []

    assert not env.server.received("list", kinds.MANAGED_CLUSTERS)[2:]


async def test_taints_that_keep_changing_are_a_few_writes_and_the_last_are_shown(
    clock: Any,
) -> None:
    env = TaintsEnvironment(clock)
    env.serve()
    async with env.agent():
        before = len(env.server.received("patch", kinds.NODES))
        for number in range(200):
            env.taint((f"k{number}", "NoSelect"))
            await asyncio.sleep(0.1)

        writes = len(env.server.received("patch", kinds.NODES)) - before
        assert writes <= write_limits.NODES.burst + 20 * write_limits.NODES.rate + 1
        await asyncio.sleep(2 / write_limits.NODES.rate)
        assert env.taints == [("k199", "NoSchedule")]


async def test_a_node_says_whether_it_has_the_taints_of_its_managed_cluster(clock: Any) -> None:
    env = TaintsEnvironment(clock)
    async with env.agent():
        assert env.taints_synced == ("False", "ManagedClustersNotServed")
        env.serve()
        await asyncio.sleep(2)
        assert env.taints_synced == ("False", "ManagedClusterNotFound")
        env.taint(("full", "NoSelect"))
        await asyncio.sleep(2)
        assert env.taints_synced == ("True", "TaintsSynced")
        env.server.remove(kinds.MANAGED_CLUSTERS, "berlin")
        await asyncio.sleep(2)
        assert env.taints_synced == ("False", "ManagedClusterNotFound")
        env.server.remove(kinds.CRDS, kinds.MANAGED_CLUSTERS.resource)
        await asyncio.sleep(2)
        assert env.taints_synced == ("False", "ManagedClustersNotServed")


@pytest.mark.parametrize("kind", [kinds.CRDS, kinds.MANAGED_CLUSTERS])
async def test_a_right_that_the_agent_lacks_is_told_by_the_node_until_it_has_it(
    clock: Any, kind: Kind
) -> None:
    env = TaintsEnvironment(clock)
    env.serve()
    env.taint(("full", "NoSelect"))
    env.server.fail(Denied(403, "Forbidden", "may not"), verb="list", kind=kind, times=7)
    async with env.agent():
        assert env.taints_synced == ("False", "ManagedClustersUnreadable")
        [taints_synced] = [c for c in env.node["status"]["conditions"] if "may not" in c["message"]]
        assert "vnode-managed-clusters" in taints_synced["message"]
        await asyncio.sleep(600)
        assert env.taints_synced == ("True", "TaintsSynced")
        assert env.taints == [("full", "NoSchedule")]


async def test_a_node_says_nothing_of_managed_clusters_where_it_has_none(clock: Any) -> None:
    env = TaintsEnvironment(clock)
    env.description = ClusterDescription({}, {keys.CLUSTER_PROFILE: "f/berlin"})
    async with env.agent():
        assert env.taints_synced == ("", "")
