"""How long a Node stays as it is while its target is being connected."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from vnode.api.clock import Clock
from vnode.nodes.missing_links import CONNECT_TIMEOUT, RECONNECT_TIMEOUT, MissingLinks
from vnode.runtime.link_health import CONNECTING, OTHER_CLUSTER, UNREACHABLE, LinkHealth


def link(*, healthy: bool = False, reason: str = CONNECTING, synced: bool = False, now: Any) -> Any:
    return SimpleNamespace(health=LinkHealth(healthy, reason, "", now), synced=synced)


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("was_ready", "seconds"), [(True, RECONNECT_TIMEOUT), (False, CONNECT_TIMEOUT)]
)
async def test_a_node_that_was_ready_has_longer(
    clock: Clock, was_ready: bool, seconds: float
) -> None:
    missing, present = MissingLinks(clock), link(now=clock.now())
    assert missing.wait("n", None, was_ready=was_ready) == seconds
    await clock.sleep(seconds - 1)
    assert missing.wait("n", present, was_ready=was_ready) == pytest.approx(1)
    await clock.sleep(2)
    assert missing.wait("n", present, was_ready=was_ready) < 0


@pytest.mark.looptime
@pytest.mark.parametrize(
    "found",
    [
        {"healthy": True, "reason": "Connected"},
        {"reason": UNREACHABLE, "synced": True},
        {"reason": OTHER_CLUSTER},
    ],
)
async def test_what_is_known_of_a_target_is_said_at_once(
    clock: Clock, found: dict[str, Any]
) -> None:
    missing = MissingLinks(clock)
    missing.wait("n", None, was_ready=True)
    assert missing.wait("n", link(**found, now=clock.now()), was_ready=True) == 0
    await clock.sleep(RECONNECT_TIMEOUT)
    assert missing.wait("n", None, was_ready=True) == RECONNECT_TIMEOUT  # counted anew
