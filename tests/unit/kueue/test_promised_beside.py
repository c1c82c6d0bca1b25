"""What ten thousand promises cost the answer to one workload, whoever has them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.computing import BusyClock
from tests.unit.kueue.environment import KueueEnvironment, pod_set
from tests.unit.scheduling.builders import pod
from vnode.api import packing
from vnode.api.limit_ranges import Nanos
from vnode.api.shape import Shape
from vnode.kueue import workloads
from vnode.kueue.deciding import RoomAnswer
from vnode.kueue.promised_beside import MOST_APART, PromisedBeside
from vnode.kueue.promised_room import PromisedPodSet, PromisedRoom

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def promised(count: int, since: datetime = NOW, node: str = "t", *, kinds: int = 1) -> PromisedRoom:
    """Promise so many workloads a place for two pods each, of so many shapes."""
    room = PromisedRoom()
    for number in range(count):
        space = "odd" if number % 2 else "even"
        shape = Shape({"cpu": 1 + number % kinds})
        pod_set = PromisedPodSet(pod("template", namespace=space), shape)
        room.make(f"{space}/{number}", {"main": {node: 2}}, {"main": pod_set}, since, anew=True)

    return room


def demand(_node: str, _pod_set: PromisedPodSet, count: int) -> dict[str, Nanos]:
    return {"q": {"pods": count}}


def test_each_step_is_about_one_workload() -> None:
    beside = PromisedBeside({"odd"}, demand)
    assert len(list(beside.steps(promised(40).parts(NOW)))) == 41  # at last, the target
    there = beside.at("t")
    assert [(each.shape, each.count) for each in there.pods] == [(Shape({"cpu": 1}), 80)]
    assert there.demand == {"q": {"pods": 40}}


def test_of_too_many_shapes_few_are_kept_and_none_asks_for_less() -> None:
    beside = PromisedBeside((), demand)
    count = MOST_APART * 3
    for _ in beside.steps(promised(count, kinds=count).parts(NOW)):
        assert len(beside.at("t").shapes) < MOST_APART

    there = beside.at("t")
    assert len(there.pods) <= packing.MOST_SHAPES
    assert sum(each.count for each in there.pods) == 2 * count
    assert packing.total(there.pods)["cpu"] >= count * (count + 1)


@pytest.mark.looptime
async def test_others_have_their_turn_between_few_promises(clock: Any) -> None:
    env, turns = KueueEnvironment(clock), 0
    node = env.room("t1", (0, 200, ""))
    env.workload("new", pod_set("main", 1))

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with env.answers() as checks:
        await asyncio.sleep(1)
        rooms, working = checks._rooms, BusyClock()
        workload = checks._workloads.get("ns/new")
        assert workload is not None
        sets = workloads.pod_sets(workload)
        pods = rooms.pods(workload, sets)
        rooms._clock, rooms._promised = working, promised(300, working.now(), node)
        others = asyncio.create_task(take_turns())
        decision = await rooms.decide("ns/new", sets, pods, all_known=True)
        others.cancel()

    assert decision.answer is RoomAnswer.NOW
    assert turns > 300 / 5
