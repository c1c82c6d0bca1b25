"""Agents tell each other on streams what is else written: on real API servers, with their rights.

What becomes of a stream that ends is in `unit/pods/test_streams.py`, and in the simulation they end
all the time. A fleet on loopback addresses has none: API servers connect to no such address.
"""

from __future__ import annotations

import ipaddress
from typing import Final

import aiohttp
import pytest

from tests import kit
from tests.e2e.agent_metrics import until_metric
from tests.e2e.test_agent_endpoints import address
from tests.kit import Fleet
from vnode.api import keys, kinds, objects, permissions
from vnode.api.errors import ApiError, Denied
from vnode.api.objects import Object
from vnode.kube import websockets
from vnode.kube.client import Client
from vnode.pods import stream_messages

PATH: Final = stream_messages.path("vnode")


def has_streams(fleet: Fleet) -> bool:
    """Tell whether the API servers of the fleet connect to the addresses of its agents."""
    return not ipaddress.ip_address(address(fleet, "c2")).is_loopback


async def until_streams(fleet: Fleet) -> None:
    """Wait until c1's agent has a stream to c2."""
    await until_metric(fleet, 'vnode_agent_streams{target="default/c2"} 1.0')


async def chaperon_of(target: Client, pod: Object) -> Object:
    selector = f"{keys.PARENT_UID}={objects.uid(pod)}"
    (found,) = await target.list(kinds.POD_CHAPERONS, "default", label_selector=selector)
    return found


async def test_a_pod_is_reserved_and_allowed_without_a_write(
    fleet: Fleet, source: Client, c2: Client
) -> None:
    await source.create(kinds.PODS, kit.pod_in("c2", "first"), "default")
    await kit.until_running(source, "first")
    if has_streams(fleet):
        await until_streams(fleet)

    await source.create(kinds.PODS, kit.pod_in("c2", "second"), "default")
    chaperon = await chaperon_of(c2, await kit.until_running(source, "second"))
    assert permissions.is_allowed(chaperon)
    written = {keys.IS_RESERVED, keys.IS_ALLOWED} & objects.annotations(chaperon).keys()
    assert not written if has_streams(fleet) else written


async def test_a_delegate_that_is_made_anew_may_run_as_before(
    fleet: Fleet, source: Client, c2: Client
) -> None:
    await source.create(kinds.PODS, kit.pod_in("c2", "again"), "default")
    pod = await kit.until_running(source, "again")
    chaperon = await chaperon_of(c2, pod)
    fleet.run("stop", "c1", "agent")  # so that the source does not replace the pod
    try:
        name = objects.name(chaperon)
        first = await c2.get(kinds.PODS, name, "default")
        await c2.delete(kinds.PODS, name, "default", grace=0)
        await kit.until_one(
            *(c2, kinds.PODS, name, "default"),
            lambda made: objects.uid(made) != objects.uid(first) and kit.phase(made) == "Running",
            seconds=120,
        )
        assert keys.IS_ALLOWED in objects.annotations(await chaperon_of(c2, pod))
    finally:
        fleet.run("start", "c1", "agent")


async def test_a_source_reaches_no_other_port_of_the_agents(
    fleet: Fleet, as_source: Client
) -> None:
    for service in ("https:vnode:extender", "https:vnode:webhook", "vnode", "https:vnode:9448"):
        for verb in ("GET", "POST"):
            with pytest.raises(Denied):
                await as_source.request(verb, PATH.replace("https:vnode:streams", service))


async def test_whoever_does_not_know_the_secret_learns_nothing(
    fleet: Fleet, as_source: Client
) -> None:
    if not has_streams(fleet):
        with pytest.raises(ApiError):
            await as_source.request("GET", PATH)

        return

    async with websockets.connect(as_source, PATH, (), stream_messages.PROTOCOL) as socket:
        await socket.send_str(stream_messages.encode(stream_messages.Hello("guess")))
        assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
