"""Checks that objects of another cluster have the form that the API gives them.

Objects are plain JSON here, and an honest API server has checked them against their schema. The API
server of a target need not be honest. So objects from a target pass one of these checks before any
code reads them; one that does not is treated as absent, or as no answer to what was asked or
written. Only the fields that our code reads are checked. Names are, too, also those of the object
in the source from which one was made: they are used in requests and in keys.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final

import msgspec

from vnode.api import keys, names, objects, summary_reports
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


class _AnyMetadata(msgspec.Struct, rename="camel"):
    """What API servers answer of anything, such as a review, which is never stored."""

    name: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    namespace: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    owner_references: list[_OwnerReference] | None = None


class _AnyObject(msgspec.Struct):
    metadata: _AnyMetadata | None = None
    spec: Object | None = None
    status: Object | None = None


class _LoadBalancer(msgspec.Struct):
    ingress: list[Object] | None = None


class _CopyStatus(msgspec.Struct, rename="camel"):
    load_balancer: _LoadBalancer | None = None


class _Copy(msgspec.Struct):
    metadata: _ReceivedMetadata
    spec: Object | None = None
    status: _CopyStatus | None = None


class _SummaryMetadata(msgspec.Struct, rename="camel"):
    name: str
    uid: str
    resource_version: str
    namespace: str = ""
    labels: dict[str, Any] | None = None
    annotations: dict[str, Any] | None = None


class _Summary(msgspec.Struct):
    """What `trim_summary` can make use of: one bad entry does not hide the rest."""

    metadata: _SummaryMetadata
    capacity: dict[str, Any] | None = None
    allocatable: dict[str, Any] | None = None


MOST_RESOURCES: Final = 250
"""Resources of a ClusterSummary that are read; clusters have some dozens."""
MOST_LABELS: Final = 250
"""Labels of a ClusterSummary that are read; nodes have some dozens."""

_LONGEST_QUANTITY: Final = 64  # characters; API servers write a third of that
_LARGEST_NUMBER: Final = 2**63
_COMMON_RESOURCES: Final = ("cpu", "memory", "pods", "ephemeral-storage")


def trim_summary(summary: Object) -> Object:
    """Drop entries that are not in their form, stale ones, and those beyond these numbers.

    A bad one hides no other; of many, each would be parsed at each look. Resources without a name
    that Kubernetes gives them go as well: the Node has what is left, and all that watch Nodes get
    it at each change, be it a MiB.
    """
    kept = {**summary, "metadata": dict(summary["metadata"])}
    metadata = kept["metadata"]
    labels = _entries(metadata.get("labels"), str)
    metadata["labels"] = dict(itertools.islice(labels.items(), MOST_LABELS))
    if "annotations" in metadata:
        annotations = _entries(metadata["annotations"], str)
        metadata["annotations"] = summary_reports.current(annotations)

    for field in ("capacity", "allocatable"):
        if summary.get(field) is not None:
            kept[field] = _first_resources(_resources(summary[field]))

    return kept


def _first_resources(listed: Object) -> Object:
    if len(listed) <= MOST_RESOURCES:
        return listed

    common = {name: listed[name] for name in _COMMON_RESOURCES if name in listed}
    return dict(itertools.islice(listed.items(), MOST_RESOURCES - len(common))) | common


def _resources(listed: Object) -> Object:
    return {
        name: quantity
        for name, quantity in _entries(listed, (str, int)).items()
        if names.QUALIFIED_NAME.fullmatch(name) and _is_short(quantity)
    }


def _is_short(quantity: str | int) -> bool:
    if isinstance(quantity, str):
        return len(quantity) <= _LONGEST_QUANTITY

    return abs(quantity) < _LARGEST_NUMBER


def _entries(listed: Object | None, form: type | tuple[type, ...]) -> Object:
    """Return the entries of which the value has that type; true and false are no numbers."""
    return {
        key: value
        for key, value in (listed or {}).items()
        if isinstance(value, form) and not isinstance(value, bool)
    }


def _test(type_: type, has_names: Callable[[Object], bool]) -> Callable[[Any], bool]:
    return lambda obj: _has_form(obj, type_) and has_names(obj)


def _has_form(obj: Any, type_: type) -> bool:
    try:
        msgspec.convert(obj, type_)
    except (msgspec.ValidationError, RecursionError):
        return False

    return True


def _has_names(obj: Object) -> bool:
    """Tell whether an object is called what one can be called, and its parent likewise if named."""
    annotations = objects.annotations(obj)
    parent, place = (annotations.get(key) for key in (keys.PARENT_NAME, keys.PARENT_NAMESPACE))
    return (
        _has_own_name(obj)
        and bool(names.SUBDOMAIN.fullmatch(parent or "none"))
        and bool(not place or names.LABEL.fullmatch(place))
    )


def _has_own_name(obj: Object) -> bool:
    namespace = objects.namespace(obj)
    name = names.SUBDOMAIN.fullmatch(objects.name(obj))
    return bool(name and (not namespace or names.LABEL.fullmatch(namespace)))


is_chaperon = _test(_Chaperon, _has_names)
"""Tells whether the value can be read as a PodChaperon."""

is_summary = _test(_Summary, _has_own_name)
"""Tells whether the value can be read as a ClusterSummary, after `trim_summary`."""

is_copy = _test(_Copy, _has_names)
"""Tells whether the value can be read as a copy, of whatever kind."""

is_object = _test(_AnyObject, lambda _obj: True)
"""Tells whether the value can be read as an object of any kind, a review included.

An honest API server answers nothing else, whatever its users have written.
"""
