"""Computes merge patches for Services and Ingresses of the source: pure.

They set annotations that make a Service global, bring back the addresses that targets' load
balancers gave, and undo what Admiralty did to selectors.

The source's selector is left alone: proxy pods carry the addresses of their delegate pods, so the
cluster's own controller puts those into EndpointSlices (docs/decisions/0007).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from vnode.api import documents, keys, objects
from vnode.api.objects import Object, Objects

_ADDRESSES: Final = 16  # of one load balancer: the status comes from another cluster
_FIELDS: Final = ("ip", "hostname", "ports")


def global_marks(service: Object) -> Object:
    """Return the patch that makes a Service global; empty if it is."""
    wanted = dict.fromkeys((keys.GLOBAL, *keys.CILIUM_GLOBAL), "true")
    annotations = objects.annotations(service)
    missing = {key: value for key, value in wanted.items() if key not in annotations}
    return {"metadata": {"annotations": missing}} if missing else {}


def restoration(service: Object) -> Object:
    """Return the patch that restores the selector that Admiralty replaced; empty if it did not."""
    text = objects.annotations(service).get(keys.ORIGINAL_SELECTOR)
    if text is None:
        return {}

    original = dict(pair.split("=", 1) for pair in text.split(",") if "=" in pair)
    kept = [name for name in objects.finalizers(service) if not name.startswith(keys.PREFIX)]
    body: Object = {
        "metadata": {
            "resourceVersion": objects.resource_version(service),
            "annotations": {keys.ORIGINAL_SELECTOR: None},
            "labels": {keys.HAS_FINALIZER: None},
            "finalizers": kept,
        }
    }
    present = objects.spec(service).get("selector") or {}
    if original and (diff := objects.merge_diff(present, original)):
        body["spec"] = {"selector": diff}

    return body


def addresses(
    original: Object,
    copies: Mapping[str, Object | None],
    exists: Callable[[str], bool],
    *,
    is_service: bool,
) -> Object:
    """Return the patch of the status with the load balancers' addresses; empty if it has them.

    `copies` are those of the targets that are listed, by node. Of other targets that exist, the
    last known addresses stay. Addresses that the source's own load balancer wrote are kept.

    An address of a Service is marked as one that the nodes of the source do not serve themselves:
    else a target could name any address there is, and get its traffic.
    """
    written = _written(original)
    present: Objects = _ingress(original)
    ours = [entry for entries in written.values() for entry in entries]
    now = {
        node: entries for node, entries in written.items() if node not in copies and exists(node)
    }
    for node, copy in copies.items():
        if found := [_clean(entry, is_service) for entry in _ingress(copy or {})[:_ADDRESSES]]:
            now[node] = found

    merged = [entry for entry in present if entry not in ours]
    for _node, entries in sorted(now.items()):
        merged += [entry for entry in entries if entry not in merged]

    if merged == present and now == written:
        return {}

    annotation = msgspec.json.encode(now, order="sorted").decode() if now else None
    return {
        "metadata": {"annotations": {keys.ADDRESSES: annotation}},
        "status": {"loadBalancer": {"ingress": merged or None}},
    }


def _written(original: Object) -> dict[str, Objects]:
    """Return what we wrote, by node; nothing if somebody has spoilt our annotation."""
    text = objects.annotations(original).get(keys.ADDRESSES)
    if text is None:
        return {}

    try:
        return msgspec.json.decode(text, type=dict[str, list[dict[str, Any]]])
    except documents.NO_JSON:
        return {}


def _ingress(obj: Object) -> Objects:
    return (objects.status(obj).get("loadBalancer") or {}).get("ingress") or []


def _clean(entry: Object, is_service: bool) -> Object:
    kept = {field: entry[field] for field in _FIELDS if entry.get(field)}
    return kept | {"ipMode": "Proxy"} if is_service and "ip" in kept else kept
