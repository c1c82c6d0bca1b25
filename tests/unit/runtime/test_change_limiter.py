"""A namespace that changes its pods all the time waits, and no other does."""

from __future__ import annotations

import pytest

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.runtime.change_limiter import ChangeLimiter
from vnode.runtime.write_limits import CHANGES, CHANGES_OF_NAMESPACE

pytestmark = pytest.mark.looptime


def made(clock: Clock) -> ChangeLimiter[str]:
    limits = CHANGES, CHANGES_OF_NAMESPACE
    return ChangeLimiter("changes", "pods", limits, clock, namespace=objects.key_namespace)


def send_all(limiter: ChangeLimiter[str], namespace: str, count: int) -> int:
    """Send one change of each of so many pods; return how many need not wait."""
    sent = 0
    for number in range(count):
        key = f"{namespace}/pod-{number}"
        if not limiter.wait(key):
            limiter.sent(key)
            sent += 1

    return sent


async def test_a_pod_has_a_burst_and_then_one_change_in_a_while(clock: Clock) -> None:
    limiter = made(clock)
    for _ in range(CHANGES.burst):
        assert limiter.wait("team/web") == 0
        limiter.sent("team/web")

    assert limiter.wait("team/web") == pytest.approx(1 / CHANGES.rate)
    assert limiter.wait("team/db") == 0


async def test_pods_of_a_namespace_share_a_rate_that_concerns_no_other(clock: Clock) -> None:
    limiter = made(clock)
    assert send_all(limiter, "many", CHANGES_OF_NAMESPACE.burst + 50) == CHANGES_OF_NAMESPACE.burst
    assert send_all(limiter, "one", 10) == 10
    await clock.sleep(1.01)
    waited = [f"many/pod-{CHANGES_OF_NAMESPACE.burst + n}" for n in range(50)]
    due = [key for key in waited if not limiter.wait(key)]
    assert len(due) == CHANGES_OF_NAMESPACE.rate


async def test_nothing_is_left_of_a_pod_that_is_gone(clock: Clock) -> None:
    limiter = made(clock)
    send_all(limiter, "many", CHANGES_OF_NAMESPACE.burst + 1)
    for number in range(CHANGES_OF_NAMESPACE.burst + 1):
        limiter.forget(f"many/pod-{number}")

    assert not limiter._since
    assert not limiter._of_objects._buckets
    assert not limiter._of_namespaces._due
