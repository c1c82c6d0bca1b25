"""What the API server knows of each kind: its subresources, field selectors and merge keys.

Custom resources differ from built-in ones in more than their group: their status can be written
through the status subresource alone and nothing else through it, they take no strategic merge
patch, and a replacement must name the version that it replaces.
"""

from __future__ import annotations

from typing import Any, Final

from vnode.api import kinds
from vnode.api.kinds import Kind
from vnode.api.objects import Object

BINDINGS: Final = Kind("", "v1", "bindings", "Binding")
ALL: Final[tuple[Kind, ...]] = (
    BINDINGS,
    *(value for value in vars(kinds).values() if isinstance(value, Kind)),
)

_WITH_STATUS: Final = frozenset(
    {
        kinds.PODS,
        kinds.NODES,
        kinds.NAMESPACES,
        kinds.SERVICES,
        kinds.INGRESSES,
        kinds.CLAIMS,
        kinds.RESOURCE_CLAIMS,
        kinds.DEPLOYMENTS,
        kinds.JOBS,
        kinds.CSRS,
        kinds.CRDS,
        kinds.RESOURCE_QUOTAS,
        *kinds.NATIVE_GROUPS,
    }
)
_WITH_GENERATION: Final = frozenset(
    {
        kinds.PODS,
        kinds.INGRESSES,
        kinds.DEPLOYMENTS,
        kinds.JOBS,
        kinds.CRDS,
        kinds.MUTATING_WEBHOOKS,
    }
)
INITIAL_STATUS: Final[dict[Kind, Object]] = {
    kinds.PODS: {"phase": "Pending", "qosClass": "BestEffort"},
    kinds.NAMESPACES: {"phase": "Active"},
    kinds.CLAIMS: {"phase": "Pending"},
    kinds.SERVICES: {"loadBalancer": {}},
    kinds.INGRESSES: {"loadBalancer": {}},
    kinds.DEPLOYMENTS: {},
    kinds.JOBS: {},
    kinds.RESOURCE_QUOTAS: {},
    kinds.CSRS: {},
}
"""The status of new objects, whatever was sent; a Node keeps what it is created with."""

REVIEWS: Final = frozenset(
    {kinds.TOKEN_REVIEWS, kinds.SUBJECT_ACCESS_REVIEWS, kinds.SELF_SUBJECT_ACCESS_REVIEWS}
)

_FIELDS: Final[dict[Kind, tuple[str, ...]]] = {
    kinds.PODS: (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    kinds.NODES: ("spec.unschedulable",),
    kinds.NAMESPACES: ("status.phase",),
    kinds.SECRETS: ("type",),
    kinds.JOBS: ("status.successful",),
    kinds.CSRS: ("spec.signerName",),
    kinds.EVENTS: (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
}

MERGE_KEYS: Final[dict[str, str]] = {
    "conditions": "type",
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "env": "name",
    "imagePullSecrets": "name",
    "schedulingGates": "name",
    "resourceClaims": "name",
    "resourceClaimStatuses": "name",
    "topologySpreadConstraints": "topologyKey",
    "hostAliases": "ip",
    "podIPs": "ip",
    "hostIPs": "ip",
    "addresses": "type",
    "ownerReferences": "uid",
}
"""Lists whose entries are merged one by one, and by what; all others are replaced."""

SETS: Final = frozenset({"finalizers"})
"""Lists of plain values that are merged."""


def is_custom(kind: Kind) -> bool:
    """Tell whether a CustomResourceDefinition defines the kind."""
    return "." in kind.group and not kind.group.endswith(".k8s.io")


def has_status(kind: Kind) -> bool:
    """Tell whether its status is written through a subresource."""
    return is_custom(kind) or kind in _WITH_STATUS


def has_generation(kind: Kind) -> bool:
    """Tell whether `metadata.generation` counts the changes of its spec."""
    return is_custom(kind) or kind in _WITH_GENERATION


def needs_version(kind: Kind) -> bool:
    """Tell whether a replacement must name the version that it replaces."""
    return is_custom(kind) or kind in (kinds.LEASES, kinds.CRDS, kinds.JOBS)


def field_labels(kind: Kind) -> tuple[str, ...]:
    """List the fields that a field selector may name."""
    common = ("metadata.name", "metadata.namespace") if kind.namespaced else ("metadata.name",)
    return common + _FIELDS.get(kind, ())


def has_own_fields(kind: Kind) -> bool:
    """Tell whether a field selector may name more than what all kinds have."""
    return kind in _FIELDS


def merge_key(field: str, entries: list[Any]) -> str | None:
    """Return the field that tells the entries of a list apart; None if all are replaced at once."""
    if field == "ports":  # of a container, or of a Service
        first = next((entry for entry in entries if isinstance(entry, dict)), {})
        return "containerPort" if "containerPort" in first else "port"

    return MERGE_KEYS.get(field)
