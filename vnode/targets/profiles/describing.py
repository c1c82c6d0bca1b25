"""Makes labels and annotations of a virtual node from what a ClusterProfile says of its cluster.

No I/O. Properties have names and values that labels need not take, so all of them are in one
annotation, whole, and each that can be is a label too. A number with a unit is no number for node
affinity (Gt, Lt), which compares integers: each quantity is a second label in whole base units.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from vnode.api import keys, names, objects, quantities
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.runtime.link import ClusterDescription

CONTROL_PLANE: Final = "ControlPlaneHealthy"
"""The condition of a profile that says whether its cluster's API server works."""
MOST: Final = 64  # properties, or labels of a profile, that become labels
_LARGEST: Final = 65_536  # characters of the annotation with all properties
_LONGEST: Final = 253  # characters of a display name
_SET_PROPERTY: Final = "clusterset.k8s.io"
_SET_LABELS: Final = ("multicluster.x-k8s.io/clusterset", "clusterset.multicluster.x-k8s.io")


def describe(profile: Object, namespace_labels: Mapping[str, str]) -> ClusterDescription:
    """Return what a virtual node shows of a profile, in a namespace with these labels."""
    properties = properties_of(profile)
    own = {
        keys.CLUSTER_MANAGER: manager(profile),
        keys.CLUSTER_VERSION: _text(objects.status(profile).get("version"), "kubernetes"),
        keys.CLUSTER_SET: _cluster_set(profile, properties, namespace_labels),
    }
    labels = {
        **_of_profile(objects.labels(profile)),
        **_of_properties(properties),
        **{key: value for key, value in own.items() if names.LABEL_VALUE.fullmatch(value)},
    }
    annotations = {keys.CLUSTER_PROFILE: objects.key(profile)}
    if display := str(objects.spec(profile).get("displayName") or ""):
        annotations[keys.CLUSTER_DISPLAY_NAME] = display[:_LONGEST]

    if properties:
        annotations[keys.CLUSTER_PROPERTIES] = _whole(properties)

    return ClusterDescription(labels, annotations)


def manager(profile: Object) -> str:
    """Return the name of the profile's cluster manager."""
    return _text(objects.spec(profile).get("clusterManager"), "name")


def properties_of(profile: Object) -> dict[str, str]:
    """Return the properties of a profile, in the order of their names."""
    listed = objects.status(profile).get("properties")
    found = {
        entry["name"]: entry["value"]
        for entry in (listed if isinstance(listed, list) else ())
        if isinstance(entry, dict)
        and isinstance(entry.get("name"), str)
        and isinstance(entry.get("value"), str)
    }
    return dict(sorted(found.items()))


def _of_properties(properties: Mapping[str, str]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for name, value in _first(properties):
        word = name.replace("/", "_")
        key = keys.CLUSTER_PROPERTY + word
        if names.QUALIFIED_NAME.fullmatch(key) and names.LABEL_VALUE.fullmatch(value):
            labels.setdefault(key, value)

        number = _integer(value)
        key = keys.CLUSTER_QUANTITY + word
        if number is not None and names.QUALIFIED_NAME.fullmatch(key):
            labels.setdefault(key, str(number))

    return labels


def _integer(value: str) -> int | None:
    """Return a quantity in whole units, rounded down; None for what is none, or too large."""
    try:
        number = quantities.nano(value) // quantities.NANO
    except ConfigError:
        return None

    return number if 0 <= number < 2**63 else None


def _of_profile(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of a profile that a node may have.

    Those of Kubernetes say what a node is, and are not for an inventory to say.
    """
    return {
        key: value
        for key, value in _first(labels)
        if keys.is_foreign(key) and not _of_kubernetes(key)
    }


def _of_kubernetes(key: str) -> bool:
    domain = key.partition("/")[0] if "/" in key else ""
    return domain == "kubernetes.io" or domain.endswith(".kubernetes.io")


def _first(entries: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    yield from sorted(entries.items())[:MOST]


def _cluster_set(
    profile: Object, properties: Mapping[str, str], namespace_labels: Mapping[str, str]
) -> str:
    labels = (objects.labels(profile), namespace_labels)
    found = (of.get(key, "") for of in labels for key in _SET_LABELS)
    return properties.get(_SET_PROPERTY) or next(filter(None, found), "")


def _text(section: Any, field: str) -> str:
    return str(section.get(field) or "") if isinstance(section, dict) else ""


def _whole(properties: Mapping[str, str]) -> str:
    """Write all properties as JSON; of more than fit, the first by name."""
    kept, size = {}, 2
    for name, value in properties.items():
        size += len(json.dumps({name: value}))
        if size > _LARGEST:
            break

        kept[name] = value

    return json.dumps(kept, separators=(",", ":"))
