"""Reads AuthTokenRequests: which cluster, which account, which roles. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.issuing.config import SHORTEST

PROFILES: Final = Kind("multicluster.x-k8s.io", "v1alpha1", "clusterprofiles", "ClusterProfile")
_DAY: Final = 86400
_READABLE: Final = 40  # characters of a role's name in that of its binding


@dataclass(frozen=True, slots=True)
class RequestedRole:
    """A Role, or a ClusterRole where `namespace` is "", and what it allows if it must be made."""

    namespace: str
    name: str
    rules: tuple[Object, ...]

    @property
    def kind(self) -> Kind:
        """Role or ClusterRole."""
        return kinds.scoped(kinds.ROLES, self.namespace)

    @property
    def binding_kind(self) -> Kind:
        """RoleBinding or ClusterRoleBinding."""
        return kinds.scoped(kinds.ROLE_BINDINGS, self.namespace)

    def __str__(self) -> str:
        return f"{self.kind.kind.lower()}/{objects.join_key(self.namespace, self.name)}"


@dataclass(frozen=True, slots=True)
class ClusterReference:
    """The cluster that a request names, as a Target, a ClusterTarget or a ClusterProfile."""

    kind: Kind
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind.kind} {objects.join_key(self.namespace, self.name)}"


@dataclass(frozen=True, slots=True)
class IssueSpec:
    """What an AuthTokenRequest asks for; `account` is (namespace, name), `life` is in seconds."""

    uid: str
    cluster: ClusterReference
    account: tuple[str, str]
    roles: tuple[RequestedRole, ...]
    cluster_roles: tuple[RequestedRole, ...]
    life: int
    audience: str = ""

    @property
    def label(self) -> str:
        """The label of what is in use for this request."""
        return keys.ISSUED_FOR + self.uid

    def binding_name(self, role: RequestedRole) -> str:
        """Return the name of the binding to a role: the same at each attempt, of no other request.

        It fits, however long the names are that it is made of.
        """
        parts = "/".join((self.uid, role.namespace, role.name))
        digest = hashlib.sha256(parts.encode()).hexdigest()[:16]
        readable = role.name[:_READABLE].replace(":", "-")
        return f"vnode-issued-{readable}-{digest}"


def decode(obj: Object, longest: int = _DAY) -> IssueSpec:
    """Decode a request whose schema the API server has checked."""
    spec = objects.spec(obj)
    wanted = int(spec.get("expirationSeconds") or _DAY)
    return IssueSpec(
        objects.uid(obj),
        _cluster(objects.namespace(obj), spec),
        (str(spec.get("serviceAccountNamespace")), str(spec.get("serviceAccountName"))),
        tuple(_role(each, str(each.get("namespace"))) for each in spec.get("roles") or ()),
        tuple(_role(each, "") for each in spec.get("clusterRoles") or ()),
        max(min(wanted, longest), SHORTEST),
        str(spec.get("audience") or ""),
    )


def _cluster(namespace: str, spec: Object) -> ClusterReference:
    if reference := spec.get("targetRef"):
        scope = "" if reference.get("kind") == kinds.CLUSTER_TARGETS.kind else namespace
        kind = kinds.scoped(kinds.TARGETS, scope)
        return ClusterReference(kind, scope, str(reference.get("name")))

    profile = spec.get("targetClusterProfile") or {}
    home = str(profile.get("namespace") or namespace)
    return ClusterReference(PROFILES, home, str(profile.get("name")))


def _role(role: Object, namespace: str) -> RequestedRole:
    return RequestedRole(namespace, str(role.get("name")), tuple(role.get("rules") or ()))


def cluster_index(obj: Object) -> Iterator[str]:
    """Yield what a request names as its cluster, for an index."""
    yield str(_cluster(objects.namespace(obj), objects.spec(obj)))


def references_to(target: Object) -> list[str]:
    """Return by what requests may name a Target or ClusterTarget, as values of `cluster_index`."""
    namespace, name = objects.namespace(target), objects.name(target)
    kind = kinds.scoped(kinds.TARGETS, namespace)
    found = [ClusterReference(kind, namespace, name)]
    if profile := objects.spec(target).get("clusterProfile"):
        home = str(profile.get("namespace") or namespace)
        found.append(ClusterReference(PROFILES, home, str(profile.get("name"))))

    return [str(reference) for reference in found]


def named_target(reference: ClusterReference) -> TargetKey | None:
    """Return the key of the Target that is named, also of one that is gone; None if a profile is
    named, which does not say it."""
    if reference.kind == PROFILES:
        return None

    return TargetKey(reference.namespace, reference.name)


def find_target(
    reference: ClusterReference, namespace: str, targets: Iterable[Object]
) -> TargetKey | None:
    """Return the Target that a request of that namespace means; None if there is none.

    A ClusterTarget that was made of the profile comes before a Target.
    """
    found = []
    for each in targets:
        key = TargetKey(objects.namespace(each), objects.name(each))
        profile = objects.spec(each).get("clusterProfile") or {}
        named = (profile.get("namespace") or key.namespace, profile.get("name"))
        if reference.kind == PROFILES:
            matches = named == (reference.namespace, reference.name)
        else:
            matches = key == TargetKey(reference.namespace, reference.name)

        if matches and key.namespace in ("", namespace):
            found.append(key)

    return min(found, key=lambda key: (key.namespace, key.name), default=None)
