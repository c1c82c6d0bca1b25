"""Builds the virtual Node of a target. No I/O.

Three writers share a Node: we, the node lifecycle controller (conditions that it turns Unknown,
taints that evict), and people (labels, cordons). So it is never written as a whole: labels and
status are server-side applies, which own only the fields named here, and our taint is added to the
present ones, because a list of taints cannot be owned in parts.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from vnode import __version__
from vnode.api import (
    keys,
    node_features,
    numbers,
    objects,
    quantities,
    resources,
    target_key,
    visible,
)
from vnode.api.errors import ConfigError
from vnode.api.node_features import NodeFeatures
from vnode.api.objects import Object, Objects
from vnode.api.target_key import TargetKey
from vnode.nodes import declared, labelling
from vnode.nodes.member_taints import TaintSyncStatus
from vnode.runtime.link_health import LinkHealth

_FALSE_CONDITIONS: Final = {
    "MemoryPressure": ("KubeletHasSufficientMemory", "the target's own nodes watch their memory"),
    "DiskPressure": ("KubeletHasNoDiskPressure", "the target's own nodes watch their disks"),
    "PIDPressure": ("KubeletHasSufficientPID", "the target's own nodes watch their processes"),
    "NetworkUnavailable": ("RouteCreated", "the pods' network is that of the target"),
}


def registration(target: TargetKey, role: Mapping[str, str] = types.MappingProxyType({})) -> Object:
    """Build the Node to create, with the taint from the start and without capacity.

    With `role`, Kubernetes leaves it out of topology-aware routing, from the start as well.
    """
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": target.node_name,
            "labels": labelling.at_first(target, role),
        },
        "spec": {"taints": [keys.PROVIDER_TAINT]},
    }


def tainted(node: Object) -> Objects | None:
    """Return the Node's taints with ours added; None if the Node has it already."""
    present: Objects = objects.spec(node).get("taints") or []
    wanted = keys.PROVIDER_TAINT
    if any(wanted.items() <= taint.items() for taint in present):
        return None

    others = [
        taint
        for taint in present
        if (taint.get("key"), taint.get("effect")) != (wanted["key"], wanted["effect"])
    ]
    return [*others, wanted]


def description(
    target: TargetKey,
    labels: Mapping[str, str],
    port: int | None,
    annotations: Mapping[str, str] = types.MappingProxyType({}),
) -> Object:
    """Build the metadata to apply."""
    metadata: Object = {"name": target.node_name, "labels": dict(labels)}
    own = {keys.KUBELET_PORT: str(port)} if port is not None else {}
    if shown := {**annotations, **own}:
        metadata["annotations"] = shown

    return {"metadata": metadata}


def recorded_port(node: Object) -> int | None:
    """Return the port of the kubelet API that is recorded on a Node, None if it is not valid."""
    text = objects.annotations(node).get(keys.KUBELET_PORT, "")
    port = numbers.natural(text, digits=5)
    return port if port is not None and 0 < port < 65536 else None


def recorded_ports(nodes: Iterable[Object], targets: Iterable[TargetKey]) -> dict[str, int]:
    """Return the recorded ports of kubelet APIs, by name of the Node.

    Those of Nodes whose Target is gone are free again.
    """
    present = set(targets)
    ports = {objects.name(n): recorded_port(n) for n in nodes if target_key.of_node(n) in present}
    return {name: port for name, port in ports.items() if port is not None}


def offered(listed: Mapping[str, str | int] | None) -> dict[str, str]:
    """Return a resource list of a target, without what the API server would refuse in a Node.

    Another cluster wrote it, and its schema checks little: one bad entry must not hide the rest.
    """
    valid: dict[str, str] = {}
    for name, quantity in (listed or {}).items():
        try:
            amount = resources.parse({name: quantity})[name]
        except ConfigError:
            continue

        if amount >= 0:
            valid[name] = resources.format_amount(name, amount)

    return valid


def status(
    node: Object,
    *,
    health: LinkHealth,
    certificate: LinkHealth | None = None,
    members: TaintSyncStatus | None = None,
    capacity: Mapping[str, str],
    allocatable: Mapping[str, str],
    address: str,
    port: int | None,
    server_version: str,
    features: NodeFeatures = node_features.NONE,
    now: datetime,
) -> Object:
    """Build the status to apply; conditions of `node` that do not change keep their time."""
    ready = ("True" if health.healthy else "False", health.reason, health.message)
    conditions = [_condition(node, "Ready", *ready, now)]
    for type_, (reason, message) in _FALSE_CONDITIONS.items():
        conditions.append(_condition(node, type_, "False", reason, message, now))

    if certificate is not None:
        value = "True" if certificate.healthy else "False"
        valid = (value, certificate.reason, certificate.message)
        conditions.append(_condition(node, keys.KUBELET_CERTIFICATE, *valid, now))

    if members is not None:
        value = "True" if members.is_synced else "False"
        condition = (value, members.reason, members.message)
        conditions.append(_condition(node, keys.MEMBER_TAINTS_SYNCED, *condition, now))

    wanted: Object = {
        "capacity": dict(capacity),
        "allocatable": dict(allocatable),
        "addresses": [{"type": "InternalIP", "address": address}],
        "conditions": conditions,
        "nodeInfo": _node_info(node, server_version),
        **declared.fields(features, server_version),
    }
    if port is not None:
        wanted["daemonEndpoints"] = {"kubeletEndpoint": {"Port": port}}

    return wanted


def has_status(node: Object, wanted: Object) -> bool:
    """Tell whether the Node has this status already, whatever its heartbeat times are."""
    present = objects.status(node)
    for field in ("capacity", "allocatable"):
        if not _same_amounts(present.get(field) or {}, wanted[field]):
            return False

    for condition in wanted["conditions"]:
        current = objects.condition(node, condition["type"]) or {}
        if any(current.get(field) != condition[field] for field in ("status", "reason", "message")):
            return False

    return (
        all(address in (present.get("addresses") or ()) for address in wanted["addresses"])
        and present.get("daemonEndpoints", {}).get("kubeletEndpoint")
        == wanted.get("daemonEndpoints", {}).get("kubeletEndpoint")
        and wanted["nodeInfo"].items() <= (present.get("nodeInfo") or {}).items()
    )


def _same_amounts(present: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Tell whether all wanted amounts are present, in any spelling; others may have added more."""
    return all(
        name in present and quantities.nano(present[name]) == quantities.nano(quantity)
        for name, quantity in wanted.items()
    )


def _condition(
    node: Object, type_: str, status: str, reason: str, message: str, now: datetime
) -> Object:
    current = objects.condition(node, type_) or {}
    since = current.get("lastTransitionTime") if current.get("status") == status else None
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": visible.line(message),
        "lastHeartbeatTime": objects.timestamp(now),
        "lastTransitionTime": since or objects.timestamp(now),
    }


def _node_info(node: Object, server_version: str) -> dict[str, str]:
    """Return a nodeInfo with the local API server's version, which treats us as its kubelet."""
    labels = objects.labels(node)
    release = server_version.partition("+")[0].partition("-")[0]
    return {
        "kubeletVersion": f"{release}-vnode-{__version__}",
        "containerRuntimeVersion": f"vnode://{__version__}",
        "operatingSystem": labels.get("kubernetes.io/os", "linux"),
        "architecture": labels.get("kubernetes.io/arch", ""),
    }
