"""Finds out whether the Source in a target may go with a Target of the source.

It stays while another Target leads to that cluster as the same user, and none is deleted in a
cluster that is not the Target's: the user of a source is mostly the same in all its targets.
"""

from __future__ import annotations

from vnode.api import kinds, objects
from vnode.api.errors import ConfigError, Denied, NotFound, VnodeError
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.cli import recognition
from vnode.cli.access import Access
from vnode.kube.client import Client
from vnode.targets import cluster_identity, expiry, model, secrets
from vnode.targets.model import SecretReference


async def check_cluster(access: Access, key: TargetKey, target: Object) -> None:
    """Raise ConfigError if `access` leads to another cluster than the Target.

    A cluster that does not answer, or does not say which one it is, passes.
    """
    recorded = cluster_identity.recorded(target)
    try:
        async with access.client("target") as client:
            found = await recognition.uid_of(client)
    except VnodeError:
        return

    if recorded and found and recorded != found:
        raise ConfigError(
            f"--target leads to another cluster than Target {key}: {found} is the UID of its "
            f"namespace kube-system, and {recorded} that of the Target's; pass the kubeconfig, or "
            "the context, of that one, or leave --target out. Nothing was deleted"
        )


async def another(client: Client, key: TargetKey, target: Object, user: str) -> str:
    """Return the name of another Target that leads to the same cluster as that user; "" if none.

    Only those of its namespace count, or ClusterTargets for one, as each has a Source of its own.
    """
    recorded, secret = cluster_identity.recorded(target), secret_of(target)
    kind = kinds.scoped(kinds.TARGETS, key.namespace)
    for each in await client.list(kind, key.namespace or None):
        if model.key_of(each) == key or objects.is_terminating(each):
            continue

        theirs = secret_of(each)
        is_shared = theirs is not None and theirs == secret
        if not is_shared and user and recorded and cluster_identity.recorded(each) == recorded:
            is_shared = (await identity_in_target(client, theirs))[0] == user

        if is_shared:
            return f"{kind.kind} {objects.key(each)}"

    return ""


def secret_of(target: Object) -> SecretReference | None:
    """Return the Secret that a Target names; None also for one that cannot be used."""
    try:
        return model.parse(target).secret
    except VnodeError:  # it can still be removed
        return None


async def identity_in_target(
    client: Client, reference: SecretReference | None
) -> tuple[str, Object | None]:
    """Return the user that the source is in the target ("" if unknown), and the Secret."""
    if reference is None:
        return "", None

    secret = None
    try:
        secret = await client.get(kinds.SECRETS, reference.name, reference.namespace)
        end = expiry.of_kubeconfig(secrets.kubeconfig(secret, reference))
    except (NotFound, Denied):
        return "", None
    except VnodeError:
        return "", secret

    return (end.subject if end else ""), secret
