"""Informers before a real API server, with a relay between them that can cut and refuse."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests import kit
from vnode.api import kinds, objects
from vnode.api.errors import Gone, Unreachable
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.telemetry import metrics


class Cuttable:
    """An answer that reads like the response behind it, until it is ended."""

    def __init__(self, response: Any) -> None:
        self.content = self
        self.connection = response.connection
        self._response = response
        self._end: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def end(self, error: Exception | None = None) -> None:
        if not self._end.done():
            if error:
                self._end.set_exception(error)
            else:
                self._end.set_result(None)

    async def iter_any(self) -> AsyncIterator[bytes]:
        while True:
            chunk = asyncio.ensure_future(self._response.content.readany())
            try:
                await asyncio.wait({chunk, self._end}, return_when=asyncio.FIRST_COMPLETED)
                if not chunk.done():
                    self._end.result()
                    return

                if not chunk.result():
                    return

                yield chunk.result()
            finally:
                chunk.cancel()


class Unreliable(Client):
    """A client whose watches can be ended early, and whose lists can fail."""

    def __init__(self, endpoint: Any, *, name: str) -> None:
        super().__init__(endpoint, name=name)
        self.lists = 0
        self.watches = 0
        self.refuse: Exception | None = None
        self.expire = False
        self.watching = asyncio.Event()
        self._open: set[Cuttable] = set()

    async def list_at(self, *words: Any, **options: Any) -> tuple[list[Object], str]:
        self.lists += 1
        if self.refuse:
            raise self.refuse

        return await super().list_at(*words, **options)

    @asynccontextmanager
    async def stream(self, *words: Any, **options: Any) -> AsyncIterator[Any]:
        if self.refuse:
            raise self.refuse

        self.watches += 1
        if self.expire:
            self.expire = False
            raise Gone(410, "Expired", "too old resource version")

        async with super().stream(*words, **options) as response:
            answer = Cuttable(response)
            self._open.add(answer)
            self.watching.set()
            try:
                yield answer
            finally:
                self._open.discard(answer)

    def end_cleanly(self) -> None:
        """End each answer as a busy API server does: as a whole one."""
        for answer in self._open:
            answer.end()

    def cut(self) -> None:
        for answer in self._open:
            answer.end(ConnectionResetError("cut"))


class Heard:
    """What a subscriber was told; `until` waits for it."""

    def __init__(self) -> None:
        self.changes: list[tuple[str, str]] = []
        self._news = asyncio.Event()

    def __call__(self, old: Object | None, new: Object | None) -> None:
        verb = "changed" if old and new else "added" if new else "removed"
        self.changes.append((verb, objects.name(new or old or {})))
        self._news.set()

    async def until(self, verb: str, name: str) -> None:
        async with asyncio.timeout(kit.PATIENCE):
            while (verb, name) not in self.changes:
                self._news.clear()
                await self._news.wait()


@pytest.fixture
async def shaky(client: Client, request: pytest.FixtureRequest) -> AsyncIterator[Unreliable]:
    async with Unreliable(client.endpoint, name=request.node.name) as shaky:
        yield shaky


def config_map(name: str, **data: str) -> Object:
    return {"metadata": {"name": name, "labels": {"kept": "yes"}}, "data": data}


@asynccontextmanager
async def informed(client: Unreliable, namespace: str) -> AsyncIterator[tuple[Informer, Heard]]:
    informer = Informer(client, kinds.CONFIG_MAPS, namespace=namespace, label_selector="kept=yes")
    heard = Heard()
    informer.subscribe(heard)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(informer.run())
        try:
            async with asyncio.timeout(kit.PATIENCE):
                await informer.synced.wait()
                await client.watching.wait()

            yield informer, heard
        finally:
            task.cancel()


async def create(client: Client, namespace: str, *names: str) -> None:
    for name in names:
        await client.create(kinds.CONFIG_MAPS, config_map(name), namespace)


async def test_a_store_follows_creation_change_and_deletion(
    client: Client, shaky: Unreliable, namespace: str
) -> None:
    await create(client, namespace, "old")
    async with informed(shaky, namespace) as (informer, heard):
        assert set(informer.store) == {f"{namespace}/old"}
        await create(client, namespace, "new")
        await heard.until("added", "new")
        await client.patch(kinds.CONFIG_MAPS, "new", {"data": {"a": "1"}}, namespace)
        await heard.until("changed", "new")
        stored = informer.store.get(f"{namespace}/new") or {}
        assert stored["data"] == {"a": "1"}
        assert "managedFields" not in stored["metadata"]
        await client.delete(kinds.CONFIG_MAPS, "old", namespace)
        await heard.until("removed", "old")
        assert set(informer.store) == {f"{namespace}/new"}

    assert shaky.lists == 1


async def test_an_object_that_leaves_the_selection_leaves_the_store(
    client: Client, shaky: Unreliable, namespace: str
) -> None:
    await create(client, namespace, "a")
    async with informed(shaky, namespace) as (informer, heard):
        body = {"metadata": {"labels": {"kept": None}}}
        await client.patch(kinds.CONFIG_MAPS, "a", body, namespace)
        await heard.until("removed", "a")
        assert len(informer.store) == 0


async def test_a_watch_that_ends_early_is_resumed_without_a_list(
    client: Client, shaky: Unreliable, namespace: str
) -> None:
    async with informed(shaky, namespace) as (informer, heard):
        for number in range(6):
            await create(client, namespace, f"n{number}")
            await heard.until("added", f"n{number}")
            shaky.end_cleanly()

        await create(client, namespace, "last")
        await heard.until("added", "last")
        assert len(informer.store) == 7
        assert informer.failure is None

    assert shaky.lists == 1
    assert shaky.watches >= 7
    assert len(heard.changes) == 7


async def test_a_watch_that_is_cut_is_resumed_without_a_list(
    client: Client, shaky: Unreliable, namespace: str
) -> None:
    async with informed(shaky, namespace) as (_informer, heard):
        await create(client, namespace, "a")
        await heard.until("added", "a")
        shaky.cut()
        await create(client, namespace, "b")
        await heard.until("added", "b")

    assert shaky.lists == 1
    assert heard.changes == [("added", "a"), ("added", "b")]


async def test_an_expired_version_leads_to_a_new_list_that_shows_what_was_missed(
    client: Client, shaky: Unreliable, namespace: str
) -> None:
    await create(client, namespace, "stays", "goes")
    async with informed(shaky, namespace) as (informer, heard):
        shaky.refuse = Unreachable("away")
        shaky.cut()
        await client.delete(kinds.CONFIG_MAPS, "goes", namespace)
        await create(client, namespace, "comes")
        shaky.refuse = None
        shaky.expire = True
        informer.retry_now()
        await heard.until("removed", "goes")
        await heard.until("added", "comes")
        assert set(informer.store) == {f"{namespace}/stays", f"{namespace}/comes"}
        assert ("removed", "stays") not in heard.changes

    assert shaky.lists == 2


async def test_a_failed_list_removes_nothing(
    client: Client, shaky: Unreliable, namespace: str
) -> None:
    await create(client, namespace, "a", "b")
    async with informed(shaky, namespace) as (informer, heard):
        shaky.refuse = Gone(410, "Expired", "too old resource version")
        shaky.cut()
        lists = shaky.lists
        async with asyncio.timeout(kit.PATIENCE):
            while shaky.lists < lists + 2:
                informer.retry_now()
                await asyncio.sleep(0.01)

        assert len(informer.store) == 2
        assert not [change for change in heard.changes if change[0] == "removed"]
        shaky.refuse = None
        informer.retry_now()
        await create(client, namespace, "c")
        await heard.until("added", "c")
        assert len(informer.store) == 3


async def test_an_object_made_again_meanwhile_is_first_removed_then_added(
    client: Client, shaky: Unreliable, namespace: str
) -> None:
    await create(client, namespace, "a")
    async with informed(shaky, namespace) as (_informer, heard):
        shaky.refuse = Unreachable("away")
        shaky.cut()
        await client.delete(kinds.CONFIG_MAPS, "a", namespace)
        await create(client, namespace, "a")
        shaky.refuse = None
        await heard.until("removed", "a")
        assert [verb for verb, _name in heard.changes[-2:]] == ["removed", "added"]


async def test_large_objects_pass_through_a_watch(
    client: Client, shaky: Unreliable, namespace: str
) -> None:
    async with informed(shaky, namespace) as (informer, heard):
        await client.create(kinds.CONFIG_MAPS, config_map("big", text="x" * 900_000), namespace)
        await heard.until("added", "big")
        stored = informer.store.get(f"{namespace}/big") or {}
        assert len(stored["data"]["text"]) == 900_000


async def test_lists_are_read_in_pages(
    client: Client, shaky: Unreliable, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vnode.kube.paging.PAGE", 2)
    await create(client, namespace, *(f"n{number}" for number in range(5)))
    async with informed(shaky, namespace) as (informer, _heard):
        assert len(informer.store) == 5


async def test_the_reasons_for_which_watches_end_are_counted(
    client: Client, shaky: Unreliable, namespace: str
) -> None:
    async with informed(shaky, namespace) as (_informer, heard):
        await create(client, namespace, "a")
        await heard.until("added", "a")
        shaky.end_cleanly()
        await create(client, namespace, "b")
        await heard.until("added", "b")

    labels = {"api_server": shaky.name, "resource": "configmaps", "why": "clean"}
    counted = metrics.REGISTRY.get_sample_value("vnode_watch_ends_total", labels)
    assert counted == 1
