"""Keeps the room that a delegate's victims leave from the target's own scheduler.

Two schedulers place pods on the nodes of a target. kube-scheduler keeps room for a pod that has
preempted others, its nominated one; but it does so only for pods of its own profiles, so that the
target's scheduler gives the room to the next pod that waits: most often to the one that a
ReplicaSet has made for the victim. Then the candidate scheduler preempts again.

So another pod stands for the delegate there: one of the target's scheduler, as large, of the same
priority, and nominated to the same node. Its scheduling gate keeps it from being placed. It is made
before the victims are evicted; all pods come by one watch, so that the scheduler knows it before it
sees them go. The delegate's chaperon owns it.
"""

from __future__ import annotations

import logging
from typing import Final

from vnode.api import keys, kinds, objects, resources
from vnode.api.errors import AlreadyExists, NotFound, VnodeError
from vnode.api.objects import Object, Objects
from vnode.kube.client import Client

SCHEDULER: Final = "default-scheduler"  # of pods that name none

_KEPT: Final = ("priorityClassName", "serviceAccountName")

log = logging.getLogger(__name__)


def name_of(owner: str) -> str:
    """Return the name of the nominated pod for the chaperon of that UID."""
    return f"vnode-nominated-{owner}"


def build(delegate: Object, owner: str) -> Object:
    """Build the nominated pod for a delegate, whose chaperon has the UID `owner`.

    It never starts, and is as restricted as can be, so that it is allowed in every namespace. It
    has no labels: no Service, budget or spread of the target counts it.

    Raises ConfigError if the delegate's requests cannot be read.
    """
    spec = objects.spec(delegate)
    requests = resources.pod_requests(delegate)
    del requests[resources.PODS]
    amounts = resources.format_list(requests)
    container: Object = {
        "name": "room",
        "image": spec["containers"][0]["image"],
        "ports": _host_ports(spec),
        "resources": {"requests": amounts, "limits": amounts},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    chaperon = {
        "apiVersion": kinds.POD_CHAPERONS.api_version,
        "kind": kinds.POD_CHAPERONS.kind,
        "name": objects.name(delegate),
        "uid": owner,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name_of(owner),
            "namespace": objects.namespace(delegate),
            "annotations": {keys.NO_ELECT: ""},
            "ownerReferences": [chaperon],
        },
        "spec": {
            "schedulerName": SCHEDULER,
            "schedulingGates": [{"name": keys.NOMINATED}],
            "containers": [container],
            "securityContext": {
                "runAsNonRoot": True,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "automountServiceAccountToken": False,
            **{field: spec[field] for field in _KEPT if field in spec},
        },
    }


def _host_ports(spec: Object) -> Objects:
    """Return the ports of the node that a pod takes: they may be what there is no room for."""
    return [
        {field: value for field, value in port.items() if field != "name"}
        for container in spec["containers"]
        for port in container.get("ports") or ()
        if port.get("hostPort")
    ]


class Nominations:
    """Makes, moves and deletes nominated pods."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def keep(self, namespace: str, name: str, owner: str, node: str) -> None:
        """Keep room on a node for the delegate of that name, whose chaperon has the UID `owner`.

        Where that is refused, as by a quota, the delegate goes on without.
        """
        try:
            delegate = await self._client.get(kinds.PODS, name, namespace)
            try:
                await self._client.create(kinds.PODS, build(delegate, owner), namespace)
            except AlreadyExists:
                log.debug("there is a nominated pod for %s/%s", namespace, name)

            body = {"status": {"nominatedNodeName": node}}
            await self._client.patch(
                kinds.PODS, name_of(owner), body, namespace, subresource="status"
            )
        except VnodeError as error:
            log.warning("no room is kept for %s/%s on %s: %s", namespace, name, node, error)

    async def end(self, chaperon: Object) -> bool:
        """Keep room for the delegate of a chaperon no longer; False if that is refused for now."""
        name, namespace = name_of(objects.uid(chaperon)), objects.namespace(chaperon)
        try:
            await self._client.delete(kinds.PODS, name, namespace, grace=0)
        except NotFound:
            log.debug("no room was kept for %s", objects.key(chaperon))
        except VnodeError as error:  # its status goes on; the chaperon takes the pod with it
            log.warning("room is still kept for %s: %s", objects.key(chaperon), error)
            return False

        return True
