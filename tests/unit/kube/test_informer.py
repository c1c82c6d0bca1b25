"""How often an informer asks a server that is away, or that contradicts itself."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from tests.apiserver import links
from tests.apiserver.server import APIServer
from vnode.api import kinds
from vnode.api.errors import Denied, Gone, NotFound, Unreachable
from vnode.kube.informer import Informer

pytestmark = pytest.mark.looptime


@pytest.fixture
async def server(clock):
    return APIServer("server", clock)


@asynccontextmanager
async def following(server, clock):
    informer = Informer(server.client(), kinds.CONFIG_MAPS, clock=clock)
    async with links.following(informer):
        await asyncio.sleep(1)
        assert server.watches()
        yield informer


async def test_a_server_that_is_away_is_asked_less_and_less_often(server, clock):
    async with following(server, clock) as informer:
        server.stop()
        await asyncio.sleep(60)
        assert isinstance(informer.failure, Unreachable)
        assert 10 < server.count("watch") < 25


async def test_a_server_is_back_once_it_accepts_a_watch_though_nothing_happens(server, clock):
    async with following(server, clock) as informer:
        server.stop()
        await asyncio.sleep(60)
        server.start()
        await asyncio.sleep(6)
        assert informer.failure is None


async def test_a_version_that_was_only_just_listed_and_is_too_old_leads_to_a_pause(server, clock):
    async with following(server, clock):
        server.fail(Gone(410, "Expired", "too old"), verb="watch", times=None)
        server.cut_watches()
        await asyncio.sleep(60)
        assert 10 < server.count("list") < 30


@pytest.mark.parametrize("error", [NotFound(404, "NotFound", ""), Denied(403, "Forbidden", "")])
async def test_a_kind_that_is_not_there_is_an_answer_and_a_server_that_is_away_is_none(
    server, clock, error
):
    server.stop()
    informer = Informer(server.client(), kinds.CONFIG_MAPS, clock=clock)
    task = asyncio.create_task(informer.run())
    await asyncio.sleep(60)
    assert not informer.answered.is_set()
    fault = server.fail(error, verb="list", kind=kinds.CONFIG_MAPS, times=None)
    server.start()
    async with asyncio.timeout(60):
        await informer.answered.wait()

    assert not informer.synced.is_set()
    fault.clear()
    async with asyncio.timeout(60):
        await informer.synced.wait()

    task.cancel()
