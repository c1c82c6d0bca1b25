"""Refuses targets for pods that mount another account's token where programs look for their own.

A Secret of type service-account-token never follows. Mounted in the usual place, it decides as
which account the pod's programs speak: with the token of another account they would be somebody
else, and without any they could not start. So a target is not used unless it has a Secret of that
name itself. Each such Secret is read when a candidate is created; pods seldom have one.
"""

from __future__ import annotations

from collections.abc import Iterator

from vnode.api import kinds, objects, service_tokens
from vnode.api.errors import ConfigError, Denied, NotFound
from vnode.api.objects import Object
from vnode.following import copies
from vnode.kube.client import Client
from vnode.runtime.links import Link

_ACCOUNT = "kubernetes.io/service-account.name"


def secrets_in_usual_place(spec: Object) -> Iterator[str]:
    """Yield the names of Secrets that a pod needs in the usual place, but for its own account's."""
    mounted = service_tokens.in_usual_place(spec) - service_tokens.usual_volumes(spec)
    for volume in spec.get("volumes") or () if mounted else ():
        secret = volume.get("secret") or {}
        if volume.get("name") in mounted and not secret.get("optional"):
            yield str(secret.get("secretName") or "")


async def refuse(pod: Object, local: Client, link: Link) -> None:
    """Raise ConfigError if the pod needs another account's token that the target does not have."""
    namespace = objects.namespace(pod)
    for name in filter(None, secrets_in_usual_place(objects.spec(pod))):
        try:
            secret = await local.get(kinds.SECRETS, name, namespace)
        except (NotFound, Denied):
            continue  # as on a node, the pod waits for it; `ConfigObjects` explains Denied

        if secret.get("type") != copies.TOKEN_TYPE or await _exists(name, namespace, link):
            continue

        account = objects.annotations(secret).get(_ACCOUNT, "unknown")
        raise ConfigError(
            f"Secret {name} is the token of service account {account}, and such Secrets do not "
            f"follow: run the pod as that account, or create a Secret of that name in target "
            f"{link.target.name}"
        )


async def _exists(name: str, namespace: str, link: Link) -> bool:
    try:
        await link.client.get(kinds.SECRETS, name, namespace)
    except NotFound:
        return False

    return True
