"""The webhook is served at the paths that API servers may call, and nobody else finds it."""

from __future__ import annotations

import asyncio
import copy

import pytest
from aiohttp import ClientSession, web

from tests import background
from tests.apiserver.server import APIServer
from vnode.api import kinds, webhook_paths
from vnode.api.clock import Clock
from vnode.api.errors import Unreachable
from vnode.api.objects import Object
from vnode.cli import manifests
from vnode.runtime.serving import Server
from vnode.webhook.paths import ServedPaths

OWN = webhook_paths.secret_of(bytes(32))
OTHER = webhook_paths.secret_of(bytes(31) + b"1")
STRANGE = "0" * len(OWN)
INSTALLED = {secret: manifests.webhook("vnode", secret=secret) for secret in ("", OWN, OTHER)}


def configuration(secret: str, *, bundle: str = "x") -> Object:
    found = copy.deepcopy(INSTALLED[secret])
    for hook in found["webhooks"]:
        hook["clientConfig"]["caBundle"] = bundle

    return found


class Serving:
    """Paths of an agent whose cluster has a configuration, and which follows it or not yet."""

    def __init__(self, clock: Clock, secret: str | None) -> None:
        self.server = APIServer("c1", clock)
        self.install(secret)
        self.paths = ServedPaths(self.server.client(), lambda: bytes(32), clock)

    def install(self, secret: str | None, **given: str) -> None:
        if self.server.find(kinds.MUTATING_WEBHOOKS, "vnode") is not None:
            self.server.remove(kinds.MUTATING_WEBHOOKS, "vnode")

        if secret is not None:
            self.server.add(kinds.MUTATING_WEBHOOKS, configuration(secret, **given))

    async def secrets(self) -> set[str]:
        """Return those of the secrets of this test with which the webhook is called."""
        found = set()
        for secret in ("", OWN, OTHER, STRANGE):
            ending = f"/{secret}" if secret else ""
            served = {await self.paths.are_served(path + ending) for path in webhook_paths.PLAIN}
            assert len(served) == 1
            found |= {secret} if True in served else set()

        return found

    @property
    def reads(self) -> int:
        return len(list(self.server.received("get", kinds.MUTATING_WEBHOOKS)))


@pytest.mark.looptime
async def test_the_agents_own_path_is_served_before_the_configuration_names_it(
    clock: Clock,
) -> None:
    assert await Serving(clock, None).secrets() == {OWN}
    assert await Serving(clock, OWN).secrets() == {OWN}


@pytest.mark.looptime
async def test_what_the_configuration_names_is_served_until_a_moment_after_it(
    clock: Clock,
) -> None:
    """So nothing is refused when an upgrade takes the secret off, or the key is another one."""
    env = Serving(clock, "")
    async with background.running(env.paths.run()):
        await asyncio.sleep(1)
        for secret in (OTHER, "", OWN):
            before = await env.secrets()
            env.install(secret)
            await asyncio.sleep(2)
            assert await env.secrets() == {OWN, secret, *before}
            await asyncio.sleep(60)
            assert await env.secrets() == {OWN, secret}


@pytest.mark.looptime
async def test_a_configuration_that_no_agent_has_touched_yet_opens_no_plain_path(
    clock: Clock,
) -> None:
    env = Serving(clock, None)
    env.install("", bundle="")
    async with background.running(env.paths.run()):
        await asyncio.sleep(1)
        assert await env.secrets() == {OWN}


@pytest.mark.looptime
async def test_an_api_server_that_knows_of_a_change_first_is_answered(clock: Clock) -> None:
    env = Serving(clock, OWN)
    await asyncio.sleep(10)
    assert await env.secrets() == {OWN}
    env.install("")
    await asyncio.sleep(1)
    assert await env.paths.are_served(webhook_paths.PODS)


@pytest.mark.looptime
async def test_many_callers_of_unknown_paths_have_the_configuration_read_once_a_second(
    clock: Clock,
) -> None:
    env = Serving(clock, OWN)
    await asyncio.sleep(10)
    unknown = f"{webhook_paths.AUTHORS}/{STRANGE}"
    for _ in range(5):
        many = (env.paths.are_served(unknown) for _ in range(100))
        assert not any(await asyncio.gather(*many))
        await asyncio.sleep(1)

    assert env.reads == 5
    assert not await env.paths.are_served("/metrics")
    assert not await env.paths.are_served(f"{webhook_paths.PODS}/{OWN}/more")
    assert env.reads == 5


@pytest.mark.looptime
async def test_an_api_server_that_does_not_answer_keeps_nobody_waiting(clock: Clock) -> None:
    env = Serving(clock, OWN)
    await asyncio.sleep(10)
    env.server.fail(Unreachable("no"), verb="get", delay=3600, times=None)
    begin = clock.monotonic()
    assert not await env.paths.are_served(webhook_paths.PODS)
    assert clock.monotonic() - begin < 3


async def test_a_stranger_is_told_that_there_is_nothing_before_the_body_is_read() -> None:
    app = web.Application()

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(text="a review")

    app.add_routes([web.post("/{secret}", answer)])

    async def serves(path: str) -> bool:
        return path == "/known"

    server = Server("webhook", app, "127.0.0.1", 0, serves=serves)
    async with background.running(server.run()), ClientSession() as session:
        await server.ready.wait()
        url = f"http://127.0.0.1:{server.port}"
        async with session.post(f"{url}/known", data=b"{}") as known:
            assert (known.status, await known.text()) == (200, "a review")

        for method, path in (("GET", "/known"), ("POST", "/other"), ("POST", "/a/b"), ("PUT", "/")):
            async with session.request(method, url + path) as strange:
                assert strange.status == 404

        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"POST /other HTTP/1.1\r\nHost: x\r\nContent-Length: 8000000\r\n\r\n")
        assert (await asyncio.wait_for(reader.readline(), 5)).split()[1] == b"404"
        writer.transport.abort()
