"""Checks whether vnode can be taken out of a cluster now: before anything is deleted, or asked."""

from __future__ import annotations

from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.errors import ConfigError, Denied, NotFound
from vnode.api.kinds import Kind
from vnode.api.objects import Objects
from vnode.cli import manifests
from vnode.cli.installed import helm_release
from vnode.cli.remove import source_side
from vnode.kube.client import Client

_AGENT_FIRST: Final = (
    "agent {holder} is running, and would delete the delegate pods with their Targets: stop it "
    "first (kubectl -n {namespace} scale deployment --all --replicas 0, then wait 30 s)"
)


_OF_ADMIRALTY: Final = (
    "Admiralty serves this cluster, and vnode does not (there is a mutatingwebhookconfiguration/"
    f"{manifests.ADMIRALTY_WEBHOOK} and no {manifests.WEBHOOK}): its Targets, Sources and pods "
    "would be deleted. Name another cluster (--kubeconfig, --context); or, if Admiralty is gone, "
    f"kubectl delete mutatingwebhookconfiguration {manifests.ADMIRALTY_WEBHOOK}, and run this again"
)


async def check(client: Client, targets: Objects, namespace: str, *, keep: bool, crds: bool) -> str:
    """Return the agent that leads, "" for none; ConfigError if it cannot be done yet."""
    await _check_admiralty(client)
    holder = await source_side.agent_leads(client, namespace, SystemClock())
    if holder and keep and targets:
        raise ConfigError(_AGENT_FIRST.format(holder=holder, namespace=namespace))

    if crds:
        await _check_crds(client)

    await _check_requests(client)
    return holder


async def listed(client: Client, *kinds_: Kind) -> Objects:
    """List the objects of these kinds; a kind whose CRD is gone has none."""
    found: Objects = []
    for kind in kinds_:
        try:
            found += await client.list(kind)
        except NotFound:
            continue
        except Denied as error:
            raise ConfigError(
                f"cannot list {kind.plural}: {error.message}; use an administrator's kubeconfig"
            ) from error

    return found


async def _check_admiralty(client: Client) -> None:
    """Raise ConfigError for a cluster of Admiralty's, whose kinds are those of vnode."""
    is_theirs = await _has_webhook(client, manifests.ADMIRALTY_WEBHOOK)
    if is_theirs and not await _has_webhook(client, manifests.WEBHOOK):
        raise ConfigError(_OF_ADMIRALTY)


async def _has_webhook(client: Client, name: str) -> bool:
    try:
        await client.get(kinds.MUTATING_WEBHOOKS, name)
    except (NotFound, Denied):
        return False

    return True


async def _check_requests(client: Client) -> None:
    """Raise ConfigError while rights in targets are left that only an agent can take away."""
    requests = await listed(client, kinds.AUTH_TOKEN_REQUESTS)
    held = [each for each in requests if keys.ISSUED_TOKEN in objects.finalizers(each)]
    if held:
        raise ConfigError(
            f"authtokenrequest/{objects.key(held[0])}, of {len(held)}, has an account in a target: "
            "delete these requests while the agent runs (kubectl delete atr -A --all), or remove "
            f"their finalizer {keys.ISSUED_TOKEN}, which leaves the accounts there"
        )


async def _check_crds(client: Client) -> None:
    for crd in await client.list(kinds.CRDS, label_selector=manifests.PART_OF):
        if release := helm_release(crd):
            raise ConfigError(
                f"the CRDs belong to the Helm release {release}: uninstall it, or omit --crds"
            )
