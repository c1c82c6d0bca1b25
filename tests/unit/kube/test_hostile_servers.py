"""The API server of a target may be anybody's: what it answers is bounded and not believed."""

from __future__ import annotations

import ast
import asyncio
import json
import ssl
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import vnode
from tests import answering
from tests.answering import Answer
from tests.unit.kube.raw_server import served_by
from vnode.api import kinds
from vnode.api.errors import ApiError, Unreachable
from vnode.api.objects import Object
from vnode.kube import websockets
from vnode.kube.client import Client
from vnode.kube.credentials import Constant
from vnode.kube.endpoint import Endpoint
from vnode.kube.informer import Informer


def server(answer: Answer) -> AbstractAsyncContextManager[Client]:
    """Return a client of a server that answers everything so."""
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


async def test_no_cookie_of_a_server_is_kept() -> None:
    cookies = []

    async def bake(request: web.Request) -> web.Response:
        cookies.append(request.headers.get("Cookie"))
        answer = web.json_response({"metadata": {}})
        answer.set_cookie("a", "b" * 4000)
        return answer

    async with server(bake) as client:
        # aiohttp takes no cookies of servers without a name.
        url = client.endpoint.url.replace("127.0.0.1", "localhost")
        async with Client(Endpoint(url, None, Constant(None)), name="hostile") as named:
            for _ in range(2):
                await named.get(kinds.PODS, "x", "default")
                async with named.stream("GET", "/api/v1/pods", query={}, silence=5):
                    pass

    assert cookies == [None] * 4


def test_every_session_of_ours_is_without_a_cookie_jar() -> None:
    root = Path(vnode.__file__).parent
    made = [
        (path.name, any(word.arg == "cookie_jar" for word in call.keywords))
        for path in root.rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "aiohttp.ClientSession"
    ]
    assert sorted(made) == [("oidc.py", True), ("sessions.py", True), ("websockets.py", True)]


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

    async with served_by(greet, "hostile") as client:
        with pytest.raises(Unreachable, match=r"the answer is not HTTP$"):
            await client.get(kinds.PODS, "x", "default")

        for opening in (
            client.stream("GET", "/log", query={}, silence=5),
            websockets.connect(client, "/exec", [], "v4.channel.k8s.io"),
        ):
            with pytest.raises(Unreachable, match=r"the answer is not HTTP$"):
                async with opening:
                    pass


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
        await informer._reflectors[0].list()
        with pytest.raises(Unreachable):
            await informer._reflectors[0].list()

    assert list(informer.store) == ["default/runs"]


@pytest.mark.parametrize("body", [b"", b"null", b"{}", b"[]"])
async def test_what_is_no_object_is_not_one_without_fields(body: bytes) -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=body, content_type="application/json")

    async with server(answer) as client:
        with pytest.raises(Unreachable, match="has no Pod x"):
            await client.get(kinds.PODS, "x", "default")


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
