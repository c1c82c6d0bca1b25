"""A status is written where it differs, once for each version that was seen, and in intervals."""

from __future__ import annotations

import asyncio

import pytest

from tests import background
from tests.apiserver.server import APIServer
from vnode.api import kinds, objects, status_conditions
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.kube.events import EventRecorder
from vnode.runtime.status_reporter import StatusReporter
from vnode.runtime.write_limits import WriteLimit

pytestmark = pytest.mark.looptime
KIND = kinds.PLACEMENT_POLICIES


class ReportedPolicy:
    """A server with one policy, and a reporter of its status."""

    def __init__(self, clock: Clock, *, burst: int = 10) -> None:
        self.server = APIServer("c1", clock)
        self.server.add(kinds.NAMESPACES, {"metadata": {"name": "ns"}})
        self.server.add(KIND, {"metadata": {"name": "web", "namespace": "ns"}, "spec": {}})
        client, limit = self.server.client(), WriteLimit(burst, 0.1)
        self.events = EventRecorder(client, "vnode", clock)
        self.woken: list[str] = []
        self.after: list[Object] = []
        self.clock = clock
        self.reporter = StatusReporter(
            client, "policies", limit, wake=self.woken.append, clock=clock, events=self.events
        )

    @property
    def policy(self) -> Object:
        found = self.server.find(KIND, "web", "ns")
        assert found is not None
        return found

    async def report(self, obj: Object | None = None, **status: object) -> float | None:
        return await self.reporter.report(
            "ns/web", KIND, obj or self.policy, dict(status), self.after.append
        )

    async def turn(self, holds: bool, message: str = "so it is") -> float | None:
        """Report what became of a condition."""
        obj, reason = self.policy, "Fine" if holds else "Wrong"
        built = status_conditions.build(obj, "Ready", holds, reason, message, self.clock.now())
        return await self.report(obj, conditions=status_conditions.merged(obj, built))

    @property
    def writes(self) -> int:
        return self.server.count("patch", KIND)

    def told(self) -> list[tuple[str, str]]:
        found = self.server.all(kinds.EVENTS)
        return sorted((event["type"], event["reason"]) for event in found)


async def test_only_what_differs_is_written(clock: Clock) -> None:
    reported = ReportedPolicy(clock)
    assert await reported.report(replicas=1, workloadCount=1) is None
    assert await reported.report(replicas=1, workloadCount=None) is None
    assert reported.writes == 1
    assert await reported.report(replicas=2, workloadCount=None) is None
    assert objects.status(reported.policy) == {"replicas": 2, "workloadCount": 1}
    assert [objects.status(after)["replicas"] for after in reported.after] == [1, 2]


async def test_an_object_older_than_the_last_write_is_pending(clock: Clock) -> None:
    reported = ReportedPolicy(clock)
    before = reported.policy
    await reported.report(before, replicas=1)
    assert reported.reporter.pending("ns/web", before)
    assert not reported.reporter.pending("ns/web", reported.policy)


async def test_a_status_that_keeps_changing_is_written_in_intervals(clock: Clock) -> None:
    reported = ReportedPolicy(clock, burst=1)
    assert await reported.report(replicas=1) is None
    assert await reported.report(replicas=2) == pytest.approx(10.0)
    assert await reported.report(replicas=1) is None
    await asyncio.sleep(10)
    assert await reported.report(replicas=3) is None
    assert reported.writes == 2


async def test_an_event_tells_what_has_turned_and_no_other_message(clock: Clock) -> None:
    reported = ReportedPolicy(clock)
    async with background.running(reported.events.run()):
        await reported.turn(False)
        await reported.turn(False, "it is still so")
        await reported.report(replicas=1)
        await reported.turn(True)
        await asyncio.sleep(60)

    assert reported.told() == [("Normal", "Fine"), ("Warning", "Wrong")]
    assert reported.writes == 4


async def test_conditions_of_others_are_kept_and_not_told(clock: Clock) -> None:
    reported = ReportedPolicy(clock)
    foreign = {"type": "Foreign"}
    status = {"conditions": [foreign]}
    reported.server.change(KIND, "web", "ns", lambda obj: obj.update(status=status))
    async with background.running(reported.events.run()):
        await reported.turn(True)
        await asyncio.sleep(60)

    assert foreign in objects.status(reported.policy)["conditions"]
    assert reported.told() == [("Normal", "Fine")]


async def test_an_object_that_is_gone_or_another_one_by_now_is_not_written(clock: Clock) -> None:
    reported = ReportedPolicy(clock)
    before = reported.policy
    reported.server.remove(KIND, "web", "ns")
    assert await reported.report(before, replicas=1) is None
    assert not reported.after


async def test_a_forgotten_object_may_be_written_at_once(clock: Clock) -> None:
    reported = ReportedPolicy(clock, burst=1)
    before = reported.policy
    await reported.report(before, replicas=1)
    reported.reporter.forget("ns/web")
    assert not reported.reporter.pending("ns/web", before)
    assert await reported.report(replicas=2) is None


async def test_a_write_that_is_never_seen_wakes_its_key(clock: Clock) -> None:
    reported = ReportedPolicy(clock)
    await reported.report(replicas=1)
    await asyncio.sleep(300)
    assert reported.woken == ["ns/web"]
