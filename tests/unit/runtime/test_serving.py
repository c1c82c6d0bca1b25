"""Middlewares of servers."""

from __future__ import annotations

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from vnode.runtime.serving import only_hosts


async def test_requests_for_hosts_of_other_names_are_refused() -> None:
    async def page(_: web.Request) -> web.Response:
        return web.Response(text="page")

    app = web.Application(middlewares=[only_hosts({"127.0.0.1"})])
    app.add_routes([web.get("/", page)])
    async with TestClient(TestServer(app)) as client:
        assert (await client.get("/")).status == 200
        answer = await client.get("/", headers={"Host": "evil.example"})
        assert answer.status == 403
        assert await answer.text() == "not by this name\n"
