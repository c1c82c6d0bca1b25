"""How often an informer asks a server that is away, or that contradicts itself."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from vnode.api import kinds
from vnode.api.errors import Gone, Unreachable
from vnode.kube.informer import Informer


class Server:
    """Answers lists; watches meet what it is told to fail with."""

    name = "server"

    def __init__(self):
        self.lists = self.watches = 0
        self.error = None
        self.cut = asyncio.Event()
        self.open = asyncio.Event()  # set once a watch was accepted

    async def list_at(self, kind, namespace, **_selectors):
        self.lists += 1
        return [], "1"

    @asynccontextmanager
    async def stream(self, *_request, **_options):
        self.watches += 1
        if self.error is not None:
            raise self.error

        self.open.set()
        yield self

    @property
    def content(self):
        return self

    async def iter_any(self):
        await self.cut.wait()
        raise ConnectionResetError("cut")
        yield b""

    def fail(self, error):
        """Watches meet that error from now on; those that are open end."""
        self.error = error
        self.cut.set()

    def recover(self):
        self.error = None
        self.cut.clear()


@asynccontextmanager
async def following(server):
    informer = Informer(server, kinds.CONFIG_MAPS)
    task = asyncio.create_task(informer.run())
    try:
        await server.open.wait()
        yield informer
    finally:
        task.cancel()


@pytest.mark.looptime
async def test_a_server_that_is_away_is_asked_less_and_less_often():
    server = Server()
    async with following(server) as informer:
        server.fail(Unreachable("away"))
        await asyncio.sleep(60)
        assert isinstance(informer.failure, Unreachable)
        assert 10 < server.watches < 25


@pytest.mark.looptime
async def test_a_server_is_back_once_it_accepts_a_watch_though_nothing_happens():
    server = Server()
    async with following(server) as informer:
        server.fail(Unreachable("away"))
        await asyncio.sleep(60)
        server.recover()
        await asyncio.sleep(6)
        assert informer.failure is None


@pytest.mark.looptime
async def test_a_version_that_was_only_just_listed_and_is_too_old_leads_to_a_pause():
    server = Server()
    async with following(server):
        server.fail(Gone(410, "Expired", "too old"))
        await asyncio.sleep(60)
        assert 10 < server.lists < 30
