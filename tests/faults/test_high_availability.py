"""Two agents a cluster: one may be killed at any moment, and everything goes on."""

from __future__ import annotations

import asyncio
import signal
import ssl
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import aiohttp
import pytest

from hack.fleetlib.fleet import LocalFleet
from tests import kit
from tests.fleets import started
from tests.kit import Fleet
from vnode.api import keys, kinds, names, objects
from vnode.api.errors import ServerError
from vnode.kube import endpoint
from vnode.kube.client import Client

AGENTS = ("agent", "agent-2")
MANY = 100
GOES_ON = 45.0  # seconds after the leader's end until the next pod is bound; 15 are the Lease's
NODE = names.virtual_node("default", "c2")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Yield a source and a target, with two agents each."""
    words = ("c1", "c2", "--nodes", "3", "--agents", "--replicas", "2", "--connect", "c1:c2")
    with started(tmp_path_factory, *words) as there:
        yield there


@pytest.fixture(params=AGENTS)
async def survivor(fleet: Fleet, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """Yield the name of the only agent that is left in c1 and in c2 until the test ends."""
    gone = next(agent for agent in AGENTS if agent != request.param)
    for cluster in ("c1", "c2"):
        await asyncio.to_thread(fleet.run, "stop", cluster, gone, "--kill")

    yield request.param
    for cluster in ("c1", "c2"):
        await asyncio.to_thread(fleet.run, "start", cluster, gone)


async def leader(fleet: Fleet, client: Client, cluster: str) -> str:
    """Return the agent of a cluster that leads, by the pid in its Lease."""
    leases = await kit.until(
        client,
        kinds.LEASES,
        lambda all_: any(objects.spec(lease).get("holderIdentity") for lease in all_.values()),
        namespace="vnode",
        field_selector="metadata.name=vnode-agent",
    )
    holder = objects.spec(next(iter(leases.values())))["holderIdentity"]
    processes = LocalFleet(fleet.folder).state().cluster(cluster).processes
    identities = {agent: processes[agent].identity for agent in AGENTS}
    pids = {identity.pid: agent for agent, identity in identities.items() if identity}
    return pids[int(holder.rpartition("_")[2])]


def bound(pods: dict[str, objects.Object]) -> int:
    return sum("nodeName" in objects.spec(pod) for pod in pods.values())


async def create(source: Client, name: str) -> None:
    """Create a pod as a user who tries again: the agent may have been killed this very second."""
    async with asyncio.timeout(kit.PATIENCE):
        while True:
            with suppress(ServerError):
                await source.create(kinds.PODS, kit.pod(name), "default")
                return

            await asyncio.sleep(0.2)


async def test_whichever_agent_is_left_admits_reserves_and_serves_logs(
    fleet: Fleet, source: Client, survivor: str
) -> None:
    name = f"left-with-{survivor}"
    await create(source, name)
    pod = await kit.until_running(source, name)
    assert objects.spec(pod)["nodeName"] == NODE
    own = LocalFleet(fleet.folder).site("c1").agents[AGENTS.index(survivor)]
    address = {"type": "InternalIP", "address": own}
    await kit.until_one(
        source, kinds.NODES, NODE, "", lambda n: address in objects.status(n)["addresses"]
    )
    assert "hello from a pod in c2" in fleet.kubectl("c1", "logs", name)
    await source.delete(kinds.PODS, name, "default")
    await kit.until_gone(source, kinds.PODS, "default")


async def test_every_agent_serves_the_kubelet_api(fleet: Fleet, source: Client) -> None:
    node = await kit.until_one(
        source, kinds.NODES, NODE, "", lambda n: "daemonEndpoints" in objects.status(n)
    )
    port = objects.status(node)["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    for address in LocalFleet(fleet.folder).site("c1").agents:
        assert await pods_of_kubelet(fleet, address, port) == 200


async def pods_of_kubelet(fleet: Fleet, address: str, port: int) -> int:
    """Return the status that `GET /pods` has, asked with the administrator's certificate."""
    context = endpoint.from_kubeconfig_file(fleet.kubeconfig("c1")).ssl
    assert context is not None
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"https://{address}:{port}/pods", ssl=context) as response,
    ):
        return response.status


