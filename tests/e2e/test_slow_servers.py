"""A target whose API server grants few seats: all pods run, at the pace that it gives."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests import kit
from tests.background import running
from tests.e2e import slow_server
from tests.fleets import started
from tests.kit import Fleet
from vnode.api import keys, kinds, names, objects
from vnode.api.objects import Object
from vnode.kube import watching
from vnode.kube.client import Client
from vnode.kube.watching import ListOptions

PODS = 80
NODE = names.virtual_node("default", "c2")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Yield a source and a target of its own, whose API servers grant little in all."""
    words = ("c1", "c2", "--nodes", "3", "--agents", "--connect", "c1:c2", *slow_server.ARGUMENTS)
    with started(tmp_path_factory, *words) as fleet:
        yield fleet


@pytest.fixture(autouse=True)
async def _clean() -> None:
    """Leave nothing to the fleet of the other tests, which this one does not use."""


async def follow_node(client: Client, seen: list[str]) -> None:
    """Note each word of the virtual node's Ready."""
    selection = ListOptions(kinds.NODES, None, "", f"metadata.name={NODE}")
    version = await client.version(kinds.NODES)
    async for batch in watching.stream(client, selection, version):
        found = (objects.condition(event.object, "Ready") for event in batch)
        seen += [str(condition["status"]) for condition in found if condition]  # no bookmarks


async def test_a_burst_into_few_seats_runs_at_their_pace(fleet: Fleet) -> None:
    async with fleet.client("c1") as source, fleet.client("c2") as target:
        await kit.until_one(source, kinds.TARGETS, "c2", "default", kit.is_ready)
        await slow_server.grant_few_seats(target, shares=2)
        seen: list[str] = []

        async def create(number: int) -> Object:
            body = kit.pod(f"burst-{number}")
            body["metadata"]["labels"] = {"app": "burst"}
            return await source.create(kinds.PODS, body, "default")

        async with running(follow_node(source, seen)):
            made = await asyncio.gather(*map(create, range(PODS)))
            pods = await kit.until_pods(source, "burst", lambda all_: kit.running(all_, PODS))

        node = await source.get(kinds.NODES, NODE)
        delegates = await target.list(kinds.PODS, "default")
        counts = await slow_server.counts(target)

    assert {objects.uid(pod) for pod in pods.values()} == {objects.uid(pod) for pod in made}
    assert len(delegates) == PODS
    assert all(objects.labels(pod).get(f"{keys.PREFIX}app") == "burst" for pod in delegates)
    assert kit.is_ready(node)
    assert set(seen) <= {"True"}
    assert counts["rejected"] > 0, "the server was not short of seats: the test shows nothing"
    share = counts["rejected"] / (counts["rejected"] + counts["dispatched"])
    assert share < 0.15, counts
