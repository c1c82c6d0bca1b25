"""Deletes the agent's namespace in the end of an uninstallation, unless others use it."""

from __future__ import annotations

from typing import Final

from vnode.api import kinds, objects
from vnode.api.errors import NotFound
from vnode.cli.remove.report import RemovalReport, remove_named
from vnode.kube.client import Client
from vnode.runtime import manifest_key
from vnode.runtime.certs import authority, issued

OWN_SECRETS: Final = (authority.SECRET, issued.CLIENT, manifest_key.SECRET)
"""What the agents make for themselves."""
_OF_KUBERNETES: Final = ("default", "kube-system")
_USES: Final = (
    kinds.DEPLOYMENTS,
    kinds.STATEFUL_SETS,
    kinds.DAEMON_SETS,
    kinds.CRON_JOBS,
    kinds.PODS,
    kinds.CLAIMS,
)
_SHOWN: Final = 5  # Secrets


async def remove(client: Client, name: str, report: RemovalReport) -> None:
    """Delete the namespace if nothing uses it: the Deployments of a chart are Helm's to delete."""
    if user := await _user_of(client, name):
        report.left.append(
            f"namespace/{name} kept: {user} is in it; run helm uninstall, or delete it"
        )
    elif name not in _OF_KUBERNETES:
        await remove_named(client, kinds.NAMESPACES, name, report)


async def consequences(client: Client, name: str) -> list[str]:
    """Return what becomes of the namespace as it is now, with Secrets that others have made."""
    try:
        await client.get(kinds.NAMESPACES, name)
    except NotFound:
        return []

    if name in _OF_KUBERNETES:
        return []

    if user := await _user_of(client, name):
        return [f"keeps namespace/{name} while {user} is in it"]

    secrets = map(objects.name, await client.list(kinds.SECRETS, name))
    others = [f"secret/{secret}" for secret in secrets if secret not in OWN_SECRETS]
    lines = [f"deletes namespace/{name}, and all that is in it"]
    if others:
        more = ", ..." if len(others) > _SHOWN else ""
        lines.append(f"  vnode has not made for itself: {', '.join(others[:_SHOWN])}{more}")

    return lines


async def _user_of(client: Client, name: str) -> str:
    """Return what runs in a namespace, is to run there, or has data there; "" for nothing."""
    for kind in _USES:
        if found := await client.list(kind, name):
            return f"{kind.kind.lower()}/{objects.name(found[0])}"

    return ""
