"""Asks both clusters, ahead of time, whether a token can be renewed at all.

So a Target says what is missing when it is connected, and not only when its token is due.
"""

from __future__ import annotations

from vnode.kube import access_review
from vnode.kube.client import Client
from vnode.targets.accesses import StoredKubeconfig
from vnode.targets.token_renewal import ManagedToken


def refused_by_target(token: ManagedToken, why: str = "") -> str:
    """Tell that a service account may not ask for its own tokens, and what to do."""
    return (
        f"service account {'/'.join(token.account)} may not ask for its own tokens in the target "
        f"(run vnode connect again, which allows it){f': {why}' if why else ''}"
    )


def refused_by_source(secret: str, why: str = "") -> str:
    """Tell that the agent may not write a Secret (`namespace/name`), and what to do."""
    return (
        f"the agent may not write Secret {secret} (run vnode connect again, which allows it)"
        f"{f': {why}' if why else ''}"
    )


async def missing(
    local: Client, remote: Client, stored: StoredKubeconfig, token: ManagedToken
) -> str:
    """Return which right is missing, with the cure; "" if none is."""
    if not await may_ask(remote, token):
        return refused_by_target(token)

    secret = stored.reference
    wanted = {"resource": "secrets", "verb": "patch", "name": secret.name}
    if not await access_review.may(local, {**wanted, "namespace": secret.namespace}):
        return refused_by_source(secret.object_key)

    return ""


async def may_ask(remote: Client, token: ManagedToken) -> bool:
    """Tell whether the account of a token may ask its API server for another one."""
    namespace, name = token.account
    wanted = {"resource": "serviceaccounts", "subresource": "token", "verb": "create"}
    return await access_review.may(remote, {**wanted, "namespace": namespace, "name": name})
