"""The agent keeps its rights in a named namespace as long as it has something to end there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests import background
from tests.held_cluster import HeldCluster
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.kube.namespace_scope import NamespaceScope
from vnode.runtime.lasting_rights import LastingRights

pytestmark = pytest.mark.looptime

OTHERS = "example.com/others"
KINDS = (kinds.ROLES, kinds.ROLE_BINDINGS)


class KeptRights(HeldCluster):
    """A cluster with rights in two namespaces, of which one lets nobody in."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock, "team-a", "team-b")
        self.open_("team-a")
        self.close("team-b")
        for kind in KINDS:
            for namespace in ("team-a", "team-b"):
                metadata = {"name": "vnode", "namespace": namespace, "finalizers": [OTHERS]}
                self.server.add(kind, {"metadata": metadata})

    def pod(self, namespace: str) -> None:
        self.server.add(kinds.PODS, {"metadata": {"name": "web", "namespace": namespace}})

    def kept(self, namespace: str = "team-a") -> set[bool]:
        """Return whether Role and RoleBinding have the finalizer."""
        found = [self.server.find(kind, "vnode", namespace) or {} for kind in KINDS]
        assert all(OTHERS in objects.finalizers(each) for each in found)
        return {keys.WORK_LEFT in objects.finalizers(each) for each in found}

    @asynccontextmanager
    async def keeping(self) -> AsyncIterator[None]:
        ended = self.informer(kinds.PODS), self.informer(kinds.POD_CHAPERONS)
        namespaces = self.informer(kinds.NAMESPACES)
        namespaces.subscribe_by_key(self.client.scope.retry)
        controller = LastingRights(self.client, namespaces, ended)
        informers = [informer.run() for informer in (namespaces, *ended)]
        async with background.running(*informers, controller.run()):
            await asyncio.sleep(1)
            yield


@pytest.fixture
async def cluster(clock: Clock) -> KeptRights:
    return KeptRights(clock)


async def test_rights_are_kept_from_the_first_pod_to_the_last(cluster: KeptRights) -> None:
    async with cluster.keeping():
        assert cluster.kept() == {False}
        cluster.pod("team-a")
        metadata = {"name": "web", "namespace": "team-a"}
        cluster.server.add(kinds.POD_CHAPERONS, {"metadata": metadata})
        await asyncio.sleep(1)
        assert cluster.kept() == {True}
        cluster.server.remove(kinds.PODS, "web", "team-a")
        await asyncio.sleep(1)
        assert cluster.kept() == {True}
        cluster.server.remove(kinds.POD_CHAPERONS, "web", "team-a")
        await asyncio.sleep(1)
        assert cluster.kept() == {False}


async def test_a_new_leader_lets_go_of_what_an_earlier_one_kept(cluster: KeptRights) -> None:
    cluster.pod("team-a")
    async with cluster.keeping():
        assert cluster.kept() == {True}

    cluster.server.remove(kinds.PODS, "web", "team-a")
    async with cluster.keeping():
        assert cluster.kept() == {False}


async def test_where_nothing_may_be_read_the_rights_stay_as_they_are(cluster: KeptRights) -> None:
    for kind in KINDS:
        cluster.server.change(
            *(kind, "vnode", "team-b"),
            lambda obj: obj["metadata"]["finalizers"].append(keys.WORK_LEFT),
        )

    async with cluster.keeping():
        await asyncio.sleep(300)
        assert cluster.kept("team-b") == {True}
        cluster.open_("team-b")
        await asyncio.sleep(300)
        assert cluster.kept("team-b") == {False}


async def test_rights_in_a_namespace_that_is_named_no_more_are_let_go_of(
    cluster: KeptRights,
) -> None:
    cluster.pod("team-a")
    async with cluster.keeping():
        assert cluster.kept() == {True}

    cluster.client.scope = NamespaceScope(["team-b"])
    cluster.open_("team-b")
    async with cluster.keeping():
        assert cluster.kept() == {False}


async def test_many_pods_cost_a_request_for_each_object_once(cluster: KeptRights) -> None:
    async with cluster.keeping():
        for number in range(50):
            metadata = {"name": f"web-{number}", "namespace": "team-a"}
            cluster.server.add(kinds.PODS, {"metadata": metadata})

        await asyncio.sleep(1)
        assert cluster.server.count("patch") == len(KINDS)
