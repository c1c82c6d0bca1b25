"""Whoever leaves a client leaves no connection behind."""

from __future__ import annotations

import asyncio
import gc

from aiohttp import web

from tests import answering
from vnode.api import kinds
from vnode.kube.client import Client


async def test_all_is_closed_although_whoever_closes_is_cancelled_again() -> None:
    """As where a connection ends, and then the agent: two thirds of the sockets once stayed.

    A session that is not closed warns when it is collected, which is an error here.
    """

    async def answer(_request: web.Request) -> web.Response:
        return web.json_response({"metadata": {}})

    async with answering.endpoint(answer) as where:
        asked = asyncio.Event()

        async def use() -> None:
            async with Client(where, name="test") as client:
                await client.get(kinds.PODS, "x", "default")
                await client.get(kinds.LEASES, "x", "default")
                asked.set()
                await asyncio.Event().wait()

        using = asyncio.create_task(use())
        await asked.wait()
        while not using.done():
            using.cancel()
            await asyncio.sleep(0)

    assert using.cancelled()
    del using, use
    gc.collect()
