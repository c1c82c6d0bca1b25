"""Builds the service account and bindings that grant what a Source or ClusterSource asks for.

Pure: objects in, freshly built objects out. A Source binds its subjects to the role
`admiralty-source` in its namespace, a ClusterSource everywhere; both let them read the
ClusterSummary. Bindings have Admiralty's names (docs/admiralty-contract.md, sections 4 and 14), so
vnode takes over those that Admiralty created.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from vnode.api import keys, kinds, names, objects
from vnode.api.errors import ConfigError
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects

SOURCE_ROLE: Final = "admiralty-source"
VIEWER_ROLE: Final = "admiralty-cluster-summary-viewer"

# Marks our bindings. The garbage collector cannot follow a cluster-scoped binding to a namespaced
# Source, so the binding names its Source, and the controller removes it.
MADE_FOR_SOURCE: Final = keys.OWN_PREFIX + "made-for-source"  # label, "true"
SOURCE: Final = keys.OWN_PREFIX + "source"  # annotation: key of the Source or ClusterSource

_RBAC: Final = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class Grant:
    """The subjects that one Source gives rights to; `namespace` is "" for a ClusterSource, so
    everywhere.

    `account` is (namespace, name) of a service account, or None. `user` may be "".
    """

    namespace: str
    name: str
    uid: str
    user: str
    account: tuple[str, str] | None

    @property
    def kind(self) -> Kind:
        """Source or ClusterSource."""
        return kinds.scoped(kinds.SOURCES, self.namespace)

    @property
    def key(self) -> str:
        """The key of the Source."""
        return objects.join_key(self.namespace, self.name)

    def __str__(self) -> str:
        parts = [f"user {self.user}"] if self.user else []
        if self.account:
            parts.append(f"service account {'/'.join(self.account)}")

        return " and ".join(parts)


def parse(source: Object) -> Grant:
    """Check a Source or ClusterSource; ConfigError says which field to change.

    One without a subject is no error: it grants nothing (`Grant` is then "" as text).
    """
    spec, namespace = objects.spec(source), objects.namespace(source)
    account = (namespace, spec.get("serviceAccountName") or "")
    if not namespace:
        reference = spec.get("serviceAccount") or {}
        account = (reference.get("namespace") or "", reference.get("name") or "")

    if account[1] and not account[0]:
        raise ConfigError(
            "spec.serviceAccount.namespace is empty: a ClusterSource must say where its service "
            "account is"
        )

    return Grant(
        namespace,
        objects.name(source),
        objects.uid(source),
        spec.get("userName") or "",
        account if account[1] else None,
    )


def account_namespace(source: Object) -> Iterable[str]:
    """Index a Source by the namespace of its service account."""
    try:
        account = parse(source).account
    except ConfigError:
        return ()

    return (account[0],) if account else ()


def binding_source(binding: Object) -> Iterable[str]:
    """Index a binding by the key of the Source that it was made for."""
    key = objects.annotations(binding).get(SOURCE)
    return (key,) if key else ()


def service_account(grant: Grant) -> Object:
    """Build the service account of a grant that has one, owned by its Source."""
    assert grant.account is not None, "this grant has no service account"
    namespace, name = grant.account
    return {
        "apiVersion": "v1",
        "kind": kinds.SERVICE_ACCOUNTS.kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "ownerReferences": [_owner(grant)],
        },
    }


def bindings(grant: Grant) -> list[tuple[Kind, Object]]:
    """Build all bindings that should exist; none if the grant has no subject."""
    subjects = _subjects(grant)
    if not subjects:
        return []

    if not grant.namespace:
        return [
            _binding(grant, kinds.CLUSTER_ROLE_BINDINGS, name, role=role, subjects=subjects)
            for name, role in (
                (names.cluster_source_binding(grant.name), SOURCE_ROLE),
                (names.cluster_source_viewer_binding(grant.name), VIEWER_ROLE),
            )
        ]

    viewer = names.source_viewer_binding(grant.namespace, grant.name)
    local = names.source_binding(grant.name)
    return [
        _binding(grant, kinds.ROLE_BINDINGS, local, role=SOURCE_ROLE, subjects=subjects),
        _binding(grant, kinds.CLUSTER_ROLE_BINDINGS, viewer, role=VIEWER_ROLE, subjects=subjects),
    ]


def is_as_wanted(present: Object, wanted: Object) -> bool:
    """Tell whether the present binding has all of the wanted one; it may have more metadata."""
    meta, want = objects.metadata(present), objects.metadata(wanted)
    owners = [owner.get("uid") for owner in meta.get("ownerReferences") or ()]
    return (
        same_role(present, wanted)
        and (present.get("subjects") or []) == wanted["subjects"]
        and (meta.get("labels") or {}).items() >= want["labels"].items()
        and (meta.get("annotations") or {}).items() >= want["annotations"].items()
        and all(owner["uid"] in owners for owner in want.get("ownerReferences", ()))
    )


def same_role(present: Object, wanted: Object) -> bool:
    """Compare the roles; a binding's role cannot be changed, only the binding be replaced."""
    return bool(present.get("roleRef") == wanted["roleRef"])


def _binding(
    grant: Grant, kind: Kind, name: str, *, role: str, subjects: Objects
) -> tuple[Kind, Object]:
    meta: Object = {
        "name": name,
        "labels": {MADE_FOR_SOURCE: "true"},
        "annotations": {SOURCE: grant.key},
    }
    if kind.namespaced:
        meta["namespace"] = grant.namespace

    if kind.namespaced or not grant.namespace:
        meta["ownerReferences"] = [_owner(grant)]

    return kind, {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": meta,
        "roleRef": {"apiGroup": _RBAC, "kind": kinds.CLUSTER_ROLES.kind, "name": role},
        "subjects": subjects,
    }


def _subjects(grant: Grant) -> Objects:
    subjects: Objects = []
    if grant.account:
        namespace, name = grant.account
        subjects.append({"kind": kinds.SERVICE_ACCOUNTS.kind, "name": name, "namespace": namespace})

    if grant.user:
        subjects.append({"apiGroup": _RBAC, "kind": "User", "name": grant.user})

    return subjects


def _owner(grant: Grant) -> Object:
    return {
        "apiVersion": grant.kind.api_version,
        "kind": grant.kind.kind,
        "name": grant.name,
        "uid": grant.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
