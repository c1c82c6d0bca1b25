"""What an inventory changes of its profiles in a test, and streams that stay open meanwhile."""

from __future__ import annotations

import asyncio
import os
import random
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hack.fleetlib import addresses
from hack.fleetlib.fleet import LocalFleet
from hack.fleetlib.inventory import NAMESPACE
from tests import inventory, kit
from tests.faults.proxy import FaultProxy, ProxiedServer
from tests.integration import kubelets
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client


@asynccontextmanager
async def echo(fleet: Fleet, pod: str) -> AsyncIterator[Process]:
    """Keep an exec open in a pod, which says again what it is told."""
    process = await asyncio.create_subprocess_exec(
        *(*fleet.kubectl_command("c1"), "exec", "-i", pod, "--", "cat"),
        stdin=PIPE,
        stdout=PIPE,
        env={**os.environ, **kubelets.environment(spdy=False)},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()

        await process.wait()


async def says_again(process: Process, text: str) -> None:
    """See that a stream is open both ways."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{text}\n".encode())
    async with asyncio.timeout(kit.PATIENCE):
        await process.stdin.drain()
        assert await process.stdout.readline() == f"{text}\n".encode()


async def set_condition(source: Client, name: str, number: int) -> None:
    """Have the inventory say something else of a control plane."""
    healthy = {
        "type": "ControlPlaneHealthy",
        "status": "True" if number % 2 else "False",
        "reason": f"Told{number}",
        "message": f"told {number} times",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    await inventory.set_status(source, NAMESPACE, name, {"conditions": [healthy]})


async def provider_of(source: Client, name: str) -> Object:
    """Return the access provider of a profile."""
    profile = await source.get(kinds.CLUSTER_PROFILES, name, NAMESPACE)
    [provider] = objects.status(profile)["accessProviders"]
    return dict(provider)


async def move(source: Client, name: str, provider: Object, server: str) -> None:
    """Have a profile lead to another address."""
    changed = {**provider, "cluster": {**provider["cluster"], "server": server}}
    await inventory.set_status(source, NAMESPACE, name, {"accessProviders": [changed]})


@asynccontextmanager
async def other_address(fleet: Fleet) -> AsyncIterator[tuple[str, Counter[str]]]:
    """Yield another address of c2's API server, and how many requests came by it."""
    site = LocalFleet(fleet.folder)
    place = site.site("c2")
    upstream = ProxiedServer(place.address, addresses.API_SERVER, place.folder / "pki")
    proxy = FaultProxy("address", upstream, random.Random(1))
    server = await proxy.start(site.state().plan.host)
    try:
        yield server, proxy.counts
    finally:
        await proxy.close()


def control_plane_reason(target: Object) -> str:
    """Return the reason of what the inventory says of a Target's control plane."""
    condition = objects.condition(target, "ControlPlaneHealthy") or {}
    return str(condition.get("reason", ""))
