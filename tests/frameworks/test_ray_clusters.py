"""RayClusters: head and workers in one target; workers wait for the head by its Service.

There is no image of Ray here, so a ConfigMap has a `ray` that asks the head for its page.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from tests import kit
from tests.frameworks import members
from tests.frameworks.installation import KUBERAY
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client

CLUSTERS = Kind("ray.io", "v1", "rayclusters", "RayCluster")
SELECTOR = "ray.io/cluster=tune"
PROGRAMS: Object = {
    "metadata": {"name": "programs"},
    "data": {
        # KubeRay runs its lines by `bash -c -- LINE`, of which busybox understands enough.
        "bash": '#!/bin/sh\nfor line; do :; done; exec sh -c "$line"\n',
        # It is run as `ray health-check --address HOST:PORT`.
        "ray": f'#!/bin/sh\n{members.ASK} ask "${{3%:*}}"\n',
    },
}


@pytest.fixture(autouse=True)
async def _clusters(
    source: Client, targets: dict[str, Client], operators: Callable[..., None]
) -> AsyncIterator[None]:
    operators(KUBERAY)
    await source.create(kinds.CONFIG_MAPS, PROGRAMS, "default")
    yield
    query = {"propagationPolicy": "Background"}
    await source.request("DELETE", CLUSTERS.path("default"), query=query)
    await source.delete(kinds.CONFIG_MAPS, "programs", "default")


def ray_cluster(workers: int) -> Object:
    """Return a RayCluster whose workers ask for the head."""
    mounts = [
        {"name": "programs", "mountPath": f"/bin/{name}", "subPath": name}
        for name in PROGRAMS["data"]
    ]
    volume = {"name": "programs", "configMap": {"name": "programs", "defaultMode": 0o755}}
    probe = {"httpGet": {"port": 8080, "path": "/name"}, "periodSeconds": 1}
    probes = {"readinessProbe": probe, "livenessProbe": {**probe, "failureThreshold": 60}}

    def pods(line: str) -> Object:
        container = members.container("ray", line, volumeMounts=mounts, **probes)
        made = members.template(container, volumes=[volume])
        made["metadata"]["annotations"]["ray.io/overwrite-container-cmd"] = "true"
        return {"rayStartParams": {}, "template": made}

    group = {
        **pods(members.script("$FQ_RAY_IP")),
        "groupName": "small",
        "replicas": workers,
        "minReplicas": workers,
        "maxReplicas": workers,
    }
    head = pods(members.script("tune-head-svc"))
    return {
        "metadata": {"name": "tune"},
        "spec": {"rayVersion": "2.52.0", "headGroupSpec": head, "workerGroupSpecs": [group]},
    }


async def test_workers_of_a_ray_cluster_find_their_head(fleet: Fleet, source: Client) -> None:
    await source.create(CLUSTERS, ray_cluster(3), "default")
    before = await members.until_running(source, SELECTOR, 4)
    target = members.target_of(before)
    (head,) = (name for name in before if "-head" in name)
    workers = sorted(before.keys() - {head})
    for name in workers:
        (found,) = await members.heard(fleet, name)
        assert found.startswith("tune-head")

    def is_ready(cluster: Object) -> bool:
        return objects.status(cluster).get("state") == "ready"

    await kit.until_one(source, CLUSTERS, "tune", "default", is_ready)
    await source.delete(kinds.PODS, workers[0], "default")
    after = await members.until_back(source, SELECTOR, before, workers[0])
    assert members.target_of(after) == target
    (back,) = after.keys() - before.keys()
    (found,) = await members.heard(fleet, back)
    assert found.startswith("tune-head")
