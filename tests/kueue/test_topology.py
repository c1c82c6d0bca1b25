"""Kueue's topology-aware scheduling with targets as a level: a pod set is in one target."""

from __future__ import annotations

import pytest

from tests.kueue import gpus, queues
from tests.kueue.answers import logged
from tests.kueue.gpus import Rooms
from tests.kueue.queues import IN_ONE_TARGET, is_admitted, is_waiting, job, submit
from vnode.api import keys, kinds, names
from vnode.kube.client import Client

C2, C3 = (names.virtual_node("default", name) for name in ("c2", "c3"))


@pytest.fixture(autouse=True)
async def _topology(source: Client) -> None:
    await queues.add_topology(source, "targets", keys.TARGET_NAME)
    await queues.add_flavor(source, "targets", topology="targets")


async def test_a_pod_set_goes_into_one_target(source: Client, rooms: Rooms) -> None:
    await rooms((5, 5), (4, 4))
    await queues.add_queue(source, "team", {"targets": 100})
    await submit(
        source, *(job(f"j{number}", "team", 4, of_pods=IN_ONE_TARGET) for number in range(5))
    )
    where = []
    for number in range(5):
        found = await queues.workload(
            source, f"j{number}", lambda wl: is_admitted(wl) or is_waiting(wl)
        )
        if is_admitted(found):
            (node,) = queues.nodes_of(await queues.pods_of(source, f"j{number}", 4))
            where.append(node)

    # 18 GPUs are free, but two in c2 are no place for four pods.
    assert sorted(where) == [C2, C2, C3, C3]


async def test_sixteen_pods_are_in_one_target_each_time(source: Client, rooms: Rooms) -> None:
    await rooms((8, 8), (8, 8))
    await queues.add_queue(source, "team", {"targets": 100})
    for turn in range(10):
        both = [f"j{turn}-{number}" for number in range(2)]
        await submit(source, *(job(name, "team", 16, of_pods=IN_ONE_TARGET) for name in both))
        where = [queues.nodes_of(await queues.pods_of(source, name, 16)) for name in both]
        assert sorted(where, key=str) == [{C2}, {C3}]
        await queues.remove_jobs(source)


async def test_none_is_let_in_where_others_in_the_target_left_too_little(
    source: Client, c2: Client, rooms: Rooms
) -> None:
    await rooms((3, 3), (1, 1))
    await queues.add_queue(source, "team", {"targets": 100})
    others = await gpus.use(c2, 2, 1)
    await gpus.until_offered(source, "c2", 3)
    await submit(source, job("six", "team", 6, of_pods=IN_ONE_TARGET))
    await queues.workload(source, "six", is_waiting)
    await submit(source, job("three", "team", 3, of_pods=IN_ONE_TARGET))
    assert queues.nodes_of(await queues.pods_of(source, "three", 3)) == {C2}

    await source.delete(kinds.JOBS, "three", "default", propagation="Background")
    for pod in others:
        await c2.discard(kinds.PODS, pod)

    assert queues.nodes_of(await queues.pods_of(source, "six", 6)) == {C2}


async def test_the_check_answers_for_the_target_that_topology_has_chosen(
    source: Client, rooms: Rooms
) -> None:
    await rooms((3, 3))
    await queues.add_check(source, "room")
    await queues.add_queue(source, "team", {"targets": 100}, "room")
    async with logged(source) as log:
        # By sums there is enough, which is all that topology counts.
        await submit(source, job("whole", "team", 1, gpus_each=4, of_pods=IN_ONE_TARGET))
        told = await log.first("whole")
        assert told["whole"]["state"] == "Retry"
        assert "0 of 1 pod find a node" in told["whole"]["message"]

        # Until it tries again it keeps its place.
        await queues.remove_jobs(source)
        await submit(source, job("pieces", "team", 2, gpus_each=3, of_pods=IN_ONE_TARGET))
        told = await log.first("pieces")
        assert told["pieces"]["state"] == "Ready"
        # What topology holds in a place needs nothing that holds it there.
        assert not any("nodeSelector" in each for each in told["pieces"]["podSetUpdates"])

    assert queues.nodes_of(await queues.pods_of(source, "pieces", 2)) == {C2}
