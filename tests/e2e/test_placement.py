"""Placement policies on a real fleet: a Deployment that is divided, overflows and shrinks."""

from __future__ import annotations

import re

from tests import kit
from tests.e2e.places import (
    Policy,
    Rooms,
    amend,
    deploy,
    place_pod,
    policy,
    rooms,
    there,
    until_there,
)
from tests.fleets import vnode
from tests.kit import Fleet
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

__all__ = ["policy", "rooms"]


async def scale(source: Client, replicas: int) -> None:
    await source.patch(kinds.DEPLOYMENTS, "web", {"spec": {"replicas": replicas}}, "default")


async def until_costs_are_written(source: Client) -> None:
    await kit.until_pods(
        source,
        "web",
        lambda pods: all(keys.DELETION_COST in objects.annotations(p) for p in pods.values()),
    )


async def test_a_deployment_is_divided_by_weight_grows_and_shrinks(
    source: Client, policy: Policy, rooms: Rooms
) -> None:
    await rooms(50, 50)
    await policy({"cluster": "c2", "weight": 2}, {"cluster": "c3", "weight": 1, "minReplicas": 1})
    await deploy(source, 6)
    await until_there(source, c2=4, c3=2)
    await scale(source, 12)
    pods = await until_there(source, c2=8, c3=4)
    assert len(pods) == 12
    await until_costs_are_written(source)
    await scale(source, 3)
    await until_there(source, c2=2, c3=1)


async def test_pods_overflow_after_the_threshold_and_shrink_to_the_plan(
    fleet: Fleet, source: Client, policy: Policy, rooms: Rooms
) -> None:
    await rooms(2, 50)
    await policy(
        {"cluster": "c2", "weight": 2},
        {"cluster": "c3", "weight": 1},
        overflow={"afterUnschedulableFor": "12s"},
    )
    await deploy(source, 6)
    pods = await until_there(source, c2=2, c3=2, waiting=2)
    waiting = next(pod for pod in pods.values() if not objects.node_name(pod))
    pending = await kit.until_one(
        source,
        kinds.PODS,
        objects.name(waiting),
        "default",
        lambda pod: (objects.condition(pod, "PodScheduled") or {}).get("message"),
    )
    message = (objects.condition(pending, "PodScheduled") or {})["message"]
    # The message is of the pod's last attempt, when fewer pods may have been known.
    plan = r"c3: planned elsewhere by placementpolicy/web: [12] of [3-6] here, by weight 1"
    assert re.search(rf"{plan}; waiting for c2 until 2\S+Z", message), message
    pods = await until_there(source, c2=2, c3=4)
    await until_places_are_explained(fleet, source, pods)
    await until_costs_are_written(source)
    await scale(source, 3)
    await until_there(source, c2=2, c3=1)


async def until_places_are_explained(fleet: Fleet, source: Client, pods: dict[str, Object]) -> None:
    """Look for the reasons of four planned pods and two that came by overflow."""
    reasons = {key: objects.annotations(pod)[keys.PLACED] for key, pod in pods.items()}
    overflowed = [key for key, reason in reasons.items() if reason.startswith("overflowed")]
    assert len(overflowed) == 2
    assert all(reasons[key].startswith("overflowed from c2 after 1") for key in overflowed)
    planned = r"planned here: [1-4] of [1-6] by weight [12] \(placementpolicy/web\)"
    assert sum(bool(re.fullmatch(planned, reason)) for reason in reasons.values()) == 4
    name, reason = objects.name(pods[overflowed[0]]), reasons[overflowed[0]]
    done = vnode("explain", "pod", name, "-n", "default", "--kubeconfig", fleet.kubeconfig("c1"))
    assert done.code == 0, done.err
    output = " ".join(done.out.split())
    assert reason in output
    assert "placementpolicy/web is for the pod, mode Spread" in output
    assert "deployment/default/web has 6 replicas" in output
    await kit.until(
        source,
        kinds.EVENTS,
        lambda events: any(
            event["involvedObject"]["name"] == name and reason in event.get("message", "")
            for event in events.values()
        ),
        namespace="default",
    )


async def test_fill_takes_the_prepaid_cluster_first_and_then_the_next(
    source: Client, policy: Policy, rooms: Rooms
) -> None:
    await rooms(50, 50)
    await policy({"cluster": "c3", "maxReplicas": 3}, {"cluster": "c2"}, mode="Fill")
    await deploy(source, 2)
    await until_there(source, c3=2)
    await scale(source, 5)
    await until_there(source, c3=3, c2=2)


