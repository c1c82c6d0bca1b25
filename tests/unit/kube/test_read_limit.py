"""A target that sends without end is read at a bounded pace, and no other one waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.apiserver import links
from tests.apiserver.server import APIServer
from vnode.api import kinds
from vnode.api.clock import Clock
from vnode.api.errors import Gone
from vnode.kube import read_limit
from vnode.kube.informer import Informer

pytestmark = pytest.mark.looptime

RATE, BURST = 50.0, 200.0


@pytest.fixture(autouse=True)
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_limit, "RATE", RATE)
    monkeypatch.setattr(read_limit, "BURST", BURST)
    monkeypatch.setattr(read_limit, "LIST", 100.0)


class Read:
    """A server with one ConfigMap, which changes, and an informer of it."""

    def __init__(self, name: str, clock: Clock, *, honest: bool = False) -> None:
        self.server = APIServer(name, clock)
        self.server.add(kinds.NAMESPACES, {"metadata": {"name": "ns"}})
        self.server.add(kinds.CONFIG_MAPS, {"metadata": {"namespace": "ns", "name": "a"}})
        self.informer = Informer(
            self.server.client(),
            kinds.CONFIG_MAPS,
            accept=None if honest else lambda _obj: True,
            clock=clock,
        )
        self.seen = 0
        self.informer.subscribe(self._on_event)

    def _on_event(self, _old: object, _new: object) -> None:
        self.seen += 1

    def change(self, number: int, size: int = 0) -> None:
        def do(obj: dict[str, object]) -> None:
            obj["data"] = {"number": str(number), "more": "x" * size}

        self.server.change(kinds.CONFIG_MAPS, "a", "ns", do)

    @property
    def number(self) -> int:
        return int((self.informer.store.get("ns/a") or {})["data"]["number"])


@asynccontextmanager
async def reading(*each: Read) -> AsyncIterator[None]:
    async with links.following(*(read.informer for read in each)):
        await asyncio.sleep(0.1)
        yield


async def flood(read: Read, count: int, size: int = 0) -> None:
    for number in range(count):
        read.change(number, size)
        await asyncio.sleep(0.002)


async def test_events_without_end_are_read_at_a_bounded_pace_down_to_the_last(clock: Clock) -> None:
    read = Read("loud", clock)
    async with reading(read):
        await flood(read, 1000)  # in two seconds
        assert read.seen <= BURST + 3 * RATE
        await asyncio.sleep(1000 / RATE)
        assert read.number == 999


async def test_large_events_count_for_more(clock: Clock) -> None:
    read = Read("loud", clock)
    async with reading(read):
        await flood(read, 100, 10 * read_limit.UNIT)
        assert read.seen <= (BURST + 3 * RATE) / 10
        await asyncio.sleep(11 * 100 / RATE)
        assert read.number == 99


async def test_another_target_is_read_at_once_meanwhile_and_so_is_the_own_cluster(
    clock: Clock,
) -> None:
    loud, calm, own = Read("loud", clock), Read("calm", clock), Read("own", clock, honest=True)
    async with reading(loud, calm, own):
        flooding = [asyncio.create_task(flood(read, 1000)) for read in (loud, own)]
        for number in range(10):
            await asyncio.sleep(0.15)
            calm.change(number)
            await asyncio.sleep(0.01)
            assert calm.number == number

        for task in flooding:
            await task

        await asyncio.sleep(0.01)
        assert own.number == 999
        assert loud.number < 500


async def test_watches_that_end_after_each_event_are_begun_at_a_bounded_pace(clock: Clock) -> None:
    read = Read("loud", clock)
    async with reading(read):
        for number in range(2000):
            read.change(number)
            read.server.end_watches()
            await asyncio.sleep(0.01)

        assert read.server.count("watch") <= (BURST + 20 * RATE) / read_limit.WATCH


async def test_lists_that_expire_at_once_are_made_at_a_bounded_pace(clock: Clock) -> None:
    """Each time with a watch between them, which looks like a server that is well."""
    read = Read("loud", clock)
    async with reading(read):
        read.server.fail(
            Gone(410, "Expired", "too old"),
            verb="watch",
            when=lambda _request: read.server.count("watch") % 2 == 0,
            times=None,
        )
        for number in range(2000):
            read.change(number)
            read.server.end_watches()
            await asyncio.sleep(0.01)

        assert 5 < read.server.count("list") <= (BURST + 20 * RATE) / read_limit.LIST + 1
