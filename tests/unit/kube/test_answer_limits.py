"""What a server sends is bounded by what was asked for, before it is decoded."""

from __future__ import annotations

import asyncio
import itertools
import json
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

import pytest
from aiohttp import web

from tests import answering
from tests.answering import Answer
from vnode.api import kinds
from vnode.api.errors import ApiError, Gone, NotFound, TooLarge, Unreachable
from vnode.api.kinds import Kind
from vnode.kube import answer_limits, watching
from vnode.kube.answer_limits import AnswerLimit
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.kube.watching import ListOptions

MIB = 1024 * 1024


def server(answer: Answer) -> AbstractAsyncContextManager[Client]:
    """Return a client of a server that answers everything so."""
    return answering.client(answer, "hostile")


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    try:
        while True:
            await response.write(b" " * 60_000)
    except ConnectionError:
        return response


@pytest.mark.parametrize(
    ("kind", "limit"), [(kinds.CLUSTER_SUMMARIES, MIB), (kinds.LEASES, MIB), (kinds.PODS, 10 * MIB)]
)
async def test_an_object_without_an_end_is_cut_at_what_its_kind_needs(
    kind: Kind, limit: int
) -> None:
    async with server(endless) as client:
        with pytest.raises(TooLarge, match=f"hostile: the answer has more than {limit} bytes"):
            await client.get(kind, "x", "default")


async def test_a_text_without_an_end_is_cut() -> None:
    async with server(endless) as client:
        with pytest.raises(TooLarge, match="more than 100000 bytes"):
            await client.text("/metrics", limit=100_000)


async def test_a_compressed_answer_is_measured_as_it_unfolds() -> None:
    async def unfold(_request: web.Request) -> web.Response:
        response = web.Response(body=b" " * 10_000_000)
        response.enable_compression(web.ContentCoding.gzip)
        return response

    async with server(unfold) as client:
        with pytest.raises(TooLarge, match=f"more than {MIB} bytes"):
            await client.get(kinds.CLUSTER_SUMMARIES, "singleton")


async def test_only_gzip_is_asked_for() -> None:
    """As API servers have no other; each decompressor is one more that a target could attack."""
    asked = []

    async def note(request: web.Request) -> web.Response:
        asked.append(request.headers["Accept-Encoding"])
        return web.json_response({"metadata": {}})

    async with server(note) as client:
        await client.get(kinds.PODS, "x", "default")

    assert asked == ["gzip"]


async def test_no_cookie_is_kept() -> None:
    """A target could fill the memory with them, a few kB for each answer.

    By a name, since those of bare addresses are not kept anyway.
    """
    received = []

    async def spread(request: web.Request) -> web.Response:
        received.append(len(request.cookies))
        response = web.json_response({"metadata": {}})
        response.set_cookie("a", "b")
        return response

    async with answering.endpoint(spread) as where:
        named = replace(where, url=where.url.replace("127.0.0.1", "localhost"))
        async with Client(named, name="hostile") as client:
            await client.get(kinds.PODS, "x", "default")
            await client.get(kinds.PODS, "x", "default")

    assert received == [0, 0]


BOMB = b'{"kind": "Status", "metadata": {"a": [' + b"{}," * 250_000 + b"{}]}}"


def bomb(_request: web.Request) -> web.Response:
    response = web.Response(body=BOMB, content_type="application/json")
    response.enable_compression(web.ContentCoding.gzip)
    return response


async def test_a_few_bytes_do_not_become_millions_of_values() -> None:
    """Of 25 kB compressed there were hundreds of MiB once they were decoded."""

    async def answer(request: web.Request) -> web.Response:
        return bomb(request)

    async with server(answer) as client:
        with pytest.raises(TooLarge, match="more than 10000 values"):
            await client.get(kinds.CLUSTER_SUMMARIES, "singleton")

        with pytest.raises(TooLarge, match="more than 200000 values"):
            await client.get(kinds.PODS, "x", "default")

        with pytest.raises(TooLarge, match="more than 500000 values"):
            await client.list(kinds.PODS)


