"""The admission check of vnode, asked by Kueue: workloads are let in where there is room."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from typing import Final

import pytest

from tests import kit
from tests.kueue import gpus, queues
from tests.kueue.answers import AnswerLog, logged
from tests.kueue.gpus import Rooms
from tests.kueue.queues import PRIORITY, is_admitted, job, submit
from vnode.api import keys, kinds, names, objects
from vnode.kube.client import Client

C2, C3 = (names.virtual_node("default", name) for name in ("c2", "c3"))
PAIRS: Final = int(os.environ.get("VNODE_KUEUE_PAIRS", "10"))
"""How often two workloads are submitted for the same room."""


@pytest.fixture(autouse=True)
async def _queue(source: Client) -> None:
    await queues.add_flavor(source, "targets")
    await queues.add_check(source, "room")
    await queues.add_queue(source, "team", {"targets": 10}, "room")


@pytest.fixture
async def log(source: Client) -> AsyncIterator[AnswerLog]:
    async with logged(source) as found:
        yield found


async def test_as_many_are_let_in_as_there_is_room_and_the_rest_try_again(
    source: Client, rooms: Rooms, log: AnswerLog
) -> None:
    await rooms((2, 2))
    jobs = [f"j{number}" for number in range(10)]
    await submit(source, *(job(name, "team", 1) for name in jobs))
    told = await log.first(*jobs)
    states = [entry["state"] for entry in told.values()]
    assert (states.count("Ready"), states.count("Retry")) == (4, 6)
    for name, entry in told.items():
        if entry["state"] == "Ready":
            (pod,) = await queues.pods_of(source, name, 1)
            assert objects.node_name(pod) == C2

    await rooms((3, 3))
    await kit.until(
        source, kinds.PODS, lambda pods: kit.running(pods, 6), namespace="default", seconds=90
    )
    await log.until(lambda: sum(log.waits(name) == [60, 120] for name in jobs) == 4)
    assert sorted(map(log.waits, jobs)) == [*[[]] * 4, *[[60]] * 2, *[[60, 120]] * 4]


async def test_two_are_never_both_let_in_for_the_same_room(
    source: Client, rooms: Rooms, log: AnswerLog
) -> None:
    await rooms((4, 0))
    for number in range(PAIRS):
        both = f"a{number}", f"b{number}"
        await submit(source, *(job(name, "team", 3) for name in both))
        told = await log.first(*both)
        assert sorted(entry["state"] for entry in told.values()) == ["Ready", "Retry"]
        (ready,) = (name for name, entry in told.items() if entry["state"] == "Ready")
        await queues.pods_of(source, ready, 3)
        await queues.remove_jobs(source)


async def test_the_answer_holds_all_pods_in_the_target(
    source: Client, rooms: Rooms, log: AnswerLog
) -> None:
    await rooms((3, 3), (2, 2))
    await submit(source, job("five", "team", 5))
    assert queues.nodes_of(await queues.pods_of(source, "five", 5)) == {C2}
    (found,) = await source.list(kinds.JOBS, "default")
    assert objects.spec(found)["template"]["spec"]["nodeSelector"][keys.TARGET_NAME] == "c2"
    (update,) = log.told["five"][0]["podSetUpdates"]
    assert update["nodeSelector"][keys.TARGET_NAME] == "c2"

    # What is left in both together would do, but in none of them alone.
    await submit(source, job("more", "team", 5))
    told = await log.first("more")
    assert told["more"]["state"] == "Retry"
    assert "c2: Insufficient" in told["more"]["message"]


async def test_what_no_target_can_ever_take_is_rejected(
    source: Client, rooms: Rooms, log: AnswerLog
) -> None:
    await rooms((4, 0), (2, 2))
    await submit(source, job("huge", "team", 9))
    told = await log.first("huge")
    assert told["huge"]["state"] == "Rejected"
    assert "no target can ever take 9 pods" in told["huge"]["message"]
    await queues.workload(source, "huge", lambda wl: objects.spec(wl).get("active") is False)
    assert not await source.list(kinds.PODS, "default")


async def test_it_answers_for_as_many_pods_as_kueue_admits(source: Client, rooms: Rooms) -> None:
    await rooms((6, 6))
    # There is room for the ten that have quota, not for all.
    few = {f"{kinds.KUEUE}/job-min-parallelism": "2"}
    await submit(source, job("partial", "team", 14, annotations=few))
    admitted = await queues.workload(source, "partial", is_admitted)
    (assigned,) = objects.status(admitted)["admission"]["podSetAssignments"]
    assert assigned["count"] == 10
    await queues.pods_of(source, "partial", 10)


async def test_plain_pods_and_groups_are_held_in_a_target_too(source: Client, rooms: Rooms) -> None:
    await rooms((2, 0), (2, 2))
    for number in range(3):
        member = queues.pod(f"member-{number}", "team", group="three", size=3)
        await source.create(kinds.PODS, member, "default")

    pods = await kit.until(
        source, kinds.PODS, lambda pods: kit.running(pods, 3), namespace="default", seconds=60
    )
    assert queues.nodes_of(list(pods.values())) == {C3}

    await source.create(kinds.PODS, queues.pod("single", "team", gpus_each=2), "default")
    assert objects.node_name(await kit.until_running(source, "single")) == C2


async def test_a_workload_that_preempts_others_is_let_in_when_their_delegates_have_ended(
    source: Client, c2: Client, rooms: Rooms, log: AnswerLog
) -> None:
    await rooms((2, 0))
    for name, value in (("low", 1), ("high", 100)):
        await queues.add_priority(source, name, value)

    by_priority = {"withinClusterQueue": "LowerPriority"}
    await queues.add_queue(source, "small", {"targets": 2}, "room", preemption=by_priority)
    # Longer than the check waits for room that nothing promises.
    slow = {"pod-delete.stage.kwok.x-k8s.io/delay": "15s"}
    low, high = {PRIORITY: "low"}, {PRIORITY: "high"}
    await submit(source, job("patient", "small", 2, labels=low, of_pods=slow))
    await queues.pods_of(source, "patient", 2)

    await submit(source, job("urgent", "small", 2, labels=high))
    told = await log.first("urgent")
    assert told["urgent"]["state"] == "Ready"
    of_patient = f"{keys.PREFIX}job-name=patient"
    assert not await c2.list(kinds.PODS, "default", label_selector=of_patient)
    await queues.pods_of(source, "urgent", 2)


async def test_room_that_others_use_in_the_target_is_none(
    source: Client, c2: Client, rooms: Rooms, log: AnswerLog
) -> None:
    await rooms((4, 0))
    others = await gpus.use(c2, 2)
    await gpus.until_offered(source, "c2", 2)
    await submit(source, job("three", "team", 3))
    told = await log.first("three")
    assert told["three"]["state"] == "Retry"
    assert "Insufficient" in told["three"]["message"]
    for pod in others:
        await c2.discard(kinds.PODS, pod)

    await queues.pods_of(source, "three", 3, seconds=90)