async def test_rollouts_end_by_the_plan_whatever_their_surge_and_maximums(
    source: Client, policy: Policy, rooms: Rooms
) -> None:
    """Also where all maximums together are the number of replicas, and none may be unavailable."""
    await rooms(50, 50)
    await policy(
        {"cluster": "c3", "maxReplicas": 4, "minReplicas": 1},
        {"cluster": "c2", "maxReplicas": 2, "minReplicas": 1},
        mode="Fill",
    )
    await deploy(source, 6)
    await until_there(source, c3=4, c2=2)
    for number, strategy in enumerate(({}, {"maxSurge": 1, "maxUnavailable": 0})):
        await roll_out(source, number, strategy)
        await until_there(source, c3=4, c2=2)

    def is_at_its_plan(told: Object) -> bool:
        (workload,) = objects.status(told).get("workloads") or [{}]
        parts = workload.get("targets") or [{}]
        return all(part.get("planned") == part.get("running", 0) for part in parts)

    await kit.until_one(source, kinds.PLACEMENT_POLICIES, "web", "default", is_at_its_plan)


async def roll_out(source: Client, number: int, strategy: Object) -> None:
    """Have another template, and wait until the rollout is complete."""
    template = {"metadata": {"annotations": {"example.com/restarted": f"{number}"}}}
    rolling = {"type": "RollingUpdate", "rollingUpdate": strategy or None}
    spec = {"template": template, "strategy": rolling}
    patched = await source.patch(kinds.DEPLOYMENTS, "web", {"spec": spec}, "default")
    generation, replicas = (
        objects.metadata(patched)["generation"],
        objects.spec(patched)["replicas"],
    )

    def is_complete(deployment: Object) -> bool:
        status = objects.status(deployment)
        counts = [status.get(f) for f in ("replicas", "updatedReplicas", "availableReplicas")]
        return status.get("observedGeneration", 0) >= generation and counts == [replicas] * 3

    await kit.until_one(source, kinds.DEPLOYMENTS, "web", "default", is_complete)


async def test_a_target_that_goes_takes_no_other_part_of_its_policy_with_it(
    source: Client, policy: Policy, rooms: Rooms
) -> None:
    await rooms(50, 50)
    spare = {"metadata": {"name": "spare"}, "spec": {"kubeconfigSecret": {"name": "spare"}}}
    await source.create(kinds.TARGETS, spare, "default")
    await policy(
        {"cluster": "c2", "maxReplicas": 2}, {"cluster": "c3"}, {"cluster": "spare"}, mode="Fill"
    )
    await deploy(source, 3)
    await until_there(source, c2=2, c3=1)
    await source.delete(kinds.TARGETS, "spare", "default")

    def is_told(found: Object) -> bool:
        condition = objects.condition(found, "ClustersFound") or {}
        return "spare (spec.targets[2].cluster)" in condition.get("message", "")

    found = await kit.until_one(source, kinds.PLACEMENT_POLICIES, "web", "default", is_told)
    assert kit.has_condition(found, "Accepted")
    await scale(source, 5)
    await until_there(source, c2=2, c3=3)


async def test_any_goes_where_there_is_room_within_the_clusters_of_the_policy(
    source: Client, policy: Policy, rooms: Rooms
) -> None:
    await rooms(2, 50)
    await policy(mode="Any", clusters={"exclude": ["c3"]})
    await deploy(source, 3)
    await until_there(source, c2=2, waiting=1)
    await amend(source, clusters={"exclude": None})
    await until_there(source, c2=2, c3=1)


async def test_a_job_stays_together(source: Client, policy: Policy) -> None:
    await policy(mode="Single")
    template = kit.pod("web", restartPolicy="Never")
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "web"},
        "spec": {
            "parallelism": 5,
            "completions": 5,
            "template": {
                "metadata": {
                    "labels": {"app": "web"},
                    "annotations": objects.annotations(template),
                },
                "spec": template["spec"],
            },
        },
    }
    await source.create(kinds.JOBS, job, "default")
    pods = await kit.until_pods(
        source, "web", lambda pods: len(pods) == 5 and all(map(objects.node_name, pods.values()))
    )
    assert len({objects.node_name(pod) for pod in pods.values()}) == 1


async def test_pods_of_a_ray_cluster_stay_together_without_a_policy(
    source: Client, rooms: Rooms
) -> None:
    await rooms(3, 3)
    for number in range(4):
        pod = place_pod(f"ray-{number}")
        objects.labels(pod).update({"app": "web", "ray.io/cluster": "tuning"})
        await source.create(kinds.PODS, pod, "default")

    def all_but_one_are_together(pods: dict[str, Object]) -> bool:
        return there(pods).get("") == 1 and sorted(there(pods).values()) == [1, 3]

    pods = await kit.until_pods(source, "web", all_but_one_are_together)
    waiting = next(objects.name(pod) for pod in pods.values() if not objects.node_name(pod))
    why = "the setting keepTogether keeps the pods of label/default/ray.io/cluster=tuning together"
    await kit.until_refused(source, waiting, why)
