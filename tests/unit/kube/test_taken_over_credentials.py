"""Other credentials are taken over by a client without an end to what is open."""

from __future__ import annotations

import asyncio

from aiohttp import web

from tests import answering
from vnode.kube.credentials import Constant


async def test_further_requests_have_them_and_an_open_stream_goes_on() -> None:
    shown: list[str] = []
    replaced = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        shown.append(request.headers["Authorization"])
        if request.path != "/stream":
            return web.json_response({})

        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"before ")
        await replaced.wait()
        await response.write(b"after")
        return response

    async with (
        answering.client(answer, "c2") as client,
        client.stream("GET", "/stream", query={}, silence=None) as stream,
    ):
        assert await stream.content.readexactly(7) == b"before "
        client.take_over(Constant("Bearer new"))
        await client.request("GET", "/")
        replaced.set()
        assert await stream.content.read() == b"after"

    assert shown == ["Bearer secret", "Bearer new"]
