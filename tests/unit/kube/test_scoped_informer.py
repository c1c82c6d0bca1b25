"""Informers, lists and watches of a client that is held to namespaces."""

from __future__ import annotations

import asyncio
import logging

import pytest

from tests import background
from tests.held_cluster import HeldCluster
from vnode.api import kinds, objects
from vnode.api.errors import Denied, NotFound
from vnode.kube.informer import Informer

pytestmark = pytest.mark.looptime


@pytest.fixture
async def cluster(clock):
    return HeldCluster(clock, "team-a", "team-b")


async def test_all_named_namespaces_are_in_one_store_and_no_other(cluster):
    cluster.open_("team-a", "team-b", "team-c")
    for namespace in ("team-a", "team-b", "team-c"):
        cluster.put(namespace, "x")

    async with cluster.following() as informer:
        assert informer.synced.is_set()
        assert set(informer.store) == {"team-a/x", "team-b/x"}
        cluster.put("team-b", "y")
        cluster.server.remove(kinds.CONFIG_MAPS, "x", "team-a")
        await asyncio.sleep(1)
        assert set(informer.store) == {"team-b/x", "team-b/y"}
        asked = {request.namespace for request in cluster.server.received(kind=kinds.CONFIG_MAPS)}
        assert asked == {"team-a", "team-b"}


async def test_nothing_is_known_before_each_namespace_is_listed(cluster):
    cluster.open_("team-a", "team-b")
    fault = cluster.server.fail(
        None, verb="list", when=lambda request: request.namespace == "team-b", delay=10.0
    )
    async with cluster.following() as informer:
        assert informer.knows("team-a")
        assert not informer.knows("team-b")
        assert not informer.synced.is_set()
        assert not informer.answered.is_set()
        fault.clear()
        await asyncio.sleep(10)
        assert informer.synced.is_set()


async def test_a_list_of_one_namespace_removes_nothing_of_another(cluster):
    cluster.open_("team-a", "team-b")
    cluster.put("team-a", "x")
    cluster.put("team-b", "x")
    async with cluster.following() as informer:
        cluster.server.freeze()
        cluster.server.remove(kinds.CONFIG_MAPS, "x", "team-a")
        gone = cluster.server.fail(NotFound(404, "NotFound", ""), verb="watch", times=None)
        cluster.server.thaw()
        cluster.server.cut_watches()
        await asyncio.sleep(3)
        gone.clear()
        await asyncio.sleep(10)
        assert set(informer.store) == {"team-b/x"}


async def test_a_namespace_that_does_not_exist_delays_none_and_is_known_to_be_empty(cluster):
    cluster.open_("team-a")
    cluster.put("team-a", "x")
    async with cluster.following() as informer:
        assert informer.synced.is_set()
        assert set(informer.store) == {"team-a/x"}
        assert informer.knows("team-b")
        assert informer.lacks("team-b")
        assert informer.failure is None


async def test_a_namespace_that_lets_nobody_in_delays_none_and_is_not_known(cluster):
    cluster.open_("team-a", "team-b")
    cluster.close("team-b")
    async with cluster.following() as informer:
        assert informer.synced.is_set()
        assert informer.knows("team-a")
        assert not informer.knows("team-b")
        assert informer.lacks("team-b")
        assert not informer.lacks("team-a")


async def test_where_no_namespace_lets_anybody_in_nothing_is_known(cluster):
    cluster.open_("team-a", "team-b")
    cluster.opened.clear()
    async with cluster.following() as informer:
        assert informer.answered.is_set()
        assert not informer.synced.is_set()
        assert isinstance(informer.failure, Denied)


async def test_a_namespace_that_comes_later_is_read_as_soon_as_somebody_says_so(cluster):
    cluster.open_("team-a")
    async with cluster.following() as informer:
        await asyncio.sleep(600)
        cluster.open_("team-b")
        cluster.put("team-b", "x")
        cluster.client.scope.retry("team-b")
        await asyncio.sleep(1)
        assert "team-b/x" in informer.store
        assert not informer.lacks("team-b")


