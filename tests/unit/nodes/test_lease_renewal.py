"""The Leases of Nodes are renewed as long as there are the Nodes, and the work is not stuck."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests import background
from tests.apiserver.server import APIServer
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Unreachable
from vnode.kube import leases
from vnode.nodes.lease_renewal import FRESH, LeaseRenewal
from vnode.runtime.stall_guard import StallGuard

pytestmark = pytest.mark.looptime

NAME = "admiralty-ns-t"


class Renewing:
    """Leases in memory, and a guard of a loop that beats when the test says so."""

    def __init__(self, clock: Clock) -> None:
        self.server = APIServer("c1", clock)
        self.server.add(kinds.NAMESPACES, {"metadata": {"name": leases.NODE_NAMESPACE}})
        self.guard = StallGuard(monotonic=clock.monotonic)
        self.leases = LeaseRenewal(clock)

    def running(self) -> Any:
        return background.running(self.leases.run(self.server.client(), self.guard))

    @property
    def owner(self) -> str:
        lease = self.server.find(kinds.LEASES, NAME, leases.NODE_NAMESPACE) or {}
        return str((objects.metadata(lease).get("ownerReferences") or [{}])[0].get("uid", ""))

    def renewals(self) -> int:
        """Count the requests so far."""
        requests = (self.server.received(verb, kinds.LEASES) for verb in ("create", "patch"))
        return sum(len(list(each)) for each in requests)

    async def renewals_in(self, seconds: float, *, beating: bool = True) -> int:
        before = self.renewals()
        for _ in range(int(seconds)):
            await asyncio.sleep(1)
            if beating:
                self.guard.beat()

        return self.renewals() - before


async def test_a_node_that_comes_has_its_lease_at_once_and_then_every_ten_seconds(
    clock: Clock,
) -> None:
    env = Renewing(clock)
    async with env.running():
        env.leases.keep(NAME, "u1")
        await asyncio.sleep(0.1)
        assert env.owner == "u1"
        assert await env.renewals_in(100) == 10
        env.leases.keep(NAME, "u1")
        assert await env.renewals_in(100) == 10


async def test_nodes_that_are_known_before_the_thread_begins_are_renewed(clock: Clock) -> None:
    env = Renewing(clock)
    env.leases.keep(NAME, "u1")
    async with env.running():
        await asyncio.sleep(0.1)
        assert env.owner == "u1"

    env.leases.keep(NAME, "u2")
    async with env.running():
        await asyncio.sleep(0.1)
        assert env.owner == "u2"


async def test_a_node_that_is_made_anew_owns_the_lease(clock: Clock) -> None:
    env = Renewing(clock)
    async with env.running():
        env.leases.keep(NAME, "u1")
        await asyncio.sleep(1)
        env.leases.keep(NAME, "u2")
        await asyncio.sleep(0.1)
        assert env.owner == "u2"


async def test_a_node_that_is_gone_is_not_renewed(clock: Clock) -> None:
    env = Renewing(clock)
    async with env.running():
        for end in (lambda: env.leases.drop(NAME), env.leases.clear):
            env.leases.keep(NAME, "u1")
            await asyncio.sleep(1)
            end()
            assert await env.renewals_in(100) == 0


async def test_work_that_stands_still_is_vouched_for_as_long_as_a_status_holds(
    clock: Clock,
) -> None:
    env = Renewing(clock)
    async with env.running():
        env.leases.keep(NAME, "u1")
        await asyncio.sleep(1)
        assert await env.renewals_in(FRESH - 10, beating=False) >= 28
        await asyncio.sleep(20)
        assert await env.renewals_in(100, beating=False) == 0
        env.guard.beat()
        assert await env.renewals_in(20, beating=False) >= 2


async def test_an_api_server_that_fails_is_asked_again_soon(clock: Clock) -> None:
    env = Renewing(clock)
    async with env.running():
        env.server.fail(Unreachable("no answer"), verb="patch", kind=kinds.LEASES, times=3)
        env.leases.keep(NAME, "u1")
        await env.renewals_in(8)
        assert env.owner == "u1"
