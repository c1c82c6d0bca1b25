"""Leases as they are built, and when an elector takes one: judged by what it saw change, and when.

Elections between live electors are in tests/integration/test_leader.py.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from tests import background
from tests.apiserver.server import APIServer
from vnode.api import errors, kinds, objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.kube import leases
from vnode.runtime.leader import Elector

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
async def server(clock: Clock) -> APIServer:
    server = APIServer("c1", clock)
    server.add(kinds.NAMESPACES, {"metadata": {"name": "vnode"}})
    return server


def hold(server: APIServer, holder: str) -> None:
    """Let somebody else take the lease."""
    server.add(kinds.LEASES, leases.build("agent", "vnode", holder, 15, NOW))


def holder(server: APIServer) -> str:
    lease = server.find(kinds.LEASES, "agent", "vnode")
    return str(objects.spec(lease or {})["holderIdentity"])


def elector(server: APIServer, clock: Clock, **options: Any) -> Elector:
    client = server.client()
    return Elector(client, "vnode", "agent", "me", clock=clock, chance=lambda: 0.5, **options)


def test_a_takeover_counts_and_is_bound_to_the_version_seen() -> None:
    lease = leases.build("agent", "vnode", "other", 15, NOW, transitions=4)
    lease["metadata"]["resourceVersion"] = "7"
    body = leases.takeover(lease, "me", 15, NOW)
    assert body["metadata"]["resourceVersion"] == "7"
    assert body["spec"]["leaseTransitions"] == 5
    assert body["spec"]["acquireTime"] == "2026-01-02T03:04:05.000000Z"


def test_a_renewal_keeps_the_acquire_time() -> None:
    lease = leases.build("agent", "vnode", "me", 15, NOW)
    assert "acquireTime" not in leases.takeover(lease, "me", 15, NOW)["spec"]


def test_the_lease_of_a_node_goes_with_the_node() -> None:
    lease = leases.build_for_node("admiralty-c2", "u", NOW)
    assert lease["spec"]["leaseDurationSeconds"] == 40
    assert lease["spec"]["holderIdentity"] == "admiralty-c2"
    assert lease["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "admiralty-c2", "uid": "u"}
    ]


@pytest.mark.looptime
async def test_a_lease_of_another_is_taken_only_after_its_whole_duration_unchanged(
    server: APIServer, clock: Clock
) -> None:
    hold(server, "other")
    led_at = []

    async def work() -> None:
        led_at.append(clock.monotonic())

    await elector(server, clock).run(work)
    assert 15 < led_at[0] <= 15 + 0.1
    assert holder(server) == ""


@pytest.mark.looptime
async def test_the_lease_of_a_process_that_has_ended_need_not_run_out(
    server: APIServer, clock: Clock
) -> None:
    hold(server, "dead")
    led_at = []

    async def work() -> None:
        led_at.append(clock.monotonic())

    await elector(server, clock, has_ended=lambda name: name == "dead").run(work)
    assert led_at == [0]


@pytest.mark.looptime
async def test_two_that_see_no_lease_do_not_both_lead(server: APIServer, clock: Clock) -> None:
    server.latency = lambda: 0.05
    leading: list[float] = []

    async def work() -> None:
        leading.append(clock.monotonic())
        await asyncio.Event().wait()

    both = (
        elector(server, clock),
        Elector(server.client(), "vnode", "agent", "other", clock=clock),
    )
    async with background.running(*(each.run(work) for each in both)):
        await asyncio.sleep(60)
        assert len(leading) == 1


@pytest.mark.looptime
@pytest.mark.parametrize("end", ["stop", "freeze"])
async def test_a_leader_that_cannot_renew_stops_within_the_renew_deadline(
    server: APIServer, clock: Clock, end: str
) -> None:
    me = elector(server, clock)
    terms = []

    async def work() -> None:
        terms.append(clock.monotonic())
        if len(terms) == 2:
            return

        assert me.is_leader
        getattr(server, end)()
        try:
            await asyncio.Event().wait()
        finally:
            assert clock.monotonic() - terms[0] <= 10 + 2
            assert not me.is_leader
            server.start()
            server.thaw()

    await me.run(work)
    assert len(terms) == 2


@pytest.mark.looptime
async def test_a_leader_that_sees_another_holder_stops_at_once(
    server: APIServer, clock: Clock
) -> None:
    me = elector(server, clock)
    stopped = asyncio.Event()
    ran_for = []

    async def work() -> None:
        began = clock.monotonic()
        hold(server, "other")
        try:
            await asyncio.Event().wait()
        finally:
            ran_for.append(clock.monotonic() - began)
            stopped.set()

    async with background.running(me.run(work)):
        await stopped.wait()
        assert ran_for[0] <= 2
        assert holder(server) == "other"


@pytest.mark.looptime
async def test_an_error_of_the_work_is_raised_and_the_lease_released(
    server: APIServer, clock: Clock
) -> None:
    async def work() -> None:
        raise errors.ConfigError("no")

    with pytest.raises(ExceptionGroup) as caught:
        await elector(server, clock).run(work)

    assert caught.group_contains(errors.ConfigError)
    assert holder(server) == ""


@pytest.mark.looptime
@pytest.mark.parametrize("then", ["me", "other"])
async def test_a_renewal_that_is_on_its_way_does_not_keep_a_lease(
    server: APIServer, clock: Clock, then: str
) -> None:
    """It is carried out though whoever sent it is cancelled; a lease of another stays."""

    async def work() -> None:
        def renew(lease: Object) -> None:
            lease["spec"] |= {"holderIdentity": then, "leaseTransitions": 7}

        server.change(kinds.LEASES, "agent", "vnode", renew)

    await elector(server, clock).run(work)
    assert holder(server) == ("" if then == "me" else "other")
