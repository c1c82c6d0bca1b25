"""Checks what a Target or ClusterTarget asks for.

Pure: an object in, a `TargetSpec` out, or a ConfigError whose text becomes the object's condition.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from vnode.api import (
    cluster_bound,
    keys,
    names,
    node_labels,
    node_pools,
    objects,
    patterns,
    resources,
)
from vnode.api.errors import ConfigError
from vnode.api.node_pools import NodePool
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.runtime.target_options import NO_OPTIONS, TargetOptions
from vnode.targets.profiles import last_profile, profile_references
from vnode.targets.profiles.profile_references import ProfileReference

DEFAULT_KEY: Final = "config"  # of the Secret's data, as Admiralty has it
_SOURCE_API: Final = re.compile(
    r"source=(?P<host>[A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\]):(?P<port>[0-9]{1,5})"
)


@dataclass(frozen=True, slots=True)
class SecretReference:
    """The place of a Target's kubeconfig; `context` is "" for the current one."""

    namespace: str
    name: str
    key: str
    context: str

    @property
    def object_key(self) -> str:
        """`namespace/name` of the Secret."""
        return objects.join_key(self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class TargetSpec:
    """A target to connect to: by a kubeconfig, by a ClusterProfile, or this cluster itself."""

    key: TargetKey
    secret: SecretReference | None
    excluded_labels: str
    options: TargetOptions = NO_OPTIONS
    profile: ProfileReference | None = None
    last_profile: Object | None = dataclasses.field(default=None, repr=False, compare=False)
    """The profile as a set remembers it, for when it, or its kind, is gone; no part of what a
    connection is."""

    @property
    def is_self(self) -> bool:
        """Whether the target is this cluster itself."""
        return self.secret is None and self.profile is None

    @property
    def labels_excluded(self) -> Callable[[str], bool] | None:
        """A function that tells for `key=value` whether a node label stays hidden."""
        if not self.excluded_labels:
            return None

        return patterns.compile_safe(self.excluded_labels).matches


def key_of(obj: Object) -> TargetKey:
    """Return the key of a Target or ClusterTarget."""
    return TargetKey(objects.namespace(obj), objects.name(obj))


def parse(obj: Object) -> TargetSpec:
    """Check a Target or ClusterTarget; ConfigError says which field to change."""
    key, spec = key_of(obj), objects.spec(obj)
    if not key.fits_label:
        raise ConfigError(
            f"the name has {len(key.name)} characters, and its virtual node needs it as the value "
            f"of a label, which has at most {names.LABEL_LIMIT}: create one with a shorter name "
            "instead"
        )

    wants_self, reference = bool(spec.get("self")), spec.get("kubeconfigSecret")
    named = spec.get("clusterProfile")
    alternatives = {"self": wants_self, "kubeconfigSecret": reference, "clusterProfile": named}
    given = [field for field, value in alternatives.items() if value]
    if len(given) > 1:
        raise ConfigError(f"spec has both {given[0]} and {given[1]}: remove one of them")

    if not given:
        raise ConfigError(
            "spec has neither self nor kubeconfigSecret nor clusterProfile: set "
            "kubeconfigSecret.name to a Secret with the target's kubeconfig, clusterProfile.name "
            "to a ClusterProfile, or self: true for this cluster"
        )

    excluded = str(spec.get("excludedLabelsRegexp") or "")
    _check_regexp(excluded)
    secret, options = _secret(key, reference) if reference else None, _options(obj)
    if wants_self and options.source_api:
        raise ConfigError(f"remove annotation {keys.TOKENS}: this cluster's tokens are its own")

    profile = profile_references.parse(key, named) if named else None
    last = last_profile.read(obj, profile) if profile else None
    return TargetSpec(key, secret, excluded, options, profile, last)


def _options(obj: Object) -> TargetOptions:
    annotations = objects.annotations(obj)
    classes = annotations.get(keys.STORAGE_CLASSES)
    return TargetOptions(
        storage_classes=None if classes is None else _pairs(keys.STORAGE_CLASSES, classes),
        create_namespaces=_flag(annotations, keys.CREATE_NAMESPACES),
        create_service_accounts=_flag(annotations, keys.CREATE_SERVICE_ACCOUNTS),
        priority_classes=_optional_pairs(annotations, keys.PRIORITY_CLASSES),
        source_api=_source_api(annotations.get(keys.TOKENS, "target")),
        shown_labels=_label_keys(annotations, keys.SHOWN_LABELS, node_labels.ALL),
        label_domains=_label_keys(annotations, keys.LABEL_DOMAINS),
        unlisted_resources=_unlisted_resources(annotations.get(keys.UNLISTED_RESOURCES, "")),
        node_pools=_node_pools(annotations.get(keys.NODE_POOLS, "")),
        load_balancer_classes=_optional_pairs(annotations, keys.LOAD_BALANCER_CLASSES),
        ingress_classes=_optional_pairs(annotations, keys.INGRESS_CLASSES),
        follow_anyway=_follow_anyway(annotations.get(keys.FOLLOW_ANYWAY, "")),
        load_balancers=_flag(annotations, keys.LOAD_BALANCERS)
        if keys.LOAD_BALANCERS in annotations
        else None,
        network_policies=_network_policies(annotations.get(keys.NETWORK_POLICIES, "follow")),
    )


def _optional_pairs(annotations: Mapping[str, str], key: str) -> dict[str, str]:
    return _pairs(key, annotations.get(key, ""))


def _network_policies(text: str) -> bool:
    if text not in ("follow", "ignore"):
        raise ConfigError(
            f'annotation {keys.NETWORK_POLICIES} must be "follow", or "ignore" for pods to run '
            "there without the NetworkPolicies of this cluster"
        )

    return text == "follow"


def _follow_anyway(text: str) -> tuple[str, ...]:
    """Parse annotations and fields; a `*` after a prefix may be there or not."""
    patterns_ = tuple(part.strip().removesuffix("*") for part in text.split(",") if part.strip())
    for pattern in patterns_:
        if not cluster_bound.may_travel(pattern):
            raise ConfigError(
                f"annotation {keys.FOLLOW_ANYWAY}: {pattern!r} is nothing that stays and may "
                "travel: write annotations, prefixes that end in '/', '-' or '.', "
                "spec.loadBalancerIP or spec.externalIPs, with commas between them"
            )

    return patterns_


def _flag(annotations: Mapping[str, str], key: str) -> bool:
    text = annotations.get(key, "false")
    if text not in ("true", "false"):
        raise ConfigError(f'annotation {key} must be "true" or "false"')

    return text == "true"


def _source_api(text: str) -> tuple[str, str] | None:
    if text == "target":
        return None

    found = _SOURCE_API.fullmatch(text)
    if found is None or not 0 < int(found["port"]) < 65536:
        raise ConfigError(
            f'annotation {keys.TOKENS} must be "target", or "source=HOST:PORT" with the address by '
            "which pods of the target reach this cluster's API server"
        )

    return found["host"].strip("[]"), found["port"]


def _label_keys(annotations: Mapping[str, str], name: str, all_: str = "") -> frozenset[str]:
    """Parse the keys of an annotation, which may be `all_` if that is not empty.

    A domain has the form of a key without one.
    """
    text = annotations.get(name, "")
    found = frozenset(key.strip() for key in text.split(",") if key.strip())
    valid = names.QUALIFIED_NAME.fullmatch
    if bad := sorted(key for key in found if key != all_ and not valid(key)):
        instead = f"{all_} for all" if all_ else "domains of keys"
        raise ConfigError(
            f"annotation {name}: {bad[0]!r} is no key of a label: write keys with "
            f"commas between them, or {instead}"
        )

    return found


def _unlisted_resources(text: str) -> frozenset[str]:
    found = frozenset(name.strip() for name in text.split(",") if name.strip())
    for name in sorted(found):
        if not (names.QUALIFIED_NAME.fullmatch(name) and resources.is_extended(name)):
            raise ConfigError(
                f"annotation {keys.UNLISTED_RESOURCES}: {name!r} is no extended resource: write "
                "names like example.com/device, with commas between them"
            )

    return found


def _node_pools(text: str) -> tuple[NodePool, ...]:
    """Parse pools; without those that are wrong the Target works, and a condition says so."""
    try:
        return node_pools.parse(text)
    except ConfigError:
        return ()


def _pairs(key: str, text: str) -> dict[str, str]:
    """Parse the `from=to` pairs of an annotation; an empty side is the default of that cluster."""
    pairs = [pair.strip() for pair in text.split(",") if pair.strip()]
    if bad := [pair for pair in pairs if pair.count("=") != 1]:
        raise ConfigError(
            f"annotation {key}: {bad[0]!r} is not a pair: write "
            "source-class=target-class, with commas between pairs"
        )

    return {left.strip(): right.strip() for left, right in (pair.split("=") for pair in pairs)}


def _secret(key: TargetKey, reference: Object) -> SecretReference:
    name = reference.get("name")
    namespace = key.namespace or reference.get("namespace")
    if not name:
        raise ConfigError("spec.kubeconfigSecret.name is empty: name the Secret")

    if not namespace:
        raise ConfigError(
            "spec.kubeconfigSecret.namespace is empty: a ClusterTarget must say where its Secret is"
        )

    for field, value in (("name", name), ("namespace", namespace)):
        if not names.SUBDOMAIN.fullmatch(str(value)):
            raise ConfigError(f"spec.kubeconfigSecret.{field} {value!r} cannot be a {field}")

    return SecretReference(
        str(namespace),
        str(name),
        str(reference.get("key") or DEFAULT_KEY),
        str(reference.get("context") or ""),
    )


def _check_regexp(text: str) -> None:
    try:
        patterns.compile_safe(text)
    except ConfigError as error:
        raise ConfigError(f"spec.excludedLabelsRegexp cannot be used: {error}") from error
