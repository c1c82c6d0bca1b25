"""A flood of tokens at one virtual node delays no caller of another one, nor the agent's work."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tests.apiserver.server import APIServer
from vnode.api.clock import Clock
from vnode.kubelet.auth import authentication
from vnode.kubelet.auth.authentication import Authenticator, UserInfo
from vnode.kubelet.auth.authorization import Authorizer
from vnode.kubelet.auth.gate import Gate
from vnode.runtime.reviews_in_flight import OF_ALL, OF_ONE

pytestmark = pytest.mark.looptime


class SlowServer(APIServer):
    """Takes a tenth of a second for a review, and counts those under way; knows a token `good`."""

    def __init__(self, clock: Clock) -> None:
        super().__init__("local", clock, latency=lambda: 0.05)
        self.know("good", "a")
        self.running = self.most = 0

    async def exchange(self, *request: Any) -> bytes:
        """Carry out a review."""
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            return await super().exchange(*request)
        finally:
            self.running -= 1


@pytest.fixture
async def server(clock: Clock) -> SlowServer:
    return SlowServer(clock)


@pytest.fixture
def authenticator(server: SlowServer, clock: Clock) -> Authenticator:
    return Authenticator(server.client(), clock)


@pytest.fixture
def authorizer(server: SlowServer, clock: Clock) -> Authorizer:
    return Authorizer(server.client(), clock)


def request(token: str) -> Any:
    header = {"Authorization": f"Bearer {token}"}
    return SimpleNamespace(
        transport=None,
        get_extra_info=lambda _name: None,
        headers=header,
        method="GET",
        path="/containerLogs/a",
    )


def flood(authenticator: Authenticator, node: str, count: int = 1000) -> list[asyncio.Task[Any]]:
    return [
        asyncio.create_task(authenticator.authenticate(None, f"Bearer {node}-{number}", node))
        for number in range(count)
    ]


async def end(tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()

    await asyncio.wait(tasks)


async def test_a_flood_at_one_node_keeps_no_caller_of_another_one_waiting(
    server: SlowServer, authenticator: Authenticator, authorizer: Authorizer, clock: Clock
) -> None:
    gate = Gate(lambda: (), authenticator, authorizer, clock)
    flooding = [
        asyncio.create_task(gate.check("loud", request(f"made up {number}")))
        for number in range(1000)
    ]
    await asyncio.sleep(0.05)
    async with asyncio.timeout(0.21):
        await gate.check("calm", request("good"))

    assert server.most <= OF_ONE + 1
    await end(flooding)


async def test_a_flood_of_tokens_keeps_no_caller_with_a_certificate_waiting(
    authenticator: Authenticator, authorizer: Authorizer
) -> None:
    flooding = flood(authenticator, "n")
    await asyncio.sleep(0.05)
    async with asyncio.timeout(0.11):
        await authorizer.authorize(UserInfo("kube-apiserver"), "n", "GET", "/containerLogs/a/b/c")

    await end(flooding)


async def test_rights_asked_about_at_one_node_keep_no_caller_of_another_one_waiting(
    authorizer: Authorizer,
) -> None:
    async def ask(user: str, node: str) -> None:
        await authorizer.authorize(UserInfo(user), node, "GET", "/containerLogs/a/b/c")

    flooding = [asyncio.create_task(ask(f"user-{n}", "loud")) for n in range(100)]
    await asyncio.sleep(0.05)
    async with asyncio.timeout(0.11):
        await ask("calm", "calm")

    await end(flooding)


async def test_floods_at_many_nodes_leave_connections_for_the_agent(
    server: SlowServer, authenticator: Authenticator
) -> None:
    flooding = [task for n in range(20) for task in flood(authenticator, f"n{n}", 50)]
    await asyncio.sleep(1)
    assert server.most == OF_ALL
    await end(flooding)


async def test_a_token_that_many_show_at_once_is_reviewed_at_most_a_few_times(
    server: SlowServer, authenticator: Authenticator
) -> None:
    for token, user in (("good", UserInfo("a", ("system:authenticated",))), ("bad", None)):
        server.requests.clear()
        callers = [authenticator.authenticate(None, f"Bearer {token}", "n") for _ in range(100)]
        assert await asyncio.gather(*callers) == [user] * 100
        assert len(server.requests) <= OF_ONE


async def test_tokens_that_are_made_up_do_not_push_out_good_ones(
    server: SlowServer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authentication, "_LIMIT", 10)
    authenticator = Authenticator(server.client(), clock)
    await authenticator.authenticate(None, "Bearer good", "n")
    await asyncio.gather(*flood(authenticator, "n", 50))
    server.requests.clear()
    assert await authenticator.authenticate(None, "Bearer good", "n")
    assert server.requests == []
    assert await authenticator.authenticate(None, "Bearer n-0", "n") is None
    assert len(server.requests) == 1
