"""Accelerators of a random run, by number and by claim: what targets have, and what has to hold.

Nodes of targets have GPUs, and ResourceSlices that no driver stands behind: the schedulers of the
targets allocate from them, as much as all pods of a run can want. Checked is that a device has one
claim, that claims end with the delegates that they are of, and that no claim of the source has
devices.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from tests import resource_slices
from tests.faults.harness import Harness
from tests.faults.plan import MOST_REPLICAS, MOST_WORKLOADS, TARGETS, DeviceUse
from tests.faults.snapshot import Violation
from tests.faults.targets import NAMESPACE
from vnode.api import kinds, objects
from vnode.api.errors import AlreadyExists
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.kube.client import Client

GPU: Final = "nvidia.com/gpu"
TEMPLATE: Final = "device"
_MANY: Final = 2 * MOST_WORKLOADS * MOST_REPLICAS  # of each node; those that end have theirs, too


async def begin(harness: Harness) -> None:
    """Have the targets' nodes offer devices, and the source a template of claims."""
    exactly = {"deviceClassName": resource_slices.CLASS}
    claim = {"spec": {"devices": {"requests": [{"name": "one", "exactly": exactly}]}}}
    template = {"metadata": {"name": TEMPLATE}, "spec": claim}
    await _ensure(harness.source, kinds.RESOURCE_CLAIM_TEMPLATES, template, NAMESPACE)
    for target in TARGETS:
        client = harness.clients[target]
        await _ensure(client, kinds.DEVICE_CLASSES, resource_slices.device_class())
        for node in await client.list(kinds.NODES):
            await _ensure(client, resource_slices.KIND, resource_slices.of_node(node, _MANY))
            body = {"status": {part: {GPU: str(_MANY)} for part in ("capacity", "allocatable")}}
            await client.patch(kinds.NODES, objects.name(node), body, subresource="status")


async def _ensure(client: Client, kind: Kind, obj: Object, namespace: str | None = None) -> None:
    with suppress(AlreadyExists):  # of an earlier run
        await client.create(kind, obj, namespace)


def give(spec: Object, use: DeviceUse) -> None:
    """Have a pod of that spec use a device."""
    resources = spec["containers"][0]["resources"]
    if use is DeviceUse.GPU:
        resources["limits"] = {GPU: "1"}
    elif use is DeviceUse.CLAIM:
        spec["resourceClaims"] = [{"name": "device", "resourceClaimTemplateName": TEMPLATE}]
        resources["claims"] = [{"name": "device"}]


async def violations(harness: Harness, targets: Iterable[str]) -> list[Violation]:
    """Ask the source and these targets; return what is wrong in what has settled."""
    found = [
        f"{objects.name(claim)} of the source has devices"
        for claim in await harness.source.list(kinds.RESOURCE_CLAIMS, NAMESPACE)
        if _devices(claim)
    ]
    for target in targets:
        client = harness.clients[target]
        claims, pods = await asyncio.gather(
            client.list(kinds.RESOURCE_CLAIMS, NAMESPACE), client.list(kinds.PODS, NAMESPACE)
        )
        found += [f"{what} in {target}" for what in wrong(claims, pods)]

    return [Violation("devices are of pods that are there", what) for what in found]


def wrong(claims: Objects, pods: Objects) -> Iterator[str]:
    """Yield what is wrong with the claims of a target that has these pods."""
    there = set(map(objects.uid, pods))
    owners = {objects.name(claim): objects.controller_uid(claim) for claim in claims}
    for name, owner in owners.items():
        if owner not in there:
            yield f"claim {name} is left of a pod that is gone"

    given = Counter(device for claim in claims for device in _devices(claim))
    for device, count in given.items():
        if count > 1:
            yield f"{device} has {count} claims"


def _devices(claim: Object) -> list[str]:
    allocated = objects.status(claim).get("allocation") or {}
    results = (allocated.get("devices") or {}).get("results") or ()
    return [f"{each['pool']}/{each['device']}" for each in results]
