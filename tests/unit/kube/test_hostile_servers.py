"""The API server of a target may be anybody's: what it answers is bounded and not believed."""

from __future__ import annotations

import asyncio
import itertools
import json
import ssl
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from aiohttp import web

from tests import answering
from tests.answering import Answer
from vnode.api import kinds
from vnode.api.errors import ApiError, Unreachable
from vnode.api.objects import Object
from vnode.kube import answers, watching, websockets
from vnode.kube import client as clients
from vnode.kube import informer as informers
from vnode.kube.client import Client
from vnode.kube.credentials import Constant
from vnode.kube.endpoint import Endpoint
from vnode.kube.informer import Informer
from vnode.kube.watching import ListOptions


def server(answer: Answer) -> AbstractAsyncContextManager[Client]:
    """A client of a server that answers everything so."""
    return answering.client(answer, "hostile")


async def test_a_redirect_is_not_followed() -> None:
    """It could lead to a server that only the agent can reach."""
    paths = []

    async def redirect(request: web.Request) -> web.Response:
        paths.append(request.path)
        raise web.HTTPFound("/elsewhere")

    async with server(redirect) as client:
        with pytest.raises(ApiError, match="302"):
            await client.get(kinds.PODS, "x", "default")

        with pytest.raises(ApiError, match="302"):
            async with client.stream("GET", "/api/v1/pods", query={}, silence=5):
                pass

        with pytest.raises(ApiError, match="302"):
            async with websockets.connect(client, "/exec", [], "v4.channel.k8s.io"):
                pass

    assert "/elsewhere" not in paths


async def test_words_of_other_servers_are_not_passed_on() -> None:
    """Conditions show our errors to those who write Targets: no way to read the network by them."""

    async def secret(_request: web.Request) -> web.Response:
        return web.json_response({"message": "the password is 1234"}, status=403)

    async with server(secret) as client:
        with pytest.raises(ApiError) as caught:
            await client.get(kinds.PODS, "x", "default")

    assert "1234" not in str(caught.value)
    assert "the answer is no Kubernetes Status" in str(caught.value)


async def test_a_server_that_speaks_no_http_is_not_quoted() -> None:
    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 the password is 1234\r\n")
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1") as listening:
        host, port = listening.sockets[0].getsockname()
        where = Endpoint(f"http://{host}:{port}", None, Constant(None))
        async with Client(where, name="hostile") as client:
            with pytest.raises(Unreachable, match=r"the answer is not HTTP$"):
                await client.get(kinds.PODS, "x", "default")

            for opening in (
                client.stream("GET", "/log", query={}, silence=5),
                websockets.connect(client, "/exec", [], "v4.channel.k8s.io"),
            ):
                with pytest.raises(Unreachable, match=r"the answer is not HTTP$"):
                    async with opening:
                        pass


async def test_an_answer_without_bounds_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "LIMIT", 100_000)

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x" * 10_000)
        except ConnectionError:
            return response

    async with server(endless) as client:
        with pytest.raises(Unreachable, match="more than 100000 bytes"):
            await client.get(kinds.PODS, "x", "default")


async def test_a_compressed_answer_is_measured_as_it_unfolds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answers, "LIMIT", 100_000)

    async def bomb(_request: web.Request) -> web.Response:
        response = web.Response(body=b" " * 10_000_000)
        response.enable_compression(web.ContentCoding.gzip)
        return response

    async with server(bomb) as client:
        with pytest.raises(Unreachable, match="more than 100000 bytes"):
            await client.get(kinds.PODS, "x", "default")


BOMB = b'{"kind": "Status", "metadata": {"a": [' + b"{}," * 2_700_000 + b"{}]}}"


def bomb(_request: web.Request) -> web.Response:
    response = web.Response(body=BOMB, content_type="application/json")
    response.enable_compression(web.ContentCoding.gzip)
    return response


