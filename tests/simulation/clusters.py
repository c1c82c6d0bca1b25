"""The API servers of a simulation, with the objects that are there before its pods.

Everybody but vnode's agents works on a cluster's store directly, as they would with a watch that is
never behind; while the API server is down they wait, too.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Final

from tests.apiserver.requests import APIRequest
from tests.apiserver.server import APIServer
from tests.apiserver.status import StatusError
from tests.apiserver.writing import ObjectWriter
from tests.faults.snapshot import INJECTED, SIDECAR
from vnode.api import keys, kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.identity import Identity
from vnode.api.objects import Object, Objects
from vnode.api.target_key import TargetKey
from vnode.nodes import virtual
from vnode.runtime import manifest_key
from vnode.runtime.certs import authority

NAMESPACE: Final = "default"
AGENT_NAMESPACE: Final = "vnode"
DEVICE: Final = "example.com/device"  # the extended resource of nodes that have one
_AGAIN: Final = 0.5  # seconds until somebody tries again whose API server is down


class SimulatedCluster:
    """One cluster; `slow` multiplies its latency."""

    def __init__(self, name: str, dice: random.Random, latency: float) -> None:
        self.name = name
        self.dice = dice
        self.slow = 1.0
        self.down = 0  # by how many faults nobody can reach the API server
        # What is to be done as soon as it can be reached, in the order in which it was to happen.
        self._waiting: list[Callable[[], None]] = []
        self.server = APIServer(
            name,
            SystemClock(),
            latency=lambda: dice.expovariate(1 / latency) * self.slow,
            seed=dice.getrandbits(32),
        )
        system = self.server.find(kinds.NAMESPACES, "kube-system") or {}
        self.identity = Identity(name, objects.uid(system))

    @property
    def writer(self) -> ObjectWriter:
        """Writes that happen at once, by the rules of the API."""
        return self.server.writer

    def pods(self) -> Objects:
        """Return all pods; they must not be changed."""
        return self.server.store.all(kinds.PODS)

    def pod(self, key: str, uid: str) -> Object | None:
        """Return the pod of that key, if it still is the one with that UID."""
        found = self.server.store.get(kinds.PODS, key)
        return found if found is not None and objects.uid(found) == uid else None

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        """Do something then, or as soon after that as the API server answers."""
        asyncio.get_running_loop().call_later(seconds, self._attempt, act)

    def soon(self, act: Callable[[], None]) -> None:
        """Do something after as long as anybody takes to hear of a change and to react."""
        self.later(self.dice.expovariate(1 / 0.05), act)

    def _attempt(self, act: Callable[[], None]) -> None:
        if self.down or self._waiting:
            self._waiting.append(act)
            if len(self._waiting) == 1:
                self._retry()
        else:
            _do(act)

    def _retry(self) -> None:
        asyncio.get_running_loop().call_later(_AGAIN, self._catch_up)

    def _catch_up(self) -> None:
        if self.down:
            self._retry()
            return

        waiting, self._waiting = self._waiting, []
        for act in waiting:
            _do(act)

    def set_status(self, pod: Object, status: Object) -> Object:
        """Write fields of a pod's status."""

        def change(old: Object) -> Object:
            return {**old, "status": {**objects.status(old), **status}}

        return self.writer.update(kinds.PODS, objects.key(pod), change, subresource="status")

    def set_condition(self, pod: Object, condition: Object) -> Object:
        """Write a condition of a pod, with the time of its change."""
        known = objects.condition(pod, condition["type"]) or {}
        since = known.get("lastTransitionTime")
        if known.get("status") != condition["status"] or not since:
            since = self.writer.now()

        entry = {**condition, "lastTransitionTime": since}
        others = [
            c for c in objects.status(pod).get("conditions") or () if c["type"] != entry["type"]
        ]
        return self.set_status(pod, {"conditions": [*others, entry]})


def target_key(name: str) -> TargetKey:
    """Give the key of the Target that stands for a cluster."""
    return TargetKey(NAMESPACE, name)


def prepare_source(cluster: SimulatedCluster, targets: Sequence[str]) -> None:
    """Make the Targets and their virtual nodes."""
    label, value = keys.WEBHOOK_NAMESPACE_LABEL
    labels = {"metadata": {"name": NAMESPACE, "labels": {label: value}}}
    cluster.server.add(kinds.NAMESPACES, labels)
    _install(cluster)
    for name in targets:
        secret = {"kubeconfigSecret": {"name": name}}
        cluster.server.add(
            kinds.TARGETS, {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": secret}
        )
        node = virtual.registration(target_key(name))
        cluster.server.add(kinds.NODES, {**node, "status": _ready({})})


def inject(request: APIRequest, obj: Object) -> Object:
    """Add a sidecar to a pod that is created, unless an annotation says that it has one.

    That is how injectors of meshes and of secrets work.
    """
    if (request.verb, request.kind) != ("create", kinds.PODS) or request.subresource:
        return obj

    annotations = objects.annotations(obj)
    if INJECTED in annotations:
        return obj

    metadata = {**obj["metadata"], "annotations": {**annotations, INJECTED: "true"}}
    sidecar = {"name": SIDECAR, "image": "proxy", "resources": {"requests": {"cpu": "0"}}}
    containers = [*objects.spec(obj)["containers"], sidecar]
    return {**obj, "metadata": metadata, "spec": {**obj["spec"], "containers": containers}}


def prepare_target(
    cluster: SimulatedCluster, cpus: Sequence[int], devices: Sequence[int] = ()
) -> None:
    """Make the real nodes, the first of which have devices, and an injector."""
    _install(cluster)
    cluster.server.admit(inject)
    for number, cpu in enumerate(cpus):
        amounts = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
        if number < len(devices) and devices[number]:
            amounts[DEVICE] = str(devices[number])

        name = f"{cluster.name}-{number}"
        cluster.server.add(kinds.NODES, {"metadata": {"name": name}, "status": _ready(amounts)})


def _install(cluster: SimulatedCluster) -> None:
    """Make what an agent finds of an earlier one."""
    cluster.server.add(kinds.NAMESPACES, {"metadata": {"name": AGENT_NAMESPACE}})
    secret = authority.secret_of(AGENT_NAMESPACE, manifest_key.SECRET, {"key": bytes(32)})
    cluster.server.add(kinds.SECRETS, secret)  # the key of tests.permitted


def _ready(amounts: Object) -> Object:
    condition = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {"capacity": amounts, "allocatable": amounts, "conditions": [condition]}


def _do(act: Callable[[], None]) -> None:
    try:
        act()
    except StatusError as error:
        if error.code not in (404, 409):  # gone, or changed: so there is nothing to do
            raise
