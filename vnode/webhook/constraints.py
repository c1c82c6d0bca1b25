"""The annotation `proxy-pod-scheduling-constraints`: which virtual nodes a proxy pod may go to.

Its value is a fragment of a PodSpec. Four of the fields are used, and checked to the last leaf,
because a constraint with a typing error would silently not constrain. The other fields of a PodSpec
are accepted and ignored, as Admiralty does, so that whole specs may be pasted; a field that no
PodSpec has is an error. Values are left to the API server, which validates the pod that they end up
in.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from vnode.api import documents
from vnode.api.errors import ConfigError
from vnode.api.objects import Object

_YAML: Final = 2_000  # elements; read in a few milliseconds, as JSON ten thousand in one
FIELDS: Final = ("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints")


class _Strict(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """Every field may be absent or null; the API server says what is required."""


class _ProxyToleration(_Strict):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: int | None = None


class _ProxyRequirement(_Strict):
    key: str | None = None
    operator: str | None = None
    values: list[str] | None = None


class _ProxyLabelSelector(_Strict):
    match_labels: dict[str, str] | None = None
    match_expressions: list[_ProxyRequirement] | None = None


class _NodeSelectorTerm(_Strict):
    match_expressions: list[_ProxyRequirement] | None = None
    match_fields: list[_ProxyRequirement] | None = None


class _ProxyNodeSelector(_Strict):
    node_selector_terms: list[_NodeSelectorTerm] | None = None


class _PreferredNodes(_Strict):
    weight: int | None = None
    preference: _NodeSelectorTerm | None = None


class _ProxyNodeAffinity(_Strict):
    required: _ProxyNodeSelector | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[_PreferredNodes] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class _PodAffinityTerm(_Strict):
    label_selector: _ProxyLabelSelector | None = None
    namespaces: list[str] | None = None
    topology_key: str | None = None
    namespace_selector: _ProxyLabelSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class _PreferredPods(_Strict):
    weight: int | None = None
    pod_affinity_term: _PodAffinityTerm | None = None


class _ProxyPodAffinity(_Strict):
    required: list[_PodAffinityTerm] | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[_PreferredPods] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class _ProxyAffinity(_Strict):
    node_affinity: _ProxyNodeAffinity | None = None
    pod_affinity: _ProxyPodAffinity | None = None
    pod_anti_affinity: _ProxyPodAffinity | None = None


class _TopologySpreadConstraint(_Strict):
    max_skew: int | None = None
    topology_key: str | None = None
    when_unsatisfiable: str | None = None
    label_selector: _ProxyLabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


class _Constraints(_Strict):
    node_selector: dict[str, str] | None = None
    tolerations: list[_ProxyToleration] | None = None
    affinity: _ProxyAffinity | None = None
    topology_spread_constraints: list[_TopologySpreadConstraint] | None = None


_IGNORED: Final = frozenset(
    {
        "activeDeadlineSeconds",
        "automountServiceAccountToken",
        "containers",
        "dnsConfig",
        "dnsPolicy",
        "enableServiceLinks",
        "ephemeralContainers",
        "hostAliases",
        "hostIPC",
        "hostNetwork",
        "hostPID",
        "hostUsers",
        "hostname",
        "hostnameOverride",
        "imagePullSecrets",
        "initContainers",
        "nodeName",
        "os",
        "overhead",
        "preemptionPolicy",
        "priority",
        "priorityClassName",
        "readinessGates",
        "resourceClaims",
        "resources",
        "restartPolicy",
        "runtimeClassName",
        "schedulerName",
        "schedulingGates",
        "schedulingGroup",
        "securityContext",
        "serviceAccount",
        "serviceAccountName",
        "setHostnameAsFQDN",
        "shareProcessNamespace",
        "subdomain",
        "terminationGracePeriodSeconds",
        "volumes",
        "workloadRef",
    }
)
"""The other fields of a PodSpec (core/v1 of Kubernetes 1.36)."""


def parse(text: str) -> Object:
    """Return those of the four fields that are given; ConfigError says what is wrong."""
    fragment = documents.parse(text, events=_YAML)
    if fragment is None:
        return {}

    if not isinstance(fragment, dict):
        raise ConfigError("it must be a fragment of a PodSpec: a mapping with nodeSelector, ...")

    used = {field: value for field, value in fragment.items() if field not in _IGNORED}
    try:
        msgspec.convert(used, _Constraints)
    except msgspec.ValidationError as error:
        raise ConfigError(str(error).replace("`$", "`spec").replace("$.", "")) from error

    return of_spec(used)


def of_spec(spec: Object) -> Object:
    """Return those of the four fields of a spec that are not empty."""
    present: dict[str, Any] = {field: spec[field] for field in FIELDS if spec.get(field)}
    return present
