"""Reads what owns pods, for those who ask why there are none, or why none is elected.

A Deployment that lacks pods tells why by Events about its ReplicaSet; a Job or CronJob may be
suspended, and a Deployment paused. Then no pod has anything to say.
"""

from __future__ import annotations

from typing import Final

from vnode.api import objects
from vnode.api.errors import Denied, NotFound
from vnode.api.kinds import CRON_JOBS, DEPLOYMENTS, JOBS, REPLICA_SETS, STATEFUL_SETS, Kind
from vnode.api.objects import Object, Objects
from vnode.insight.named_pods import NamedResource
from vnode.kube.client import Client
from vnode.planning.workload_key import workload_of

KINDS: Final[dict[str, Kind]] = {
    "deployment": DEPLOYMENTS,
    "replicaset": REPLICA_SETS,
    "statefulset": STATEFUL_SETS,
    "job": JOBS,
    "cronjob": CRON_JOBS,
}


async def maker_of(client: Client, pod: Object) -> Object | None:
    """Return the Deployment, Job or other owner of a pod; None if it may not be read."""
    kind_name, _slash, rest = workload_of(pod).partition("/")
    if (kind := KINDS.get(kind_name)) is None:
        return None

    try:
        found = await client.get(kind, rest.partition("/")[2], objects.namespace(pod))
    except (NotFound, Denied):
        return None

    return {"kind": kind.kind, **found}


async def of_name(client: Client, name: str, namespace: str) -> list[NamedResource]:
    """Return the Deployments, Jobs and other owners of that name that may be read."""
    found = []
    for kind_name, kind in KINDS.items():
        try:
            await client.get(kind, name, namespace)
        except (NotFound, Denied):
            continue

        found.append(NamedResource(kind_name, name))

    return found


async def jobs_of(client: Client, cron_job: str, namespace: str) -> list[NamedResource]:
    """Return the Jobs of a CronJob, none if they may not be read."""
    try:
        listed: Objects = await client.list(JOBS, namespace)
    except Denied:
        return []

    def is_its(job: Object) -> bool:
        owner = objects.controller_reference(job) or {}
        return (owner.get("kind"), owner.get("name")) == (CRON_JOBS.kind, cron_job)

    return [NamedResource("job", objects.name(job)) for job in listed if is_its(job)]
