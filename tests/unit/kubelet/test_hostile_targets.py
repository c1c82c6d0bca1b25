"""A target may be anybody's server: what users see of its answers by logs, exec and the like."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.unit.kube.raw_server import served_by
from tests.virtual_nodes import node, node_of
from vnode.kubelet.streams import http_upgrade

SECRET = "the password is 1234"
STATUS = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no such thing"}
UPGRADE = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}
ROUTES = [
    ("GET", "containerLogs/default/web/main", {}),
    ("POST", "exec/default/web/main?command=x&output=1", UPGRADE),
    ("GET", "attach/default/web/main?output=1", UPGRADE),
    ("POST", "portForward/default/web", UPGRADE),
    ("POST", "run/default/web/main?cmd=x", {}),
]
EACH_ROUTE = pytest.mark.parametrize(
    ("method", "path", "headers"), ROUTES, ids=[path.partition("/")[0] for _, path, _ in ROUTES]
)


async def ask(at: TestServer, method: str, path: str, headers: dict[str, str]) -> tuple[int, str]:
    """Send a request; return the status and the text of the answer."""
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, f"{at.make_url('/')}{path}", headers=headers) as response,
    ):
        return response.status, await response.text()


@pytest.mark.parametrize("status", [200, 403, 404, 500])
@pytest.mark.parametrize("kind", ["text/html", "application/json"])
@EACH_ROUTE
async def test_a_body_of_another_server_is_not_passed_on(
    method: str, path: str, headers: dict[str, str], kind: str, status: int
) -> None:
    async def other(_request: web.Request) -> web.Response:
        body = msgspec.json.encode({"message": SECRET, "kind": "List", "status": SECRET})
        return web.Response(body=body, status=status, reason=SECRET, content_type=kind)

    async with node(other) as at:
        found, text = await ask(at, method, path, headers)

    assert found >= 400
    assert "1234" not in text


@pytest.mark.parametrize(
    "name", ["../../../secrets/x", "web?x=1", "web#", "..", "a%2Fb", "x\r\ny", ""]
)
@EACH_ROUTE
async def test_a_chaperon_that_is_called_like_a_path_is_no_candidate_and_asked_for_nothing(
    method: str, path: str, headers: dict[str, str], name: str
) -> None:
    requested = []

    async def other(request: web.Request) -> web.Response:
        requested.append(request.path_qs)
        return web.Response(status=404)

    async with node(other, {"metadata": {"name": name, "namespace": "default"}}) as at:
        found, text = await ask(at, method, path, headers)

    assert (found, requested) == (400, [])
    assert "has no delegate in target default/c2" in text


@EACH_ROUTE
async def test_a_body_that_is_plain_text_is_no_reason_to_believe_an_error(
    method: str, path: str, headers: dict[str, str]
) -> None:
    async def other(_request: web.Request) -> web.Response:
        return web.Response(text=f'container not found ("main")\n{SECRET}', status=500)

    async with node(other) as at:
        _status, text = await ask(at, method, path, headers)

    assert "1234" not in text


@pytest.mark.parametrize("path", [path for _, path, headers in ROUTES if headers])
async def test_the_words_of_an_api_server_are_passed_on_and_nothing_beside_them(path: str) -> None:
    async def refuse(_request: web.Request) -> web.Response:
        return web.json_response({**STATUS, "more": SECRET}, status=404)

    async with node(refuse) as at:
        found, text = await ask(at, "POST", path, UPGRADE)

    assert (found, msgspec.json.decode(text)) == (404, STATUS)


async def test_what_a_kubelet_says_of_a_container_that_is_gone_is_passed_on() -> None:
    async def refuse(_request: web.Request) -> web.Response:
        return web.Response(text='container not found ("main")\n', status=500)

    async with node(refuse) as at:
        found = await ask(at, "POST", "exec/default/web/main?command=x&output=1", UPGRADE)

    assert found == (500, 'container not found ("main")')


async def test_a_status_without_a_bottom_is_no_status() -> None:
    async def refuse(_request: web.Request) -> web.Response:
        return web.Response(body=b'{"a":' * 10_000, status=500)

    async with node(refuse) as at:
        found, _text = await ask(at, "POST", "portForward/default/web", UPGRADE)

    assert found == 500


async def test_a_log_is_passed_on_as_it_is() -> None:
    async def log(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        await response.write(b"one\n\xff")
        return response

    async with (
        node(log) as at,
        aiohttp.ClientSession() as session,
        session.get(at.make_url("/containerLogs/default/web/main")) as response,
    ):
        assert (response.status, await response.read()) == (200, b"one\n\xff")


async def test_a_command_s_status_without_a_bottom_is_none() -> None:
    async def run(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=["v4.channel.k8s.io"])
        await socket.prepare(request)
        await socket.send_bytes(b"\x03" + b'{"a":' * 10_000)
        await socket.close()
        return socket

    async with node(run) as at:
        found, text = await ask(at, "POST", "run/default/web/main?cmd=x", {})

    assert (found, text) == (500, "target c2 broke off before the command ended")


def test_a_refusal_in_chunks_of_one_byte_is_read_in_linear_time() -> None:
    """Each chunk was cut off from all that follow it, which were copied."""

    class Noted(bytes):
        copied = 0

        def __getitem__(self, key: Any) -> Any:
            found = super().__getitem__(key)
            Noted.copied += len(found) if isinstance(found, bytes) else 1
            return found

        def partition(self, sep: Any) -> Any:
            Noted.copied += len(self)
            return super().partition(sep)

    body = Noted(b"1\r\nx\r\n" * 10_000 + b"0\r\n\r\n")
    assert http_upgrade.dechunk(body) == b"x" * 10_000
    assert Noted.copied < len(body)


@pytest.mark.parametrize(
    ("body", "content"),
    [
        (b"3;a=b\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", b"abcde"),
        (b"5\r\nabc", b"abc"),
        (b"3\r\nabc\r\nfoo", b"abc"),
        (b"3\r\nabc\r\nfoo\r\n", b"abc"),
        (b"-3\r\nabc", b""),
        (b"", b""),
    ],
)
def test_what_came_of_a_refusal_in_chunks_is_shown(body: bytes, content: bytes) -> None:
    assert http_upgrade.dechunk(body) == content


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"HTTP/1.1 \xb2 x\r\n\r\n", id="superscript"),
        pytest.param(b"HTTP/1.1 " + b"1" * 5000 + b" x\r\n\r\n", id="5000-digits"),
        pytest.param(b"HTTP/1.1 500 x\r\nContent-Length: \xb2\r\n\r\n", id="length-superscript"),
        pytest.param(
            b"HTTP/1.1 500 x\r\nContent-Length: " + b"1" * 5000 + b"\r\n\r\n",
            id="length-of-5000-digits",
        ),
    ],
)
async def test_numbers_that_are_none_are_an_answer_of_no_api_server(answer: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async with served_by(serve, "c2") as client, node_of(client) as at:
        found, _text = await ask(at, "POST", "exec/default/web/main?command=x&output=1", UPGRADE)

    assert found in (500, 502)
