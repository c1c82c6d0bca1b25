"""Reads which ClusterProfile a Target or ClusterTarget names. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from vnode.api import names, objects
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey


@dataclass(frozen=True, slots=True)
class ProfileReference:
    """The place of the ClusterProfile that a Target names."""

    namespace: str
    name: str

    @property
    def object_key(self) -> str:
        """`namespace/name` of the profile."""
        return objects.join_key(self.namespace, self.name)


def named_by(target: Object) -> str:
    """Return `namespace/name` of the ClusterProfile that a Target names, "" if it names none."""
    named = objects.spec(target).get("clusterProfile")
    if not isinstance(named, dict) or not named.get("name"):
        return ""

    namespace = named.get("namespace") or objects.namespace(target)
    return objects.join_key(str(namespace), str(named["name"]))


def parse(key: TargetKey, reference: Object) -> ProfileReference:
    """Return the profile that a Target names: in its own namespace, or for a ClusterTarget in the
    one that it says, as two namespaces may have profiles of one name."""
    name, namespace = reference.get("name"), reference.get("namespace") or key.namespace
    if not name:
        raise ConfigError("spec.clusterProfile.name is empty: name the ClusterProfile")

    if not namespace:
        raise ConfigError(
            "spec.clusterProfile.namespace is empty: a ClusterTarget must say where its profile "
            "is, since each namespace may have one of that name"
        )

    for field, value in (("name", name), ("namespace", namespace)):
        if not names.SUBDOMAIN.fullmatch(str(value)):
            raise ConfigError(f"spec.clusterProfile.{field} {value!r} cannot be a {field}")

    if key.namespace and namespace != key.namespace:
        raise ConfigError(
            f"spec.clusterProfile.namespace is {namespace!r}: a Target can name a profile of its "
            "own namespace only; use a ClusterTarget"
        )

    return ProfileReference(str(namespace), str(name))
