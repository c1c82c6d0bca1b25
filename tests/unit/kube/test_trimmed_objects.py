"""What is stored of objects: they are trimmed as soon as they are read, once."""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import Any

import pytest

from tests import background
from tests.apiserver.server import APIServer
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Gone
from vnode.api.objects import Object
from vnode.kube import decoding
from vnode.kube.client import Client
from vnode.kube.informer import Informer

pytestmark = pytest.mark.looptime

COUNT = 1200  # three pages
MIB = 1024 * 1024


def config_map(number: int, **more: Any) -> Object:
    metadata = {"name": f"c{number}", "namespace": "a", "managedFields": [{"manager": "me"}]}
    return {"metadata": metadata, "data": {"text": "x"}, **more}


class Trimming:
    """Replaces the data of objects by how often they were trimmed."""

    def __init__(self) -> None:
        self.count = 0

    def trim(self, obj: Object) -> Object:
        self.count += 1
        return {"metadata": obj["metadata"], "times": obj.get("times", 0) + 1}


@pytest.fixture
async def server(clock: Clock) -> APIServer:
    return APIServer("c1", clock)


def seen(client: Client, trimming: Trimming, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many objects were trimmed before each page of a list was asked for."""
    counts, payload = list[int](), client.payload

    async def asked(path: str, **options: Any) -> bytes:
        if len(counts) == 3:
            raise Gone(410, "Expired", "")

        counts.append(trimming.count)
        return await payload(path, **options)

    monkeypatch.setattr(client, "payload", asked)
    return counts


async def test_the_objects_of_a_page_are_trimmed_before_the_next_one_is_asked_for(
    server: APIServer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(COUNT):
        server.add(kinds.CONFIG_MAPS, config_map(number))

    client, trimming = server.client(), Trimming()
    counts = seen(client, trimming, monkeypatch)
    informer = Informer(client, kinds.CONFIG_MAPS, trim=trimming.trim, clock=clock)
    async with background.running(informer.run()):
        await informer.synced.wait()

    assert counts == [0, 500, 1000]
    assert len(informer.store) == COUNT
    assert all(obj["times"] == 1 for obj in informer.store.values())


async def test_a_list_that_fails_after_some_pages_changes_nothing(
    server: APIServer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, trimming = server.client(), Trimming()
    informer = Informer(client, kinds.CONFIG_MAPS, trim=trimming.trim, clock=clock)
    changes = list[str]()
    informer.subscribe_by_key(changes.append)
    for number in range(3 * COUNT):
        server.add(kinds.CONFIG_MAPS, config_map(number))

    seen(client, trimming, monkeypatch)
    async with background.running(informer.run()):
        await asyncio.sleep(0.1)

    assert trimming.count == 1500
    assert isinstance(informer.failure, Gone)
    assert not changes
    assert not informer.store


async def test_an_object_is_trimmed_once_whichever_way_it_comes_and_goes(
    server: APIServer, clock: Clock
) -> None:
    client, trimming = server.client(), Trimming()
    server.add(kinds.CONFIG_MAPS, config_map(0))
    informer = Informer(client, kinds.CONFIG_MAPS, trim=trimming.trim, clock=clock)
    last = list[Object]()
    informer.subscribe(lambda old, new: last.append(objects.latest(old, new)))
    async with background.running(informer.run()):
        await informer.synced.wait()
        server.add(kinds.CONFIG_MAPS, config_map(1))
        await asyncio.sleep(1)
        await client.delete(kinds.CONFIG_MAPS, "c1", "a")
        await asyncio.sleep(1)

    assert [objects.name(obj) for obj in last] == ["c0", "c1", "c1"]
    assert [obj["times"] for obj in last] == [1, 1, 1]
    assert not any("managedFields" in obj["metadata"] for obj in last)


async def test_a_list_takes_no_more_memory_than_what_is_kept_of_it(
    server: APIServer, clock: Clock
) -> None:
    for number in range(500):
        data = {f"key-{n}": f"{number}-{n}" for n in range(100)}
        server.add(kinds.CONFIG_MAPS, config_map(number, data=data))

    async def peak(kept: decoding.Kept) -> int:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        items, _version = await server.client().list_at(kinds.CONFIG_MAPS, kept=kept)
        assert len(items) == 500
        return tracemalloc.get_traced_memory()[1] - before

    tracemalloc.start()
    try:
        whole = await peak(decoding.whole)
        trimmed = await peak(Trimming().trim)
    finally:
        tracemalloc.stop()

    assert trimmed < whole - 4 * MIB
