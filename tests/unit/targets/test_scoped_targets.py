"""What becomes of Targets, Nodes and Sources of namespaces in which nobody lets the agent in."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests import background
from tests.held_cluster import HeldCluster
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.target_key import TargetKey
from vnode.kube.client import Client
from vnode.nodes import controller as nodes
from vnode.nodes import virtual
from vnode.nodes.controller import NodeController
from vnode.runtime.links import Links
from vnode.targets.sources import SourceController
from vnode.targets.target_lister import TargetLister

pytestmark = pytest.mark.looptime

GONE = TargetKey("team-a", "gone")  # of a namespace that is read
UNSEEN = TargetKey("team-b", "unseen")  # of one that lets nobody in
LOST = TargetKey("team-c", "lost")  # of one that does not exist
ELSEWHERE = TargetKey("team-d", "elsewhere")  # of one that is not named


@pytest.fixture
async def cluster(clock: Clock) -> HeldCluster:
    found = HeldCluster(clock, "team-a", "team-b", "team-c")
    found.open_("team-a")
    found.close("team-b")
    return found


async def test_a_target_that_may_not_be_read_may_exist(cluster: HeldCluster) -> None:
    targets = TargetLister(cluster.client)
    async with background.running(targets.run()):
        await targets.wait_synced()
        for key, may_exist in ((GONE, False), (UNSEEN, True), (LOST, False)):
            assert targets.knows(key.namespace) != may_exist
            assert targets.has_node(key.node_name) == may_exist
            assert targets.has_finalizer(key.finalizer) == may_exist
            assert targets.cluster(key) == ("" if may_exist else None)

        assert targets.knows("")
        assert not targets.knows(ELSEWHERE.namespace)


async def test_the_node_of_a_target_that_may_not_be_read_stays(cluster: HeldCluster) -> None:
    for key in (GONE, UNSEEN, LOST, ELSEWHERE):
        cluster.server.add(kinds.NODES, {**virtual.registration(key), "status": {}})

    targets, found = TargetLister(cluster.client), nodes.informer(cluster.client)
    controller = NodeController(
        *(cluster.client, found, Links(), targets),
        advertise_address="192.0.2.1",
        port_of=lambda _name: None,
        clock=cluster.clock,
    )
    async with background.running(targets.run(), found.run(), controller.run()):
        await asyncio.sleep(10)
        left = {objects.name(node) for node in cluster.server.all(kinds.NODES)}
        assert left == {UNSEEN.node_name, ELSEWHERE.node_name}


async def test_bindings_of_a_source_that_may_not_be_read_stay(cluster: HeldCluster) -> None:
    for key in ("team-a/gone", "team-b/unseen", "team-d/elsewhere"):
        metadata = {
            "name": key.replace("/", "-"),
            "labels": {"vnode.dev/made-for-source": "true"},
            "annotations": {"vnode.dev/source": key},
        }
        cluster.server.add(kinds.CLUSTER_ROLE_BINDINGS, {"metadata": metadata})

    namespaces = cluster.informer(kinds.NAMESPACES)
    controller = SourceController(cluster.client, namespaces, "vnode", clock=cluster.clock)
    async with background.running(namespaces.run(), controller.run()):
        await asyncio.sleep(10)
        left = {objects.name(each) for each in cluster.server.all(kinds.CLUSTER_ROLE_BINDINGS)}
        assert left == {"team-b-unseen", "team-d-elsewhere"}


async def test_a_cluster_source_says_why_nobody_gets_its_rights(cluster: HeldCluster) -> None:
    spec = {"userName": "us"}
    cluster.server.add(kinds.CLUSTER_SOURCES, {"metadata": {"name": "c1"}, "spec": spec})
    namespaces = cluster.informer(kinds.NAMESPACES)
    controller = SourceController(cluster.client, namespaces, "vnode", clock=cluster.clock)
    async with background.running(namespaces.run(), controller.run()):
        await asyncio.sleep(10)

    source = cluster.server.find(kinds.CLUSTER_SOURCES, "c1") or {}
    condition = objects.condition(source, "Ready") or {}
    assert condition["status"] == "False"
    assert condition["message"].endswith(
        "held to team-a, team-b, team-c: make a Source in each of those"
    )
    assert cluster.server.all(kinds.CLUSTER_ROLE_BINDINGS) == []


async def test_a_cluster_that_is_its_own_target_is_held_to_the_namespaces_there_too(
    cluster: HeldCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vnode.api.identity import Identity
    from vnode.kube.endpoint import Trust
    from vnode.targets.controller import TargetController

    scopes: list[Any] = []

    def connect(_endpoint: Any, _recognition: Any, *, name: str, scope: Any) -> Client:
        scopes.append(scope)
        return cast("Client", SimpleNamespace(name=name))

    monkeypatch.setattr("vnode.targets.connection.RecognizedClient", connect)
    metadata = {"name": "itself", "namespace": "team-a"}
    cluster.server.add(kinds.TARGETS, {"metadata": metadata, "spec": {"self": True}})
    targets = TargetLister(cluster.client)
    controller = TargetController(
        *(cluster.client, Identity("c1", "u"), targets, Links()),
        clock=cluster.clock,
        trust=lambda _key: Trust(),
    )
    async with background.running(targets.run(), controller.run()):
        await asyncio.sleep(3)

    assert scopes[0] is cluster.client.scope
