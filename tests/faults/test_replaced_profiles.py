"""A set's profile is replaced by another one, and its agent is killed in each step.

A Deployment and a StatefulSet move from one cluster to the other: as one profile comes and another
goes, and as a profile comes to lead to another cluster.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator

import pytest

from hack.fleetlib import addresses, agents, clusters
from hack.fleetlib.fleet import LocalFleet
from hack.fleetlib.inventory import NAMESPACE
from tests import inventory, kit
from tests.faults import moving_app
from tests.faults.moving_app import SeenMoves
from tests.faults.profiles import provider_of
from tests.fleets import started
from tests.kit import Fleet
from vnode.api import keys, kinds, names, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

PLACES = {"east": "c2", "west": "c3"}
SET = {
    "profiles": {"namespace": NAMESPACE, "names": [*PLACES]},
    "removal": {"after": "8s", "maxPerMinute": 600},
}

Step = Callable[[Client, str, str], Awaitable[object]]  # of the source, the former and the new one


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Yield a source with profiles of two clusters."""
    words = ("c1", "c2", "c3", "--nodes", "3", "--agents", "--inventory")
    with started(tmp_path_factory, *words, "--connect", "c1:c2", "--connect", "c1:c3") as there:
        yield there


def node(name: str) -> str:
    """Return the virtual node of a profile's Target."""
    return names.virtual_node("", name)


async def add(source: Client, name: str) -> None:
    """Have the inventory list a cluster under another name, too."""
    status = {"accessProviders": [await provider_of(source, PLACES[name])]}
    await inventory.add_profile(source, NAMESPACE, name, status)


@pytest.fixture
async def app(source: Client) -> None:
    """Run the application in the cluster of the profile `east`, the only one that is there."""
    for name in PLACES.values():
        await source.delete(kinds.CLUSTER_TARGETS, name)

    await kit.until_gone(source, kinds.CLUSTER_TARGETS)
    await add(source, "east")
    made = {"metadata": {"name": "moving"}, "spec": SET}
    await source.create(kinds.CLUSTER_TARGET_SETS, made)
    await kit.until_one(source, kinds.CLUSTER_TARGETS, "east", "", kit.is_ready)
    await moving_app.create(source)
    await moving_app.until_run(source, node("east"))


async def kill(fleet: Fleet, source: Client) -> None:
    """End the agent without a word, start it again, and have it admit what failed meanwhile."""
    there = LocalFleet(fleet.folder)

    def ready() -> bool:
        return agents.answers(there.site("c1").address, addresses.AGENT_HEALTH)

    await asyncio.to_thread(there.stop, "c1", "agent", signal.SIGKILL)
    await asyncio.to_thread(there.start, "c1", "agent")
    await asyncio.to_thread(clusters.until, fleet.folder, "c1", "agent", ready)
    await moving_app.wake_controllers(source)


async def until_made(source: Client, _former: str, new: str) -> None:
    await kit.until_one(source, kinds.CLUSTER_TARGETS, new, "", bool)


async def until_marked(source: Client, former: str, _new: str) -> None:
    await kit.until_one(
        *(source, kinds.CLUSTER_TARGETS, former, ""),
        lambda target: keys.PROFILE_GONE in objects.annotations(target),
    )


async def until_cordoned(source: Client, former: str, _new: str) -> None:
    await kit.until_one(
        *(source, kinds.NODES, node(former), ""),
        lambda obj: objects.spec(obj).get("unschedulable"),
    )


async def until_evicted(source: Client, former: str, _new: str) -> None:
    """Wait until some pods have left, but not all."""
    await kit.until(
        *(source, kinds.PODS, lambda pods: len(pods) < moving_app.ALL - 3),
        namespace="default",
        label_selector=moving_app.LABEL,
        field_selector=f"spec.nodeName={node(former)}",
    )


