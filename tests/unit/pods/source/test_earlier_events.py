"""What is remembered of Events that an earlier leader has told, or that seem to be its."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.server import APIServer
from vnode.api import kinds
from vnode.api.clock import Clock
from vnode.kube import events
from vnode.pods.source import earlier_events, proxy_events
from vnode.pods.source.earlier_events import EarlierEvents

pytestmark = pytest.mark.looptime


def event(namespace: str, name: str, message: str = "pulling 1") -> dict[str, Any]:
    return {
        "metadata": {"namespace": namespace, "name": name},
        "involvedObject": {"kind": "Pod", "namespace": namespace, "name": "web"},
        "reportingComponent": proxy_events.REPORTER,
        "reason": "Pulling",
        "message": message,
        "count": 3,
    }


async def known_of(clock: Clock, *there: dict[str, Any]) -> EarlierEvents:
    server, earlier = APIServer("c1", clock), EarlierEvents()
    for each in there:
        server.add(kinds.EVENTS, each)

    await earlier.read(server.client("agent"))
    return earlier


async def test_an_event_is_known_by_its_words_and_its_count_until_it_was_looked_for(
    clock: Clock,
) -> None:
    earlier = await known_of(clock, event("team", "a"))
    assert earlier.take(event("team", "a")) == ("pulling 0", 3)
    assert earlier.take(event("team", "a")) is None
    assert earlier.take(event("other", "a")) is None


async def test_an_event_that_is_too_large_to_be_vnodes_is_neither_looked_at_nor_kept(
    clock: Clock,
) -> None:
    """Twenty of a megabyte each held up an agent that began to lead for seconds."""
    large = event("team", "a", "1, " * 300_000)
    earlier = await known_of(clock, large, event("team", "b", "x" * events.MESSAGE_LIMIT))
    assert earlier.take(large) is None
    assert earlier.take(event("team", "b")) is not None


async def test_those_of_one_namespace_take_no_place_of_others(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(earlier_events, "MOST", 3)
    flood = [event("flood", f"e{number}") for number in range(50)]
    earlier = await known_of(clock, *flood, event("team", "a"))
    assert earlier.take(event("team", "a")) is not None
    assert sum(earlier.take(each) is not None for each in flood) == 3
