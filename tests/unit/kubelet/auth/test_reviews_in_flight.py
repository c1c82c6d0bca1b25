"""A flood of tokens at one virtual node delays no caller of another one, nor the agent's work."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from vnode.api.clock import Clock
from vnode.kubelet.auth import authentication
from vnode.kubelet.auth.authentication import Authenticator, UserInfo
from vnode.kubelet.auth.authorization import Authorizer
from vnode.kubelet.auth.gate import Gate
from vnode.kubelet.auth.reviews_in_flight import OF_ALL, OF_ONE

pytestmark = pytest.mark.looptime


class SlowReviewer:
    """An API server that takes a tenth of a second for a review; knows the token `good`."""

    name = "local"

    def __init__(self) -> None:
        self.asked = self.running = self.most = 0

    async def create(self, _kind: object, body: dict[str, Any]) -> dict[str, Any]:
        self.asked += 1
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0.1)
        self.running -= 1
        good = body["spec"].get("token", "good") == "good"
        return {"status": {"authenticated": good, "allowed": good, "user": {"username": "a"}}}


def request(token: str) -> Any:
    header = {"Authorization": f"Bearer {token}"}
    return SimpleNamespace(
        get_extra_info=lambda _name: None, headers=header, method="GET", path="/containerLogs/a"
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


async def test_a_flood_at_one_node_keeps_no_caller_of_another_one_waiting(clock: Clock) -> None:
    server = SlowReviewer()
    authenticator = Authenticator(server, clock)  # type: ignore[arg-type]
    authorizer = Authorizer(server, clock)  # type: ignore[arg-type]
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


async def test_a_flood_of_tokens_keeps_no_caller_with_a_certificate_waiting(clock: Clock) -> None:
    server = SlowReviewer()
    authenticator = Authenticator(server, clock)  # type: ignore[arg-type]
    authorizer = Authorizer(server, clock)  # type: ignore[arg-type]
    flooding = flood(authenticator, "n")
    await asyncio.sleep(0.05)
    async with asyncio.timeout(0.11):
        await authorizer.authorize(UserInfo("kube-apiserver"), "n", "GET", "/containerLogs/a/b/c")

    await end(flooding)


async def test_rights_asked_about_at_one_node_keep_no_caller_of_another_one_waiting(
    clock: Clock,
) -> None:
    server = SlowReviewer()
    authorizer = Authorizer(server, clock)  # type: ignore[arg-type]

    async def ask(user: str, node: str) -> None:
        await authorizer.authorize(UserInfo(user), node, "GET", "/containerLogs/a/b/c")

    flooding = [asyncio.create_task(ask(f"user-{n}", "loud")) for n in range(100)]
    await asyncio.sleep(0.05)
    async with asyncio.timeout(0.11):
        await ask("calm", "calm")

    await end(flooding)


async def test_floods_at_many_nodes_leave_connections_for_the_agent(clock: Clock) -> None:
    server = SlowReviewer()
    authenticator = Authenticator(server, clock)  # type: ignore[arg-type]
    flooding = [task for n in range(20) for task in flood(authenticator, f"n{n}", 50)]
    await asyncio.sleep(1)
    assert server.most == OF_ALL
    await end(flooding)


async def test_a_token_that_many_show_at_once_is_reviewed_at_most_a_few_times(clock: Clock) -> None:
    server = SlowReviewer()
    authenticator = Authenticator(server, clock)  # type: ignore[arg-type]
    for token, user in (("good", UserInfo("a", ("system:authenticated",))), ("bad", None)):
        server.asked = 0
        callers = [authenticator.authenticate(None, f"Bearer {token}", "n") for _ in range(100)]
        assert await asyncio.gather(*callers) == [user] * 100
        assert server.asked <= OF_ONE


async def test_tokens_that_are_made_up_do_not_push_out_good_ones(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authentication, "_LIMIT", 10)
    server = SlowReviewer()
    authenticator = Authenticator(server, clock)  # type: ignore[arg-type]
    await authenticator.authenticate(None, "Bearer good", "n")
    await asyncio.gather(*flood(authenticator, "n", 50))
    server.asked = 0
    assert await authenticator.authenticate(None, "Bearer good", "n")
    assert server.asked == 0
    assert await authenticator.authenticate(None, "Bearer n-0", "n") is None
    assert server.asked == 1
