"""Queues and jobs of Kueue for tests, and what becomes of their Workloads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tests import kit
from tests.kueue import gpus
from tests.kueue.gpus import GPU
from vnode.api import keys, kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client

CLUSTER_QUEUES: Final = Kind(kinds.KUEUE, "v1beta2", "clusterqueues", "ClusterQueue", False)
LOCAL_QUEUES: Final = Kind(kinds.KUEUE, "v1beta2", "localqueues", "LocalQueue")
TOPOLOGIES: Final = Kind(kinds.KUEUE, "v1beta2", "topologies", "Topology", False)
PRIORITIES: Final = Kind(
    kinds.KUEUE, "v1beta2", "workloadpriorityclasses", "WorkloadPriorityClass", False
)
QUEUE: Final = f"{kinds.KUEUE}/queue-name"
PRIORITY: Final = f"{kinds.KUEUE}/priority-class"
GROUP: Final = f"{kinds.KUEUE}/pod-group-name"
GROUP_SIZE: Final = f"{kinds.KUEUE}/pod-group-total-count"
_IS_GROUP: Final = f"{kinds.KUEUE}/is-group-workload"
IN_ONE_TARGET: Final = {f"{kinds.KUEUE}/podset-required-topology": keys.TARGET_NAME}
LASTS: Final = {"pod-complete.stage.kwok.x-k8s.io/delay": "600s"}
"""An annotation by which a pod of a Job runs for longer than any test."""


async def add_flavor(
    client: Client, name: str, target: str = "", topology: str = "", stays: int | None = None
) -> None:
    """Make a flavor of virtual nodes, of one target if it is named.

    If `stays` is given, its pods stay in a lost target for so many seconds.
    """
    labels = {keys.PROVIDER_LABEL: keys.PROVIDER, **({keys.TARGET_NAME: target} if target else {})}
    key, value = keys.PROVIDER_LABEL, keys.PROVIDER
    toleration = {"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"}
    spec: Object = {"nodeLabels": labels, "tolerations": [toleration]}
    if stays is not None:
        loss = {"key": keys.NODE_FAILURES[0], "operator": "Exists", "effect": "NoExecute"}
        spec["tolerations"].append({**loss, "tolerationSeconds": stays})

    if topology:
        spec["topologyName"] = topology

    await client.create(kinds.RESOURCE_FLAVORS, {"metadata": {"name": name}, "spec": spec})


async def add_queue(
    client: Client, name: str, quota: Mapping[str, int], check: str = "", **spec: Any
) -> None:
    """Make a ClusterQueue with quotas of GPUs by flavor, and its door in namespace default."""
    flavors = [
        {"name": flavor, "resources": [{"name": GPU, "nominalQuota": str(amount)}]}
        for flavor, amount in quota.items()
    ]
    body = {
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": [GPU], "flavors": flavors}],
        **({"admissionChecksStrategy": {"admissionChecks": [{"name": check}]}} if check else {}),
        **spec,
    }
    await client.create(CLUSTER_QUEUES, {"metadata": {"name": name}, "spec": body})
    door = {"metadata": {"name": name}, "spec": {"clusterQueue": name}}
    await client.create(LOCAL_QUEUES, door, "default")
    for kind, namespace in ((CLUSTER_QUEUES, ""), (LOCAL_QUEUES, "default")):
        await kit.until_one(
            client, kind, name, namespace, lambda obj: kit.has_condition(obj, "Active")
        )


async def add_check(client: Client, name: str) -> None:
    """Make an AdmissionCheck of ours, and wait until it is said to be active."""
    check = {"metadata": {"name": name}, "spec": {"controllerName": keys.PLACEMENT_CHECK}}
    await client.create(kinds.ADMISSION_CHECKS, check)
    await kit.until_one(
        client, kinds.ADMISSION_CHECKS, name, "", lambda obj: kit.has_condition(obj, "Active")
    )


async def add_topology(client: Client, name: str, *levels: str) -> None:
    """Make a Topology of these labels of Nodes."""
    spec = {"levels": [{"nodeLabel": level} for level in levels]}
    await client.create(TOPOLOGIES, {"metadata": {"name": name}, "spec": spec})


async def add_priority(client: Client, name: str, value: int) -> None:
    """Make a WorkloadPriorityClass."""
    await client.create(PRIORITIES, {"metadata": {"name": name}, "value": value})


def job(
    name: str,
    queue: str,
    count: int,
    *,
    gpus_each: int = 1,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    of_pods: Mapping[str, str] | None = None,
    **spec: Any,
) -> Object:
    """Return a Job of so many pods at the same time, elected, which does not end by itself."""
    template = {
        "metadata": {"annotations": {keys.ELECT: "", **LASTS, **(of_pods or {})}},
        "spec": gpus.spec(gpus_each, restartPolicy="Never"),
    }
    return {
        "metadata": {
            "name": name,
            "labels": {QUEUE: queue, **(labels or {})},
            "annotations": dict(annotations or {}),
        },
        "spec": {
            "suspend": True,
            "completions": count,
            "parallelism": count,
            "template": template,
            **spec,
        },
    }


def pod(name: str, queue: str, *, group: str = "", size: int = 0, gpus_each: int = 1) -> Object:
    """Return an elected pod of a queue, of a group of that size if it is named."""
    made = kit.pod(name, annotations={keys.ELECT: ""})
    made["metadata"]["labels"][QUEUE] = queue
    if group:
        made["metadata"]["labels"][GROUP] = group
        made["metadata"]["annotations"][GROUP_SIZE] = str(size)

    return {**made, "spec": gpus.spec(gpus_each)}


async def submit(client: Client, *jobs: Object) -> None:
    """Create these Jobs in namespace default."""
    for each in jobs:
        await client.create(kinds.JOBS, each, "default")


async def workload(
    client: Client,
    name: str,
    condition: Callable[[Object], object],
    seconds: float = kit.PATIENCE,
) -> Object:
    """Watch until a condition holds of the Workload of a Job, pod or group; return it."""

    def found(all_: dict[str, Object]) -> Object | None:
        return next((each for each in all_.values() if owner(each) == name), None)

    there = await kit.until(
        client,
        kinds.WORKLOADS,
        lambda all_: (mine := found(all_)) is not None and bool(condition(mine)),
        namespace="default",
        seconds=seconds,
    )
    mine = found(there)
    assert mine is not None
    return mine


def owner(workload: Object) -> str:
    """Return the name of the Job, pod or group of pods that a Workload is of."""
    owners = objects.metadata(workload).get("ownerReferences") or ()
    if _IS_GROUP in objects.annotations(workload) or len(owners) != 1:
        return objects.name(workload)

    return str(owners[0]["name"])


def is_admitted(workload: Object) -> bool:
    """Tell whether a Workload is let in."""
    return objects.is_condition_true(workload, "Admitted")


def is_waiting(workload: Object) -> bool:
    """Tell whether a Workload was looked at and got no quota."""
    return kit.has_condition(workload, "QuotaReserved", "False")


def state(workload: Object) -> Object:
    """Return what a Workload's status says of its only check; {} before there is anything."""
    found: list[Object] = objects.status(workload).get("admissionChecks") or [{}]
    return found[0]


