"""A fleet of ClusterProfiles: what an inventory changes while pods flow costs no pod.

Whole agents, with the inventory's own CRD and plugin. Profiles come and go, tokens are replaced and
revoked, servers move, conditions change.
"""

from __future__ import annotations

import asyncio
import os
import random
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from hack.fleetlib import addresses
from hack.fleetlib.fleet import Fleet as Site
from hack.fleetlib.inventory import NAMESPACE
from tests import background, inventory, kit
from tests.faults.bound_tokens import PATIENCE, BoundTokens
from tests.faults.conftest import started
from tests.faults.pod_flow import PodFlow, on
from tests.faults.proxy import FaultProxy, Upstream
from tests.integration import kubelets
from tests.kit import Fleet
from vnode.api import kinds, names, objects
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer

C2, C3 = names.virtual_node("", "c2"), names.virtual_node("", "c3")
CONDITIONS = 20
SECONDS = 10  # for which pods are made, ten a second


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A source with two targets, of which it knows by ClusterProfiles."""
    words = ("c1", "c2", "c3", "--nodes", "3", "--agents", "--inventory")
    with started(tmp_path_factory, *words, "--connect", "c1:c2", "--connect", "c1:c3") as there:
        yield there


@asynccontextmanager
async def echo(fleet: Fleet, pod: str) -> AsyncIterator[Process]:
    """Keep an exec open in a pod, which says again what it is told."""
    process = await asyncio.create_subprocess_exec(
        *(*kubelets.kubectl(fleet, "c1"), "exec", "-i", pod, "--", "cat"),
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
    async with asyncio.timeout(PATIENCE):
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
    """Another address of c2's API server, and how many requests came by it."""
    site = Site(fleet.folder)
    place = site.site("c2")
    upstream = Upstream(place.address, addresses.API_SERVER, place.folder / "pki")
    proxy = FaultProxy("address", upstream, random.Random(1))
    server = await proxy.start(site.state().plan.host)
    try:
        yield server, proxy.counts
    finally:
        await proxy.close()


@pytest.mark.timeout(2 * PATIENCE + 60)
async def test_token_server_and_conditions_change_under_load_and_no_pod_is_lost(
    fleet: Fleet, source: Client, target: Client
) -> None:
    provider = await provider_of(source, "c2")
    tokens = BoundTokens(fleet, source, target)
    former = await tokens.begin()
    await run_on_c2(source, "steady")
    flow = PodFlow(source, C2, count=10 * SECONDS)

    async def conditions() -> None:
        for number in range(CONDITIONS):
            await set_condition(source, "c2", number)
            await asyncio.sleep(SECONDS / CONDITIONS)

    async def rotate() -> None:
        await asyncio.sleep(SECONDS / 5)
        await tokens.replace()
        await tokens.revoke_former(former)

    async with (
        other_address(fleet) as (server, counts),
        echo(fleet, "steady") as stream,
        background.running(*flow.watches()),
    ):
        await says_again(stream, "before")
        async with asyncio.TaskGroup() as group:
            group.create_task(flow.run(rate=10))
            group.create_task(conditions())
            group.create_task(rotate())
            await asyncio.sleep(SECONDS / 2)
            await move(source, "c2", provider, server)

        await says_again(stream, "while its server is elsewhere")
        async with asyncio.timeout(PATIENCE):
            await flow.all_run.wait()

        await move(source, "c2", provider, provider["cluster"]["server"])
        await run_on_c2(source, "last")
        await says_again(stream, "after")

    assert counts["requests"]
    await flow.check(target)
    await kit.until_one(
        *(source, kinds.CLUSTER_TARGETS, "c2", ""),
        lambda obj: told(obj) == f"Told{CONDITIONS - 1}",
        PATIENCE,
    )


def told(target: Object) -> str:
    """The reason of what the inventory says of a Target's control plane."""
    condition = objects.condition(target, "ControlPlaneHealthy") or {}
    return str(condition.get("reason", ""))


async def run_on_c2(source: Client, name: str) -> None:
    """Make a pod for c2, and wait until it runs."""
    await source.create(kinds.PODS, kit.pod(name, nodeSelector=on(C2)), "default")
    await kit.until_one(
        *(source, kinds.PODS, name, "default"), lambda pod: kit.phase(pod) == "Running", PATIENCE
    )
    await kit.until_one(source, kinds.NODES, C2, "", kit.is_ready, PATIENCE)


@pytest.mark.timeout(4 * PATIENCE)
async def test_a_profile_that_goes_ends_its_own_target_alone_until_it_comes_again(
    source: Client, c2: Client
) -> None:
    await run_on_c2(source, "bystander")
    profile = await source.get(kinds.CLUSTER_PROFILES, "c3", NAMESPACE)
    away: list[str] = []
    node = Informer.of_object(source, kinds.NODES, C2)
    node.subscribe(
        lambda _old, new: away.append("not ready") if not kit.is_ready(new or {}) else None
    )
    async with background.running(node.run()):
        await source.delete(kinds.CLUSTER_PROFILES, "c3", NAMESPACE)
        gone = await until_reason(source, "c3", "ProfileNotFound")
        assert not kit.is_ready(gone)
        message = (objects.condition(gone, "Ready") or {})["message"]
        assert "kubectl get clusterprofiles" in message
        await run_on_c2(source, "meanwhile")
        await inventory.add_profile(source, NAMESPACE, "c3", objects.status(profile))
        await until_reason(source, "c3", "Connected")

    await kit.until_one(source, kinds.NODES, C3, "", kit.is_ready, PATIENCE)
    assert not away
    pods = await c2.list(kinds.PODS, "default")
    assert {kit.phase(pod) for pod in pods} == {"Running"}
    found = await source.get(kinds.PODS, "bystander", "default")
    assert kit.phase(found) == "Running"


async def until_reason(source: Client, name: str, reason: str) -> Object:
    """Wait until a Target is, or is not, ready for that reason."""
    return await kit.until_one(
        *(source, kinds.CLUSTER_TARGETS, name, ""),
        lambda target: inventory.reason(target) == reason,
        PATIENCE,
    )
