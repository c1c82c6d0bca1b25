"""Objects of a kind that others install are known while it is served, and go with it undeleted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.apiserver.server import APIServer
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Denied, Unreachable
from vnode.api.objects import Object
from vnode.runtime.served_informer import ServedInformer
from vnode.runtime.supervisor import supervise

pytestmark = pytest.mark.looptime

KIND = kinds.CLUSTER_PROFILES
DENIED = Denied(403, "Forbidden", "not yours")


class ServedProfiles:
    """A server with a namespace of profiles, whose kind may be served, and an informer of these."""

    def __init__(self, clock: Clock) -> None:
        self.server = APIServer("hub", clock)
        self.server.add(kinds.NAMESPACES, {"metadata": {"name": "fleet"}})
        self.changes: list[tuple[str, str]] = []
        self.informer = ServedInformer(self.server.client(), KIND, self._changed)

    def _changed(self, old: Object | None, new: Object | None) -> None:
        self.changes.append((objects.name(old or {}), objects.name(new or {})))

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        async with supervise() as tasks:
            self.informer.watch(tasks.keyed())
            await asyncio.sleep(2)
            yield
            tasks.stop()

    def serve(self, version: str = KIND.version) -> None:
        self.server.add(
            kinds.CRDS,
            {
                "metadata": {"name": KIND.resource},
                "spec": {"versions": [{"name": version, "served": True}]},
                "status": {"conditions": [{"type": "Established", "status": "True"}]},
            },
        )

    def add(self, name: str) -> None:
        self.server.add(KIND, {"metadata": {"name": name, "namespace": "fleet"}})

    @property
    def names(self) -> list[str]:
        return sorted(map(objects.name, self.informer.values()))


async def test_a_kind_that_is_not_served_is_known_to_have_no_objects(clock: Clock) -> None:
    profiles = ServedProfiles(clock)
    async with profiles.watching():
        assert profiles.informer.is_known
        assert not profiles.informer.is_served
        assert profiles.names == []
        assert set(profiles.changes) == {("", "")}
        assert profiles.server.count("list", KIND) == 0


async def test_a_kind_that_comes_later_is_noticed_with_its_objects(clock: Clock) -> None:
    profiles = ServedProfiles(clock)
    profiles.add("berlin")
    async with profiles.watching():
        profiles.serve()
        await asyncio.sleep(2)
        assert profiles.informer.is_known
        assert profiles.informer.is_served
        assert profiles.names == ["berlin"]
        assert profiles.informer.get("fleet/berlin") is not None
        assert profiles.informer.get("fleet/paris") is None


async def test_another_version_of_the_kind_is_none(clock: Clock) -> None:
    profiles = ServedProfiles(clock)
    profiles.serve("v9")
    async with profiles.watching():
        assert profiles.informer.is_known
        assert not profiles.informer.is_served


async def test_objects_are_told_one_by_one_once_all_are_known(clock: Clock) -> None:
    profiles = ServedProfiles(clock)
    profiles.serve()
    profiles.add("berlin")
    async with profiles.watching():
        assert set(profiles.changes) == {("", "")}
        profiles.changes.clear()
        profiles.add("paris")
        await asyncio.sleep(1)
        profiles.server.remove(KIND, "berlin", "fleet")
        await asyncio.sleep(1)
        assert profiles.changes == [("", "paris"), ("berlin", "")]


async def test_objects_that_go_with_their_kind_were_not_deleted(clock: Clock) -> None:
    profiles = ServedProfiles(clock)
    profiles.serve()
    profiles.add("berlin")
    profiles.add("paris")
    async with profiles.watching():
        profiles.server.remove(KIND, "berlin", "fleet")
        assert await profiles.informer.is_deleted("fleet/berlin")
        assert not await profiles.informer.is_deleted("fleet/paris")
        profiles.server.remove(kinds.CRDS, KIND.resource)
        assert not await profiles.informer.is_deleted("fleet/berlin")
        await asyncio.sleep(1)
        assert not profiles.informer.is_served
        assert profiles.names == []


async def test_it_is_said_why_objects_are_not_known(clock: Clock) -> None:
    profiles = ServedProfiles(clock)
    profiles.server.fail(DENIED, kind=kinds.CRDS, times=None)
    async with profiles.watching():
        assert profiles.informer.failure is DENIED
        assert not profiles.informer.is_known
        assert set(profiles.changes) == {("", "")}


async def test_objects_that_may_not_be_read_are_not_known(clock: Clock) -> None:
    profiles = ServedProfiles(clock)
    profiles.serve()
    profiles.server.fail(DENIED, kind=KIND, times=None)
    async with profiles.watching():
        assert profiles.informer.failure is DENIED
        assert profiles.informer.is_served
        assert not profiles.informer.is_known


async def test_a_fault_that_passes_is_none_once_objects_are_known(clock: Clock) -> None:
    profiles = ServedProfiles(clock)
    profiles.serve()
    async with profiles.watching():
        profiles.server.fail(Unreachable("no answer"), kind=KIND, times=None)
        profiles.server.end_watches(KIND)
        await asyncio.sleep(1)
        assert profiles.informer.failure is None
        assert profiles.informer.is_known
