"""Compares with our last writes to a Node, which `managedFields` preserve. Pure.

An apply removes the fields of the last one that it does not have, so whether it would change
anything depends on what the last one had. After a restart the Node's `managedFields` still show
that, so a restarted agent need not write to find out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from vnode.api import node_features, objects
from vnode.api.objects import Object

_MANAGER: Final = "vnode"  # field manager of `Client.apply`
_DESCRIPTION: Final = ("labels", "annotations")
_OFFER: Final = ("capacity", "allocatable")

Fields = frozenset[tuple[str, str]]
"""(`labels`, key), (`capacity`, resource) and so on."""


@dataclass(slots=True)
class Written:
    """Holds our last writes to the Node with this UID."""

    uid: str
    description: Fields = frozenset()
    offer: Fields = frozenset()
    status_at: float = float("-inf")  # monotonic
    declared: Object | None = None  # None: not known


def described(wanted: Object) -> Fields:
    """Return the fields of an applied description."""
    return _fields(objects.metadata(wanted), _DESCRIPTION)


def offered(status: Object) -> Fields:
    """Return the resources of an applied status."""
    return _fields(status, _OFFER)


def declares(node: Object, wanted: Object, last: Written) -> bool:
    """Tell whether a Node has the features of a status, or was last written so.

    API servers drop those that they do not know, or that a feature gate hides.
    """
    if last.declared is not None:
        return last.declared == declared(wanted)

    return declared(objects.status(node)) == declared(wanted)


def declared(status: Object) -> Object:
    """Return the features of a status."""
    return {field: status[field] for field in node_features.FIELDS if status.get(field)}


def recall(node: Object, now: datetime, monotonic: float) -> Written:
    """Return our last writes to a Node by its `managedFields`; empty if there were none."""
    heartbeat = (objects.condition(node, "Ready") or {}).get("lastHeartbeatTime")
    at = objects.parse_timestamp(str(heartbeat)) if heartbeat else None
    offer = frozenset(_applied(node, "status", "f:status", _OFFER))
    return Written(
        objects.uid(node),
        applied_description(node),
        offer,
        monotonic - max(now - at, timedelta()).total_seconds() if at and offer else float("-inf"),
    )


def applied_description(node: Object) -> Fields:
    """Return the labels and annotations that we have applied to a Node, by its `managedFields`."""
    return frozenset(_applied(node, "", "f:metadata", _DESCRIPTION))


def includes(node: Object, wanted: Object) -> bool:
    """Tell whether a Node has these labels and annotations."""
    labels, annotations = objects.labels(wanted), objects.annotations(wanted)
    return (
        labels.items() <= objects.labels(node).items()
        and annotations.items() <= objects.annotations(node).items()
    )


def _fields(part: Object, names: tuple[str, ...]) -> Fields:
    return frozenset((name, key) for name in names for key in part.get(name) or ())


def _applied(
    node: Object, subresource: str, part: str, names: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    for entry in objects.metadata(node).get("managedFields") or ():
        ours = entry.get("manager") == _MANAGER and entry.get("operation") == "Apply"
        if ours and entry.get("subresource", "") == subresource:
            fields = (entry.get("fieldsV1") or {}).get(part) or {}
            for name in names:
                for key in fields.get(f"f:{name}") or ():
                    if key.startswith("f:"):  # not ".", the map itself
                        yield name, key.removeprefix("f:")