@pytest.fixture
async def claims_follow(source: Client) -> AsyncIterator[None]:
    """Have the Target ask for claims of volumes until the test ends."""
    for classes in ("=", None):
        annotations = {"annotations": {keys.STORAGE_CLASSES: classes}}
        await source.patch(kinds.TARGETS, "c2", {"metadata": annotations}, "default")
        if classes:
            yield


async def test_a_new_leader_brings_what_candidates_of_the_last_one_wait_for(
    fleet: Fleet, source: Client, target: Client, claims_follow: None
) -> None:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    await source.create(kinds.PODS, kit.pod("waits", volumes=[volume]), "default")
    missing = 'persistentvolumeclaim "data" not found'
    await kit.until_one(source, kinds.PODS, "waits", "default", lambda p: missing in str(p))
    victim = await leader(fleet, source, "c1")
    await asyncio.to_thread(fleet.run, "stop", "c1", victim, "--kill")
    size = {"requests": {"storage": "1Gi"}}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": size}
    await source.create(kinds.CLAIMS, {"metadata": {"name": "data"}, "spec": claim}, "default")
    await kit.until_one(target, kinds.CLAIMS, "data", "default", lambda c: bool(objects.spec(c)))
    await asyncio.to_thread(fleet.run, "start", "c1", victim)
    await source.delete(kinds.PODS, "waits", "default")
    await source.delete(kinds.CLAIMS, "data", "default")
    for gone in (kinds.PODS, kinds.CLAIMS):
        await kit.until_gone(source, gone, "default")


async def test_a_leader_killed_amid_many_pods_loses_and_doubles_none(
    fleet: Fleet, source: Client, target: Client
) -> None:
    victim = await leader(fleet, source, "c1")
    before = await amid_many(source)
    await asyncio.to_thread(fleet.run, "stop", "c1", victim, "--kill")
    await goes_on(source, before)
    await ends_well(source, target)
    await asyncio.to_thread(fleet.run, "start", "c1", victim)


async def test_a_leader_that_hangs_amid_many_pods_and_wakes_again_doubles_none(
    fleet: Fleet, source: Client, target: Client
) -> None:
    """Nobody can tell that it has ended, so its Lease runs out; then it believes that it leads."""
    victim = await leader(fleet, source, "c1")
    process = LocalFleet(fleet.folder).state().process("c1", victim).identity
    assert process is not None
    before = await amid_many(source)
    process.send(signal.SIGSTOP)
    try:
        await goes_on(source, before)
    finally:
        process.send(signal.SIGCONT)

    await ends_well(source, target)


async def amid_many(source: Client) -> int:
    """Create MANY pods; return how many are bound once 40 or more are, which must not be all."""
    await source.create(kinds.DEPLOYMENTS, kit.deployment("many", MANY, kit.pod("many")), "default")
    seen = await kit.until(
        source,
        kinds.PODS,
        lambda all_: len(all_) == MANY and bound(all_) >= 40,
        namespace="default",
    )
    assert bound(seen) < MANY, "the leader must end in the middle"
    return bound(seen)


async def goes_on(source: Client, known: int) -> None:
    """Check that the next pod is bound soon, after those that were bound while the leader ended."""
    ended = time.monotonic()
    before = bound(await kit.until(source, kinds.PODS, bool, namespace="default"))
    await kit.until(
        source,
        kinds.PODS,
        lambda all_: bound(all_) > min(before, MANY - 1),  # on a busy machine it may end late
        namespace="default",
    )
    waited = time.monotonic() - ended
    print(f"\n{known} to {before} of {MANY} were bound; the next was {waited:.1f} s later")
    assert waited < GOES_ON


async def ends_well(source: Client, target: Client) -> None:
    """Check that all pods run, each once; then delete them, and wait until they are gone."""
    pods = await kit.until(
        source,
        kinds.PODS,
        lambda all_: kit.running(all_, MANY),
        namespace="default",
    )
    delegates = await target.list(kinds.PODS, "default", label_selector=keys.PARENT_UID)
    parents = Counter(objects.labels(pod)[keys.PARENT_UID] for pod in delegates)
    assert parents == Counter(objects.uid(pod) for pod in pods.values())
    await source.delete(kinds.DEPLOYMENTS, "many", "default", propagation="Background")
    await kit.until_gone(source, kinds.PODS, "default")
    await kit.until_gone(target, kinds.POD_CHAPERONS, "default")
