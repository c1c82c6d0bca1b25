"""PodGroups are watched once a pod names one, in the version that the cluster serves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests import computing
from tests.apiserver import requests, resources
from tests.apiserver.server import APIServer
from tests.computing import WorkingClock
from vnode.api import kinds
from vnode.api.clock import Clock
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.gangs.membership import GangKey, GroupApi
from vnode.gangs.pod_groups import GroupStanding
from vnode.pods.source.pod_groups import PodGroups
from vnode.runtime.supervisor import supervise

pytestmark = pytest.mark.looptime

KEY = GangKey(GroupApi.COSCHEDULING, "default", "train")
NATIVE = GangKey(GroupApi.NATIVE, "default", "train")


class WatchedGroups:
    """A server with PodGroups, and what watches them."""

    def __init__(self, clock: Clock) -> None:
        self.server = APIServer("c1", clock)
        self.changed: list[GangKey] = []
        self.groups = PodGroups(self.server.client(), clock)
        self.named: list[GangKey] = []

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        async with supervise() as tasks:
            self.groups.watch(tasks.keyed(), self.changed.append, self._of_api)
            await asyncio.sleep(2)
            yield
            tasks.stop()

    def find(self, key: GangKey) -> GroupStanding:
        """Look a group up for a pod that names it."""
        self.named = [key]
        return self.groups.find(key)

    def _of_api(self, api: GroupApi) -> list[GangKey]:
        return [key for key in self.named if key.api is api]

    def serve(self, kind: Kind) -> None:
        self.server.add(
            kinds.CRDS,
            {
                "metadata": {"name": kind.resource},
                "spec": {"versions": [{"name": kind.version, "served": True}]},
                "status": {"conditions": [{"type": "Established", "status": "True"}]},
            },
        )

    def add(self, kind: Kind, spec: Object) -> None:
        metadata = {"name": "train", "namespace": "default"}
        self.server.add(kind, {"metadata": metadata, "spec": spec})


@pytest.fixture
async def watched(clock: Clock) -> WatchedGroups:
    return WatchedGroups(clock)


async def test_nothing_is_watched_before_a_pod_names_a_group(watched: WatchedGroups) -> None:
    async with watched.watching():
        assert watched.server.requests == []


async def test_a_group_and_its_kind_may_come_later_than_its_pods(watched: WatchedGroups) -> None:
    async with watched.watching():
        assert watched.find(KEY) == GroupStanding()
        await asyncio.sleep(2)
        assert "install its CRD" in watched.find(KEY).problem
        watched.serve(kinds.COSCHEDULING_GROUPS)
        await asyncio.sleep(2)
        assert "create it" in watched.find(KEY).problem
        watched.changed.clear()
        watched.add(kinds.COSCHEDULING_GROUPS, {"minMember": 4})
        await asyncio.sleep(2)
        assert watched.changed == [KEY]
        assert watched.find(KEY) == GroupStanding(4)


async def test_groups_that_pods_name_no_more_are_not_remembered(watched: WatchedGroups) -> None:
    async with watched.watching():
        watched.find(KEY._replace(name="gone"))
        watched.find(KEY._replace(name="other"))
        watched.serve(kinds.COSCHEDULING_GROUPS)
        await asyncio.sleep(2)
        assert {key.name for key in watched.changed} == {"other"}


@pytest.mark.parametrize("kind", kinds.NATIVE_GROUPS, ids=lambda kind: kind.version)
async def test_kubernetes_own_groups_are_read_in_the_version_that_is_served(
    watched: WatchedGroups, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "ALL", (*resources.ALL, kind))
    monkeypatch.setitem(requests._KINDS, (kind.group, kind.version, kind.plural), kind)
    async with watched.watching():
        watched.find(NATIVE)
        await asyncio.sleep(2)
        assert "create it" in watched.find(NATIVE).problem
        watched.add(kind, {"schedulingPolicy": {"gang": {"minCount": 3}}})
        await asyncio.sleep(2)
        assert watched.find(NATIVE) == GroupStanding(3)


async def test_a_cluster_without_kubernetes_own_groups_is_told(watched: WatchedGroups) -> None:
    async with watched.watching():
        watched.find(NATIVE)
        await asyncio.sleep(2)
        assert "serves none of scheduling.k8s.io" in watched.find(NATIVE).problem
        assert watched.changed == [NATIVE]
        await asyncio.sleep(600)
        assert watched.changed == [NATIVE]  # and nobody again while that is so


async def test_what_users_write_at_length_into_a_group_is_not_kept(watched: WatchedGroups) -> None:
    async with watched.watching():
        watched.serve(kinds.COSCHEDULING_GROUPS)
        long = {"minResources": {f"example.com/{number}": "1" for number in range(1000)}}
        watched.add(kinds.COSCHEDULING_GROUPS, {"minMember": 3, **long})
        watched.find(KEY)
        await asyncio.sleep(2)
        assert watched.find(KEY) == GroupStanding(3)
        found = watched.groups.get(KEY)
        assert found is not None
        assert found[1]["spec"] == {"minMember": 3}
        assert found[1]["status"] == {"conditions": []}


async def test_that_groups_are_served_is_told_of_thousands_in_slices(clock: Clock) -> None:
    watched = WatchedGroups(WorkingClock(clock))

    def tell(key: GangKey) -> None:
        end = time.thread_time() + 0.001
        while time.thread_time() < end:
            pass

        watched.changed.append(key)

    async with supervise() as tasks:
        names = [GangKey(GroupApi.VOLCANO, "default", f"g{number}") for number in range(100)]
        watched.groups.watch(
            tasks.keyed(), tell, lambda api: names if api is GroupApi.VOLCANO else ()
        )
        with computing.steps() as took:
            watched.groups.find(names[0])
            await asyncio.sleep(2)

        tasks.stop()

    assert set(watched.changed) == set(names)
    assert max(took) < 0.03
