"""Reads what a source has of its own. What may not be read stays unknown; nothing is changed."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import TypeVar

from vnode.api import keys, kinds, objects
from vnode.api.errors import ApiError
from vnode.api.objects import Object, Objects
from vnode.cli import manifests
from vnode.kube.client import Client

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OwnObjects:
    """What is there beside vnode, as far as these credentials may read it.

    `webhook` is our MutatingWebhookConfiguration. `stranded` are pods on virtual nodes that are no
    proxies.
    """

    deployments: Objects = field(default_factory=list)
    stateful_sets: Objects = field(default_factory=list)
    daemon_sets: Objects = field(default_factory=list)
    services: Objects = field(default_factory=list)
    machines: Objects = field(default_factory=list)
    virtual_nodes: Objects = field(default_factory=list)
    stranded: Objects = field(default_factory=list)
    webhook: Object | None = None

    @property
    def workloads(self) -> list[tuple[str, Object]]:
        """Workloads that kube-scheduler chooses nodes for, with what kubectl calls their kind."""
        found = [("deployment", obj) for obj in self.deployments]
        found += [("statefulset", obj) for obj in self.stateful_sets]
        return [(kind, obj) for kind, obj in found if not _is_elected(obj)]


def _is_elected(workload: Object) -> bool:
    return keys.ELECT in objects.annotations(objects.spec(workload).get("template") or {})


async def read(client: Client, virtual_nodes: Objects) -> OwnObjects:
    """Read what a cluster with these virtual nodes has of its own."""
    machines = client.list(kinds.NODES, label_selector=keys.REAL_NODES)
    stranded = [pod for node in virtual_nodes for pod in await _pods_on(client, objects.name(node))]
    return OwnObjects(
        await _or(client.list(kinds.DEPLOYMENTS), []),
        await _or(client.list(kinds.STATEFUL_SETS), []),
        await _or(client.list(kinds.DAEMON_SETS), []),
        await _or(client.list(kinds.SERVICES), []),
        await _or(machines, []),
        virtual_nodes,
        stranded,
        await _or(client.get(kinds.MUTATING_WEBHOOKS, manifests.WEBHOOK), None),
    )


async def _pods_on(client: Client, node: str) -> Objects:
    selector = f"spec.nodeName={node},spec.schedulerName!={keys.PROXY_SCHEDULER}"
    return await _or(client.list(kinds.PODS, field_selector=selector), [])


async def _or(request: Awaitable[T], otherwise: T) -> T:
    """Await a request; return the other value for what does not exist, or may not be read."""
    try:
        return await request
    except ApiError:
        return otherwise
