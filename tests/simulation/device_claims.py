"""Devices by claim in one cluster: its controller manager's part, and its scheduler's.

The controller makes claims of templates, and clears those that nobody uses; as the real one it does
so in the source as well, for proxies. Only the scheduler of a target allocates: to a claim of a pod
one device of the node that it chooses, in the moment in which it asks the extender to bind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from tests.apiserver.store import Change
from tests.simulation.clusters import NAMESPACE, SimulatedCluster
from vnode.api import device_claims, kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects

CLASS: Final = "gpu.example.com"
TEMPLATE: Final = "gpus"
SHARED: Final = "shared"

_REQUESTS: Final = {"requests": [{"name": "one", "exactly": {"deviceClassName": CLASS}}]}


def prepare_source_claims(cluster: SimulatedCluster) -> None:
    """Make the template that pods name, and the claim that some share."""
    metadata = {"name": TEMPLATE, "namespace": NAMESPACE}
    template = {"metadata": metadata, "spec": {"spec": {"devices": _REQUESTS}}}
    cluster.server.add(kinds.RESOURCE_CLAIM_TEMPLATES, template)
    shared = {"metadata": {**metadata, "name": SHARED}, "spec": {"devices": _REQUESTS}}
    cluster.server.add(kinds.RESOURCE_CLAIMS, shared)


def prepare_target_class(cluster: SimulatedCluster) -> None:
    """Make the DeviceClass that claims name."""
    cluster.server.add(kinds.DEVICE_CLASSES, {"metadata": {"name": CLASS}, "spec": {}})


def with_claim(pod: Object, *, shared: bool = False) -> Object:
    """Have a pod claim a device: one of its own, or that of all who share."""
    what = {"resourceClaimName": SHARED} if shared else {"resourceClaimTemplateName": TEMPLATE}
    spec = {**objects.spec(pod), "resourceClaims": [{"name": "gpu", **what}]}
    return {**pod, "spec": spec}


def claims_in(cluster: SimulatedCluster) -> Objects:
    """Return all claims of a cluster."""
    return cluster.server.store.all(kinds.RESOURCE_CLAIMS)


def device_of(claim: Object) -> str:
    """Return which device a claim has, "" for none."""
    return str((objects.status(claim).get("allocation") or {}).get("device") or "")


def users_of(claim: Object) -> list[str]:
    """Return the UIDs of the pods for which a claim is reserved."""
    return [str(entry["uid"]) for entry in objects.status(claim).get("reservedFor") or ()]


@dataclass(slots=True)
class ClaimController:
    """Plays what the controller manager of one cluster does about claims."""

    cluster: SimulatedCluster

    def follow(self) -> None:
        """Hear of all changes from now on."""
        self.cluster.server.store.changed.add(self._on_change)

    def _on_change(self, kind: Kind, change: Change) -> None:
        if kind is kinds.RESOURCE_CLAIM_TEMPLATES and change.new is not None:
            for pod in self.cluster.pods():
                self._make_soon(pod)
        elif kind is kinds.PODS:
            if change.new is not None and not objects.is_finished(change.new):
                self._make_soon(change.new)
            else:
                uid = objects.uid(change.old or change.new or {})
                self.cluster.soon(lambda: self._clear(uid))

    def _make_soon(self, pod: Object) -> None:
        if device_claims.unmade(pod):
            key, uid = objects.key(pod), objects.uid(pod)
            self.cluster.soon(lambda: self._make(key, uid))

    def _make(self, key: str, uid: str) -> None:
        pod = self.cluster.pod(key, uid)
        template = "" if pod is None else device_claims.unmade(pod)
        if pod is None or not template or objects.is_finished(pod):
            return

        store, name = self.cluster.server.store, objects.name(pod)
        found = store.get(kinds.RESOURCE_CLAIM_TEMPLATES, objects.join_key(NAMESPACE, template))
        if found is None:
            return

        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": True}
        claim = f"{name}-gpu-{uid[:5]}"
        metadata = {"name": claim, "ownerReferences": [owner]}
        body = {"metadata": metadata, "spec": objects.spec(found)["spec"]}
        if store.get(kinds.RESOURCE_CLAIMS, objects.join_key(NAMESPACE, claim)) is None:
            self.cluster.writer.create(kinds.RESOURCE_CLAIMS, body, NAMESPACE)

        made = [{"name": "gpu", "resourceClaimName": claim}]
        self.cluster.set_status(pod, {"resourceClaimStatuses": made})

    def _clear(self, uid: str) -> None:
        """Take a pod that is gone or has finished out of all claims, and delete its own."""
        for claim in claims_in(self.cluster):
            if objects.controller_uid(claim) == uid:
                self.cluster.writer.delete(kinds.RESOURCE_CLAIMS, objects.key(claim))
            elif uid in users_of(claim):
                release(self.cluster, objects.key(claim), uid, deallocate=True)


@dataclass(slots=True)
class ClaimAllocator:
    """What the scheduler of a cluster knows of devices: so many on each node, by its name."""

    cluster: SimulatedCluster
    devices: Mapping[str, int]
    allocated: set[str] = field(default_factory=set)
    """All devices that were ever given."""

    def follow(self, again: Callable[[], None]) -> None:
        """Have `again` called when pods may find what they did not."""

        def changed(kind: Kind, _change: Change) -> None:
            if kind is kinds.RESOURCE_CLAIMS:
                again()

        self.cluster.server.store.changed.add(changed)

    def claims(self, pod: Object) -> Objects | None:
        """Return the claims of a pod, None if one is yet to be made: the scheduler holds it."""
        if device_claims.unmade(pod):
            return None

        made = objects.status(pod).get("resourceClaimStatuses") or ()
        names = [*device_claims.named(objects.spec(pod)), *(e["resourceClaimName"] for e in made)]
        store = self.cluster.server.store
        found = [
            store.get(kinds.RESOURCE_CLAIMS, objects.join_key(NAMESPACE, name)) for name in names
        ]
        return None if None in found else [claim for claim in found if claim is not None]

    def fits(self, claims: Objects, node: str) -> bool:
        """Tell whether a node has what these claims have, or devices for those without."""
        given = [device_of(claim) for claim in claims]
        if any(device and not device.startswith(f"{node}/") for device in given):
            return False

        return len(self._free(node)) >= given.count("")

    def allocate(self, claims: Objects, node: str, uid: str) -> None:
        """Give claims without a device one of the node, and reserve all for a pod."""
        free = self._free(node)
        for claim in claims:
            device = device_of(claim) or free.pop(0)
            self.allocated.add(device)
            user = {"resource": "pods", "name": uid, "uid": uid}
            reserved = objects.status(claim).get("reservedFor") or ()
            others = [entry for entry in reserved if entry["uid"] != uid]
            status = {"allocation": {"device": device}, "reservedFor": [*others, user]}
            _set_status(self.cluster, objects.key(claim), status)

    def give_back(self, claims: Objects, uid: str) -> None:
        """Reserve them no more for a pod that was not bound; what is allocated stays."""
        for claim in claims:
            release(self.cluster, objects.key(claim), uid, deallocate=False)

    def _free(self, node: str) -> list[str]:
        taken = set(map(device_of, claims_in(self.cluster)))
        every = [f"{node}/{number}" for number in range(self.devices.get(node, 0))]
        return [device for device in every if device not in taken]


def release(cluster: SimulatedCluster, key: str, uid: str, *, deallocate: bool) -> None:
    """Take a user out of a claim; without any it may lose its device."""
    claim = cluster.server.store.get(kinds.RESOURCE_CLAIMS, key)
    if claim is None:
        return

    left = [e for e in objects.status(claim).get("reservedFor") or () if e["uid"] != uid]
    status = {**objects.status(claim), "reservedFor": left}
    if deallocate and not left:
        status = {}

    _set_status(cluster, key, status)


def _set_status(cluster: SimulatedCluster, key: str, status: Object) -> None:
    cluster.writer.update(
        kinds.RESOURCE_CLAIMS, key, lambda old: {**old, "status": status}, subresource="status"
    )
