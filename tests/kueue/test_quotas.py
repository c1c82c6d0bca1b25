"""Quotas of Kueue over targets: flavors, borrowing, and when preempted workloads give them back."""

from __future__ import annotations

import pytest

from tests import kit
from tests.kueue import queues
from tests.kueue.gpus import Rooms
from tests.kueue.queues import PRIORITY, is_admitted, is_waiting, job, submit
from vnode.api import keys, kinds, names, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

C2, C3 = (names.virtual_node("default", name) for name in ("c2", "c3"))
JOB_NAME = f"{keys.PREFIX}job-name"
SLOW_END = {"pod-delete.stage.kwok.x-k8s.io/delay": "10s"}


async def test_a_flavor_for_each_target_has_a_quota_of_its_own(
    source: Client, rooms: Rooms
) -> None:
    await rooms((4, 4), (4, 4))
    for name in ("c2", "c3"):
        await queues.add_flavor(source, name, name)

    await queues.add_queue(source, "team", {"c2": 2, "c3": 3})
    await submit(source, *(job(f"j{number}", "team", 1) for number in range(6)))

    def are_full(pods: dict[str, Object]) -> bool:
        running = [p for p in pods.values() if kit.phase(p) == "Running"]
        where = [objects.node_name(pod) for pod in running]
        return (where.count(C2), where.count(C3)) == (2, 3)

    pods = await kit.until(source, kinds.PODS, are_full, namespace="default")
    assert len(pods) == 5
    running = {objects.labels(pod)["job-name"]: objects.node_name(pod) for pod in pods.values()}
    (waiting,) = {f"j{number}" for number in range(6)} - running.keys()
    await queues.workload(source, waiting, is_waiting)

    ended = next(name for name, node in running.items() if node == C3)
    await source.delete(kinds.JOBS, ended, "default")
    (pod,) = await queues.pods_of(source, waiting, 1)
    assert objects.node_name(pod) == C3


async def test_a_queue_borrows_what_its_cohort_does_not_use(source: Client, rooms: Rooms) -> None:
    await rooms((4, 4))
    await queues.add_flavor(source, "targets")
    takes_back = {"reclaimWithinCohort": "Any"}
    for name in ("a", "b"):
        await queues.add_queue(
            source, name, {"targets": 2}, cohortName="all", preemption=takes_back
        )

    await submit(source, job("large", "a", 4))
    await queues.pods_of(source, "large", 4)

    def has_borrowed(queue: Object) -> bool:
        (used,) = objects.status(queue)["flavorsUsage"]
        return bool(used["resources"][0].get("borrowed") == "2")

    await kit.until_one(source, queues.CLUSTER_QUEUES, "a", "", has_borrowed)

    await submit(source, job("owner", "b", 2))
    await queues.pods_of(source, "owner", 2)
    await queues.workload(source, "large", is_waiting)
    await queues.pods_of(source, "large", 0)


@pytest.fixture
async def one_quota(source: Client, rooms: Rooms) -> None:
    """Have room for two pods in c2, a queue with that quota, and two priorities in it."""
    await rooms((1, 1))
    await queues.add_flavor(source, "targets")
    by_priority = {"withinClusterQueue": "LowerPriority"}
    await queues.add_queue(source, "team", {"targets": 2}, preemption=by_priority)
    for name, value in (("low", 1), ("high", 100)):
        await queues.add_priority(source, name, value)


@pytest.mark.usefixtures("one_quota")
async def test_a_preempted_group_keeps_its_quota_until_its_delegates_have_ended(
    source: Client, c2: Client
) -> None:
    for name in ("first", "second"):
        low = queues.pod(name, "team", group="low", size=2)
        low["metadata"]["labels"][PRIORITY] = "low"
        low["metadata"]["annotations"].update(SLOW_END)
        await source.create(kinds.PODS, low, "default")

    await kit.until(source, kinds.PODS, lambda pods: kit.running(pods, 2), namespace="default")
    await submit(source, job("urgent", "team", 2, labels={PRIORITY: "high"}))
    await kit.until(
        c2,
        kinds.PODS,
        lambda pods: len(pods) == 2 and all(map(objects.is_terminating, pods.values())),
        namespace="default",
    )
    waits = await queues.workload(source, "urgent", lambda _: True)
    assert not is_admitted(waits)

    await queues.workload(source, "urgent", is_admitted, seconds=40)
    assert not await c2.list(kinds.PODS, "default", label_selector=f"!{JOB_NAME}")
    await queues.pods_of(source, "urgent", 2)


@pytest.mark.usefixtures("one_quota")
async def test_a_preempted_job_ends_and_the_urgent_one_runs_in_its_place(
    source: Client, c2: Client
) -> None:
    await submit(source, job("patient", "team", 2, labels={PRIORITY: "low"}, of_pods=SLOW_END))
    await queues.pods_of(source, "patient", 2)
    await submit(source, job("urgent", "team", 2, labels={PRIORITY: "high"}))
    await queues.workload(source, "patient", is_waiting)
    pods = await queues.pods_of(source, "urgent", 2)
    assert queues.nodes_of(pods) == {C2}

    delegates = await c2.list(kinds.PODS, "default")
    assert {objects.labels(each)[JOB_NAME] for each in delegates} == {"urgent"}
