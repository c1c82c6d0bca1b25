"""Overflow: pods that a full cluster does not take go elsewhere, when it is time."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from tests.unit.pods.planned_sources import clouds, weighted, written
from tests.unit.pods.policies import Planned, add_replicas, entry, places, spread
from vnode.api import keys, kinds, objects, placeholders
from vnode.planning.policy import Mode

pytestmark = pytest.mark.looptime


async def test_pods_that_full_clusters_do_not_take_overflow_after_the_threshold(clock):
    targets = clouds(clock, 6, 6, 14)
    source = Planned(clock, weighted(targets, (40, 40, 20)), *targets)
    async with source.running():
        pods = add_replicas(source, 20)
        await asyncio.sleep(115)
        assert places(source, pods) == {"c1": 6, "c2": 6, "c3": 4, "": 4}
        waiting = [pod for pod in pods if not source.node_of(pod)]
        aims = [[t.link.target.name for t in targets if t.find(pod)] for pod in waiting]
        assert sorted(aims) == [["c1"], ["c1"], ["c2"], ["c2"]]
        await source.until_bound(*pods)
        assert places(source, pods) == {"c1": 6, "c2": 6, "c3": 8}
        assert 118 < clock.monotonic() < 123
        why = Counter(written(source, pod) for pod in pods)
        late = "after 2m (placementpolicy/web)"
        assert why[f"overflowed from c1 {late}"] == why[f"overflowed from c2 {late}"] == 2
        assert sum(count for words, count in why.items() if words.startswith("planned here")) == 16


async def test_whichever_cluster_starts_a_pod_first_has_it(clock):
    targets = clouds(clock, 0, 0)
    policy = spread(*(entry(t.node) for t in targets), mode=Mode.FILL, after=60)
    source = Planned(clock, policy, *targets)
    async with source.running():
        pods = add_replicas(source, 2)
        await asyncio.sleep(70)
        assert all(target.find(pod) for target in targets for pod in pods)
        targets[0].grow(1)
        targets[1].grow(1)
        await source.until_bound(*pods)
        assert places(source, pods) == {"c1": 1, "c2": 1}
        left = [len(target.server.all(kinds.POD_CHAPERONS)) for target in targets]
        assert left == [2, 1], "only the better cluster keeps a candidate"


async def test_another_threshold_opens_another_cluster_up_to_the_limit(clock):
    targets = clouds(clock, 0, 0, 0, 0)
    policy = spread(
        *(entry(t.node, weight=w) for t, w in zip(targets, (4, 3, 2, 1), strict=True)), after=60
    )
    source = Planned(clock, policy, *targets)
    async with source.running():
        add_replicas(source, 1)
        for minute, expected in enumerate((1, 2, 3, 3, 3)):
            await asyncio.sleep(60 * minute + 30 - clock.monotonic())
            found = [t.link.target.name for t in targets if t.find("web-1-0")]
            assert found == [f"c{number + 1}" for number in range(expected)]

        assert sum(target.asked() for target in targets) == 3


def restarted(source, clock):
    """Reconnect the targets; return the source after a restart of its agent."""
    for target in source.targets:
        target.reconnect()

    return Planned(clock, source.policy.policy, *source.targets, server=source.server)


async def test_overflow_goes_on_over_a_restart(clock):
    targets = clouds(clock, 6, 6, 14)
    source = Planned(clock, weighted(targets, (40, 40, 20)), *targets)
    async with source.running():
        pods = add_replicas(source, 20)
        await asyncio.sleep(100)

    written = sum(target.asked() for target in targets)
    source = restarted(source, clock)
    async with source.running():
        await asyncio.sleep(10)
        assert sum(target.asked() for target in targets) == written, "candidates were moved"
        await source.until_bound(*(pod for pod in pods if not source.node_of(pod)))
        assert places(source, pods) == {"c1": 6, "c2": 6, "c3": 8}
        assert 118 < clock.monotonic() < 123


async def test_a_restart_after_the_threshold_leaves_candidates_where_they_wait(clock):
    targets = clouds(clock, 0, 0, 0, 0)
    policy = spread(*(entry(t.node) for t in targets), mode=Mode.FILL, after=60)
    source = Planned(clock, policy, *targets)
    async with source.running():
        pods = add_replicas(source, 6)
        await asyncio.sleep(90)

    written = sum(target.asked() for target in targets)
    waiting = {pod: [bool(target.find(pod)) for target in targets] for pod in pods}
    assert all(sum(found) == 2 for found in waiting.values())
    source = restarted(source, clock)
    async with source.running():
        await asyncio.sleep(20)
        assert sum(target.asked() for target in targets) == written
        assert {pod: [bool(t.find(pod)) for t in targets] for pod in pods} == waiting


async def test_overflow_respects_maximums(clock):
    targets = clouds(clock, 2, 99)
    first, second = (target.node for target in targets)
    entries = entry(first, weight=9), entry(second, weight=1, maximum=3)
    source = Planned(clock, spread(*entries, after=5), *targets)
    async with source.running():
        pods = add_replicas(source, 10)
        await asyncio.sleep(100)
        assert places(source, pods) == {"c1": 2, "c2": 3, "": 5}


async def test_pods_overflow_by_capacity_to_a_cluster_that_had_none_before(clock):
    targets = clouds(clock, 2, 99)
    targets[0].set_room(cpu="2")
    targets[1].set_room(cpu="0")
    source = Planned(clock, spread(after=60), *targets)
    async with source.running():
        pods = add_replicas(source, 4)
        await asyncio.sleep(30)
        assert places(source, pods) == {"c1": 2, "": 2}
        targets[0].set_room(cpu="0")
        targets[1].set_room(cpu="50")
        await source.until_bound(*pods)
        assert places(source, pods) == {"c1": 2, "c2": 2}
        assert clock.monotonic() < 70


async def test_surge_of_a_rollout_stays_where_it_is_planned_or_goes_on_at_once(clock):
    """Its maximum is for the pods of each revision, as far as the cluster has room for more."""
    for room, expected in ((99, {"c1": 2}), (6, {"c2": 2})):
        targets = clouds(clock, room, 99)
        entries = entry(targets[0].node, maximum=6), entry(targets[1].node)
        source = Planned(clock, spread(*entries, mode=Mode.FILL, after=300), *targets)
        async with source.running():
            old = add_replicas(source, 8)
            await source.until_bound(*old)
            began = clock.monotonic()
            new = add_replicas(source, 2, owner="web-2")
            await source.until_bound(*new)
            assert places(source, new) == expected
            assert clock.monotonic() - began < 60
            marks = [objects.annotations(source.pod(pod)).get(keys.OVERFLOWED_FROM) for pod in new]
            assert marks == [None if room > 6 else targets[0].node] * 2
            assert not any(placeholders.of(source.pod(pod)) for pod in new)
