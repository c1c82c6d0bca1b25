"""The key of the signatures: made once, shared by all replicas, made again if it is deleted."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from tests import background
from tests.apiserver.server import APIServer
from vnode.api import kinds
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError
from vnode.runtime.certs import authority
from vnode.runtime.manifest_key import SECRET, ManifestKey

pytestmark = pytest.mark.looptime


@pytest.fixture
async def server(clock: Clock) -> APIServer:
    server = APIServer("c1", clock)
    server.add(kinds.NAMESPACES, {"metadata": {"name": "vnode"}})
    return server


_numbers = count(1)


def replica(server: APIServer) -> ManifestKey:
    return ManifestKey(server.client(), "vnode", make=lambda: bytes([next(_numbers)]) * 32)


async def test_all_replicas_have_the_key_of_the_first(server: APIServer) -> None:
    first, second = replica(server), replica(server)
    await asyncio.gather(first.load(), second.load())
    assert first.key == second.key


async def test_a_deleted_key_is_replaced_by_one_that_all_share(server: APIServer) -> None:
    replicas = [replica(server), replica(server)]
    for one in replicas:
        await one.load()

    before = replicas[0].key
    async with background.running(*(one.run() for one in replicas)):
        await asyncio.sleep(1)
        server.remove(kinds.SECRETS, SECRET, "vnode")
        await asyncio.sleep(1)
        assert replicas[0].key == replicas[1].key != before


async def test_it_says_since_when_authors_are_signed_with_a_time(
    server: APIServer, clock: Clock
) -> None:
    """Of a Secret that is older than that, it is when the first replica found it."""
    data = authority.secret_of("vnode", SECRET, {"key": bytes(32)})
    server.add(kinds.SECRETS, data)
    await asyncio.sleep(100)
    replicas = [ManifestKey(server.client(), "vnode", now=clock.now) for _ in range(2)]
    for one in replicas:
        await one.load()
        await asyncio.sleep(100)

    first, second = (one.authors_timed_since for one in replicas)
    assert first == second
    assert (clock.now() - first).total_seconds() == pytest.approx(200, abs=1)


async def test_of_a_new_key_authors_are_signed_with_a_time_from_the_first_on(
    server: APIServer, clock: Clock
) -> None:
    key = ManifestKey(server.client(), "vnode", now=clock.now)
    await key.load()
    assert (clock.now() - key.authors_timed_since).total_seconds() < 1
    assert len(server.received("patch", kinds.SECRETS)) == 0


async def test_a_secret_without_a_key_is_an_error_with_a_cure(server: APIServer) -> None:
    server.add(kinds.SECRETS, {"metadata": {"name": SECRET, "namespace": "vnode"}, "data": {}})
    with pytest.raises(ConfigError, match="delete it"):
        await replica(server).load()
