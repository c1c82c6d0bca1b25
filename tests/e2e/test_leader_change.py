"""Two agents in one cluster, at different addresses: the virtual nodes point at the one that leads.

The second agent runs on this machine. One of the ports that the nodes have with the first is taken
there, so that node has to move to another.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from tests import another_agent, certificates, kit
from tests.integration.kubelets import address_towards
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client


@dataclass
class Second:
    """The other agent."""

    address: str
    taken: str  # the node whose port is taken there
    process: asyncio.subprocess.Process


async def virtual_nodes(source: Client) -> dict[str, Object]:
    found = await source.list(kinds.NODES, label_selector="virtual-kubelet.io/provider=admiralty")
    return {objects.name(node): node for node in found}


def address(node: Object) -> str:
    return str(objects.status(node)["addresses"][0]["address"])


def port(node: Object) -> int:
    return int(objects.status(node)["daemonEndpoints"]["kubeletEndpoint"]["Port"])


@pytest.fixture
async def second(fleet: Fleet, source: Client, tmp_path: Path) -> AsyncIterator[Second]:
    nodes = await virtual_nodes(source)
    taken = min(nodes)
    own = address_towards(source.endpoint.url)

    async def refuse(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    squatter = await asyncio.start_server(refuse, own, port(nodes[taken]))
    async with squatter, another_agent.running(fleet, own, tmp_path) as process:
        yield Second(own, taken, process)


async def until_led_from(source: Client, where: str) -> dict[str, Object]:
    return await kit.until(
        source,
        kinds.NODES,
        lambda nodes: bool(nodes) and all(address(node) == where for node in nodes.values()),
        label_selector="virtual-kubelet.io/provider=admiralty",
    )


async def pods_of(fleet: Fleet, where: str, at: int) -> tuple[int, str]:
    """Return what a kubelet API says of its pods, asked as the API server asks."""
    shown = certificates.kubelet_client(fleet.folder / "c1" / "pki")
    connector = aiohttp.TCPConnector(ssl=shown.show(certificates.unverified()))
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.get(f"https://{where}:{at}/pods") as answer,
    ):
        return answer.status, await answer.text()


async def test_the_nodes_point_at_whoever_leads_and_logs_work_at_once(
    fleet: Fleet, source: Client, second: Second
) -> None:
    before = await virtual_nodes(source)
    first = address(before[second.taken])
    assert first != second.address
    for name in ("one", "two"):
        await source.create(kinds.PODS, kit.pod(name), "default")
        await kit.until_running(source, name)

    other = next(name for name in before if name != second.taken)
    assert (await pods_of(fleet, second.address, port(before[other])))[0] == 200

    fleet.run("stop", "c1", "agent")
    try:
        after = await until_led_from(source, second.address)
        assert port(after[other]) == port(before[other])
        assert port(after[second.taken]) not in {port(node) for node in before.values()}
        for name in ("one", "two"):
            assert "hello" in fleet.kubectl("c1", "logs", name)
    finally:
        fleet.run("start", "c1", "agent")

    # The first leads again, with the ports that the nodes have now.
    second.process.terminate()
    await second.process.wait()
    back = await until_led_from(source, first)
    assert {name: port(node) for name, node in back.items()} == {
        name: port(node) for name, node in after.items()
    }
    for name in ("one", "two"):
        assert "hello" in fleet.kubectl("c1", "logs", name)
