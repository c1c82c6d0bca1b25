from __future__ import annotations

import asyncio
import itertools

import pytest

from tests import background
from vnode.api.errors import ConfigError, TooManyRequests
from vnode.runtime.controller import Controller
from vnode.telemetry import audit

pytestmark = pytest.mark.looptime


async def test_failures_are_retried_ever_more_slowly_up_to_half_a_minute(clock):
    moments = []

    async def reconcile(key):
        moments.append(clock.monotonic())
        raise ConfigError("no")

    controller = Controller("test", reconcile, subject=audit.agent, workers=1)
    async with background.running(controller.run()):
        controller.add("a")
        await asyncio.sleep(130)

    gaps = [late - early for early, late in itertools.pairwise(moments)]
    expected = [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30]
    assert gaps == pytest.approx(expected[: len(gaps)], abs=0.01)
    assert len(gaps) >= 11


async def test_a_success_forgets_earlier_failures(clock):
    moments = []

    async def reconcile(key):
        moments.append(clock.monotonic())
        if len(moments) != 3:
            raise ConfigError("no")

    controller = Controller("test", reconcile, subject=audit.agent, workers=1)
    async with background.running(controller.run()):
        controller.add("a")
        await asyncio.sleep(1)
        assert len(moments) == 3
        controller.add("a")
        await asyncio.sleep(0.06)

    assert moments[4] - moments[3] == pytest.approx(0.05, abs=0.001)


async def test_the_server_is_given_the_time_that_it_asks_for(clock):
    moments = []

    async def reconcile(key):
        moments.append(clock.monotonic())
        if len(moments) == 1:
            error = TooManyRequests(429, "", "slow down")
            error.retry_after = 7.0
            raise error

    controller = Controller("test", reconcile, subject=audit.agent, workers=1)
    async with background.running(controller.run()):
        controller.add("a")
        await asyncio.sleep(20)

    assert moments == pytest.approx([0, 7], abs=0.01)


async def test_a_bug_in_one_reconciliation_stops_neither_it_nor_others(caplog):
    done = []

    async def reconcile(key):
        done.append(key)
        if key == "bad" and done.count("bad") < 3:
            raise ZeroDivisionError

    controller = Controller("test", reconcile, subject=audit.agent, workers=1)
    async with background.running(controller.run()):
        controller.add("bad")
        controller.add("good")
        await asyncio.sleep(1)

    assert done.count("bad") == 3
    assert done.count("good") == 1
    assert "reconciling bad failed" in caplog.text


async def test_a_key_is_looked_at_again_when_it_asked_for_that(clock):
    moments = []

    async def reconcile(key):
        moments.append(clock.monotonic())
        return 10.0

    controller = Controller("test", reconcile, subject=audit.agent)
    async with background.running(controller.run()):
        controller.add("a")
        await asyncio.sleep(25)

    assert moments == pytest.approx([0, 10, 20], abs=0.01)


async def test_one_key_is_never_in_two_workers_and_others_need_not_wait(clock):
    inside, peak, calls = set(), 0, []

    async def reconcile(key):
        nonlocal peak
        assert key not in inside
        inside.add(key)
        peak = max(peak, len(inside))
        calls.append(key)
        await asyncio.sleep(1)
        inside.discard(key)

    controller = Controller("test", reconcile, subject=audit.agent, workers=2)
    async with background.running(controller.run()):
        controller.add("a")
        controller.add("b")
        await asyncio.sleep(0.5)
        controller.add("a")
        controller.add("a")
        await asyncio.sleep(5)

    assert peak == 2
    assert sorted(calls) == ["a", "a", "b"]


async def test_keys_that_need_no_waiting_do_not_hold_up_everything_else():
    """A leader looked at 2,000 pods in one go at its start, and lost its lease meanwhile."""
    done = []

    async def reconcile(key):
        done.append(key)

    controller = Controller("test", reconcile, subject=audit.agent, workers=2)
    for key in range(1000):
        controller.add(key)

    async with background.running(controller.run()):
        for _ in range(3):
            await asyncio.sleep(0)

        assert 0 < len(done) < 10
        await asyncio.sleep(1)
        assert len(done) == 1000
