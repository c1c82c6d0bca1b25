"""The clusters on which one tenant attacks while another is measured, and who has which rights.

c1 is the source of c2 and c3, for all namespaces. Each tenant has rights in a namespace of its own,
and nothing else: the attacker those of its administrator, which are the most that a platform team
gives to others.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hack.fleetlib import agents
from hack.fleetlib.clusters import ControlPlaneOptions
from hack.fleetlib.fleet import FleetOptions, LocalFleet, up
from tests import kit
from tests.isolation import bystander
from tests.kit import Fleet
from vnode.api import kinds
from vnode.cli import kubeconfigs
from vnode.kube import account_tokens, endpoint
from vnode.kube.client import Client
from vnode.kube.kubeconfig import Kubeconfig

ATTACKER: Final = "team-a"
SOURCE: Final = "c1"
TARGETS: Final = ("c2", "c3")
_ROLES: Final = {ATTACKER: "admin", bystander.NAMESPACE: "edit"}
_TOKEN_SECONDS: Final = 6 * 3600


@dataclass(frozen=True)
class Scene:
    """What an attack has: the fleet, and the attacker's client of the source."""

    fleet: Fleet
    tenant: Client

    @property
    def agent(self) -> str:
        """The address of the source's agent."""
        return LocalFleet(self.fleet.folder).address(SOURCE)


@contextmanager
def started(folder: Path) -> Iterator[Fleet]:
    """Run the fleet; both targets take pods of both namespaces."""
    names = (SOURCE, *TARGETS)
    options = FleetOptions(names, clusters=ControlPlaneOptions(nodes=3), agents=True)
    fleet = up(folder, options)
    try:
        for name in TARGETS:
            ends = (
                "--source",
                str(fleet.kubeconfig(SOURCE)),
                "--target",
                str(fleet.kubeconfig(name)),
            )
            agents.vnode(
                *("connect", *ends, "--cluster-wide", "--grant-all-namespaces"),
                *("--name", name, "--cluster-name", SOURCE),
            )

        asyncio.run(_make_tenants(Fleet(folder)))
        yield Fleet(folder)
    finally:
        fleet.down()


async def _make_tenants(fleet: Fleet) -> None:
    for cluster in (SOURCE, *TARGETS):
        async with fleet.client(cluster) as client:
            for namespace in _ROLES:
                await kit.namespace_for_pods(client, namespace)
                await kit.until_one(client, kinds.SERVICE_ACCOUNTS, "default", namespace, bool)

    for namespace, role in _ROLES.items():
        words = ("create", "rolebinding", "tenant", "--clusterrole", role, "--namespace", namespace)
        fleet.kubectl(SOURCE, *words, f"--serviceaccount={namespace}:default")


@asynccontextmanager
async def tenant(fleet: Fleet, namespace: str) -> AsyncIterator[Client]:
    """Yield a client of the source with the rights of a namespace's tenant."""
    async with fleet.client(SOURCE) as admin:
        spec = {"expirationSeconds": _TOKEN_SECONDS}
        token = await account_tokens.request(admin, namespace, "default", spec)

    reach, _name = kubeconfigs.read(fleet.kubeconfig(SOURCE))
    text = kubeconfigs.build(reach, token.text, namespace)
    async with Client(endpoint.from_kubeconfig(Kubeconfig.parse(text)), name=namespace) as client:
        yield client
