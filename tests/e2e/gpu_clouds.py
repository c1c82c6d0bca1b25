"""Three clouds with GPUs, in the clusters of the fleet of all e2e tests, and others who use them.

t1 (c2) has 8 nodes with 8 A100s each, t2 (c1, a target of itself) 16 nodes with a T4, and t3 (c3)
4 nodes with 4 A100s, and a pool of nodes with 8, which a test has grow. Nodes and the third Target
are there for a module of tests, so that the fleet's others find nothing of them.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Final

from hack.fleetlib.fleet import LocalFleet
from hack.fleetlib.kwok import NodeSize
from tests import background, kit
from tests.e2e.gpu_pods import GPU, MODEL, occupy
from tests.fleets import vnode
from tests.kit import Fleet
from vnode.api import keys, kinds, names, objects, rows_text
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer

SELF: Final = "itself"
T1, T2, T3 = (names.virtual_node("default", name) for name in ("c2", SELF, "c3"))


def size(gpus: int, model: str, cpu: int, memory: str) -> NodeSize:
    """Return the size of a node with GPUs."""
    return NodeSize(str(cpu), memory, more={GPU: str(gpus)}, labels={MODEL: model})


NODES: Final = {
    "c1": (16, size(1, "T4", 8, "30Gi")),
    "c2": (8, size(8, "A100", 96, "1Ti")),
    "c3": (4, size(4, "A100", 96, "1Ti")),
}
GROWN: Final = size(8, "A100", 96, "1Ti")
POOL: Final = [{"labels": {MODEL: "A100"}, "allocatable": {GPU: 8, "cpu": 96}, "max": 4}]


@dataclass(slots=True)
class GpuClouds:
    """What the nodes are called, by cluster; `grown` are those of the pool."""

    fleet: Fleet
    nodes: Mapping[str, list[str]]
    grown: list[str] = field(default_factory=list)

    async def grow(self, count: int) -> None:
        """Have the pool of c3 grow by so many nodes, as an autoscaler would."""
        local = LocalFleet(self.fleet.folder)
        self.grown += await asyncio.to_thread(local.add_nodes, "c3", count, GROWN)

    async def shrink(self) -> None:
        """Have the pool be empty again."""
        while self.grown:
            async with self.fleet.client("c3") as client:
                await client.delete(kinds.NODES, self.grown.pop())

    async def leave(self, target: Client, cluster: str, *free: int) -> None:
        """Have others use all but so many GPUs of each node, and wait until the target says so."""
        nodes = self.nodes[cluster]
        there = int(NODES[cluster][1].more[GPU])
        for node, left in zip(nodes, free, strict=True):
            if left < there:
                await occupy(target, node, there - left)

        wanted = Counter(left for left in free if left)

        def says_so(summary: Object) -> bool:
            rows = rows_text.decode(objects.annotations(summary).get(keys.ROWS))
            found = rows.histogram(GPU) if rows else {}
            amounts: Counter[int] = Counter()
            for each in found.values():
                amounts.update(each)

            return {amount: n for amount, n in amounts.items() if amount} == wanted

        await kit.until_one(target, kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME, "", says_so)


@contextmanager
def three_clouds(fleet: Fleet) -> Iterator[GpuClouds]:
    """Have a fleet be like that in the block."""
    local = LocalFleet(fleet.folder)
    ends = ("--source", fleet.kubeconfig("c1"), "--target", fleet.kubeconfig("c1"))
    _annotate(fleet, POOL)
    nodes = {name: local.add_nodes(name, *wanted) for name, wanted in NODES.items()}
    with fleet.self_targets("c1"):
        done = vnode(
            "connect", *ends, "--cluster-name", "c1", "--namespace", "default", "--name", SELF
        )
        assert not done.code, done.err
        yield GpuClouds(fleet, nodes)
        fleet.kubectl("c1", "delete", "target", SELF)

    _annotate(fleet, None)
    for name, each in nodes.items():
        fleet.kubectl(name, "delete", "node", *each)


def _annotate(fleet: Fleet, pools: object) -> None:
    text = f"{keys.NODE_POOLS}={json.dumps(pools)}" if pools else f"{keys.NODE_POOLS}-"
    fleet.kubectl("c1", "annotate", "target", "c3", text)


async def until_offered(source: Client) -> None:
    """Wait until the three virtual nodes offer what the nodes have."""
    for node, cluster in ((T1, "c2"), (T2, "c1"), (T3, "c3")):
        count, each = NODES[cluster]
        total = str(count * int(each.more[GPU]))

        def offers_it(node: Object, total: str = total) -> bool:
            offered = objects.status(node).get("allocatable") or {}
            return kit.is_ready(node) and offered.get(GPU) == total

        await kit.until_one(source, kinds.NODES, node, "", offers_it)


@asynccontextmanager
async def asked(target: Client) -> AsyncIterator[set[str]]:
    """Note the names of all chaperons that a target gets in the block."""
    found: set[str] = set()
    candidates = Informer(target, kinds.POD_CHAPERONS, namespace="default")
    candidates.subscribe(lambda old, new: found.add(objects.name(objects.latest(old, new))))
    async with background.running(candidates.run()):
        await candidates.synced.wait()
        found.clear()
        yield found
