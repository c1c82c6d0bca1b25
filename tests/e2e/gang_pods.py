"""Pods of gangs on fleets, and the room that targets have for them: an extended resource."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from tests import kit
from tests.e2e.gang_watch import GangWatch
from vnode.api import keys, kinds, names, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

SLOT = "example.com/slot"


async def offer(source: Client, target: Client, name: str, *slots: int) -> None:
    """Give the nodes of a target so many slots, and wait until the source knows."""
    nodes = sorted(objects.name(node) for node in await target.list(kinds.NODES))
    for node, count in zip(nodes, slots, strict=True):
        quantity = str(count) if count else None
        status = {"capacity": {SLOT: quantity}, "allocatable": {SLOT: quantity}}
        await target.patch(kinds.NODES, node, {"status": status}, subresource="status")

    total = str(sum(slots))

    def knows(virtual: Object) -> bool:
        return (objects.status(virtual).get("allocatable") or {}).get(SLOT, "0") == total

    await kit.until_one(source, kinds.NODES, names.virtual_node("default", name), "", knows)


def member(gang: str, number: int, minimum: str = "", *, slots: int = 1) -> Object:
    """Return a pod of a gang; without a minimum it names none."""
    marks = {keys.GANG: gang, keys.GANG_MINIMUM: minimum} if minimum else {}
    made = kit.pod(f"{gang}-{number}", annotations={keys.ELECT: "", **marks})
    made["metadata"]["labels"] = {"app": gang, "gang": gang}
    requests = objects.spec(made)["containers"][0]["resources"]
    requests["requests"][SLOT] = str(slots)
    requests["limits"] = {SLOT: str(slots)}
    return made


async def create(source: Client, gang: str, count: int, minimum: int, *, slots: int = 1) -> None:
    for number in range(count):
        body = member(gang, number, str(minimum), slots=slots)
        await source.create(kinds.PODS, body, "default")


async def end(source: Client, watch: GangWatch, gang: str) -> None:
    """Have the pods of a gang go, as if it had done its work."""
    watch.ended.add(gang)
    path = kinds.PODS.path("default")
    await source.request("DELETE", path, query={"labelSelector": f"app={gang}"})


async def until_all_ran(gangs: Mapping[Client, Sequence[str]], watch: GangWatch) -> None:
    """Let each gang that runs go on for a moment, and end it, until all of the sources have run."""
    sources = {gang: source for source, names in gangs.items() for gang in names}
    async with asyncio.timeout(kit.PATIENCE):
        while len(watch.ended) < len(sources):
            watch.changed.clear()
            for gang in watch.complete():
                await end(sources[gang], watch, gang)

            if len(watch.ended) < len(sources):
                await watch.changed.wait()
