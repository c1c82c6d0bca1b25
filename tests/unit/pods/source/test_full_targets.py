"""Targets that have no room as far as known: which of them pods ask all the same, and when."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.pods.clusters import SourceCluster
from tests.unit.pods.targets import Target, is_silent, rejects, reserves
from vnode.api import keys
from vnode.pods.source import rotation

pytestmark = pytest.mark.looptime


async def test_each_attempt_asks_another_full_target_and_soon_the_one_that_makes_room(clock):
    targets = [Target(f"c{number}", clock, rejects) for number in range(4)]
    source = SourceCluster(clock, *targets)
    async with source.running():
        source.add("p", cpu="1")
        await source.until_said("p", "no room here")
        first = next(target for target in targets if target.asked("create"))
        for target in targets:
            target.answer = rejects if target is first else reserves  # by preemption, say

        await source.until_bound("p")
        assert clock.monotonic() < 2
        assert source.node_of("p") != first.node


async def test_targets_are_asked_once_each_in_quick_succession_and_then_rarely(clock):
    targets = [Target(f"c{number}", clock, rejects) for number in range(3)]
    source = SourceCluster(clock, *targets)
    async with source.running():
        source.add("p", cpu="1")
        await asyncio.sleep(15)
        assert [target.asked("create") for target in targets] == [1, 1, 1]
        await asyncio.sleep(600)
        # As many may stay as there are targets, for their autoscalers: nothing is written.
        assert [target.asked() for target in targets] == [1, 1, 1]


async def test_with_more_full_targets_than_candidates_may_stay_the_oldest_makes_way(clock):
    targets = [Target(f"c{number}", clock, rejects) for number in range(5)]
    source = SourceCluster(clock, *targets)
    async with source.running():
        source.add("p", cpu="1")
        await asyncio.sleep(30)
        assert [target.asked("create") for target in targets] == [1] * 5
        assert sum(target.find("p") is not None for target in targets) == 3
        newest = max(targets, key=lambda target: target.created_at[0])
        assert newest.find("p") is not None
        writes = sum(target.asked() for target in targets)
        await asyncio.sleep(600)
        assert sum(target.asked() for target in targets) - writes <= 2 * 10


@pytest.mark.no_cover
async def test_thousands_of_pods_that_fit_nowhere_move_few_candidates(clock):
    targets = [Target(f"c{number}", clock, rejects) for number in range(5)]
    source = SourceCluster(clock, *targets)
    count, minutes = rotation.BURST + 200, 1
    async with source.running():
        for number in range(count):
            source.add(f"p{number}", cpu="1")

        await asyncio.sleep(60 * minutes)
        created = sum(target.asked("create") for target in targets)
        assert created <= count + rotation.BURST + rotation.RATE * 60 * minutes


async def test_a_full_target_is_asked_although_another_seems_to_have_room_and_never_takes_it(clock):
    """Its nodes are of the wrong kind, say."""
    roomy, full = Target("c2", clock, rejects, cpu="100"), Target("c3", clock)
    source = SourceCluster(clock, roomy, full)
    async with source.running():
        source.add("p", cpu="1")
        await source.until_bound("p")
        assert source.node_of("p") == full.node
        assert clock.monotonic() < 3


async def test_a_resource_that_no_target_lists_is_asked_for_everywhere(clock):
    """As those are that targets offer by DRA only."""
    without, having = Target("c2", clock, rejects), Target("c3", clock)
    source = SourceCluster(clock, without, having)
    async with source.running():
        for number in range(6):
            requests = {"requests": {"example.com/gpu": "1"}}
            spec = {"containers": [{"name": "main", "resources": requests}]}
            source.add(f"p{number}", spec=spec)

        await source.until_bound(*(f"p{number}" for number in range(6)))
        assert {source.node_of(f"p{number}") for number in range(6)} == {having.node}
        assert clock.monotonic() < 3


async def test_a_pod_without_reservation_is_not_tried_where_nothing_would_hold_it(clock):
    target = Target("c2", clock, is_silent)
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p", cpu="1", annotations={keys.NO_RESERVATION: ""})
        await source.until_said("p", "Insufficient cpu")
        await asyncio.sleep(100)
        assert not target.asked()
        target.set_room(cpu="1")
        await source.until_bound("p")
