"""What is to be there once one cluster is connected to another: names and objects, pure."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.cli import kubeconfigs
from vnode.cli.kubeconfigs import Reach
from vnode.targets import expiry

KEY: Final = "config"
"""In the Secret's data, Admiralty's default."""
_RENEW_BELOW: Final = 0.2  # of a token's life: less than this left means that a new one is fetched


@dataclass(frozen=True, slots=True)
class DesiredConnection:
    """What is to be there in the end.

    `namespace` is whose pods may go, "" for all; `home` is where the service account and the Secret
    are; `name` is the Target's, `cluster_name` the Source's; `lifetime` is in seconds. `confirmed`
    says that the Target may be another cluster than it was.
    """

    namespace: str
    home: str
    name: str
    cluster_name: str
    reach: Reach
    lifetime: int
    confirmed: bool = False

    @property
    def target_kind(self) -> Kind:
        """Target or ClusterTarget."""
        return kinds.TARGETS if self.namespace else kinds.CLUSTER_TARGETS

    @property
    def source_kind(self) -> Kind:
        """Source or ClusterSource."""
        return kinds.SOURCES if self.namespace else kinds.CLUSTER_SOURCES

    @property
    def secret_name(self) -> str:
        """The Secret with the target's kubeconfig."""
        return secret_name(self.name)


def secret_name(target: str) -> str:
    """The Secret that belongs to a Target of that name."""
    return f"vnode-target-{target}"


def source_object(connection: DesiredConnection, source_uid: str) -> Object:
    """The Source: who comes, and, for the next time, from which cluster ("" if that is unknown)."""
    account = connection.cluster_name
    annotations = {keys.PARENT_CLUSTER_UID: source_uid} if source_uid else {}
    return {
        "metadata": {
            "name": connection.cluster_name,
            **_in(connection.namespace),
            "annotations": annotations,
        },
        "spec": {"serviceAccountName": account}
        if connection.namespace
        else {"serviceAccount": {"name": account, "namespace": connection.home}},
    }


def target_object(connection: DesiredConnection, confirmed_uid: str = "") -> Object:
    """The Target that names the Secret; key and context are given, so that no old ones stay.

    `confirmed_uid` is the cluster that it is to be from now on, "" if it stays what it is.
    """
    secret = {"name": connection.secret_name, "key": KEY, "context": kubeconfigs.CONTEXT}
    if not connection.namespace:
        secret["namespace"] = connection.home

    metadata: Object = {"name": connection.name, **_in(connection.namespace)}
    if confirmed_uid:
        metadata["annotations"] = {keys.CONFIRM_CLUSTER: confirmed_uid}

    return {"metadata": metadata, "spec": {"kubeconfigSecret": secret}}


def self_target_object(connection: DesiredConnection) -> Object:
    """The Target of a cluster that is its own target."""
    return {
        "metadata": {"name": connection.name, **_in(connection.namespace)},
        "spec": {"self": True},
    }


def secret_object(connection: DesiredConnection, kubeconfig: bytes) -> Object:
    """The Secret with the kubeconfig."""
    return {
        "metadata": {"name": connection.secret_name, "namespace": connection.home},
        "type": "Opaque",
        "data": {KEY: base64.b64encode(kubeconfig).decode()},
    }


def is_fresh(token: str, now: float) -> bool:
    """The token says when it ends, and enough of its life is left at `now` (Unix time)."""
    life = kubeconfigs.lifetime(token)
    return life is not None and life[1] - now > _RENEW_BELOW * (life[1] - life[0])


def is_of(token: str, account: Object) -> bool:
    """The token is one of this very account, not of a namesake before it; or it does not say.

    API servers go on to accept a token for ten seconds after they have last looked at its account.
    """
    said = (expiry.claims(token).get("kubernetes.io") or {}).get("serviceaccount") or {}
    return said.get("uid") in (None, objects.uid(account))


def is_of_earlier(account: Object, source: Object) -> bool:
    """The account is that of an earlier Source of the same name, and ends as that did."""
    owner = objects.controller_reference(account) or {}
    namesake = owner.get("kind"), owner.get("name")
    return namesake == (source.get("kind"), objects.name(source)) and owner.get(
        "uid"
    ) != objects.uid(source)


def _in(namespace: str) -> dict[str, str]:
    return {"namespace": namespace} if namespace else {}
