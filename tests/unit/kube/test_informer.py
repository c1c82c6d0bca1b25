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

REFUSALS = [NotFound(404, "NotFound", ""), Denied(403, "Forbidden", "")]


@pytest.fixture
async def server(clock):
    return APIServer("server", clock)


@asynccontextmanager
async def following(server, clock, **options):
    informer = Informer(server.client(), kinds.CONFIG_MAPS, clock=clock, **options)
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


@pytest.mark.parametrize("error", REFUSALS)
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


@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("option", ["optional", "ends_denied"])
async def test_what_a_server_refuses_that_only_just_started_is_asked_for_again_soon(
    server, clock, refusal, option
):
    """It does not know the roles yet, or the group of the kind."""
    async with following(server, clock, **{option: True}) as informer:
        faults = [
            server.fail(refusal, verb=verb, kind=kinds.CONFIG_MAPS, times=None)
            for verb in ("list", "watch")
        ]
        server.cut_watches()
        await asyncio.sleep(5)
        assert informer.failure is not None
        for fault in faults:
            fault.clear()

        await asyncio.sleep(10)
        assert informer.failure is None


@pytest.mark.parametrize("refusal", REFUSALS)
async def test_an_optional_kind_that_is_refused_for_good_is_asked_for_rarely(
    server, clock, refusal
):
    server.fail(refusal, verb="list", kind=kinds.CONFIG_MAPS, times=None)
    informer = Informer(server.client(), kinds.CONFIG_MAPS, optional=True, clock=clock)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(informer.run())
        await asyncio.sleep(600)
        at_first = server.count("list")
        assert at_first <= 15
        await asyncio.sleep(3600)
        assert server.count("list") - at_first <= 3600 / 150
        assert informer.silence < 300
        task.cancel()


async def test_a_server_that_is_back_is_noticed_soon_whatever_it_refused_before(server, clock):
    fault = server.fail(REFUSALS[1], verb="list", kind=kinds.CONFIG_MAPS, times=None)
    informer = Informer(server.client(), kinds.CONFIG_MAPS, optional=True, clock=clock)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(informer.run())
        await asyncio.sleep(600)
        server.stop()
        await asyncio.sleep(600)
        fault.clear()
        server.start()
        async with asyncio.timeout(10):
            await informer.synced.wait()

        task.cancel()


async def test_one_that_ends_denied_ends_at_once_or_once_what_was_allowed_is_refused_for_long(
    server, clock
):
    def make():
        return Informer(server.client(), kinds.CONFIG_MAPS, ends_denied=True, clock=clock)

    allowed = make()
    task = asyncio.create_task(allowed.run())
    await allowed.synced.wait()
    server.fail(REFUSALS[1], verb="list", kind=kinds.CONFIG_MAPS, times=None)
    server.fail(REFUSALS[1], verb="watch", kind=kinds.CONFIG_MAPS, times=None)
    server.cut_watches()
    with pytest.raises(Denied):
        await asyncio.wait_for(make().run(), 1)

    await asyncio.sleep(5)
    assert not task.done()
    with pytest.raises(Denied):
        await asyncio.wait_for(task, 20)
