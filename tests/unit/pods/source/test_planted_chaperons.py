"""Chaperons that somebody has planted in another namespace of a target: no pod has to do with them.

They name a pod of the source by its UID, and say of themselves what a real one says.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.permitted import MANIFESTS
from tests.unit.pods.bound_pods import PARENT, US, World, new_pod
from tests.unit.pods.clusters import Source
from tests.unit.pods.targets import US as CHOOSING
from tests.unit.pods.targets import Target, is_silent, prefer, reserves
from vnode.api import keys, kinds, names, objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.pods import chaperons

pytestmark = pytest.mark.looptime

PLACE = "aaa"
SPOOFED: dict[str, Any] = {
    "phase": "Running",
    "podIP": "192.0.2.66",
    "conditions": [{"type": "Ready", "status": "True"}],
}
FORGERIES = {
    "names the namespace of the pod": {},
    "names its own namespace": {keys.PARENT_NAMESPACE: PLACE},
    "names no namespace": {keys.PARENT_NAMESPACE: None},
    "names no cluster": {keys.PARENT_CLUSTER_UID: None},
    "names neither": {keys.PARENT_CLUSTER_UID: None, keys.PARENT_NAMESPACE: None},
    "names no pod": {keys.PARENT_NAMESPACE: None, keys.PARENT_NAME: None},
    "names no Target": {keys.TARGET: None, keys.PARENT_CLUSTER_UID: None},
}
forged = pytest.mark.parametrize("forgery", FORGERIES.values(), ids=list(FORGERIES))
in_place = pytest.mark.parametrize("forgery", [FORGERIES["names the namespace of the pod"]])


@pytest.fixture
async def world(clock: Clock) -> World:
    made = World(clock, namespace="")
    made.target.server.add(kinds.NAMESPACES, {"metadata": {"name": PLACE}})
    return made


def plant(world: World, forgery: dict[str, str | None], *, name: str = "") -> Object:
    """Make a chaperon of the pod `web` in another namespace."""
    link = world.target.link
    pod = new_pod(node=link.node_name)
    built = chaperons.build(
        pod, PARENT, str(link.target), manifests=MANIFESTS, allowed=True, finalizer=True
    )
    annotations = {**objects.annotations(built), **forgery, keys.IS_RESERVED: "true"}
    built["metadata"] |= {
        "name": name or names.chaperon("web", "web"),
        "namespace": PLACE,
        "annotations": {key: value for key, value in annotations.items() if value is not None},
    }
    return world.target.server.add(kinds.POD_CHAPERONS, {**built, "status": SPOOFED})


def is_there(world: World, planted: Object) -> bool:
    found = world.target.server.find(kinds.POD_CHAPERONS, objects.name(planted), PLACE)
    return found is not None and not objects.is_terminating(found)


@forged
async def test_a_planted_chaperon_feeds_back_nothing(
    world: World, forgery: dict[str, str | None]
) -> None:
    world.target.add(world.add(), phase="Pending")
    plant(world, forgery)
    async with world.running():
        await asyncio.sleep(60)
        assert world.status()["phase"] == "Pending"
        world.target.report(phase="Running", podIP="192.0.2.1")
        await asyncio.sleep(60)
        assert world.status()["podIP"] == "192.0.2.1"


@forged
async def test_a_planted_chaperon_keeps_no_pod_from_ending(
    world: World, forgery: dict[str, str | None]
) -> None:
    world.target.add(world.add(), phase="Running")
    planted = plant(world, forgery)
    async with world.running():
        await world.delete()
        await asyncio.sleep(1)
        world.target.remove()
        world.target.server.remove(kinds.POD_CHAPERONS, objects.name(planted), PLACE)
        plant(world, forgery)
        await asyncio.sleep(60)
        assert world.pod() is None
        written = world.source.received("patch", kinds.PODS, "status")
        assert "192.0.2.66" not in str([each.body for each in written])


@in_place
async def test_a_chaperon_in_a_namespace_where_we_made_none_is_not_deleted(
    world: World, forgery: dict[str, str | None]
) -> None:
    planted = plant(world, forgery)
    async with world.running():
        await asyncio.sleep(100)
        assert is_there(world, planted), "its pod is not there, yet we did not make it"
        world.add(node="")
        await world.delete()
        await asyncio.sleep(100)
        assert is_there(world, planted)


async def test_a_chaperon_of_another_name_is_no_candidate_unless_admiralty_made_it(
    world: World,
) -> None:
    pod, link = world.add(), world.target.link
    parent = {keys.PARENT_CLUSTER_UID: US.uid, keys.PARENT_NAME: "web"}
    for name, noted, ours in (
        ("web-bcdfg", parent, False),
        ("web-bcdfgh", {keys.PARENT_NAME: "web"}, False),
        ("web-bcdfg", {keys.PARENT_NAME: "web"}, True),
    ):
        labels = {keys.PARENT_UID: "web", keys.PARENT_CLUSTER_NAME: US.name}
        metadata = {"name": name, "namespace": objects.namespace(pod), "labels": labels}
        body: Object = {"metadata": {**metadata, "annotations": noted}, "spec": {}}
        world.target.server.add(kinds.POD_CHAPERONS, body)
        found = await link.fetch_candidate(objects.key(pod), objects.uid(pod))
        assert (found is not None) is ours
        world.target.server.remove(kinds.POD_CHAPERONS, name, objects.namespace(pod))


async def test_a_pod_is_not_bound_where_only_a_planted_chaperon_has_a_place(clock: Clock) -> None:
    target = Target("c2", clock, is_silent, home="")
    prefer(target)
    target.server.add(kinds.NAMESPACES, {"metadata": {"name": PLACE}})
    annotations = {
        keys.PARENT_NAME: "p",
        keys.PARENT_NAMESPACE: "default",
        keys.PARENT_CLUSTER_UID: CHOOSING.uid,
        keys.IS_RESERVED: "true",
    }
    labels = {keys.PARENT_UID: "p", keys.PARENT_CLUSTER_NAME: CHOOSING.name}
    metadata = {"name": names.chaperon("p", "p"), "namespace": PLACE, "labels": labels}
    body: Object = {"metadata": {**metadata, "annotations": annotations}, "spec": {}}
    target.server.add(kinds.POD_CHAPERONS, body)
    source = Source(clock, target)
    async with source.running():
        source.add("p")
        await asyncio.sleep(5)
        assert target.asked("create") == 1
        assert source.bindings == []
        reserves(target, target.candidate("p"))
        await source.until_bound("p")
