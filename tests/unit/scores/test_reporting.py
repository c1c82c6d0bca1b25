"""A score that is used and does not count is told on its Target, and not too often."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from tests import background
from tests.apiserver import links
from tests.apiserver.server import APIServer
from tests.unit.scores import served
from vnode.api import kinds, objects
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.api.score_terms import ScoreReference, ScoreSource
from vnode.api.target_key import TargetKey
from vnode.kube.events import EventRecorder
from vnode.runtime.links import Links
from vnode.scores.reporting import MissingScores
from vnode.scores.watched import WatchedScores
from vnode.telemetry import metrics, target_series

pytestmark = pytest.mark.looptime

BERLIN = TargetKey("ns", "berlin")


class Hub:
    """A source that uses one score of one target."""

    def __init__(self, clock: Any) -> None:
        self.clock = clock
        self.server = APIServer("hub", clock)
        self.server.add(kinds.NAMESPACES, {"metadata": {"name": "ns"}})
        served.serve(self.server)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        client, known = self.server.client(), Links()
        known.add(
            links.link_to(APIServer("t", self.clock), BERLIN, Identity("hub", "us"), self.clock)
        )
        scores = WatchedScores(client)
        scores.use(ScoreReference(ScoreSource.CLUSTER_SCORE, "price"))
        events = EventRecorder(client, "vnode", self.clock)
        target: Object = {"metadata": {"name": "berlin", "namespace": "ns", "uid": "u"}}
        missing = MissingScores(
            scores,
            known,
            lambda link: scores.of(link.target, link.target.name),
            lambda _key: target,
            events,
            self.clock,
        )
        async with background.running(scores.run(), events.run()):
            await scores.wait_known()
            async with background.running(missing.run()):
                yield

    def write(self, *, seconds: float = 0, value: int = 30) -> None:
        """Write the score, which ends some seconds from now, if it does."""
        end = self.clock.now() + timedelta(seconds=seconds)
        until = objects.timestamp(end) if seconds else ""
        target = {"name": "berlin", "namespace": "ns"}
        served.put_own(self.server, "prices", target, until=until, price=value)

    @property
    def told(self) -> list[tuple[str, str, int]]:
        """Reason, name of the Target, and number of the Events."""
        return [
            (e["reason"], e["involvedObject"]["name"], e["count"])
            for e in self.server.all(kinds.EVENTS)
        ]


async def test_a_missing_score_is_told_after_a_minute_and_once_an_hour(clock: Any) -> None:
    hub = Hub(clock)
    async with hub.running():
        await asyncio.sleep(59)
        assert not hub.told
        await asyncio.sleep(2)
        assert hub.told == [("ScoreMissing", "berlin", 1)]
        await asyncio.sleep(3000)
        assert len(hub.told) == 1
        await asyncio.sleep(1000)
        assert hub.told == [("ScoreMissing", "berlin", 1)] * 2


async def test_one_that_ends_is_told_a_minute_later_unless_it_is_renewed(clock: Any) -> None:
    hub = Hub(clock)
    hub.write(seconds=100)
    async with hub.running():
        await asyncio.sleep(110)
        hub.write(seconds=100)
        await asyncio.sleep(150)
        assert not hub.told
        await asyncio.sleep(20)
        assert [reason for reason, *_ in hub.told] == ["ScoreExpired"]


async def test_one_that_counts_is_not_told(clock: Any) -> None:
    hub = Hub(clock)
    hub.write()
    async with hub.running():
        await asyncio.sleep(7200)
        assert not hub.told


def sample(name: str) -> float | None:
    labels = {"target": "ns/berlin", "source": "ClusterScore", "score": "price"}
    return metrics.REGISTRY.get_sample_value(name, labels)


async def test_metrics_show_a_score_while_it_counts_and_that_it_is_missing_after(
    clock: Any,
) -> None:
    hub = Hub(clock)
    hub.write(seconds=100, value=-40)
    async with hub.running():
        await asyncio.sleep(1)
        assert sample("vnode_target_score") == -40
        assert sample("vnode_target_score_missing") == 0
        hub.write(seconds=100, value=30)
        await asyncio.sleep(1)
        assert sample("vnode_target_score") == 30
        await asyncio.sleep(110)
        assert sample("vnode_target_score") is None
        assert sample("vnode_target_score_missing") == 1
        target_series.forget("ns/berlin")
        target_series.expect("ns/berlin")  # for other tests

    assert sample("vnode_target_score_missing") is None
