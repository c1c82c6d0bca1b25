"""Chaperons that somebody has planted in another namespace of a target: no pod has to do with them.

They name a pod of the source by its UID, and say of themselves what a real one says.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.permitted import MANIFESTS
from tests.unit.pods.bound_pods import PARENT, US, BoundPodsEnvironment, new_pod
from tests.unit.pods.clusters import SourceCluster
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
async def env(clock: Clock) -> BoundPodsEnvironment:
    made = BoundPodsEnvironment(clock, namespace="")
    made.target.server.add(kinds.NAMESPACES, {"metadata": {"name": PLACE}})
    return made


def plant(env: BoundPodsEnvironment, forgery: dict[str, str | None], *, name: str = "") -> Object:
    """Make a chaperon of the pod `web` in another namespace."""
    link = env.target.link
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
    return env.target.server.add(kinds.POD_CHAPERONS, {**built, "status": SPOOFED})


def is_there(env: BoundPodsEnvironment, planted: Object) -> bool:
    found = env.target.server.find(kinds.POD_CHAPERONS, objects.name(planted), PLACE)
    return found is not None and not objects.is_terminating(found)


@forged
async def test_a_planted_chaperon_feeds_back_nothing(
    env: BoundPodsEnvironment, forgery: dict[str, str | None]
) -> None:
    env.target.add(env.add(), phase="Pending")
    plant(env, forgery)
    async with env.running():
        await asyncio.sleep(60)
        assert env.status()["phase"] == "Pending"
        env.target.report(phase="Running", podIP="192.0.2.1")
        await asyncio.sleep(60)
        assert env.status()["podIP"] == "192.0.2.1"


@forged
async def test_a_planted_chaperon_keeps_no_pod_from_ending(
    env: BoundPodsEnvironment, forgery: dict[str, str | None]
) -> None:
    env.target.add(env.add(), phase="Running")
    planted = plant(env, forgery)
    async with env.running():
        await env.delete()
        await asyncio.sleep(1)
        env.target.remove()
        env.target.server.remove(kinds.POD_CHAPERONS, objects.name(planted), PLACE)
        plant(env, forgery)
        await asyncio.sleep(60)
        assert env.pod() is None
        written = env.source.received("patch", kinds.PODS, "status")
        assert "192.0.2.66" not in str([each.body for each in written])


@in_place
async def test_a_chaperon_in_a_namespace_where_we_made_none_is_not_deleted(
    env: BoundPodsEnvironment, forgery: dict[str, str | None]
) -> None:
    planted = plant(env, forgery)
    async with env.running():
        await asyncio.sleep(100)
        assert is_there(env, planted), "its pod is not there, yet we did not make it"
        env.add(node="")
        await env.delete()
        await asyncio.sleep(100)
        assert is_there(env, planted)


async def test_a_chaperon_of_another_name_is_no_candidate_unless_admiralty_made_it(
    env: BoundPodsEnvironment,
) -> None:
    pod, link = env.add(), env.target.link
    parent = {keys.PARENT_CLUSTER_UID: US.uid, keys.PARENT_NAME: "web"}
    for name, noted, ours in (
        ("web-bcdfg", parent, False),
        ("web-bcdfgh", {keys.PARENT_NAME: "web"}, False),
        ("web-bcdfg", {keys.PARENT_NAME: "web"}, True),
    ):
        labels = {keys.PARENT_UID: "web", keys.PARENT_CLUSTER_NAME: US.name}
        metadata = {"name": name, "namespace": objects.namespace(pod), "labels": labels}
        body: Object = {"metadata": {**metadata, "annotations": noted}, "spec": {}}
        env.target.server.add(kinds.POD_CHAPERONS, body)
        found = await link.fetch_candidate(objects.key(pod), objects.uid(pod))
        assert (found is not None) is ours
        env.target.server.remove(kinds.POD_CHAPERONS, name, objects.namespace(pod))


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
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p")
        await asyncio.sleep(5)
        assert target.asked("create") == 1
        assert source.bindings == []
        reserves(target, target.candidate("p"))
        await source.until_bound("p")
