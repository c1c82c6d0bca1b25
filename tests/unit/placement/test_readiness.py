"""A replica is ready once it knows the placement policies, by which its webhook admits pods."""

from __future__ import annotations

import asyncio

import pytest

from tests.apiserver.server import APIServer
from tests.simulation.loop import simulated_time
from vnode.agent import parts
from vnode.agent.config import AgentConfig
from vnode.agent.shared import POLICIES_AWAITED, AgentOptions, Shared
from vnode.api import kinds
from vnode.api.clock import Clock
from vnode.api.errors import NotFound, ServerError, VnodeError
from vnode.api.identity import Identity
from vnode.runtime.health import ProcessHealth
from vnode.runtime.supervisor import supervise

pytestmark = pytest.mark.looptime

SOON = 10.0
AWAY = ServerError(500, "InternalError", "etcd")
ABSENT = NotFound(404, "NotFound", "")


@pytest.mark.parametrize(
    ("error", "heals", "seconds", "is_ready"),
    [
        (AWAY, False, SOON, False),
        (AWAY, True, SOON, True),
        (AWAY, False, POLICIES_AWAITED, True),
        (ABSENT, False, SOON, True),
    ],
)
async def test_readiness_waits_for_the_first_list_of_policies_but_not_for_ever(
    clock: Clock, error: VnodeError, heals: bool, seconds: float, is_ready: bool
) -> None:
    server = APIServer("c1", clock)
    fault = server.fail(error, verb="list", kind=kinds.CLUSTER_PLACEMENT_POLICIES, times=None)
    options = AgentOptions("vnode", "192.0.2.1", AgentConfig(), None, "c1")
    health = ProcessHealth()
    with simulated_time():
        shared = Shared(server.client(), Identity("c1", "uid-of-c1"), options, health)
        async with supervise() as tasks:
            await parts.start(shared.watches(), tasks)
            await asyncio.sleep(1)
            assert ("placement-policies" in health.failures()) is (error is AWAY)
            if heals:
                fault.clear()

            await asyncio.sleep(seconds)
            assert (not health.failures()) is is_ready
            tasks.stop()
