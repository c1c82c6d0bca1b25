"""Builds the objects that connect one cluster to another. Pure."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.cli import kubeconfigs, manifests
from vnode.cli.kubeconfigs import ClusterEndpoint
from vnode.targets import expiry

KEY: Final = "config"
"""The key of the Secret's data: Admiralty's default."""
IS_SELF: Final = (
    "The target is the source itself, by the UID of its namespace kube-system: pods that are sent "
    "there run in this cluster. If that is a mistake, run vnode disconnect {name}, and connect "
    "with the kubeconfig, or the context, of the target."
)
_RENEW_BELOW: Final = 0.2  # of a token's lifetime: with less left, a new one is requested


@dataclass(frozen=True, slots=True)
class DesiredConnection:
    """A connection as it should be.

    Pods of `namespace` may be delegated, "" for all; `home` is the namespace of the service account
    and the Secret; `name` is the Target's, `cluster_name` the Source's; `lifetime` is in seconds.
    `confirmed` says that the Target may be another cluster than it was. `renewal` is the life that
    the source's agent, in `agent_namespace`, is to ask for when it renews the token, "" if it shall
    not. `selector` is that of a ClusterSource, None if it has none; with `keeps_selector` one that
    exists keeps its own.
    """

    namespace: str
    home: str
    name: str
    cluster_name: str
    endpoint: ClusterEndpoint
    lifetime: int
    confirmed: bool = False
    renewal: str = ""
    agent_namespace: str = manifests.NAMESPACE
    selector: Object | None = None
    keeps_selector: bool = True

    def selector_of(self, present: Object | None) -> Object | None:
        """Return the selector of the ClusterSource, given the one that exists."""
        if self.namespace:
            return None

        if present is not None and self.keeps_selector:
            return objects.spec(present).get("namespaceSelector")

        return self.selector

    @property
    def target_kind(self) -> Kind:
        """Target or ClusterTarget."""
        return kinds.scoped(kinds.TARGETS, self.namespace)

    @property
    def source_kind(self) -> Kind:
        """Source or ClusterSource."""
        return kinds.scoped(kinds.SOURCES, self.namespace)

    @property
    def secret_name(self) -> str:
        """The name of the Secret with the target's kubeconfig."""
        return secret_name(self.name)


def secret_name(target: str) -> str:
    """Return the name of the Secret of a Target."""
    return f"vnode-target-{target}"


def source_object(
    connection: DesiredConnection, source_uid: str, selector: Object | None = None
) -> Object:
    """Build the Source, annotated with the source cluster's UID ("" if that is unknown).

    `selector` is of the namespaces of a ClusterSource.
    """
    account = connection.cluster_name
    annotations = {keys.PARENT_CLUSTER_UID: source_uid} if source_uid else {}
    selecting = {} if selector is None else {"namespaceSelector": selector}
    return {
        "metadata": {
            "name": connection.cluster_name,
            **_in(connection.namespace),
            "annotations": annotations,
        },
        "spec": {"serviceAccountName": account}
        if connection.namespace
        else {"serviceAccount": {"name": account, "namespace": connection.home}, **selecting},
    }


def target_object(connection: DesiredConnection, confirmed_uid: str = "") -> Object:
    """Build the Target that names the Secret, with key and context, lest old ones should stay.

    `confirmed_uid` is the UID of the cluster that it is from now on, "" if it stays the same.
    """
    secret = {"name": connection.secret_name, "key": KEY, "context": kubeconfigs.CONTEXT}
    if not connection.namespace:
        secret["namespace"] = connection.home

    metadata: Object = {"name": connection.name, **_in(connection.namespace)}
    if confirmed_uid:
        metadata["annotations"] = {keys.CONFIRM_CLUSTER: confirmed_uid}

    return {"metadata": metadata, "spec": {"kubeconfigSecret": secret}}


def self_target_object(connection: DesiredConnection) -> Object:
    """Build the Target of a cluster that is its own target."""
    return {
        "metadata": {"name": connection.name, **_in(connection.namespace)},
        "spec": {"self": True},
    }


def secret_object(connection: DesiredConnection, kubeconfig: bytes) -> Object:
    """Build the Secret with the kubeconfig, whose token the agent is to renew."""
    annotations = {keys.RENEW_TOKEN: connection.renewal} if connection.renewal else {}
    return {
        "metadata": {
            "name": connection.secret_name,
            "namespace": connection.home,
            "annotations": annotations,
        },
        "type": "Opaque",
        "data": {KEY: base64.b64encode(kubeconfig).decode()},
    }


def is_fresh(token: str, now: float) -> bool:
    """Tell whether a token has an expiry, and enough of its life is left at `now` (Unix time)."""
    life = kubeconfigs.lifetime(token)
    return life is not None and life[1] - now > _RENEW_BELOW * (life[1] - life[0])


def is_of(token: str, account: Object) -> bool:
    """Tell whether a token is for the account with this UID, or has no UID at all.

    API servers accept a token for ten seconds after they last looked up its account, so they may
    accept one of an earlier account with the same name.
    """
    claim = (expiry.claims(token).get("kubernetes.io") or {}).get("serviceaccount") or {}
    return claim.get("uid") in (None, objects.uid(account))


def is_of_source(account: Object) -> bool:
    """Tell whether the account was made for a Source or ClusterSource, be it gone."""
    owner = (objects.controller_reference(account) or {}).get("kind")
    return owner in (kinds.SOURCES.kind, kinds.CLUSTER_SOURCES.kind)


def is_of_earlier(account: Object, source: Object) -> bool:
    """Tell whether the account is of an earlier Source of the same name, and will be deleted."""
    owner = objects.controller_reference(account) or {}
    named = owner.get("kind"), owner.get("name")
    is_namesake = named == (source.get("kind"), objects.name(source))
    return is_namesake and owner.get("uid") != objects.uid(source)


def _in(namespace: str) -> dict[str, str]:
    return {"namespace": namespace} if namespace else {}
