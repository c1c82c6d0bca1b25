"""How often a target reports delegates that start, alone and many at once."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.pods import delegate_events
from tests.unit.pods.target_side import NAMESPACE, SETTLED, TargetCluster
from vnode.api import keys, kinds, objects
from vnode.pods.target.start_reports import BOUND, EACH, MOST

pytestmark = pytest.mark.looptime

REPORT = ("patch", "podchaperons/status")
AT_ONCE = 0.1  # seconds in which a report that does not wait is written
MANY = 40


@pytest.fixture
async def cluster(clock):
    return TargetCluster(clock)


def container(state, reason="", **fields):
    return [{"name": "main", "state": {state: {"reason": reason} if reason else {}}, **fields}]


CREATING = container("waiting", "ContainerCreating")
SANDBOX = {"type": "PodReadyToStartContainers", "status": "True"}


async def bind(cluster, count=1):
    """Send chaperons that are allowed, and bind their delegates; return their names."""
    names = ["web", *(f"other-{number}" for number in range(1, count))]
    for name in names:
        cluster.send(name, annotations={keys.IS_ALLOWED: "true"})

    await cluster.until(lambda: all(map(cluster.pod, names)))
    for name in names:
        binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "n1"}}
        cluster.server.writer.bind(f"{NAMESPACE}/{name}", binding)

    return names


def has_sandbox(cluster, name="web"):
    conditions = objects.status(cluster.pod(name))["conditions"]
    cluster.report(name, conditions=[*conditions, SANDBOX])


def reported(cluster, name="web"):
    """Return the state of the container that the chaperon shows; "" if it shows none."""
    statuses = objects.status(cluster.chaperon(name)).get("containerStatuses") or [{}]
    return next(iter(statuses[0].get("state") or {}), "")


async def test_each_step_of_a_pod_that_starts_alone_is_reported_at_once(cluster):
    async with cluster.running():
        await bind(cluster)
        await asyncio.sleep(SETTLED)
        cluster.report(containerStatuses=CREATING)
        await asyncio.sleep(AT_ONCE)
        assert (cluster.count(*REPORT), reported(cluster)) == (1, "waiting")
        has_sandbox(cluster)
        await asyncio.sleep(AT_ONCE)
        assert cluster.count(*REPORT) == 2
        cluster.report(phase="Running", containerStatuses=container("running"))
        await asyncio.sleep(AT_ONCE)
        assert (cluster.count(*REPORT), reported(cluster)) == (3, "running")


async def test_pods_that_start_at_once_are_reported_once_each_as_soon_as_they_run(cluster):
    async with cluster.running():
        names = await bind(cluster, MANY)
        await asyncio.sleep(SETTLED)
        for name in names:
            cluster.report(name, containerStatuses=CREATING)

        await asyncio.sleep(5)
        for name in names:
            has_sandbox(cluster, name)

        await asyncio.sleep(5)
        assert cluster.count(*REPORT) == 0
        for name in names:
            cluster.report(name, phase="Running", containerStatuses=container("running"))

        await asyncio.sleep(AT_ONCE)
        assert {reported(cluster, name) for name in names} == {"running"}
        await asyncio.sleep(600)
        assert cluster.count(*REPORT) == len(names)


@pytest.mark.parametrize("count", [2, 10, 300])
async def test_a_step_waits_a_little_for_each_pod_beside_it_and_not_for_ever(cluster, count):
    async with cluster.running():
        names = await bind(cluster, count)
        await asyncio.sleep(AT_ONCE)
        for name in names:
            cluster.report(name, containerStatuses=CREATING)

        wait = min(EACH * (count - 1), MOST) - AT_ONCE
        await asyncio.sleep(wait - AT_ONCE)
        assert cluster.count(*REPORT) == 0
        await asyncio.sleep(AT_ONCE + 1)
        assert cluster.count(*REPORT) == count
        await asyncio.sleep(600)
        assert cluster.count(*REPORT) == count


async def test_the_last_ones_of_many_wait_for_their_start_as_the_first_did(cluster):
    async with cluster.running():
        names = await bind(cluster, MANY)
        await asyncio.sleep(SETTLED)
        for name in names:
            cluster.report(name, containerStatuses=CREATING)

        for name in names:
            await asyncio.sleep(MOST / 2 / MANY)
            cluster.report(name, phase="Running", containerStatuses=container("running"))

        await asyncio.sleep(600)
        assert cluster.count(*REPORT) == MANY


async def test_bound_alone_waits_for_the_first_word_of_containers(cluster):
    async with cluster.running():
        await bind(cluster)
        await asyncio.sleep(BOUND - AT_ONCE)
        assert cluster.count(*REPORT) == 0
        await asyncio.sleep(AT_ONCE * 2)
        assert cluster.count(*REPORT) == 1


async def test_a_failure_is_reported_at_once_among_many_and_its_back_off_later(cluster):
    async with cluster.running():
        await bind(cluster, MANY)
        await asyncio.sleep(SETTLED)
        cluster.report(containerStatuses=container("waiting", "ErrImagePull"))
        await asyncio.sleep(AT_ONCE)
        assert (cluster.count(*REPORT), reported(cluster)) == (1, "waiting")
        for _ in range(3):  # by turns, for as long as the image cannot be pulled
            cluster.report(containerStatuses=container("waiting", "ImagePullBackOff"))
            await asyncio.sleep(1)
            cluster.report(containerStatuses=container("waiting", "ErrImagePull", ready=False))
            await asyncio.sleep(1)

        assert cluster.count(*REPORT) == 1
        await asyncio.sleep(MOST)
        shown, said = (objects.status(obj) for obj in (cluster.chaperon(), cluster.pod()))
        assert shown["containerStatuses"] == said["containerStatuses"]


async def test_a_warning_is_reported_at_once_among_many(cluster):
    async with cluster.running():
        await bind(cluster, MANY)
        await asyncio.sleep(SETTLED)
        delegate_events.store_event(
            cluster.server, cluster.pod(), "FailedMount", "no such Secret", warning=True
        )
        await asyncio.sleep(AT_ONCE)
        assert objects.status(cluster.chaperon())["vnodeEvents"][0]["reason"] == "FailedMount"
        assert cluster.count(*REPORT) == 1


async def test_annotations_of_a_pod_that_starts_among_many_come_back_at_once(cluster):
    async with cluster.running():
        await bind(cluster, MANY)
        await asyncio.sleep(SETTLED)
        cluster.annotate(kind=kinds.PODS, team="blue")
        await asyncio.sleep(AT_ONCE)
        assert cluster.noted("example.com/team") == "blue"
        assert cluster.count(*REPORT) == 0


async def test_pods_that_never_start_delay_nobody_for_long(cluster):
    async with cluster.running():
        await bind(cluster, MANY)
        await asyncio.sleep(MOST + SETTLED)
        cluster.report(containerStatuses=CREATING)
        await asyncio.sleep(AT_ONCE)
        assert reported(cluster) == "waiting"


async def test_a_pod_that_ends_while_it_starts_among_many_is_reported_at_once(cluster):
    async with cluster.running():
        await bind(cluster, MANY)
        await asyncio.sleep(SETTLED)
        cluster.report(phase="Failed", reason="OutOfcpu")
        await asyncio.sleep(AT_ONCE)
        assert objects.status(cluster.chaperon())["reason"] == "OutOfcpu"
