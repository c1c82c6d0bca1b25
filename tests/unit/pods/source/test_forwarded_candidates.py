"""A pod that came from another cluster has few candidates at once, however many targets there are.

Each of them may have as many in the next cluster, and so on: else one pod of a user would be
thousands in a mesh of clusters.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.unit.pods.clusters import SourceCluster
from tests.unit.pods.targets import Answer, Target, is_silent, prefer, rejects, reserves
from vnode.api import keys, kinds
from vnode.api.clock import Clock
from vnode.pods.source.candidates import CandidateSettings

pytestmark = pytest.mark.looptime

HERE, SECOND, THIRD = 0, 1, 2  # how many clusters the pod came through
ANY = CandidateSettings(parallel=3, keep_rejected=9)


def origin(hops: int) -> dict[str, Any]:
    """Return the metadata of a pod that came through so many clusters."""
    if not hops:
        return {}

    owner = {"kind": kinds.POD_CHAPERONS.kind, "name": "p", "uid": "of-p", "controller": True}
    path = ",".join(f"cluster-{number}" for number in range(hops))
    annotations = {keys.FORWARD: "", keys.PATH: path}
    return {"ownerReferences": [owner], "annotations": annotations}


class CandidateCounter:
    """Notes how many candidates there were at once in several targets."""

    def __init__(self, *targets: Target) -> None:
        self.most = 0
        self._targets = targets
        for target in targets:
            target.server.store.changed.add(lambda _kind, _change: self._count())

    @property
    def now(self) -> int:
        return sum(target.find("p") is not None for target in self._targets)

    def _count(self) -> None:
        self.most = max(self.most, self.now)


@pytest.fixture
async def targets(clock: Clock) -> list[Target]:
    """Return six targets, the first of which is ranked highest."""
    targets = [Target(f"c{number}", clock) for number in range(2, 8)]
    prefer(*targets)
    for target in targets:
        target.link.recognized_uid = f"uid-of-{target.server.name}"  # it is not on the pod's path

    return targets


@pytest.mark.parametrize("answer", [rejects, is_silent])
@pytest.mark.parametrize(("hops", "most", "kept"), [(HERE, 6, 6), (SECOND, 2, 1), (THIRD, 1, 0)])
async def test_candidates_at_once_are_fewer_in_each_cluster(
    clock: Clock, targets: list[Target], hops: int, most: int, kept: int, answer: Answer
) -> None:
    for target in targets:
        target.answer = answer

    counted = CandidateCounter(*targets)
    source = SourceCluster(clock, *targets, settings=ANY)
    async with source.running():
        source.add("p", **origin(hops))
        await source.until_said("p", "0/6 targets")
        await asyncio.sleep(1)
        assert [target.asked("create") > 0 for target in targets] == [True] * 6
        # One that is being deleted is there for a moment beside the next.
        assert counted.most <= most + (hops > HERE)
        assert counted.now <= (most if answer is is_silent else kept)


@pytest.mark.parametrize("hops", [SECOND, THIRD])
async def test_the_last_of_many_targets_gets_the_pod_all_the_same(
    clock: Clock, targets: list[Target], hops: int
) -> None:
    for target in targets[:-1]:
        target.answer = rejects

    targets[-1].answer = reserves
    source = SourceCluster(clock, *targets)
    async with source.running():
        source.add("p", **origin(hops))
        await source.until_bound("p")
        assert source.node_of("p") == targets[-1].node


@pytest.mark.parametrize(("hops", "asked"), [(SECOND, 2), (THIRD, 1)])
async def test_targets_that_take_their_time_are_left_it(
    clock: Clock, targets: list[Target], hops: int, asked: int
) -> None:
    for target in targets:
        target.answer = is_silent

    source = SourceCluster(clock, *targets)
    async with source.running():
        source.add("p", **origin(hops))
        await asyncio.sleep(20)
        assert sum(target.asked("create") for target in targets) == asked
        targets[0].annotate(targets[0].candidate("p"), **{keys.IS_RESERVED: "true"})
        await source.until_bound("p")
        assert source.node_of("p") == targets[0].node
