"""Leases as they are built, and when an elector takes one: judged by what it saw change, and when.

Elections between live electors are in tests/integration/test_leader.py.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from vnode.api import errors, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube import leases
from vnode.runtime.leader import Elector

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class Clock:
    """Time that passes when somebody sleeps."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def now(self) -> datetime:
        return NOW

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        await asyncio.sleep(0)


class OneLease:
    """The one object that an elector reads and patches; `down` makes every call fail."""

    def __init__(self, lease: Object | None) -> None:
        self.lease = lease
        self.down = False

    def _there(self) -> Object:
        if self.down:
            raise errors.Unreachable("down")

        if self.lease is None:
            raise errors.NotFound(404, "NotFound", "")

        return self.lease

    async def get(self, *_args: Any) -> Object:
        return self._there()

    async def create(self, _kind: Kind, lease: Object) -> Object:
        self.lease = lease
        return lease

    async def patch(self, _kind: Kind, _name: str, body: Object, _namespace: str) -> Object:
        lease = self._there()
        self.lease = {**lease, "spec": {**objects.spec(lease), **body["spec"]}}
        return self.lease

    @property
    def holder(self) -> str:
        return str(objects.spec(self.lease or {})["holderIdentity"])


def elector(server: OneLease, clock: Clock) -> Elector:
    client: Any = server
    return Elector(client, "vnode", "agent", "me", clock=clock, chance=lambda: 0.5)


def test_a_takeover_counts_and_is_bound_to_the_version_seen() -> None:
    lease = leases.build("agent", "vnode", "other", 15, NOW, transitions=4)
    lease["metadata"]["resourceVersion"] = "7"
    body = leases.takeover(lease, "me", 15, NOW)
    assert body["metadata"] == {"resourceVersion": "7"}
    assert body["spec"]["leaseTransitions"] == 5
    assert body["spec"]["acquireTime"] == "2026-01-02T03:04:05.000000Z"


def test_a_renewal_keeps_the_acquire_time() -> None:
    lease = leases.build("agent", "vnode", "me", 15, NOW)
    assert "acquireTime" not in leases.takeover(lease, "me", 15, NOW)["spec"]


def test_the_lease_of_a_node_goes_with_the_node() -> None:
    node = {"metadata": {"name": "admiralty-c2", "uid": "u"}}
    lease = leases.build_for_node(node, NOW)
    assert lease["spec"]["leaseDurationSeconds"] == 40
    assert lease["spec"]["holderIdentity"] == "admiralty-c2"
    assert lease["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "admiralty-c2", "uid": "u"}
    ]


async def test_a_lease_of_another_is_taken_only_after_its_whole_duration_unchanged() -> None:
    clock, server = Clock(), OneLease(leases.build("agent", "vnode", "other", 15, NOW))
    started = clock.seconds
    led_at = []

    async def work() -> None:
        led_at.append(clock.seconds - started)

    await elector(server, clock).run(work)
    assert 15 < led_at[0] <= 15 + 0.1
    assert server.holder == ""


async def test_the_lease_of_a_process_that_has_ended_need_not_run_out() -> None:
    clock, server = Clock(), OneLease(leases.build("agent", "vnode", "dead", 15, NOW))
    client: Any = server
    me = Elector(client, "vnode", "agent", "me", clock=clock, has_ended=lambda name: name == "dead")
    started = clock.seconds
    led_at = []

    async def work() -> None:
        led_at.append(clock.seconds - started)

    await me.run(work)
    assert led_at == [0]


async def test_a_leader_that_cannot_renew_stops_within_the_renew_deadline() -> None:
    clock, server = Clock(), OneLease(None)
    me = elector(server, clock)
    terms = []

    async def work() -> None:
        terms.append(clock.seconds)
        if len(terms) == 2:
            return

        assert me.is_leader
        server.down = True
        try:
            await asyncio.Event().wait()
        finally:
            assert clock.seconds - terms[0] <= 6 + 1.5
            assert not me.is_leader
            server.down = False

    await me.run(work)
    assert len(terms) == 2


async def test_a_leader_that_sees_another_holder_stops_at_once() -> None:
    clock, server = Clock(), OneLease(None)
    me = elector(server, clock)
    stopped = asyncio.Event()
    ran_for = []

    async def work() -> None:
        began = clock.seconds
        server.lease = leases.build("agent", "vnode", "other", 15, NOW)
        try:
            await asyncio.Event().wait()
        finally:
            ran_for.append(clock.seconds - began)
            stopped.set()

    task = asyncio.create_task(me.run(work))
    await stopped.wait()
    assert ran_for[0] <= 2
    assert server.holder == "other"
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_error_of_the_work_is_raised_and_the_lease_released() -> None:
    server = OneLease(None)

    async def work() -> None:
        raise errors.ConfigError("no")

    with pytest.raises(ExceptionGroup) as caught:
        await elector(server, Clock()).run(work)

    assert caught.group_contains(errors.ConfigError)
    assert server.holder == ""
