"""Gangs on real clusters: pods that start together in one target, or not at all."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator

import pytest

from tests import kit
from tests.e2e.gang_pods import SLOT, create, member, offer, until_all_ran
from tests.e2e.gang_watch import LONGEST, watching
from tests.fleets import vnode
from tests.kit import Fleet
from vnode.api import keys, kinds, names, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

C2, C3 = (names.virtual_node("default", name) for name in ("c2", "c3"))
GROUPS = kinds.COSCHEDULING_GROUPS
CRD: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": GROUPS.resource,
        "annotations": {"api-approved.kubernetes.io": "https://example.com"},
    },
    "spec": {
        "group": GROUPS.group,
        "names": {"plural": GROUPS.plural, "singular": "podgroup", "kind": GROUPS.kind},
        "scope": "Namespaced",
        "versions": [
            {
                "name": GROUPS.version,
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


@pytest.fixture
async def slots(source: Client, c2: Client, c3: Client) -> AsyncIterator[None]:
    """Give both targets ten slots on three nodes: two gangs of four, and two slots over."""
    for name, target in (("c2", c2), ("c3", c3)):
        await offer(source, target, name, 4, 3, 3)

    yield
    for name, target in (("c2", c2), ("c3", c3)):
        await offer(source, target, name, 0, 0, 0)


@pytest.mark.usefixtures("slots")
@pytest.mark.parametrize("kill", [False, True])
async def test_gangs_take_turns_and_never_does_a_part_of_one_run(
    fleet: Fleet, source: Client, c2: Client, c3: Client, kill: bool
) -> None:
    gangs = [f"gang{number}" for number in range(8)]
    order = random.Random(kill).sample([(g, n) for g in gangs for n in range(4)], 32)
    async with watching(4, c2=c2, c3=c3) as watch:
        for gang, number in order:
            await source.create(kinds.PODS, member(gang, number, "4"), "default")

        if kill:
            while not watch.places:
                watch.changed.clear()
                await watch.changed.wait()

            await asyncio.to_thread(fleet.run, "stop", "c1", "agent", "--kill")
            await asyncio.to_thread(fleet.run, "start", "c1", "agent")

        await until_all_ran({source: gangs}, watch)
        assert watch.worst() < LONGEST
        assert all(len(places) == 1 for places in watch.places.values())


@pytest.mark.usefixtures("slots")
async def test_a_gang_that_fits_nowhere_says_how_many_have_a_place(
    fleet: Fleet, source: Client, c2: Client, c3: Client
) -> None:
    def is_told(pod: Object) -> bool:
        message = (objects.condition(pod, "PodScheduled") or {}).get("message") or ""
        return f"10 of 12 have a place in c2; 2 wait: Insufficient {SLOT}" in message

    async with watching(12, c2=c2, c3=c3) as watch:
        await create(source, "large", 12, 12)
        await kit.until_one(source, kinds.PODS, "large-0", "default", is_told)
        config = str(fleet.kubeconfig("c1"))
        done = vnode("explain", "pod", "large-0", "-n", "default", "--kubeconfig", config)
        told = " ".join(done.out.split())
        assert f"10 of 12 have a place in c2; 2 wait: Insufficient {SLOT}" in told, done.out
        assert not watch.places
        for name, target in (("c2", c2), ("c3", c3)):
            assert not await target.list(kinds.PODS, "default"), name


@pytest.fixture
async def groups(source: Client) -> AsyncIterator[None]:
    """Have the source serve PodGroups of coscheduling."""
    await source.create(kinds.CRDS, CRD)
    await kit.until_served(source, GROUPS)
    yield
    await source.delete(kinds.CRDS, GROUPS.resource)


def says(text: str, pod: Object) -> bool:
    message = (objects.condition(pod, "PodScheduled") or {}).get("message") or ""
    return text in message


@pytest.mark.usefixtures("slots")
async def test_a_pod_group_of_coscheduling_that_comes_late_starts_its_pods(
    source: Client, c2: Client, c3: Client, groups: None
) -> None:
    async with watching(3, c2=c2, c3=c3) as watch:
        for number in range(3):
            body = member("train", number)
            body["metadata"]["labels"][keys.POD_GROUP] = "train"
            await source.create(kinds.PODS, body, "default")

        missing = "PodGroup train of scheduling.x-k8s.io does not exist in namespace default"
        await kit.until_one(source, kinds.PODS, "train-0", "default", lambda p: says(missing, p))
        assert not watch.places
        group = {
            "apiVersion": GROUPS.api_version,
            "kind": GROUPS.kind,
            "metadata": {"name": "train"},
            "spec": {"minMember": 4},
        }
        await source.create(GROUPS, group, "default")
        waits = "waiting for 1 of 4 pods of the gang train"
        await kit.until_one(source, kinds.PODS, "train-0", "default", lambda p: says(waits, p))
        await source.patch(GROUPS, "train", {"spec": {"minMember": 3}}, "default")
        await kit.until_pods(source, "train", lambda all_: kit.running(all_, 3))
        of_group = "involvedObject.kind=PodGroup,involvedObject.name=train"
        await kit.until_event(source, "default", f"{of_group},reason=Scheduled")
        assert "status" not in await source.get(GROUPS, "train", "default")  # another's to write
        assert watch.worst() < LONGEST
        assert len(watch.places["train"]) == 1


@pytest.mark.usefixtures("slots")
async def test_a_lost_member_comes_back_beside_the_others(
    source: Client, c2: Client, c3: Client
) -> None:
    async with watching(4, c2=c2, c3=c3) as watch:
        await create(source, "pair", 4, 4)
        pods = await kit.until_pods(source, "pair", lambda all_: kit.running(all_, 4))
        [node] = {objects.node_name(pod) for pod in pods.values()}
        await source.delete(kinds.PODS, "pair-0", "default")
        await kit.until(
            source, kinds.PODS, lambda all_: "default/pair-0" not in all_, namespace="default"
        )
        await source.create(kinds.PODS, member("pair", 0, "4"), "default")
        back = await kit.until_running(source, "pair-0")
        assert objects.node_name(back) == node
        assert watch.places == {"pair": {node.rsplit("-", 1)[-1]}}


@pytest.mark.usefixtures("slots")
async def test_an_unready_gang_says_why(source: Client) -> None:
    for number, minimum in enumerate(("2", "3")):
        await source.create(kinds.PODS, member("odd", number, minimum), "default")

    await source.create(kinds.PODS, member("bad", 0, "0"), "default")
    text = f"pods of gang odd have different annotations {keys.GANG_MINIMUM} (2, 3)"
    await kit.until_one(source, kinds.PODS, "odd-0", "default", lambda pod: says(text, pod))
    text = f"annotation {keys.GANG_MINIMUM} is '0'"
    await kit.until_one(source, kinds.PODS, "bad-0", "default", lambda pod: says(text, pod))


@pytest.fixture
async def growing(source: Client, slots: None) -> AsyncIterator[None]:
    """Tell that c3 may get two nodes of four slots."""
    pools = json.dumps([{"labels": {}, "allocatable": {SLOT: 4}, "max": 2}])
    body: Object = {"metadata": {"annotations": {keys.NODE_POOLS: pools}}}
    await source.patch(kinds.TARGETS, "c3", body, "default")
    yield
    body = {"metadata": {"annotations": {keys.NODE_POOLS: None}}}
    await source.patch(kinds.TARGETS, "c3", body, "default")


@pytest.mark.usefixtures("growing")
async def test_a_gang_waits_in_a_target_that_grows_for_it_and_starts_as_a_whole(
    source: Client, c2: Client, c3: Client
) -> None:
    async with watching(12, c2=c2, c3=c3) as watch:
        await create(source, "scaled", 12, 12)

        def shows_what_is_missing(pods: dict[str, Object]) -> bool:
            return len(pods) == 12 and sum(says("Insufficient", pod) for pod in pods.values()) == 2

        await kit.until(c3, kinds.PODS, shows_what_is_missing, namespace="default")
        assert not watch.places
        await offer(source, c3, "c3", 4, 4, 4)
        await kit.until_pods(source, "scaled", lambda all_: kit.running(all_, 12))
        assert watch.worst() < LONGEST
        assert watch.places == {"scaled": {"c3"}}
