"""A ClusterSource that selects namespaces has its rights there, as long as they match."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests import background
from tests.apiserver.server import APIServer
from vnode.api import kinds, names, objects
from vnode.api.clock import Clock
from vnode.api.errors import ServerError
from vnode.api.objects import Object
from vnode.kube.informer import Informer
from vnode.targets import source_rbac
from vnode.targets.sources import SourceController

pytestmark = pytest.mark.looptime

POOL = {"namespaceSelector": {"matchLabels": {"pool": "gpu"}}}


class Target:
    """A target with an agent that serves its Sources."""

    def __init__(self, clock: Clock) -> None:
        self.server = APIServer("c2", clock)
        for name in ("kube-public", "kube-node-lease", "vnode", "a", "b"):
            self.label(name, pool="gpu")

        self.label("other")

    def label(self, name: str, **labels: str) -> None:
        """Make a namespace, or give it these labels and no others."""
        if self.server.find(kinds.NAMESPACES, name):
            self.server.remove(kinds.NAMESPACES, name)

        self.server.add(kinds.NAMESPACES, {"metadata": {"name": name, "labels": labels}})

    def add_source(self, name: str = "c1", /, **spec: Any) -> None:
        source = {"metadata": {"name": name}, "spec": {"userName": "us", **spec}}
        self.server.add(kinds.CLUSTER_SOURCES, source)

    @property
    def bound(self) -> list[str]:
        """The namespaces in which the source is bound."""
        found = self.server.store.all(kinds.ROLE_BINDINGS)
        return sorted(map(objects.namespace, found))

    @property
    def everywhere(self) -> list[str]:
        """The roles that it has in all of them."""
        found = self.server.store.all(kinds.CLUSTER_ROLE_BINDINGS)
        return sorted(binding["roleRef"]["name"] for binding in found)

    @property
    def ready(self) -> Object:
        found = self.server.find(kinds.CLUSTER_SOURCES, "c1") or {}
        return objects.condition(found, "Ready") or {}


@pytest.fixture
async def target(clock: Clock) -> AsyncIterator[Target]:
    target = Target(clock)
    namespaces = Informer(target.server.client(), kinds.NAMESPACES)
    controller = SourceController(target.server.client(), namespaces, "vnode", clock=clock)
    async with background.running(namespaces.run(), controller.run()):
        yield target


async def test_it_is_bound_where_labels_match_and_follows_them(target: Target) -> None:
    target.add_source(**POOL)
    await asyncio.sleep(1)
    assert target.bound == ["a", "b"]
    assert target.everywhere == ["admiralty-cluster-summary-viewer", "vnode-cluster-source"]
    assert target.ready["message"] == "user us may run pods in 2 namespaces: a, b"
    target.label("b", pool="cpu")
    target.label("other", pool="gpu")
    target.label("new", pool="gpu")
    await asyncio.sleep(1)
    assert set(target.bound) - {"b"} == {"a", "new", "other"}
    assert target.ready["message"].endswith("3 namespaces: a, new, other")


async def test_a_whole_grant_becomes_a_narrow_one_and_back(target: Target) -> None:
    target.add_source()
    await asyncio.sleep(1)
    assert target.bound == []
    assert target.everywhere == ["admiralty-cluster-summary-viewer", "admiralty-source"]
    client = target.server.client()
    await client.patch(kinds.CLUSTER_SOURCES, "c1", {"spec": POOL})
    await asyncio.sleep(1)
    assert target.bound == ["a", "b"]
    assert "admiralty-source" not in target.everywhere
    await client.patch(kinds.CLUSTER_SOURCES, "c1", {"spec": {"namespaceSelector": None}})
    await asyncio.sleep(1)
    assert target.bound == []
    assert "vnode-cluster-source" not in target.everywhere


async def test_a_namespace_that_refuses_keeps_no_other_from_its_binding(target: Target) -> None:
    target.server.fail(
        ServerError(500, "InternalError", "a webhook says no"),
        kind=kinds.ROLE_BINDINGS,
        when=lambda request: request.namespace == "a" and request.method == "PATCH",
        times=None,
    )
    target.add_source(**POOL)
    await asyncio.sleep(1)
    assert target.bound == ["b"]
    assert target.ready["status"] == "False"
    assert "a webhook says no" in target.ready["message"]


async def test_one_that_matches_nothing_says_what_to_do(target: Target) -> None:
    target.add_source(namespaceSelector={"matchLabels": {"pool": "none"}})
    await asyncio.sleep(1)
    assert target.bound == []
    assert target.ready["reason"] == "NoNamespace"


async def test_a_binding_of_a_name_that_another_sources_has_goes(target: Target) -> None:
    name = "c1-cluster-summary-viewer"
    former = {
        "name": f"admiralty-cluster-source-{name}",
        "labels": {source_rbac.MADE_FOR_SOURCE: "true"},
        "annotations": {source_rbac.SOURCE: name},
    }
    role = {"kind": "ClusterRole", "name": "admiralty-source"}
    target.server.add(kinds.CLUSTER_ROLE_BINDINGS, {"metadata": former, "roleRef": role})
    target.add_source(name)
    await asyncio.sleep(1)
    found = set(map(objects.name, target.server.store.all(kinds.CLUSTER_ROLE_BINDINGS)))
    assert found == {names.cluster_source_binding(name), names.cluster_source_viewer_binding(name)}
