"""Computes merge patches for Services and Ingresses of the source: pure.

They set annotations that make a Service global, bring back the addresses that targets' load
balancers gave, and undo what Admiralty did: selectors that it replaced, finalizers that it left.

The source's selector is left alone: proxy pods carry the addresses of their delegate pods, so the
cluster's own controller puts those into EndpointSlices (docs/decisions/0007).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

import msgspec

from vnode.api import documents, keys, objects
from vnode.api.objects import Object, Objects
from vnode.following import balancer_addresses
from vnode.following.balancer_addresses import Key

_ADDRESSES: Final = 16  # of one load balancer: the status comes from another cluster
_SELECTOR: Final = 16 * 1024  # characters of one that Admiralty has replaced; API servers have none
_Record: TypeAlias = dict[str, Annotated[list[dict[str, Any]], msgspec.Meta(max_length=_ADDRESSES)]]
"""What we wrote, by node."""


class _Present(NamedTuple):
    """An address of the status, and whether it is ours."""

    key: Key
    entry: Object
    is_ours: bool


def global_marks(service: Object) -> Object:
    """Return the patch that makes a Service global for Cilium; empty if it is.

    Admiralty's own mark is the user's: it sends a Service to all targets.
    """
    wanted = dict.fromkeys(keys.CILIUM_GLOBAL, "true")
    annotations = objects.annotations(service)
    missing = {key: value for key, value in wanted.items() if key not in annotations}
    return {"metadata": {"annotations": missing}} if missing else {}


def restoration(obj: Object) -> Object:
    """Return the patch that undoes what Admiralty did to an object; empty if there is nothing.

    Of a Service it has replaced the selector. What has its finalizer could not be deleted any more:
    nobody else takes that off.
    """
    text = objects.annotations(obj).get(keys.ORIGINAL_SELECTOR)
    if text is not None and len(text) > _SELECTOR:
        text = None  # a user's: no Service has had it

    kept = [name for name in objects.finalizers(obj) if not name.startswith(keys.PREFIX)]
    if text is None and kept == objects.finalizers(obj):
        return {}

    body: Object = {"metadata": {"labels": {keys.HAS_FINALIZER: None}, "finalizers": kept}}
    if text is None:
        return body

    body["metadata"]["annotations"] = {keys.ORIGINAL_SELECTOR: None}
    original = dict(pair.split("=", 1) for pair in text.split(",") if "=" in pair)
    present = objects.spec(obj).get("selector") or {}
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
    addresses stay that the status has. Those that the source's own load balancer wrote are kept.

    Whoever may annotate the original can write our record of what we wrote. So nothing in it is
    added: it says only which addresses of the status are ours, to be removed or kept.

    An address of a Service is marked as one that the nodes of the source do not serve themselves:
    else a target could name any address there is, and get its traffic.
    """
    written = documents.read_note(objects.annotations(original).get(keys.ADDRESSES), _Record) or {}
    if not written and not any(copies.values()):
        return {}

    recorded, present = _by_key(written), _ingress(original)
    marked: list[_Present] = []
    for entry in present:
        key = balancer_addresses.key_of(entry)
        is_ours = key in recorded and not (is_service and entry.get("ipMode") == "VIP")
        marked.append(_Present(key, entry, is_ours))

    ours = {
        each.key: balancer_addresses.clean(each.key, each.entry, is_service)
        for each in marked
        if each.is_ours
    }
    now = {node: _reported(copy, is_service) for node, copy in sorted(copies.items())}
    unseen = [node for node in written if node not in copies and exists(node)]
    for node in unseen:
        now[node] = [ours[key] for key in _by_key({node: written[node]}) if key in ours]

    now = _recordable(now)
    reported = _by_key({node: entries for node, entries in now.items() if node in copies})
    latest = {key: entries[0] for key, entries in reported.items()}
    merged = _merged(marked, latest, _by_key(now).keys(), recorded)
    if merged == present and now == written:
        return {}

    annotation = msgspec.json.encode(now, order="sorted").decode() if now else None
    return {
        "metadata": {"annotations": {keys.ADDRESSES: annotation}},
        "status": {"loadBalancer": {"ingress": merged or None}},
    }


def _merged(
    present: list[_Present],
    reported: Mapping[Key, Object],
    staying: Collection[Key],
    recorded: Mapping[Key, Objects],
) -> Objects:
    """Return the status's addresses, given those that it has.

    One of ours that a target reports as we have written it stays as the API server has made of it.
    """
    merged: Objects = []
    seen: set[Key] = set()
    for key, entry, is_ours in present:
        if not is_ours:
            merged.append(entry)
        elif key in staying and key not in seen:
            is_same = reported.get(key) in (None, *recorded[key])
            merged.append(entry if is_same else reported[key])

        seen.add(key)

    return merged + [entry for key, entry in reported.items() if key not in seen]


def _reported(copy: Object | None, is_service: bool) -> Objects:
    """Return the addresses of a copy, the first ones.

    Without those that no load balancer can have: an API server refuses a status for one of them,
    and no other target could bring an address any more.
    """
    found: dict[Key, Object] = {}
    for entry in _ingress(copy or {})[:_ADDRESSES]:
        key = balancer_addresses.key_of(entry)
        if balancer_addresses.is_possible(key):
            found[key] = balancer_addresses.clean(key, entry, is_service)

    return list(found.values())


def _recordable(by_node: Mapping[str, Objects]) -> dict[str, Objects]:
    """Return the addresses of as many nodes as a record of them can be read of, the short ones.

    What is not recorded must not be written: nobody would take it away again.
    """
    sizes = {
        node: len(msgspec.json.encode({node: entries}))
        for node, entries in by_node.items()
        if entries
    }
    left, kept = documents.NOTE, set[str]()
    for node in sorted(sizes, key=lambda each: (sizes[each], each)):
        left -= sizes[node]
        if left < 0:
            break

        kept.add(node)

    return {node: entries for node, entries in by_node.items() if node in kept}


def _ingress(obj: Object) -> Objects:
    return (objects.status(obj).get("loadBalancer") or {}).get("ingress") or []


def _by_key(by_node: Mapping[str, Objects]) -> dict[Key, Objects]:
    """Return addresses as we write them by what tells them apart."""
    found: dict[Key, Objects] = {}
    for entry in (entry for entries in by_node.values() for entry in entries):
        ip, hostname = entry.get("ip"), entry.get("hostname")
        key = (ip if isinstance(ip, str) else "", hostname if isinstance(hostname, str) else "")
        found.setdefault(key, []).append(entry)

    return found
