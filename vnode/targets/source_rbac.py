"""Builds the service account and bindings that grant what a Source or ClusterSource asks for.

Pure: objects in, freshly built objects out. A Source binds its subjects to the role
`admiralty-source` in its namespace, a ClusterSource everywhere or, if it selects namespaces, in
each of these; both let them read the ClusterSummary. Bindings have Admiralty's names
(docs/admiralty-contract.md, sections 4 and 14), so vnode takes over those that Admiralty created.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from vnode.api import keys, kinds, names, objects, strict_decoding
from vnode.api.errors import ConfigError
from vnode.api.kinds import Kind
from vnode.api.label_selector import LabelSelector
from vnode.api.objects import Object, Objects
from vnode.api.selectors import Selector

SOURCE_ROLE: Final = "admiralty-source"
VIEWER_ROLE: Final = "admiralty-cluster-summary-viewer"
CLUSTER_ROLE: Final = "vnode-cluster-source"
"""What a ClusterSource that selects namespaces has in all of them."""

PROTECTED: Final = frozenset(("kube-system", "kube-public", "kube-node-lease"))
"""Namespaces that no selector gives to a source; the agent's own is another."""
WHOLE: Final = "kube-system and the agent's own among them: as good as cluster-admin"
"""What a grant without a selector comes to, for messages that end with its namespaces."""

_ANYBODY: Final = "system:anonymous"
"""The user of requests without credentials, who is given nothing: whoever administers a namespace
may make Sources, and each lets its user read the ClusterSummary and reach the agents' streams."""

# Marks our bindings. The garbage collector cannot follow a cluster-scoped binding to a namespaced
# Source, so the binding names its Source, and the controller removes it.
MADE_FOR_SOURCE: Final = keys.OWN_PREFIX + "made-for-source"  # label, "true"
SOURCE: Final = keys.OWN_PREFIX + "source"  # annotation: key of the Source or ClusterSource

_RBAC: Final = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class Grant:
    """The subjects that one Source gives rights to; `namespace` is "" for a ClusterSource, so
    everywhere.

    `account` is (namespace, name) of a service account, or None. `user` may be "". `selector` is of
    the namespaces in which a ClusterSource holds; None: in all, without exception.
    """

    namespace: str
    name: str
    uid: str
    user: str
    account: tuple[str, str] | None
    selector: Selector | None = None

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

    def holds_in(self, namespace: Object, own: str) -> bool:
        """Tell whether a selecting ClusterSource holds in a namespace; `own` is the agent's."""
        name = objects.name(namespace)
        if self.selector is None or name in PROTECTED or name == own:
            return False

        is_there = not objects.is_terminating(namespace)
        return is_there and self.selector.matches(objects.labels(namespace))


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

    user = spec.get("userName") or ""
    return Grant(
        namespace,
        objects.name(source),
        objects.uid(source),
        "" if user == _ANYBODY else user,
        account if account[1] else None,
        None if namespace else _selector(spec),
    )


def _selector(spec: Object) -> Selector | None:
    where, raw = "spec.namespaceSelector", spec.get("namespaceSelector")
    if raw is None:
        return None

    return strict_decoding.decode(LabelSelector, raw, where).compiled(where)


def selects_namespaces(source: Object) -> bool:
    """Tell whether a ClusterSource holds in selected namespaces only."""
    return objects.spec(source).get("namespaceSelector") is not None


def is_whole(source: Object) -> bool:
    """Tell whether it is a ClusterSource that holds in all namespaces, without exception."""
    return not objects.namespace(source) and not selects_namespaces(source)


def account_namespace(source: Object) -> Iterable[str]:
    """Index a Source by the namespace of its service account."""
    return map(objects.key_namespace, account_key(source))


def account_key(source: Object) -> Iterable[str]:
    """Index a Source by the key of its service account."""
    try:
        account = parse(source).account
    except ConfigError:
        return ()

    return (objects.join_key(*account),) if account else ()


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


def bindings(grant: Grant, namespaces: Iterable[str] = ()) -> list[tuple[Kind, Object]]:
    """Build all bindings that should exist; none if the grant has no subject.

    `namespaces` are those in which a ClusterSource holds that selects them.
    """
    if not _subjects(grant):
        return []

    if not grant.namespace:
        name, viewer = (
            names.cluster_source_binding(grant.name),
            names.cluster_source_viewer_binding(grant.name),
        )
        everywhere = SOURCE_ROLE if grant.selector is None else CLUSTER_ROLE
        return [
            _cluster_binding(grant, name, everywhere),
            _cluster_binding(grant, viewer, VIEWER_ROLE),
            *(_local_binding(grant, name, namespace) for namespace in namespaces),
        ]

    viewer = names.source_viewer_binding(grant.namespace, grant.name)
    return [
        _local_binding(grant, names.source_binding(grant.name), grant.namespace),
        _cluster_binding(grant, viewer, VIEWER_ROLE),
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


def _cluster_binding(grant: Grant, name: str, role: str) -> tuple[Kind, Object]:
    # A Source, which has a namespace, cannot own what has none.
    owned = {} if grant.namespace else {"ownerReferences": [_owner(grant)]}
    return _binding(grant, kinds.CLUSTER_ROLE_BINDINGS, {"name": name, **owned}, role)


def _local_binding(grant: Grant, name: str, namespace: str) -> tuple[Kind, Object]:
    meta = {"name": name, "namespace": namespace, "ownerReferences": [_owner(grant)]}
    return _binding(grant, kinds.ROLE_BINDINGS, meta, SOURCE_ROLE)


def _binding(grant: Grant, kind: Kind, meta: Object, role: str) -> tuple[Kind, Object]:
    marks = {"labels": {MADE_FOR_SOURCE: "true"}, "annotations": {SOURCE: grant.key}}
    return kind, {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {**meta, **marks},
        "roleRef": {"apiGroup": _RBAC, "kind": kinds.CLUSTER_ROLES.kind, "name": role},
        "subjects": _subjects(grant),
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
