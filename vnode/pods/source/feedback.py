"""Builds patches that bring a chaperon's status and annotations back to its proxy pod. Pure.

The delegate's status replaces the proxy's, so that every tool shows the pod as it is in the target;
what only makes sense there (containers that the target injected, its own QoS class, the names of
its ResourceClaims) stays behind, and conditions that the source's own controllers have set stay
(`conditions`). Annotations of others on the delegate come back too; ours stay. Another cluster
wrote all that: its size is bounded, and addresses that no pod can have stay behind (the API server
takes no EndpointSlice with one, so they would take a Service's other pods down with them).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from vnode.api import cluster_bound, disruptions, keys, objects
from vnode.api.objects import Object
from vnode.pods import (
    annotation_merge,
    changes,
    conditions,
    event_record,
    observed_generation,
    overriding,
    status_size,
    travel_size,
)

CLAIM_STATUSES: Final = frozenset(
    {
        "resourceClaimStatuses",
        "extendedResourceClaimStatus",
        "nodeAllocatableResourceClaimStatuses",
    }
)
"""They name ResourceClaims of the pod's own cluster, which its controller manager writes on the
proxy: it would put them back whenever those of the target were there."""

STAYS_BEHIND: Final = CLAIM_STATUSES | {"qosClass", "nominatedNodeName", event_record.FIELD}
# Lists that a strategic merge patch merges by a key of their entries, if it is not told otherwise.
MERGED_LISTS: Final = frozenset({"podIPs", "hostIPs"})
_CONTAINERS: Final = {
    "containerStatuses": "containers",
    "initContainerStatuses": "initContainers",
    "ephemeralContainerStatuses": "ephemeralContainers",
}
_PREEMPTED: Final = "PreemptionByScheduler"  # kube-scheduler's reason


def status_patch(proxy: Object, chaperon: Object, *, tight: bool = False) -> Object:
    """Build the strategic merge patch for the proxy's status; empty if nothing is new.

    It also records, in an annotation, which conditions are the delegate's. A status that is too
    large is shortened, all the more if it is `tight`: the API server has refused the pod for its
    size.
    """
    reported = shown(proxy, chaperon, tight=tight)
    phase = objects.status(proxy).get("phase")
    if objects.is_finished(proxy) and phase != reported.get("phase"):
        return {}

    status = observed_generation.by_proxy(proxy, chaperon, reported)
    diff = _fields_patch(proxy, status)
    metadata: Object = {"uid": objects.uid(proxy)}
    if reported.get("phase") or "conditions" in reported:
        translated = {**chaperon, "status": status}
        wanted, fed = conditions.merged(proxy, translated, changes.sent_conditions(chaperon))
        if entries := conditions.patch(conditions.of(proxy), wanted):
            diff["conditions"] = entries

        if fed != annotation_merge.read(proxy, keys.FED_BACK_CONDITIONS):
            record = annotation_merge.text(fed) if fed else None
            metadata["annotations"] = {keys.FED_BACK_CONDITIONS: record}

    if not diff and "annotations" not in metadata:
        return {}

    return {"metadata": metadata, "status": diff}


def shown(proxy: Object, chaperon: Object, *, tight: bool = False) -> Object:
    """Return what of a chaperon's status its proxy shows, as far as its size goes."""
    return status_size.fitting(_whole(chaperon), _most(proxy, tight=tight))


def excess(proxy: Object, chaperon: Object, *, tight: bool) -> int:
    """Return the bytes of a chaperon's status if its proxy cannot show all of it, else 0."""
    status, most = _own(chaperon), _most(proxy, tight=tight)
    whole = status_size.size(status)
    if status_size.is_excessive(status):
        return whole

    if whole <= most:
        return 0

    size = status_size.size(_whole(chaperon))
    return size if size > most else 0


def _whole(chaperon: Object) -> Object:
    plain: Object = _plain(status_size.readable(_own(chaperon)))
    return plain


def _own(chaperon: Object) -> Object:
    """Return the status of a chaperon without its list of Events, of which few are ever read."""
    return {k: v for k, v in objects.status(chaperon).items() if k != event_record.FIELD}


def _most(proxy: Object, *, tight: bool) -> int:
    return status_size.TIGHT if tight else status_size.limit(proxy)


def _fields_patch(proxy: Object, status: Object) -> Object:
    """Build the patch of all fields but the conditions."""
    wanted = {k: v for k, v in status.items() if k not in STAYS_BEHIND}
    for field in MERGED_LISTS & wanted.keys():  # an API server refuses other entries
        if isinstance(wanted[field], list):
            wanted[field] = [entry for entry in wanted[field] if isinstance(entry, dict)]

    for field, containers in _CONTAINERS.items():
        if field in wanted:
            own = {entry.get("name") for entry in objects.spec(proxy).get(containers) or ()}
            wanted[field] = [entry for entry in wanted[field] if entry.get("name") in own]

    _drop_special_addresses(wanted)
    apart = STAYS_BEHIND | {"conditions"} | ({observed_generation.FIELD} - wanted.keys())
    shown_now = objects.status(proxy).items()
    known = objects.without_nulls({k: v for k, v in shown_now if k not in apart})
    patch: Object = {}
    for field in sorted((known.keys() | wanted.keys()) - apart):
        if field in wanted:
            if field not in known or known[field] != wanted[field]:
                patch[field] = _replacement(field, known.get(field), wanted[field])
        elif status.get("phase"):  # a status without a phase only says why there is no delegate
            patch[field] = None

    return patch


