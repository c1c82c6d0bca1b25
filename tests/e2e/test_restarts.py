"""Any process may be killed at any instant: no pod is lost, and none runs twice."""

from __future__ import annotations

import asyncio
from collections import Counter

import aiohttp
import pytest

from hack.fleetlib import addresses, agents, processes
from hack.fleetlib.fleet import LocalFleet
from tests import kit
from tests.e2e import own_targets as own
from tests.kit import Fleet
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

COUNT = 40


async def start(source: Client, name: str) -> None:
    await source.create(kinds.DEPLOYMENTS, kit.deployment(name, COUNT, kit.pod(name)), "default")


async def until_some_are_bound(source: Client, name: str) -> None:
    """Wait until at least three pods are bound: the burst is under way, and should not be over."""
    await kit.until_pods(
        source,
        name,
        lambda all_: sum("nodeName" in objects.spec(pod) for pod in all_.values()) >= 3,
    )


async def until_all_run(source: Client, name: str) -> dict[str, Object]:
    return await kit.until_pods(source, name, lambda all_: kit.running(all_, COUNT))


async def assert_each_runs_once(source: Client, targets: list[Client], name: str) -> None:
    pods = await until_all_run(source, name)
    parents: Counter[str] = Counter()
    for target in targets:
        selector = f"{keys.PREFIX}app={name}"
        found = await kit.until(
            target,
            kinds.PODS,
            lambda all_: all(kit.phase(pod) == "Running" for pod in all_.values()),
            namespace="default",
            label_selector=selector,
        )
        parents.update(objects.labels(pod)[keys.PARENT_UID] for pod in found.values())

    assert parents == Counter(objects.uid(pod) for pod in pods.values())
    await source.delete(kinds.DEPLOYMENTS, name, "default", propagation="Background")
    await kit.until_gone(source, kinds.PODS, "default", label_selector=f"app={name}")
    for target in targets:
        await kit.until_gone(
            target, kinds.POD_CHAPERONS, "default", label_selector=f"{keys.PREFIX}app={name}"
        )


@pytest.mark.parametrize(
    ("cluster", "process"),
    [("c1", "agent"), ("c2", "agent"), ("c2", "candidate-scheduler"), ("c1", "kube-apiserver")],
)
async def test_a_process_killed_in_a_burst_loses_and_doubles_nothing(
    fleet: Fleet, source: Client, c2: Client, c3: Client, cluster: str, process: str
) -> None:
    name = f"killed-{cluster}-{process}"
    await start(source, name)
    await until_some_are_bound(source, name)
    fleet.run("stop", cluster, process, "--kill")
    fleet.run("start", cluster, process)
    await assert_each_runs_once(source, [c2, c3], name)


async def test_an_agent_that_starts_before_its_api_server_waits_for_it(
    fleet: Fleet, source: Client
) -> None:
    """As after an outage of a whole cluster; one that ends is started ever later."""
    for process in ("agent", "kube-apiserver"):
        fleet.run("stop", "c1", process, "--kill")

    site = LocalFleet(fleet.folder)
    processes.start(site.directory, "c1", "agent")  # `fleet start` waits until it is ready
    started = site.state().process("c1", "agent").identity
    address = site.site("c1").agents[0]
    assert "starting: the API server has not answered yet" in await not_ready(address)
    fleet.run("start", "c1", "kube-apiserver")
    agents.wait_for_agent(site.directory, site.site("c1"))
    assert site.state().process("c1", "agent").identity == started
    await own.run_pod(source, "default", "after-outage")
    await source.delete(kinds.PODS, "after-outage", "default")
    await kit.until_gone(source, kinds.PODS, "default", field_selector="metadata.name=after-outage")


async def not_ready(address: str) -> str:
    """Return the first readiness answer of an agent that has just been started."""
    url = f"http://{address}:{addresses.AGENT_HEALTH}/readyz"
    async with asyncio.timeout(kit.PATIENCE), aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.get(url) as answer:
                    return await answer.text()
            except aiohttp.ClientConnectorError:
                await asyncio.sleep(0.05)


async def test_a_restarted_agent_writes_nothing_that_did_not_change(
    fleet: Fleet, source: Client, c2: Client, c3: Client
) -> None:
    await start(source, "steady")
    await until_all_run(source, "steady")
    before = await carried(source, c2, c3)
    for cluster in ("c1", "c2", "c3"):
        fleet.run("stop", cluster, "agent", "--kill")
        fleet.run("start", cluster, "agent")

    proxy = kit.pod("after-restart")
    await source.create(kinds.PODS, proxy, "default")
    await kit.until_running(source, "after-restart")
    after = await carried(source, c2, c3)
    assert after.keys() == before.keys()
    written = {
        key
        for key in after
        if objects.resource_version(after[key]) != objects.resource_version(before[key])
    }
    assert [key for key in written if said(after[key]) == said(before[key])] == []
    assert len(written) <= COUNT // 10  # what was to be told a moment after the pods ran
    await source.delete(kinds.PODS, "after-restart", "default")
    await assert_each_runs_once(source, [c2, c3], "steady")


async def carried(source: Client, c2: Client, c3: Client) -> dict[tuple[str, str], Object]:
    """Return the proxies, chaperons and delegates of the Deployment."""
    queries = [
        (source, kinds.PODS, "app=steady"),
        *((c, k, f"{keys.PREFIX}app=steady") for c in (c2, c3) for k in _CARRIED),
    ]
    return {
        (f"{client.name} {kind.plural}", objects.key(obj)): obj
        for client, kind, selector in queries
        for obj in await client.list(kind, "default", label_selector=selector)
    }


def said(obj: Object) -> Object:
    """Return all of an object but what each write changes."""
    kept = objects.metadata(obj).keys() - {"resourceVersion", "managedFields"}
    return {**obj, "metadata": {key: objects.metadata(obj)[key] for key in kept}}


_CARRIED = (kinds.POD_CHAPERONS, kinds.PODS)
