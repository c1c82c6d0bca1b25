"""Whether all replicas answer at a path shows by calling it on many connections."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from aiohttp import web

from tests import background
from vnode.api import webhook_paths
from vnode.runtime.certs import keypairs, webhook_call
from vnode.runtime.certs.contexts import ReplaceableContext
from vnode.runtime.certs.keypairs import CertificateRequest
from vnode.runtime.serving import Server

NOW = datetime.now(UTC)
CA = keypairs.make_authority(NOW)
PAIR = keypairs.issue(CA, CertificateRequest("webhook", ("127.0.0.1",)), NOW)
SECRET = webhook_paths.secret_of(bytes(32))


@asynccontextmanager
async def answering(*statuses: int) -> AsyncIterator[tuple[str, list[str]]]:
    """Serve with these statuses in turn, as replicas behind one address; yield the address."""
    paths: list[str] = []
    turns = itertools.cycle(statuses)

    async def answer(request: web.Request) -> web.Response:
        paths.append(request.path)
        return web.Response(status=next(turns))

    app = web.Application()
    app.add_routes([web.route("*", "/{path:.*}", answer)])
    context = ReplaceableContext()
    await asyncio.to_thread(context.serve, PAIR)
    server = Server("replicas", app, "127.0.0.1", 0, ssl_context=context)
    async with background.running(server.run()):
        await server.ready.wait()
        yield f"https://127.0.0.1:{server.port}", paths


async def failure(url: str) -> str:
    config = {"url": url + webhook_paths.PODS}
    return await webhook_call.failure(config, SECRET, CA.certificate)


async def test_each_replica_that_knows_the_path_says_that_the_body_is_no_review() -> None:
    async with answering(400) as (url, paths):
        assert await failure(url) == ""
        assert paths == [f"{webhook_paths.PODS}/{SECRET}"] * webhook_call.CALLS


async def test_one_replica_of_several_that_does_not_know_it_is_found() -> None:
    async with answering(400, 400, 400, 404) as (url, _paths):
        assert "earlier version" in await failure(url)


@pytest.mark.parametrize("status", [200, 403, 502])
async def test_something_else_that_answers_is_no_replica(status: int) -> None:
    async with answering(status) as (url, _paths):
        assert f"status {status}" in await failure(url)


async def test_an_address_that_is_not_reached_is_said_without_the_secret() -> None:
    for url in ("https://127.0.0.1:1", "https://127.0.0.1:99999"):
        why = await failure(url)
        assert "cannot be reached" in why
        assert SECRET not in why
