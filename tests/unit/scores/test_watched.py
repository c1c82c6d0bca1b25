"""Which scores of a target are known while their kinds come, change and go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests import background
from tests.apiserver.server import APIServer
from tests.unit.scores import served
from vnode.api import kinds
from vnode.api.errors import Denied
from vnode.api.score_terms import ScoreReference, ScoreSource
from vnode.api.target_key import TargetKey
from vnode.scores.watched import WatchedScores

pytestmark = pytest.mark.looptime

BERLIN = TargetKey("", "berlin-1")
GPU = ScoreReference(ScoreSource.ADD_ON, "gpu", "usage")
PRICE = ScoreReference(ScoreSource.CLUSTER_SCORE, "price")
TARGET = {"name": "berlin-1"}


@asynccontextmanager
async def watching(server: APIServer, *used: ScoreReference) -> AsyncIterator[WatchedScores]:
    scores = WatchedScores(server.client())
    for reference in used:
        scores.use(reference)

    async with background.running(scores.run()):
        await scores.wait_known()
        yield scores


def gpu(scores: WatchedScores, clock: Any) -> int | str:
    found = scores.of(BERLIN, "berlin").of_add_on("usage", "gpu", clock.now())
    return found.why if found.value is None else found.value


def price(scores: WatchedScores, clock: Any) -> int | str:
    found = scores.of(BERLIN, "berlin").of_own("price", clock.now())
    return found.why if found.value is None else found.value


async def test_scores_are_known_before_the_first_pod_and_follow_their_objects(clock: Any) -> None:
    server = APIServer("hub", clock)
    served.serve(server)
    served.put_add_on(server, "berlin", gpu=-70)
    served.put_add_on(server, "paris", gpu=5)
    served.put_own(server, "prices", TARGET, price=30)
    async with watching(server, GPU, PRICE) as scores:
        assert (gpu(scores, clock), price(scores, clock)) == (-70, 30)
        told: list[None] = []
        scores.subscribe(lambda: told.append(None))
        served.put_add_on(server, "berlin", gpu=12)
        served.put_own(server, "prices", {"name": "paris-1"}, price=30)
        await asyncio.sleep(1)
        assert len(told) == 2
        assert gpu(scores, clock) == 12
        assert "no ClusterScore" in str(price(scores, clock))
        server.remove(kinds.ADDON_PLACEMENT_SCORES, "usage", "berlin")
        await asyncio.sleep(1)
        assert "there is no AddOnPlacementScore usage in namespace berlin" in str(
            gpu(scores, clock)
        )


async def test_a_kind_may_come_later_and_go(clock: Any) -> None:
    server = APIServer("hub", clock)
    async with watching(server, GPU) as scores:
        assert "does not serve addonplacementscores" in str(gpu(scores, clock))
        served.serve(server, kinds.ADDON_PLACEMENT_SCORES)
        served.put_add_on(server, "berlin", gpu=1)
        await asyncio.sleep(1)
        assert gpu(scores, clock) == 1
        server.remove(kinds.CRDS, kinds.ADDON_PLACEMENT_SCORES.resource)
        await asyncio.sleep(1)
        assert "does not serve" in str(gpu(scores, clock))


async def test_what_may_not_be_read_is_said_with_the_cure(clock: Any) -> None:
    server = APIServer("hub", clock)
    served.serve(server)
    denied = Denied(403, "Forbidden", "no")
    server.fail(denied, verb="list", kind=kinds.CLUSTER_SCORES, times=None)
    async with watching(server, PRICE) as scores:
        assert "bind ClusterRole vnode-scores to the agent" in str(price(scores, clock))


async def test_an_api_server_that_is_away_holds_nobody_up_for_long(clock: Any) -> None:
    server = APIServer("hub", clock)
    server.freeze()
    before = clock.monotonic()
    async with watching(server, PRICE) as scores:
        assert clock.monotonic() - before <= 10
        assert "have not been listed yet" in str(price(scores, clock))


async def test_what_is_not_used_is_not_watched(clock: Any) -> None:
    server = APIServer("hub", clock)
    served.serve(server)
    rate = ScoreReference(ScoreSource.PROPERTY, "rate")
    async with watching(server, rate) as scores:
        await asyncio.sleep(1)
        assert not server.watches()
        assert not scores.used

    async with watching(server, PRICE):
        await asyncio.sleep(1)
        assert not server.watches(kinds.ADDON_PLACEMENT_SCORES)
        assert len(server.watches(kinds.CLUSTER_SCORES)) == 1