async def test_all_kinds_of_a_namespace_become_known_together(cluster):
    cluster.open_("team-a")
    kinds_ = (kinds.CONFIG_MAPS, kinds.SERVICES, kinds.PODS)
    informers = [cluster.informer(kind) for kind in kinds_]
    seen: list[float] = []
    async with background.running(*(informer.run() for informer in informers)):
        await asyncio.sleep(600)
        cluster.open_("team-b")
        for informer in informers:
            metadata = {"name": "x", "namespace": "team-b"}
            cluster.server.add(informer.kind, {"metadata": metadata})
            informer.subscribe(lambda _old, _new: seen.append(cluster.clock.monotonic()))

        await asyncio.sleep(120)
        assert len(seen) == len(kinds_)
        assert max(seen) - min(seen) < 0.1
        assert not any(informer.lacks("team-b") for informer in informers)


async def test_a_namespace_without_rights_is_asked_once_a_minute_and_told_once(cluster, caplog):
    cluster.open_("team-a")
    with caplog.at_level(logging.INFO, "vnode"):
        async with cluster.following():
            await asyncio.sleep(3600)

    asked = [r for r in cluster.server.received("list") if r.namespace == "team-b"]
    assert len(asked) < 90
    assert len([record for record in caplog.records if "may not list" in record.message]) == 1


async def test_objects_of_a_namespace_go_with_it_though_the_rights_went_first(cluster):
    cluster.open_("team-a", "team-b")
    cluster.put("team-b", "x")
    gone = []
    async with cluster.following() as informer:
        informer.subscribe(lambda _old, new: gone.append(1) if new is None else None)
        cluster.opened.discard("team-b")
        cluster.server.cut_watches()
        await asyncio.sleep(10)
        assert set(informer.store) == {"team-b/x"}
        cluster.server.freeze()
        cluster.server.remove(kinds.CONFIG_MAPS, "x", "team-b")
        cluster.server.remove(kinds.NAMESPACES, "team-b")
        cluster.server.thaw()
        await asyncio.sleep(120)
        assert set(informer.store) == set()
        assert gone == [1]


async def test_a_namespace_that_is_made_again_is_read_again(cluster):
    cluster.open_("team-a", "team-b")
    async with cluster.following() as informer:
        cluster.opened.discard("team-b")
        cluster.server.remove(kinds.NAMESPACES, "team-b")
        cluster.server.cut_watches()
        await asyncio.sleep(30)
        assert informer.lacks("team-b")
        cluster.open_("team-b")
        cluster.put("team-b", "new")
        await asyncio.sleep(90)
        assert set(informer.store) == {"team-b/new"}


async def test_a_list_is_of_the_named_namespaces_that_let_us_in(cluster):
    cluster.open_("team-a", "team-c")
    cluster.put("team-a", "x")
    cluster.put("team-c", "x")
    found = await cluster.client.list(kinds.CONFIG_MAPS)
    assert [objects.key(obj) for obj in found] == ["team-a/x"]
    cluster.opened.clear()
    with pytest.raises(Denied):
        await cluster.client.list(kinds.CONFIG_MAPS)


async def test_kinds_of_the_cluster_and_named_namespaces_are_asked_for_as_ever(cluster):
    cluster.open_("team-a", "elsewhere")
    cluster.put("elsewhere", "x")
    assert len(await cluster.client.list(kinds.NAMESPACES)) > 2
    assert len(await cluster.client.list(kinds.CONFIG_MAPS, "elsewhere")) == 1
    informer = Informer(cluster.client, kinds.CONFIG_MAPS, namespace="elsewhere")
    async with background.running(informer.run()):
        await asyncio.sleep(1)
        assert informer.knows("elsewhere")
        assert set(informer.store) == {"elsewhere/x"}