async def pods_of(
    client: Client,
    job_name: str,
    count: int,
    *,
    phase: str = "Running",
    seconds: float = kit.PATIENCE,
) -> list[Object]:
    """Watch until a Job has so many pods, all in that phase; return them."""
    found = await kit.until(
        client,
        kinds.PODS,
        lambda pods: len(pods) == count and all(kit.phase(p) == phase for p in pods.values()),
        namespace="default",
        label_selector=f"job-name={job_name}",
        seconds=seconds,
    )
    return list(found.values())


def nodes_of(pods: list[Object]) -> set[str]:
    """Return the Nodes of some pods."""
    return {objects.node_name(pod) for pod in pods}


async def remove_jobs(client: Client) -> None:
    """Remove all that was submitted, and wait until its quota is given back.

    Of a group of pods the Workload has to go as well, or Kueue waits for others in their place.
    """
    query = {"propagationPolicy": "Background"}
    for kind in (kinds.DEPLOYMENTS, kinds.JOBS, kinds.WORKLOADS, kinds.PODS):
        await client.request("DELETE", kind.path("default"), query=query)

    for kind in (kinds.PODS, kinds.WORKLOADS):
        await kit.until_gone(client, kind, "default")


async def remove_queues(client: Client) -> None:
    """Remove all queues, and what they are made of."""
    await client.request("DELETE", LOCAL_QUEUES.path("default"))
    await kit.until_gone(client, LOCAL_QUEUES, "default")
    cluster_wide = (CLUSTER_QUEUES, kinds.RESOURCE_FLAVORS, kinds.ADMISSION_CHECKS, TOPOLOGIES)
    for kind in (*cluster_wide, PRIORITIES):
        await client.request("DELETE", kind.path())
        await kit.until_gone(client, kind)
