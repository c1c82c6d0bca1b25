"""The election runs beside the work: what holds up the work's loop does not cost the lease.

In real time, since the work's loop is held up in earnest.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from tests.apiserver.server import APIServer
from vnode.api import kinds, objects
from vnode.api.clock import SystemClock
from vnode.kube.client import Client
from vnode.runtime import election
from vnode.runtime.leader import Elector, LeaseTiming
from vnode.runtime.loop_thread import loop_thread, run_in
from vnode.runtime.stall_guard import StallGuard
from vnode.runtime.supervisor import sleep_forever

_LONGEST = 30.0  # seconds
TIMING = LeaseTiming(duration=0.6, renew_deadline=0.4, retry_period=0.05)


class Cluster:
    """An API server that the thread alone calls, once it has been looked into."""

    def __init__(self) -> None:
        self.server = APIServer("c1", SystemClock())
        self.server.add(kinds.NAMESPACES, {"metadata": {"name": "vnode"}})

    def connect(self) -> Client:
        return self.server.client()

    @staticmethod
    def elect(client: Client, may_renew: Callable[[], bool]) -> Elector:
        return Elector(client, "vnode", "agent", "me", timing=TIMING, may_renew=may_renew)

    @property
    def lease(self) -> dict[str, object]:
        return objects.spec(self.server.find(kinds.LEASES, "agent", "vnode") or {})


def hold_up(seconds: float, until: Callable[[], bool] = lambda: True) -> None:
    """Keep this thread's loop from running, as a long computation does, until both hold.

    A machine may be so busy that nothing happens within those seconds.
    """
    begin = time.monotonic()
    while (passed := time.monotonic() - begin) < seconds or not until():
        assert passed < _LONGEST, "what is waited for is held up as well"


async def nothing(_client: Client, _guard: StallGuard) -> None:
    await sleep_forever()


async def test_a_loop_that_is_held_up_keeps_its_lease() -> None:
    cluster, terms = Cluster(), 0

    async def work() -> None:
        nonlocal terms
        terms += 1
        hold_up(3 * TIMING.duration)
        await asyncio.sleep(TIMING.duration)

    await election.lead(cluster.connect, cluster.elect, work, nothing)
    assert terms == 1
    assert cluster.lease["holderIdentity"] == ""


async def test_a_loop_that_stands_still_for_too_long_gives_up() -> None:
    cluster, cancelled = Cluster(), 0

    async def work() -> None:
        nonlocal cancelled
        if cancelled:
            return

        hold_up(4 * TIMING.duration)
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled += 1
            raise

    guard = StallGuard(TIMING.duration)
    await election.lead(cluster.connect, cluster.elect, work, nothing, guard=guard)
    assert cancelled == 1


class Heart:
    """Runs in the thread, and notes when it has; a moment of the work's loop takes it no time."""

    def __init__(self) -> None:
        self.beats: list[float] = []
        self.thread = ""

    async def __call__(self, _client: Client, _guard: StallGuard) -> None:
        self.thread = threading.current_thread().name
        while True:
            self.beats.append(time.monotonic())
            await asyncio.sleep(0.01)

    def beats_since(self, begin: float) -> int:
        return sum(beat > begin for beat in list(self.beats))


async def test_what_runs_beside_the_work_is_not_held_up_with_it_nor_ends_with_the_lease() -> None:
    cluster, heart, terms, beats = Cluster(), Heart(), 0, 0

    async def work() -> None:
        nonlocal terms, beats
        terms += 1
        if terms > 1:
            return

        begin, before = time.monotonic(), len(heart.beats)
        hold_up(
            TIMING.duration + TIMING.renew_deadline, until=lambda: heart.beats_since(begin) > 10
        )
        lost = time.monotonic()
        hold_up(3 * TIMING.duration, until=lambda: heart.beats_since(lost) > 5)
        beats = len(heart.beats) - before
        await sleep_forever()

    guard = StallGuard(TIMING.duration)
    await election.lead(cluster.connect, cluster.elect, work, heart, guard=guard)
    assert heart.thread == "election"
    assert beats > 15


async def test_without_an_election_there_is_a_thread_beside_the_work_all_the_same() -> None:
    cluster, heart = Cluster(), Heart()

    async def work() -> None:
        hold_up(0.5, until=lambda: len(heart.beats) > 10)

    await election.lead(cluster.connect, None, work, heart)
    assert heart.thread == "election"
    assert len(heart.beats) > 10
    assert not cluster.lease


async def test_work_that_fails_ends_the_election_with_its_error() -> None:
    cluster = Cluster()

    async def work() -> None:
        raise KeyError("of the work")

    with pytest.raises(ExceptionGroup) as caught:
        await election.lead(cluster.connect, cluster.elect, work, nothing)

    assert caught.group_contains(KeyError)


async def test_one_that_is_cancelled_ends_its_work_first_and_then_releases_the_lease() -> None:
    cluster, course = Cluster(), []
    working = asyncio.Event()

    async def work() -> None:
        working.set()
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.1)
            course.append(cluster.lease["holderIdentity"])

    leading = asyncio.create_task(election.lead(cluster.connect, cluster.elect, work, nothing))
    await working.wait()
    leading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leading

    assert course == ["me"]
    assert cluster.lease["holderIdentity"] == ""


async def test_what_is_cancelled_twice_is_still_awaited() -> None:
    ended, begun, here = [], asyncio.Event(), asyncio.get_running_loop()

    async def slow() -> None:
        here.call_soon_threadsafe(begun.set)
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.1)
            ended.append(True)

    async with loop_thread("test") as loop:
        running = asyncio.create_task(run_in(loop, slow, "slow"))
        await begun.wait()
        for _ in range(2):
            running.cancel()
            await asyncio.sleep(0)

        with pytest.raises(asyncio.CancelledError):
            await running

    assert ended == [True]