async def test_an_error_without_an_end_is_the_error_that_it_is() -> None:
    async def refuse(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=404)
        await response.prepare(request)
        try:
            while True:
                await response.write(b" " * 60_000)
        except ConnectionError:
            return response

    async with server(refuse) as client:
        with pytest.raises(NotFound, match="no Kubernetes Status"):
            await client.get(kinds.PODS, "x", "default")

        with pytest.raises(NotFound, match="no Kubernetes Status"):
            async with client.stream("GET", "/log", query={}, silence=5):
                pass


async def test_an_error_of_many_values_is_not_decoded() -> None:
    async def answer(request: web.Request) -> web.Response:
        response = bomb(request)
        response.set_status(403)
        return response

    async with server(answer) as client:
        with pytest.raises(ApiError, match="no Kubernetes Status"):
            await client.get(kinds.PODS, "x", "default")


@pytest.mark.parametrize(
    "limit", [AnswerLimit(100_000, 10**9), AnswerLimit(10**9, 600)], ids=["bytes", "values"]
)
async def test_a_flood_of_events_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, limit: AnswerLimit
) -> None:
    """Whoever sends more than what is kept is asked for a list again, which has its own bound."""
    monkeypatch.setattr(answer_limits, "LIST", limit)
    lists = 0
    listed_again = asyncio.Event()
    most = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal lists
        if "watch" not in request.query:
            lists += 1
            if lists == 3:
                listed_again.set()

            metadata = {"resourceVersion": "5"}
            return web.json_response({"kind": "PodList", "metadata": metadata, "items": []})

        response = web.StreamResponse()
        await response.prepare(request)
        try:
            for number in itertools.count():
                pod = {"metadata": {"name": f"p{number}", "namespace": "x" * 1000}}
                event = {"type": "ADDED", "object": pod}
                await response.write(json.dumps(event).encode() + b"\n")
        except ConnectionError:
            pass

        return response

    def count(_old: object, _new: object) -> None:
        nonlocal most
        most = max(most, len(informer.store))

    async with server(answer) as client:
        informer = Informer(client, kinds.PODS, accept=lambda _obj: True)
        informer.subscribe(count)
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            running = group.create_task(informer.run())
            await listed_again.wait()
            running.cancel()

    assert 0 < most < 200


@pytest.mark.parametrize(
    "line",
    [
        b'"a string"',
        b'{"type": "ADDED", "object": 5}',
        b'{"type": "ERROR", "object": {"code": "x"}}',
        b'{"type": "ADDED", "object": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001,
        b"x" * 9_000_000,
        b'{"type": "ADDED", "object": {"metadata": {"a": [' + b"0," * 450_000 + b"0]}}}",
        b'{"type": "ADDED", "object": {"kind": "\xff"}}',
        b'{"type": "BOOKMARK", "object": {"metadata": ["7"]}}',
        b'{"type": "BOOKMARK", "object": {"metadata": "7"}}',
        b'{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": {"a": 1}}}}',
    ],
    ids=[
        *("string", "no object", "bad code", "deep", "long", "many"),
        *("no UTF-8", "list", "no metadata", "bad version"),
    ],
)
async def test_nonsense_on_a_watch_ends_it(line: bytes) -> None:
    async def watch(_request: web.Request) -> web.Response:
        return web.Response(body=line + b"\n")

    async with server(watch) as client:
        with pytest.raises((Unreachable, ApiError)):
            async for _batch in watching.stream(client, ListOptions(kinds.PODS), "1"):
                pass


async def test_an_event_is_bounded_as_its_object_is() -> None:
    async def watch(_request: web.Request) -> web.Response:
        event = {"type": "ADDED", "object": {"metadata": {"name": "x" * 2 * MIB}}}
        return web.json_response(event)

    async def names(kind: Kind) -> list[str]:
        stream = watching.stream(client, ListOptions(kind), "1")
        return [event.object["metadata"]["name"] async for batch in stream for event in batch]

    async with server(watch) as client:
        assert await names(kinds.PODS) == []  # the line has no end
        with pytest.raises(Gone, match=f"a line of more than {MIB} bytes"):
            await names(kinds.CLUSTER_SUMMARIES)
