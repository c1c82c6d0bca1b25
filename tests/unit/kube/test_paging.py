"""Lists are read in pages that fit."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from aiohttp import web

from tests import answering
from tests.answering import Answer
from tests.apiserver.server import APIServer
from vnode.api import kinds, objects
from vnode.api.errors import TooLarge, Unreachable
from vnode.kube import answer_limits, paging
from vnode.kube.answer_limits import AnswerLimit
from vnode.kube.client import Client

KIB = 1024


def server(answer: Answer) -> AbstractAsyncContextManager[Client]:
    """Return a client of a server that answers everything so."""
    return answering.client(answer, "hostile")


async def test_a_list_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "MOST_PAGES", 3)

    async def page(_request: web.Request) -> web.Response:
        metadata = {"continue": "more"}
        return web.json_response({"kind": "PodList", "metadata": metadata, "items": []})

    async with server(page) as client:
        with pytest.raises(Unreachable, match="has no end"):
            await client.list(kinds.PODS)


@pytest.mark.parametrize(
    ("limit", "message"),
    [(AnswerLimit(1_000_000, 10**9), "1000000 bytes"), (AnswerLimit(10**9, 2000), "2000 values")],
)
async def test_all_pages_of_a_list_have_one_bound(limit: AnswerLimit, message: str) -> None:
    async def page(_request: web.Request) -> web.Response:
        metadata = {"continue": "more"}
        items = [{"metadata": {"name": "x" * 1000}}] * 500
        return web.json_response({"kind": "PodList", "metadata": metadata, "items": items})

    async with server(page) as client:
        with pytest.raises(TooLarge, match=f"hostile: a list of pods has more than {message}"):
            await client.list_at(kinds.PODS, limit=limit)


class Asked:
    """The limits of list requests that a server in memory was asked for."""

    def __init__(self, client: Client) -> None:
        self.limits: list[int] = []
        self._payload = client.payload

    async def payload(self, path: str, *, query: Any, **options: Any) -> bytes:
        self.limits.append(int(query["limit"]))
        return await self._payload(path, query=query, **options)


async def list_of(
    sizes: list[int], clock: Any, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[str], list[int]]:
    """List ConfigMaps of those sizes; return their names, and the limits of the requests."""
    api = APIServer("c1", clock)
    client = api.client()
    for number, size in enumerate(sizes):
        metadata = {"name": f"m{number:04}", "namespace": "default"}
        await client.create(kinds.CONFIG_MAPS, {"metadata": metadata, "data": {"a": "x" * size}})

    asked = Asked(client)
    monkeypatch.setattr(client, "payload", asked.payload)
    return [objects.name(obj) for obj in await client.list(kinds.CONFIG_MAPS)], asked.limits


@pytest.mark.looptime
async def test_a_page_that_is_too_large_is_asked_for_with_fewer_objects(clock, monkeypatch):
    """40 ConfigMaps of 1 MiB are an honest list."""
    monkeypatch.setattr(answer_limits, "PAGE", AnswerLimit(16 * KIB, 500_000))
    names, limits = await list_of([1000] * 40, clock, monkeypatch)
    assert names == [f"m{number:04}" for number in range(40)]
    assert limits[:4] == [500, 125, 31, 7]
    assert max(limits[4:]) < 31


@pytest.mark.looptime
async def test_a_page_of_too_many_values_is_asked_for_with_fewer_objects(clock, monkeypatch):
    monkeypatch.setattr(answer_limits, "PAGE", AnswerLimit(10**9, 200))
    names, _limits = await list_of([1] * 40, clock, monkeypatch)
    assert names == [f"m{number:04}" for number in range(40)]


@pytest.mark.looptime
async def test_after_small_pages_they_become_larger_again(clock, monkeypatch):
    monkeypatch.setattr(answer_limits, "PAGE", AnswerLimit(16 * KIB, 500_000))
    _names, limits = await list_of([12_000] * 3 + [1] * 400, clock, monkeypatch)
    assert limits[:5] == [500, 125, 31, 7, 1]
    assert limits[7:12] == [1, 2, 4, 8, 16]


async def test_metrics_are_asked_for_once() -> None:
    """metrics-server does not know pages."""
    asked = 0

    async def answer(_request: web.Request) -> web.Response:
        nonlocal asked
        asked += 1
        return web.Response(body=b" " * (answer_limits.METRICS.size + 1))

    async with server(answer) as client:
        with pytest.raises(TooLarge):
            await client.list(kinds.POD_METRICS)

    assert asked == 1
