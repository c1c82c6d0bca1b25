"""From the version before to this one and back, in every order: nothing that runs notices.

c1 sends pods to c2 and to c3. Both have two agents of the version before; then Admiralty takes
c3's place, and a source with Admiralty sends to c2. Each step replaces the version of one cluster:
what `vnode install` applies, then one replica after the other, then the candidate scheduler. After
each a witness says whether anything that ran was touched, and a new pod runs, is changed and ends,
and a gang runs; while a replica is replaced, others are on their way.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hack.fleetlib.agents import AGENTS, THIS, VnodeTree
from tests import kit
from tests.e2e.test_admiralty import allow, send
from tests.upgrades import new_pods, stored
from tests.upgrades.releases import ReleasedFleet
from tests.upgrades.witness import Witness
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.insight.target_clients import connected
from vnode.kube.client import Client

_MADE = (
    kinds.DEPLOYMENTS,
    kinds.STATEFUL_SETS,
    kinds.PODS,
    kinds.CONFIG_MAPS,
    kinds.CLAIMS,
)
"""The kinds of running.yaml that have pods, or follow them."""


@dataclass
class Federation:
    """The fleet, its clients, and the witness of what runs in it."""

    released: ReleasedFleet
    c1: Client
    c2: Client
    c3: Client
    witness: Witness
    before: VnodeTree

    async def switch(self, cluster: str, tree: VnodeTree) -> None:
        """Replace the version of a cluster; between its replicas, both versions serve."""
        await asyncio.to_thread(self.released.install, cluster, tree)
        await self.unharmed(f"install in {cluster}")
        first, second = await self._followers_first(cluster)
        await self._replace(cluster, first, tree)
        await self.works(f"{first} of {cluster} is replaced")
        await self._replace(cluster, second, tree)
        await asyncio.to_thread(self.released.replace_scheduler, cluster, tree)
        await self.has_version(cluster, self.released.version(tree))
        await self.works(f"{cluster} is replaced")

    async def _replace(self, cluster: str, agent: str, tree: VnodeTree) -> None:
        """Replace one replica while pods have candidates, and no place yet."""
        async with new_pods.on_their_way(self.c1, (self.c2, self.c3)):
            await asyncio.to_thread(self.released.replace, cluster, agent, tree)

    def _client(self, cluster: str) -> Client:
        return {"c1": self.c1, "c2": self.c2}[cluster]

    async def has_version(self, cluster: str, version: str) -> None:
        """Wait until the agents of a cluster say that they have a version."""
        await kit.until_one(
            self._client(cluster),
            kinds.CLUSTER_SUMMARIES,
            keys.SUMMARY_NAME,
            "",
            lambda summary: objects.annotations(summary).get(keys.AGENT_VERSION) == version,
        )

    async def _followers_first(self, cluster: str) -> tuple[str, str]:
        client = self._client(cluster)
        lease = await client.get(kinds.LEASES, "vnode-agent", "vnode")
        leader = self.released.leader(cluster, objects.spec(lease)["holderIdentity"])
        [follower] = [agent for agent in AGENTS if agent != leader]
        return follower, leader

    async def unharmed(self, step: str) -> None:
        """Fail if anything that is guarded was touched."""
        assert not self.witness.harm, f"{step}: " + "\n".join(self.witness.harm)

    async def works(self, step: str) -> None:
        """Fail unless pods start, are changed, are read and end, those of earlier steps, too."""
        await self.unharmed(step)
        await self._passes_a_change_on()
        for client in (self.c2, self.c3):
            await self._runs_a_pod(client)

        gang = await new_pods.create_gang(self.c1, self.c2)
        await new_pods.until_running(self.c1, self.c2, gang)
        await new_pods.end(self.c1, self.c2, gang)
        await self.unharmed(f"{step}, and then used")

    async def _runs_a_pod(self, target: Client) -> None:
        pods = await new_pods.create(self.c1, target)
        await new_pods.until_running(self.c1, target, pods)
        words = (objects.name(pods[0]), f"--request-timeout={kit.PATIENCE:.0f}s")
        assert await asyncio.to_thread(self.released.fleet.kubectl, "c1", "logs", *words)
        await new_pods.end(self.c1, target, pods)

    async def _passes_a_change_on(self) -> None:
        """Annotate a pod of the first version, and change the ConfigMap that others mount."""
        value = uuid.uuid4().hex
        change = {"metadata": {"annotations": {"example.com/note": value}}}
        bare = await self.c1.patch(kinds.PODS, "bare", change, "default")
        await kit.until(
            self.c2,
            kinds.PODS,
            lambda found: any(
                objects.annotations(pod).get("example.com/note") == value for pod in found.values()
            ),
            namespace="default",
            label_selector=f"{keys.PARENT_UID}={objects.uid(bare)}",
        )
        await self.c1.patch(kinds.CONFIG_MAPS, "settings", {"data": {"step": value}}, "default")
        await kit.until(
            self.c2,
            kinds.CONFIG_MAPS,
            lambda found: any(copy.get("data") == {"step": value} for copy in found.values()),
            namespace="default",
            label_selector=keys.PARENT_CLUSTER_NAME,
        )

    async def ends(self) -> None:
        """Delete all that the first version had made: nothing of it is left."""
        self.witness.forget()
        for kind in _MADE:
            query = {"propagationPolicy": "Background"}
            await self.c1.request("DELETE", kind.path("default"), query=query)

        await kit.until_gone(self.c1, kinds.PODS, "default")
        for target in (self.c2, self.c3):
            await kit.until_gone(
                target,
                kinds.POD_CHAPERONS,
                "default",
                label_selector=f"{keys.PARENT_CLUSTER_NAME}=c1",
            )


@pytest.fixture
async def sent(c1: Client) -> AsyncIterator[Object]:
    """Yield a chaperon that a source with Admiralty has in c2, by c1's credentials there."""
    target = await c1.get(kinds.TARGETS, "c2", "default")
    async with connected(c1, target) as sender:
        yield await allow(sender, await send(sender, "of-admiralty", str(uuid.uuid4())))


@pytest.fixture
async def federation(
    released: ReleasedFleet,
    c1: Client,
    c2: Client,
    c3: Client,
    running: Witness,
    sent: Object,
    version_before: VnodeTree,
) -> Federation:
    """Return what runs with the version before on both sides."""
    assert kit.phase(sent) == "Running"
    await running.guard()
    return Federation(released, c1, c2, c3, running, version_before)


@pytest.mark.timeout(3600)
async def test_nothing_that_runs_is_touched_in_any_order(federation: Federation) -> None:
    before = federation.before
    for cluster in ("c1", "c2"):
        await federation.has_version(cluster, federation.released.version(before))

    if file := os.environ.get("VNODE_STORED"):
        c1, c2 = federation.c1, federation.c2
        await stored.write(Path(file), c1, c2, federation.released.version(before))

    await federation.works("the version before")
    for cluster, tree in (
        ("c1", THIS),  # the source first
        ("c2", THIS),
        ("c2", before),  # back again, the target first
        ("c1", before),
        ("c2", THIS),  # the target first
        ("c1", THIS),
        ("c1", before),  # back again, the source first
        ("c2", before),
        ("c2", THIS),
        ("c1", THIS),
    ):
        await federation.switch(cluster, tree)

    await federation.ends()