async def until_empty(source: Client, former: str, _new: str) -> None:
    selector = f"spec.nodeName={node(former)}"
    await kit.until_gone(source, kinds.PODS, "default", field_selector=selector)


async def until_deleted(source: Client, former: str, _new: str) -> None:
    selector = f"metadata.name={former}"
    await kit.until_gone(source, kinds.CLUSTER_TARGETS, field_selector=selector)


STEPS: tuple[Step, ...] = (
    until_made,
    until_marked,
    until_cordoned,
    until_evicted,
    until_empty,
    until_deleted,
)


async def replace(
    source: Client,
    clusters: dict[str, Client],
    former: str,
    new: str,
    at_step: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Replace a profile by another; see that the application moves, and what is left."""
    seen = SeenMoves(source, {PLACES[name]: client for name, client in clusters.items()})
    async with seen.following():
        await add(source, new)
        await source.delete(kinds.CLUSTER_PROFILES, former, NAMESPACE)
        for step in STEPS if at_step else ():
            await step(source, former, new)
            await at_step()

        await moving_app.until_run(source, node(new))
        await until_deleted(source, former, new)

    # An agent that begins may wait too long for the Services of a busy cluster.
    seen.check(PLACES[new], *(moving_app.USED if at_step else moving_app.COPIED))
    await kit.until_gone(source, kinds.NODES, field_selector=f"metadata.name={node(former)}")
    await moving_app.until_nothing_stays(clusters[former])
    targets = await source.list(kinds.CLUSTER_TARGETS)
    assert [objects.name(target) for target in targets] == [new]
    proxies = await source.list(kinds.PODS, "default")
    delegates = await clusters[new].list(kinds.PODS, "default")
    assert sorted(objects.uid(pod) for pod in proxies) == sorted(
        objects.labels(pod)[keys.PARENT_UID] for pod in delegates
    )


async def test_an_application_moves_within_its_budget_whatever_becomes_of_the_agent(
    fleet: Fleet, source: Client, c2: Client, c3: Client, app: None
) -> None:
    clusters = {"east": c2, "west": c3}
    await replace(source, clusters, "east", "west")

    async def at_step() -> None:
        await kill(fleet, source)

    await replace(source, clusters, "west", "east", at_step)
    await another_cluster_behind(fleet, source, c3)


async def another_cluster_behind(fleet: Fleet, source: Client, c3: Client) -> None:
    """Let the cluster of a profile die, and the profile come to lead to another one."""
    before = await moving_app.until_run(source, node("east"))
    await asyncio.to_thread(fleet.run, "partition", "c2")
    moved = {"accessProviders": [await provider_of(source, "c3")]}
    await inventory.set_status(source, NAMESPACE, "east", moved)
    await kit.until_one(
        *(source, kinds.CLUSTER_TARGETS, "east", ""),
        lambda target: inventory.reason(target) == "OtherCluster",
    )
    pods = await source.list(kinds.PODS, "default")
    assert {objects.uid(pod) for pod in pods} == {objects.uid(pod) for pod in before.values()}
    assert await c3.list(kinds.POD_CHAPERONS, "default") == []

    there = objects.uid(await c3.get(kinds.NAMESPACES, "kube-system"))
    note: Object = {"metadata": {"annotations": {keys.CONFIRM_CLUSTER: there}}}
    await source.patch(kinds.CLUSTER_TARGETS, "east", note)
    former = {objects.uid(pod) for pod in before.values()}
    await kit.until(
        *(source, kinds.PODS),
        lambda found: (
            kit.running(found, moving_app.ALL)
            and not former & {objects.uid(pod) for pod in found.values()}
        ),
        namespace="default",
        label_selector=moving_app.LABEL,
    )
    now = await moving_app.until_run(source, node("east"))
    delegates = await c3.list(kinds.PODS, "default")
    assert sorted(objects.uid(pod) for pod in now.values()) == sorted(
        objects.labels(pod)[keys.PARENT_UID] for pod in delegates
    )
