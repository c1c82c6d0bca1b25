"""What Kueue queues and targets run: Jobs, plain pods, groups of them, Deployments."""

from __future__ import annotations

import re

import pytest

from tests import kit
from tests.kueue import queues
from tests.kueue.gpus import Rooms, spec
from tests.kueue.queues import GROUP, QUEUE, is_admitted, is_waiting, job, pod, submit
from vnode.api import kinds, objects
from vnode.kube.client import Client

FIELD = re.compile(r"metadata\.(?P<map>labels|annotations)\['(?P<key>.*)'\]")


@pytest.fixture(autouse=True)
async def _queue(source: Client, rooms: Rooms) -> None:
    await rooms((4, 4))
    await queues.add_flavor(source, "targets")
    await queues.add_queue(source, "team", {"targets": 4})


async def test_a_job_is_let_in_as_a_whole_and_ends(source: Client) -> None:
    short = job("short", "team", 3)
    del short["spec"]["template"]["metadata"]["annotations"][
        "pod-complete.stage.kwok.x-k8s.io/delay"
    ]
    await submit(source, short, job("long", "team", 3))
    await kit.until_one(
        source, kinds.JOBS, "short", "default", lambda job: kit.has_condition(job, "Complete"), 60
    )
    await queues.workload(source, "short", lambda wl: objects.is_condition_true(wl, "Finished"))
    await queues.pods_of(source, "long", 3)


async def test_an_indexed_job_has_its_indices_in_the_target(source: Client, c2: Client) -> None:
    await submit(source, job("indexed", "team", 3, completionMode="Indexed"))
    await queues.pods_of(source, "indexed", 3)
    shown = []
    for delegate in await c2.list(kinds.PODS, "default"):
        (variable,) = objects.spec(delegate)["containers"][0]["env"]
        assert variable["name"] == "JOB_COMPLETION_INDEX"
        path = FIELD.fullmatch(variable["valueFrom"]["fieldRef"]["fieldPath"])
        assert path
        shown.append(delegate["metadata"][path["map"]][path["key"]])

    assert sorted(shown) == ["0", "1", "2"]


async def test_plain_pods_wait_gated_for_quota(source: Client, c2: Client) -> None:
    names = [f"plain-{number}" for number in range(5)]
    for name in names:
        await source.create(kinds.PODS, pod(name, "team"), "default")

    pods = await kit.until(
        source,
        kinds.PODS,
        lambda pods: sum(kit.phase(p) == "Running" for p in pods.values()) == 4,
        namespace="default",
    )
    (waiting,) = (p for p in pods.values() if kit.phase(p) == "Pending")
    gates = [each["name"] for each in objects.spec(waiting)["schedulingGates"]]
    assert f"{kinds.KUEUE}/admission" in gates
    await queues.workload(source, objects.name(waiting), is_waiting)
    assert len(await c2.list(kinds.POD_CHAPERONS, "default")) == 4

    ended = next(p for p in pods.values() if kit.phase(p) == "Running")
    await source.discard(kinds.PODS, ended)
    await kit.until_running(source, objects.name(waiting))


async def test_a_group_of_pods_is_let_in_when_there_is_quota_for_all(source: Client) -> None:
    for group in ("g1", "g2"):
        for number in range(3):
            await source.create(
                kinds.PODS, pod(f"{group}-{number}", "team", group=group, size=3), "default"
            )

        condition = is_admitted if group == "g1" else is_waiting
        await queues.workload(source, group, condition)

    await kit.until(
        source,
        kinds.PODS,
        lambda pods: kit.running(pods, 3),
        namespace="default",
        label_selector=f"{GROUP}=g1",
    )
    for waiting in await source.list(kinds.PODS, "default", label_selector=f"{GROUP}=g2"):
        assert objects.spec(waiting)["schedulingGates"]

    # Kueue would wait for other pods of the group if these went alone.
    await source.delete(kinds.WORKLOADS, "g1", "default")
    of_g1 = {"labelSelector": f"{GROUP}=g1"}
    await source.request("DELETE", kinds.PODS.path("default"), query=of_g1)
    await kit.until(
        source,
        kinds.PODS,
        lambda pods: kit.running(pods, 3),
        namespace="default",
        label_selector=f"{GROUP}=g2",
    )


async def test_pods_of_a_deployment_are_queued_one_by_one(source: Client) -> None:
    template = {**kit.pod("web"), "spec": spec()}
    web = kit.deployment("web", 5, template)
    web["metadata"]["labels"] = {QUEUE: "team"}
    await source.create(kinds.DEPLOYMENTS, web, "default")
    await kit.until_pods(
        source,
        "web",
        lambda pods: sorted(map(kit.phase, pods.values())) == ["Pending", *["Running"] * 4],
    )