async def test_a_few_bytes_do_not_become_millions_of_values() -> None:
    """Of 25 kB compressed there were hundreds of MiB once they were decoded."""

    async def answer(request: web.Request) -> web.Response:
        return bomb(request)

    async with server(answer) as client:
        with pytest.raises(Unreachable, match="more than 400000 values"):
            await client.get(kinds.CLUSTER_SUMMARIES, "singleton")

        with pytest.raises(Unreachable, match="more than 2000000 values"):
            await client.list(kinds.PODS)


async def test_an_error_of_many_values_is_not_decoded() -> None:
    async def answer(request: web.Request) -> web.Response:
        response = bomb(request)
        response.set_status(403)
        return response

    async with server(answer) as client:
        with pytest.raises(ApiError, match="no Kubernetes Status"):
            await client.get(kinds.PODS, "x", "default")


@pytest.mark.parametrize(
    "text", ["a,[{" * 200_000, '\\"' * 500_000 + ",[{" * 200_000], ids=["plain", "quotes"]
)
async def test_a_long_text_is_one_value(text: str) -> None:
    answer = json.dumps({"metadata": {"a": text}}).encode()
    assert answers.decode(answer)["metadata"]["a"] == text


@pytest.mark.parametrize(
    "body", [b'"' + b'\\"' * 4_000_000 + b",", b'"' * 8_000_000 + b'",,'], ids=["escaped", "empty"]
)
async def test_strings_without_an_end_are_told_in_linear_time(body: bytes) -> None:
    with pytest.raises(Unreachable, match="not JSON"):
        answers.decode(body, elements=2)


async def test_a_list_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "MOST_PAGES", 3)

    async def page(_request: web.Request) -> web.Response:
        metadata = {"continue": "more"}
        return web.json_response({"kind": "PodList", "metadata": metadata, "items": []})

    async with server(page) as client:
        with pytest.raises(Unreachable, match="has no end"):
            await client.list(kinds.PODS)


async def test_all_pages_of_a_list_have_one_bound() -> None:
    async def page(_request: web.Request) -> web.Response:
        metadata = {"continue": "more"}
        items = [{"metadata": {"name": "x" * 1000}}] * 500
        return web.json_response({"kind": "PodList", "metadata": metadata, "items": items})

    async with server(page) as client:
        with pytest.raises(Unreachable, match="more than 1000000 bytes"):
            await client.list_at(kinds.PODS, limit=1_000_000)


NO_LIST = {
    "nothing": b"",
    "null": b"null",
    "an object": b"{}",
    "an error page": b'"please log in"',
    "no kind": b'{"metadata": {"resourceVersion": "7"}, "items": []}',
    "one pod": b'{"kind": "Pod", "metadata": {"resourceVersion": "7"}, "items": []}',
    "no metadata": b'{"kind": "PodList", "items": []}',
    "no items": b'{"kind": "PodList", "metadata": {"resourceVersion": "7"}}',
    "no array": b'{"kind": "PodList", "metadata": {"resourceVersion": "7"}, "items": {}}',
    "no version": b'{"kind": "PodList", "metadata": {}, "items": []}',
    "no UTF-8": b'{"kind": "PodList", "metadata": {"resourceVersion": "\xff"}, "items": []}',
    "an odd continue": b'{"kind": "PodList", "metadata": {"continue": {"a": 1}}, "items": []}',
    "a true continue": b'{"kind": "PodList", "metadata": {"continue": true}, "items": []}',
}


@pytest.mark.parametrize("body", NO_LIST.values(), ids=NO_LIST.keys())
async def test_what_is_no_list_is_not_an_empty_one(body: bytes) -> None:
    """A proxy that answers 200 with something of its own must not end all that runs there."""
    pod = {"metadata": {"name": "runs", "namespace": "default", "uid": "1"}}
    pods = {"kind": "PodList", "metadata": {"resourceVersion": "5"}, "items": [pod]}
    bodies = [json.dumps(pods).encode(), body]

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=bodies.pop(0), content_type="application/json")

    async with server(answer) as client:
        informer = Informer(client, kinds.PODS)
        await informer._list()
        with pytest.raises(Unreachable):
            await informer._list()

    assert list(informer.store) == ["default/runs"]


