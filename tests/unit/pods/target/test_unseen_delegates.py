"""How many delegates of a namespace wait at once for the first look of their scheduler."""

from __future__ import annotations

import asyncio

import pytest

from tests.apiserver import status
from tests.unit.pods.target_side import NAMESPACE, SETTLED, TargetCluster
from vnode.api import kinds, objects, scheduled_condition
from vnode.pods.target.unseen_delegates import FEWEST, LONGEST, MOST, WORK
from vnode.telemetry import turn_waits

pytestmark = pytest.mark.looptime

MANY = 3 * MOST
GATED = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
AT_ONCE = 0.5  # seconds in which all that may be made is made


@pytest.fixture
async def cluster(clock):
    return TargetCluster(clock)


def made(cluster):
    """Return the names of the delegates that were made."""
    return {objects.name(pod) for pod in cluster.server.all(kinds.PODS)}


def refuse(cluster, name):
    """Have the scheduler say that a delegate fits nowhere."""
    cluster.report(name, conditions=[scheduled_condition.rejected("no room", "")])


def reserve(cluster, name):
    """Have the scheduler set room aside for a delegate."""
    cluster.annotate(name, is_reserved="true")


def send_many(cluster, count=MANY, **chaperon):
    names = [f"web-{number}" for number in range(count)]
    for name in names:
        cluster.send(name, **chaperon)

    return names


async def test_few_are_made_before_the_scheduler_has_looked_at_them(cluster):
    send_many(cluster)
    async with cluster.running():
        await asyncio.sleep(AT_ONCE)
        assert len(made(cluster)) == MOST


async def test_those_of_another_namespace_do_not_wait(cluster):
    send_many(cluster)
    async with cluster.running():
        await asyncio.sleep(AT_ONCE)
        cluster.send("other", namespace="team-b")
        await asyncio.sleep(AT_ONCE)
        assert "other" in made(cluster)


@pytest.mark.parametrize(
    "look",
    [
        reserve,
        lambda cluster, name: cluster.report(name, conditions=[GATED]),
        lambda cluster, name: cluster.server.remove(kinds.POD_CHAPERONS, name, NAMESPACE),
        lambda cluster, name: cluster.server.remove(kinds.PODS, name, NAMESPACE),
    ],
    ids=["reserved", "gated", "given up", "gone"],
)
async def test_one_that_was_looked_at_makes_room_for_the_next(cluster, look):
    send_many(cluster)
    async with cluster.running():
        await asyncio.sleep(AT_ONCE)
        before = made(cluster)
        look(cluster, min(before))
        await asyncio.sleep(AT_ONCE)
        assert len(made(cluster) - before) == 1


async def test_those_that_are_refused_are_fewer_at_once_until_one_is_placed(cluster):
    send_many(cluster)
    async with cluster.running():
        await asyncio.sleep(AT_ONCE)
        first = sorted(made(cluster))
        for name in first[: MOST - FEWEST + 1]:
            refuse(cluster, name)

        await asyncio.sleep(AT_ONCE)
        assert len(made(cluster)) == MOST + 1
        reserve(cluster, first[-1])
        await asyncio.sleep(AT_ONCE)
        assert len(made(cluster)) == MOST + 1 + FEWEST + 1


async def test_all_are_made_in_the_end_though_the_scheduler_refuses_each(cluster):
    names = send_many(cluster)
    async with cluster.running():
        for _ in names:
            await asyncio.sleep(AT_ONCE)
            for name in made(cluster):
                refuse(cluster, name)

        assert made(cluster) == set(names)


async def test_a_scheduler_that_says_nothing_stops_nobody_for_good(cluster):
    names = send_many(cluster)
    async with cluster.running():
        await asyncio.sleep(AT_ONCE + LONGEST)
        assert len(made(cluster)) == 2 * MOST
        await asyncio.sleep(LONGEST)
        assert made(cluster) == set(names)


async def test_the_highest_priority_is_next_and_then_the_oldest(cluster):
    send_many(cluster)
    async with cluster.running():
        await asyncio.sleep(AT_ONCE)
        cluster.send("urgent", spec={"priority": 1000})
        await asyncio.sleep(AT_ONCE)
        first = made(cluster)
        assert "urgent" not in first
        reserve(cluster, min(first))
        await asyncio.sleep(AT_ONCE)
        assert made(cluster) - first == {"urgent"}
        reserve(cluster, "urgent")
        await asyncio.sleep(AT_ONCE)
        assert len(made(cluster)) == MOST + 2


async def test_those_that_the_api_server_refuses_hold_up_nobody(cluster):
    names = send_many(cluster, MOST + 1)

    def refuse_all_but_the_last(request, obj):
        if request.kind is kinds.PODS and objects.name(obj) != names[-1]:
            raise status.StatusError(403, "Forbidden", "not here")

        return obj

    cluster.server.admit(refuse_all_but_the_last)
    async with cluster.running():
        await asyncio.sleep(AT_ONCE)
        assert names[-1] in made(cluster)


async def test_one_that_was_given_up_while_it_waited_leaves_its_turn_to_the_next(cluster):
    send_many(cluster)
    async with cluster.running():
        await asyncio.sleep(AT_ONCE)
        first = made(cluster)
        waiting = sorted({f"web-{number}" for number in range(MANY)} - first)
        for name in waiting[:-1]:
            await cluster.end(name)

        await asyncio.sleep(SETTLED)
        reserve(cluster, min(first))
        await asyncio.sleep(AT_ONCE)
        assert made(cluster) - first == {waiting[-1]}


async def test_what_a_namespace_has_waited_is_told(cluster):
    send_many(cluster, MOST + 1)
    async with cluster.running():
        await asyncio.sleep(AT_ONCE + LONGEST)
        assert turn_waits.of(WORK).shown()[NAMESPACE] >= LONGEST - 1