def _replacement(field: str, known: Any, value: Any) -> Any:
    """Return the value in the form by which a strategic merge patch replaces the known one.

    A map has no directive `$patch: replace`: where the field is not there yet, the API server drops
    a map with a directive whole, and says nothing.
    """
    if isinstance(value, dict):
        return objects.merge_diff(known if isinstance(known, dict) else {}, value)

    if field in MERGED_LISTS and isinstance(value, list):
        return [{"$patch": "replace"}, *value]

    return value


def _plain(value: Any) -> Any:
    """Drop nulls and directives of strategic merge patches, at any depth.

    Servers keep, fill in or drop the former; the latter are not a target's to write.
    """
    if isinstance(value, dict):
        return {
            k: _plain(inner) if isinstance(inner, dict | list) else inner
            for k, inner in value.items()
            if inner is not None and not k.startswith("$")
        }

    return [_plain(entry) for entry in value] if isinstance(value, list) else value


def without_record(patch: Object) -> Object:
    """Return a patch of status without its annotations."""
    metadata = {k: v for k, v in objects.metadata(patch).items() if k != "annotations"}
    return {**patch, "metadata": metadata}


def _drop_special_addresses(wanted: Object) -> None:
    if "podIPs" in wanted:
        wanted["podIPs"] = [e for e in wanted["podIPs"] if _is_ordinary(e.get("ip"))]

    if "podIP" in wanted and not _is_ordinary(wanted["podIP"]):
        del wanted["podIP"]


def _is_ordinary(text: object) -> bool:
    """Return whether a Service may have such an endpoint (ValidateNonSpecialIP of Kubernetes)."""
    try:
        ip = ipaddress.ip_address(str(text))
    except ValueError:
        return False

    return not (ip.is_unspecified or ip.is_loopback or ip.is_link_local or ip.is_multicast)


def annotations_patch(proxy: Object, chaperon: Object, *, two_way: bool) -> Object:
    """Build the merge patch for the proxy's annotations; empty if nothing is new.

    With `two_way` the proxy's changes go to the delegate as well, and only what the target changed
    comes back. Admiralty's targets take no changes: there the delegate's annotations count, and
    those that it does not have are kept. Of too many none comes back.
    """
    if not travel_size.is_small(objects.annotations(chaperon)):
        return {}

    if two_way:
        news = changes.settle(proxy, chaperon).up
    else:
        known, apart = objects.annotations(proxy), overriding.own_annotations(chaperon)
        reported = annotation_merge.foreign(chaperon).items()
        annotations = {
            k: v
            for k, v in reported
            if keys.travels(k) and cluster_bound.comes_back(k) and k not in apart
        }
        news = {k: v for k, v in annotations.items() if known.get(k) != v}
        if news:
            fed = annotation_merge.read(proxy, keys.FED_BACK) | news
            news[keys.FED_BACK] = annotation_merge.text(fed)

    if not news:
        return {}

    return {"metadata": {"uid": objects.uid(proxy), "annotations": news}}


def has_started(proxy: Object) -> bool:
    """Return whether a container of the pod is known to have run, or the pod is finished."""
    status = objects.status(proxy)
    if status.get("phase") not in (None, "", "Pending"):
        return True

    return any(
        "waiting" not in (entry.get("state") or {"waiting": {}}) or entry.get("restartCount")
        for field in _CONTAINERS
        for entry in status.get(field) or ()
    )


def disrupted(proxy: Object, message: str, now: datetime) -> Object:
    """Build the strategic merge patch of the status of a pod that ends for no fault of its own.

    Kubernetes' garbage collector of pods marks those of a node that is gone in the same way. Empty
    if the pod has the condition.
    """
    if disruptions.of(proxy):
        return {}

    condition = disruptions.condition("DelegateLost", message, now)
    return objects.status_patch(proxy, {"conditions": [condition]})


def preempted(proxy: Object) -> str:
    """Return what the target's scheduler said as it preempted the delegate; "" if it did not."""
    condition = disruptions.of(proxy)
    found = condition.get("reason") == _PREEMPTED and condition.get("status") == "True"
    return str(condition.get("message") or "preempted") if found else ""


def failed_unseen(proxy: Object, now: datetime) -> Object:
    """Build the strategic merge patch of the status of a pod whose end nobody has reported."""
    message = "vnode: the pod was deleted, and the target did not report its last status"
    status = {"phase": "Failed", "reason": "DelegateLost", "message": message}
    status |= objects.status(disrupted(proxy, message, now))
    return objects.status_patch(proxy, status)


def without_finalizers(
    proxy: Object, stays: Callable[[str], bool] = keys.is_foreign
) -> Object | None:
    """Build the merge patch that removes all finalizers but those that stay; None if all do."""
    present = objects.finalizers(proxy)
    kept = [entry for entry in present if stays(entry)]
    if kept == present:
        return None

    return objects.finalizers_patch(proxy, kept)