@pytest.mark.parametrize("body", [b"", b"null", b"{}", b"[]"])
async def test_what_is_no_object_is_not_one_without_fields(body: bytes) -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=body, content_type="application/json")

    async with server(answer) as client:
        with pytest.raises(Unreachable, match="has no Pod x"):
            await client.get(kinds.PODS, "x", "default")


async def test_a_flood_of_events_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever sends more than what is kept is asked for a list again, which has its own bound."""
    monkeypatch.setattr(informers, "LIMIT", 100_000)
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
        b"x" * 2_000_000,
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
async def test_nonsense_on_a_watch_ends_it(monkeypatch: pytest.MonkeyPatch, line: bytes) -> None:
    monkeypatch.setattr(watching, "LINE_LIMIT", 1_000_000)

    async def watch(_request: web.Request) -> web.Response:
        return web.Response(body=line + b"\n")

    async with server(watch) as client:
        with pytest.raises((Unreachable, ApiError)):
            async for _batch in watching.stream(client, ListOptions(kinds.PODS), "1"):
                pass


@pytest.mark.parametrize("status", [200, 404])
async def test_an_answer_that_is_no_utf8_is_an_error_like_others(status: int) -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=b'{"kind": "Status", "message": "\xff"}', status=status)

    async with server(answer) as client:
        with pytest.raises((Unreachable, ApiError)):
            await client.get(kinds.PODS, "x", "default")


@pytest.mark.parametrize("name", [5, ["x"], ".foo", "a\0b", "a..b", "x" * 64])
async def test_a_name_that_cannot_be_asked_for_is_no_answer(name: Any) -> None:
    """Kubeconfigs that have it are refused; whatever gets through must not be our own fault."""
    context = ssl.create_default_context()
    async with server(nothing) as plain:
        url = plain.endpoint.url.replace("http:", "https:")
        where = Endpoint(url, context, Constant(None), server_name=name)
        async with Client(where, name="hostile") as client:
            with pytest.raises(Unreachable, match="hostile"):
                await client.get(kinds.PODS, "x", "default")

            for opening in (
                client.stream("GET", "/log", query={}, silence=5),
                websockets.connect(client, "/exec", [], "v4.channel.k8s.io"),
            ):
                with pytest.raises(Unreachable, match="hostile"):
                    async with opening:
                        pass


async def nothing(_request: web.Request) -> web.Response:
    return web.Response()


async def test_credentials_that_fail_unexpectedly_are_no_answer() -> None:
    async def fail() -> str | None:
        raise KeyError("secret")

    async with server(nothing) as plain:
        where = Endpoint(plain.endpoint.url, None, fail)
        async with Client(where, name="hostile") as client:
            with pytest.raises(Unreachable, match="hostile: unexpected KeyError: see") as caught:
                await client.get(kinds.PODS, "x", "default")

    assert "secret" not in str(caught.value)


async def test_an_object_that_cannot_be_kept_ends_no_informer() -> None:
    """All is listed again, after a pause: a list may be without it."""
    pods = [{"metadata": {"name": "odd", "uid": "1", "labels": 5}}]
    failed, over = asyncio.Event(), asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            response = web.StreamResponse()
            await response.prepare(request)
            await over.wait()
            return response

        metadata = {"resourceVersion": "5"}
        return web.json_response({"kind": "PodList", "metadata": metadata, "items": pods})

    def trim(pod: Object) -> Object:
        failed.set()
        return {"metadata": {**pod["metadata"], "labels": sorted(pod["metadata"]["labels"])}}

    async with server(answer) as client:
        informer = Informer(client, kinds.PODS, trim=trim)
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            running = group.create_task(informer.run())
            await failed.wait()
            pods.clear()
            await informer.synced.wait()
            over.set()
            running.cancel()
