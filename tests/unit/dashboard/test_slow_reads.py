"""What pages read while somebody looks: seldom, and without what may not be read."""

from __future__ import annotations

import pytest

from tests.apiserver.server import APIServer
from vnode.api import kinds
from vnode.api.clock import Clock
from vnode.api.errors import Unreachable
from vnode.dashboard.slow_reads import SlowReads
from vnode.insight import measuring
from vnode.runtime.leader import AGENT_LEASE

pytestmark = pytest.mark.looptime


@pytest.fixture
async def server(clock: Clock) -> APIServer:
    """Return an API server with the agent's Lease and three Events, one of which is of interest."""
    server = APIServer("c1", clock)
    server.add(kinds.LEASES, {"metadata": {"name": AGENT_LEASE, "namespace": "vnode"}})
    for name, component, reason in (
        ("wanted", "vnode", "FailedOver"),
        ("waits", "vnode", "FailedScheduling"),
        ("other", "kubelet", "Killing"),
    ):
        metadata = {"name": name, "namespace": "default"}
        event = {"metadata": metadata, "reportingComponent": component, "reason": reason}
        server.add(kinds.EVENTS, event)

    return server


def reads(server: APIServer, clock: Clock, *, events: bool = True) -> SlowReads:
    return SlowReads(server.client(), "vnode", clock=clock, reads_events=events, namespace=None)


async def test_events_of_agents_are_read_but_those_of_pods_that_wait(
    server: APIServer, clock: Clock
) -> None:
    slow = reads(server, clock)
    assert await slow.read()
    assert [each["metadata"]["name"] for each in slow.readings.events] == ["wanted"]
    assert slow.readings.lease is not None
    assert not await slow.read()
    assert server.count("list", kinds.EVENTS) == 1
    await clock.sleep(measuring.RESOLUTION)
    assert not await slow.read()  # it was read, and nothing is different
    assert server.count("list", kinds.EVENTS) == 2


async def test_an_agent_which_may_not_read_events_does_not_ask(
    server: APIServer, clock: Clock
) -> None:
    await reads(server, clock, events=False).read()
    assert not server.count("list", kinds.EVENTS)


async def test_what_cannot_be_read_is_left_out(server: APIServer, clock: Clock) -> None:
    server.fail(Unreachable("no answer"), kind=kinds.EVENTS)
    server.refuse("get", "leases")
    slow = reads(server, clock)
    await slow.read()
    assert slow.readings.events == []
