"""Builds what lets a token be renewed: a Role and its binding in each of both clusters. Pure.

In the target, the source's service account may ask for tokens of its own. In the source, the agent
may write the Secret in which it puts them. Neither may do so with any other object. Both go with
what they are about: they are owned by the Source, and by the Secret.
"""

from __future__ import annotations

from typing import Final

from vnode.api import kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.cli import manifests
from vnode.cli.connect.desired import DesiredConnection

_RBAC: Final = "rbac.authorization.k8s.io"
_PREFIX: Final = "vnode-renew-"


def in_target(connection: DesiredConnection, source: Object) -> list[tuple[Kind, Object]]:
    """Build what lets the service account of a Source ask for its own tokens."""
    account = connection.cluster_name
    rule = {
        "apiGroups": [""],
        "resources": ["serviceaccounts/token"],
        "resourceNames": [account],
        "verbs": ["create"],
    }
    subject = {"kind": "ServiceAccount", "name": account, "namespace": connection.home}
    owner = _owner(source, connection.source_kind)
    return _role(f"{_PREFIX}{account}", connection.home, rule, subject, owner)


def in_source(connection: DesiredConnection, secret: Object) -> list[tuple[Kind, Object]]:
    """Build what lets the agent write a Secret; nothing where its own role does."""
    if connection.home == connection.agent_namespace:
        return []

    rule = {
        "apiGroups": [""],
        "resources": ["secrets"],
        "resourceNames": [connection.secret_name],
        "verbs": ["patch"],
    }
    subject = {
        "kind": "ServiceAccount",
        "name": manifests.ACCOUNT,
        "namespace": connection.agent_namespace,
    }
    owner = _owner(secret, kinds.SECRETS)
    return _role(f"{_PREFIX}{connection.secret_name}", connection.home, rule, subject, owner)


def _role(
    name: str, namespace: str, rule: Object, subject: Object, owner: Object
) -> list[tuple[Kind, Object]]:
    metadata = {"name": name, "namespace": namespace, "ownerReferences": [owner]}
    role: Object = {"metadata": metadata, "rules": [rule]}
    reference = {"apiGroup": _RBAC, "kind": kinds.ROLES.kind, "name": name}
    binding: Object = {"metadata": metadata, "roleRef": reference, "subjects": [subject]}
    return [(kinds.ROLES, role), (kinds.ROLE_BINDINGS, binding)]


def _owner(obj: Object, kind: Kind) -> Object:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": objects.name(obj),
        "uid": objects.uid(obj),
    }
