"""From a chaperon back to its proxy pod: pure decisions of the source's side.

The delegate's status replaces the proxy's, so that every tool sees the pod as it is in the target;
what only makes sense there (containers that the target injected, its own QoS verdict) stays behind.
Annotations of others on the delegate come back too; ours stay. Another cluster wrote all that: its
size is bounded, and addresses that no pod can have stay behind (the API server takes no
EndpointSlice with one, so they would take a Service's other pods down with them).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Final

import msgspec

from vnode.api import keys, objects
from vnode.api.objects import Object
from vnode.pods import agreement, changes

_STAYS_BEHIND: Final = frozenset({"qosClass", "nominatedNodeName", "observedGeneration"})
_CONTAINERS: Final = {
    "containerStatuses": "containers",
    "initContainerStatuses": "initContainers",
    "ephemeralContainerStatuses": "ephemeralContainers",
}
FINISHED: Final = ("Succeeded", "Failed")
# Bytes of JSON that a pod may have by feedback. A kubelet's status of a pod with fifty containers
# takes some 50 KiB. Of the 256 KiB of annotations that an API server takes, some stay for users.
STATUS_LIMIT: Final = 128 * 1024
ANNOTATIONS_LIMIT: Final = 192 * 1024


def status_patch(proxy: Object, chaperon: Object) -> Object:
    """The merge patch for the proxy's status; empty if nothing is new."""
    reported = objects.without_nulls(objects.status(chaperon))
    if objects.status(proxy).get("phase") in FINISHED and reported.get("phase") not in FINISHED:
        return {}

    wanted = {k: v for k, v in reported.items() if k not in _STAYS_BEHIND}
    for field, containers in _CONTAINERS.items():
        if field in wanted:
            own = {entry.get("name") for entry in objects.spec(proxy).get(containers) or ()}
            wanted[field] = [entry for entry in wanted[field] if entry.get("name") in own]

    known = {
        k: objects.without_nulls(v)
        for k, v in objects.status(proxy).items()
        if k not in _STAYS_BEHIND
    }
    _drop_special_addresses(wanted)
    _keep_scheduled(known, wanted)
    if not reported.get("phase"):  # no delegate yet: its target can only say why
        known = {k: v for k, v in known.items() if k in wanted}

    diff = objects.merge_diff(known, wanted)
    return {"metadata": {"uid": objects.uid(proxy)}, "status": diff} if diff else {}


def exceeds(proxy: Object, patch: Object) -> str:
    """What the pod would have after this patch, if honest clusters have no reason for it; else "".

    The result counts: many small patches come to as much as a large one.
    """
    if _outgrows(objects.status(proxy), objects.status(patch), STATUS_LIMIT):
        return f"a status of over {STATUS_LIMIT} bytes"

    if _outgrows(objects.annotations(proxy), objects.annotations(patch), ANNOTATIONS_LIMIT):
        return f"annotations of over {ANNOTATIONS_LIMIT} bytes"

    return ""


def _outgrows(known: Object, patch: Object, limit: int) -> bool:
    """Whether something is over the limit after a patch, and not smaller than it was."""
    if not patch:
        return False

    result = objects.without_nulls(objects.merge_patches(known, patch))
    after = len(msgspec.json.encode(result))
    return after > limit and after > len(msgspec.json.encode(known))


def _drop_special_addresses(wanted: Object) -> None:
    if "podIPs" in wanted:
        wanted["podIPs"] = [e for e in wanted["podIPs"] if _is_ordinary(e.get("ip"))]

    if "podIP" in wanted and not _is_ordinary(wanted["podIP"]):
        del wanted["podIP"]


def _is_ordinary(text: object) -> bool:
    """What may be an endpoint of a Service (ValidateNonSpecialIP of Kubernetes)."""
    try:
        ip = ipaddress.ip_address(str(text))
    except ValueError:
        return False

    return not (ip.is_unspecified or ip.is_loopback or ip.is_link_local or ip.is_multicast)


def _keep_scheduled(known: Object, wanted: Object) -> None:
    """The proxy was scheduled when it was bound; that its delegate was too is no news."""
    own = [e for e in known.get("conditions") or () if e.get("type") == "PodScheduled"]
    if not own or own[0].get("status") != "True":
        return

    told = [e for e in wanted.get("conditions") or () if e.get("type") == "PodScheduled"]
    if not told:
        wanted["conditions"] = [*(wanted.get("conditions") or ()), *own]
    elif told[0].get("status") == "True":
        wanted["conditions"] = [own[0] if e is told[0] else e for e in wanted["conditions"]]


def annotations_patch(proxy: Object, chaperon: Object, *, two_way: bool) -> Object:
    """The merge patch for the proxy's annotations; empty if nothing is new.

    With `two_way` the proxy's changes go to the delegate as well, and only what the target changed
    comes back. Admiralty's targets take no changes: there the delegate's annotations count, and
    those that it does not have are kept.
    """
    if two_way:
        news = changes.settle(proxy, chaperon).up
    else:
        known = objects.annotations(proxy)
        reported = agreement.foreign(chaperon).items()
        news = {key: value for key, value in reported if known.get(key) != value}

    if not news:
        return {}

    return {"metadata": {"uid": objects.uid(proxy), "annotations": news}}


def has_started(proxy: Object) -> bool:
    """A container of the pod has been seen to run, or the pod is finished."""
    status = objects.status(proxy)
    if status.get("phase") not in (None, "", "Pending"):
        return True

    return any(
        "waiting" not in (entry.get("state") or {"waiting": {}}) or entry.get("restartCount")
        for field in _CONTAINERS
        for entry in status.get(field) or ()
    )


def failed_unseen(proxy: Object, now: str) -> Object:
    """Build the strategic merge patch of the status of a pod whose end nobody has reported.

    Kubernetes' garbage collector of pods writes the same for a node that is gone, the condition
    included, by which a Job's pod failure policy knows that the pod is not to blame.
    """
    message = "vnode: the pod was deleted, and its last status did not come from the target"
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DelegateLost",
        "message": message,
        "lastTransitionTime": now,
    }
    status: Object = {"phase": "Failed", "reason": "DelegateLost", "message": message}
    if objects.condition(proxy, "DisruptionTarget") is None:
        status["conditions"] = [condition]

    return {"metadata": {"uid": objects.uid(proxy)}, "status": status}


def without_finalizers(
    proxy: Object, stays: Callable[[str], bool] = keys.is_foreign
) -> Object | None:
    """The merge patch that takes off all finalizers but those that stay; None if all do."""
    present = objects.finalizers(proxy)
    kept = [entry for entry in present if stays(entry)]
    if kept == present:
        return None

    return {
        "metadata": {
            "uid": objects.uid(proxy),
            "resourceVersion": objects.resource_version(proxy),
            "finalizers": kept,
        }
    }
