"""Checks that objects of another cluster have the form that the API gives them.

Objects are plain JSON here, and an honest API server has checked them against their schema. The API
server of a target need not be honest. So objects from a target pass one of these checks before any
code reads them; one that does not is treated as absent. Only the fields that our code reads are
checked. Names are, too, also those of the object in the source from which one was made: they are
used in requests and in keys.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final

import msgspec

from vnode.api import keys, names, objects
from vnode.api.objects import Object


class _OwnerReference(msgspec.Struct):
    kind: str = ""
    uid: str = ""
    controller: bool | None = None


class _ReceivedMetadata(msgspec.Struct, rename="camel"):
    name: str
    uid: str
    resource_version: str
    namespace: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    owner_references: list[_OwnerReference] | None = None


class _Condition(msgspec.Struct, rename="camel"):
    type: str
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


class _State(msgspec.Struct):
    waiting: Object | None = None
    running: Object | None = None
    terminated: Object | None = None


class _ContainerStatus(msgspec.Struct, rename="camel"):
    name: str
    restart_count: int = 0
    state: _State | None = None


class _PodStatus(msgspec.Struct, rename="camel"):
    phase: str | None = None
    conditions: list[_Condition] | None = None
    container_statuses: list[_ContainerStatus] | None = None
    init_container_statuses: list[_ContainerStatus] | None = None
    ephemeral_container_statuses: list[_ContainerStatus] | None = None
    pod_ip: str | None = msgspec.field(name="podIP", default=None)
    pod_ips: list[dict[str, str]] | None = msgspec.field(name="podIPs", default=None)


class _SpecContainer(msgspec.Struct):
    name: str
    image: str | None = None
    resources: Object | None = None


class _PodSpec(msgspec.Struct, rename="camel"):
    containers: list[_SpecContainer] | None = None
    init_containers: list[_SpecContainer] | None = None
    ephemeral_containers: list[_SpecContainer] | None = None
    resources: Object | None = None


class _Chaperon(msgspec.Struct):
    metadata: _ReceivedMetadata
    spec: _PodSpec | None = None
    status: _PodStatus | None = None


class _LoadBalancer(msgspec.Struct):
    ingress: list[Object] | None = None


class _CopyStatus(msgspec.Struct, rename="camel"):
    load_balancer: _LoadBalancer | None = None


class _Copy(msgspec.Struct):
    metadata: _ReceivedMetadata
    spec: Object | None = None
    status: _CopyStatus | None = None


class _Summary(msgspec.Struct):
    metadata: _ReceivedMetadata
    capacity: dict[str, str | int] | None = None
    allocatable: dict[str, str | int] | None = None


MOST_RESOURCES: Final = 1_000
"""Resources of a ClusterSummary that are read; clusters have some dozens."""
MOST_LABELS: Final = 500
"""Labels of a ClusterSummary that are read; nodes have some dozens."""

_COMMON_RESOURCES: Final = ("cpu", "memory", "pods", "ephemeral-storage")


def trim_summary(summary: Object) -> Object:
    """Drop resources and labels beyond those numbers, since each is parsed at each look."""
    metadata = summary["metadata"]
    kept = {**summary, "metadata": {**metadata, "labels": _first(metadata.get("labels"))}}
    for field in ("capacity", "allocatable"):
        listed = summary.get(field)
        if listed is not None and len(listed) > MOST_RESOURCES:
            common = {name: listed[name] for name in _COMMON_RESOURCES if name in listed}
            first = dict(itertools.islice(listed.items(), MOST_RESOURCES - len(common)))
            kept[field] = first | common

    return kept


def _first(labels: dict[str, str] | None) -> dict[str, str]:
    return dict(itertools.islice((labels or {}).items(), MOST_LABELS))


def _test(type_: type) -> Callable[[Any], bool]:
    def has_form(obj: Any) -> bool:
        try:
            msgspec.convert(obj, type_)
        except (msgspec.ValidationError, RecursionError):
            return False

        return _has_names(obj)

    return has_form


def _has_names(obj: Object) -> bool:
    """Tell whether an object is called what one can be called, and its parent likewise if named."""
    annotations = objects.annotations(obj)
    own, parent = objects.name(obj), annotations.get(keys.PARENT_NAME) or "none"
    places = (objects.namespace(obj), annotations.get(keys.PARENT_NAMESPACE) or "")
    return all(names.SUBDOMAIN.fullmatch(name) for name in (own, parent)) and all(
        not place or names.LABEL.fullmatch(place) for place in places
    )


is_chaperon = _test(_Chaperon)
"""Tells whether the value can be read as a PodChaperon."""

is_summary = _test(_Summary)
"""Tells whether the value can be read as a ClusterSummary."""

is_copy = _test(_Copy)
"""Tells whether the value can be read as a copy, of whatever kind."""
