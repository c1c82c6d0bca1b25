"""JobSets, by their own controller in the source: queued, whole in one target, restarted."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests import kit
from tests.kueue import gpus, queues
from tests.kueue.gpus import Rooms
from tests.kueue.queues import LASTS, QUEUE, is_waiting
from vnode.api import keys, kinds, names, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client

JOBSETS = Kind("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet")
MEMBER = "jobset.sigs.k8s.io/jobset-name"
C2, C3 = (names.virtual_node("default", name) for name in ("c2", "c3"))

pytestmark = pytest.mark.usefixtures("jobset")


@pytest.fixture(autouse=True)
async def _no_jobsets(source: Client) -> AsyncIterator[None]:
    yield
    query = {"propagationPolicy": "Background"}
    await source.request("DELETE", JOBSETS.path("default"), query=query)


def jobset(name: str, queue: str = "", **pods: int) -> Object:
    """Return a JobSet with a Job of so many pods by the name of each, which may restart once."""
    template = {
        "metadata": {"annotations": {keys.ELECT: "", **LASTS}},
        "spec": gpus.spec(1, restartPolicy="Never"),
    }
    jobs = [
        {
            "name": each,
            "template": {
                "spec": {
                    "parallelism": count,
                    "completions": count,
                    "backoffLimit": 0,
                    "template": template,
                }
            },
        }
        for each, count in pods.items()
    ]
    labels = {"labels": {QUEUE: queue}} if queue else {}
    spec = {"replicatedJobs": jobs, "failurePolicy": {"maxRestarts": 1}}
    return {"metadata": {"name": name, **labels}, "spec": spec}


async def until_running(client: Client, name: str, count: int) -> list[Object]:
    found = await kit.until(
        client,
        kinds.PODS,
        lambda pods: kit.running(pods, count),
        namespace="default",
        label_selector=f"{MEMBER}={name}",
    )
    return list(found.values())


async def test_a_jobset_is_held_in_one_target_by_the_check(source: Client, rooms: Rooms) -> None:
    await rooms((2, 1), (3, 2))
    await queues.add_flavor(source, "targets")
    await queues.add_check(source, "room")
    await queues.add_queue(source, "team", {"targets": 6}, "room")
    await source.create(JOBSETS, jobset("train", "team", leader=1, worker=4), "default")
    assert queues.nodes_of(await until_running(source, "train", 5)) == {C3}

    await source.create(JOBSETS, jobset("next", "team", worker=2), "default")
    await queues.workload(source, "next", is_waiting)
    await source.delete(JOBSETS, "train", "default", propagation="Background")
    assert len(queues.nodes_of(await until_running(source, "next", 2))) == 1


async def test_a_jobset_without_a_queue_stays_together_and_restarts_as_a_whole(
    source: Client, c2: Client, c3: Client, rooms: Rooms
) -> None:
    await rooms((2, 2), (2, 2))
    await source.create(JOBSETS, jobset("train", leader=1, worker=3), "default")
    first = await until_running(source, "train", 4)
    (node,) = queues.nodes_of(first)

    target = c2 if node == C2 else c3
    delegates = await target.list(kinds.PODS, "default")
    leader = next(each for each in delegates if "leader" in objects.name(each))
    await target.patch(
        kinds.PODS,
        objects.name(leader),
        {"status": {"phase": "Failed"}},
        "default",
        subresource="status",
    )
    await kit.until_one(
        source, JOBSETS, "train", "default", lambda js: objects.status(js).get("restarts") == 1
    )
    before = {objects.uid(pod) for pod in first}
    found = await kit.until(
        source,
        kinds.PODS,
        lambda pods: (
            kit.running(pods, 4) and not before & {objects.uid(pod) for pod in pods.values()}
        ),
        namespace="default",
        label_selector=f"{MEMBER}=train",
    )
    assert len(queues.nodes_of(list(found.values()))) == 1
