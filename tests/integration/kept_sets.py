"""Keeps TargetSets and ClusterTargetSets on real API servers with the rights that an agent has."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests import background, inventory, rights
from tests.fleets import SOURCE
from tests.integration.inventoried import agent_token
from tests.kit import Fleet
from vnode.api import kinds
from vnode.api.clock import SystemClock
from vnode.cli import kubeconfigs
from vnode.kube import endpoint
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.kube.kubeconfig import Kubeconfig
from vnode.targets.profiles.config import InventoryConfig
from vnode.targets.target_lister import TargetLister
from vnode.targetsets.controller import TargetSets


@asynccontextmanager
async def keeping_sets(
    fleet: Fleet, client: Client, namespace: str, *more: str
) -> AsyncIterator[None]:
    """Have sets kept with the rights of the agent's role, and an inventory without profiles, in
    this namespace and more."""
    reach, _name = kubeconfigs.read(fleet.kubeconfig(SOURCE))
    text = kubeconfigs.build(reach, await agent_token(client), "vnode")
    await inventory.uninstall(client)
    await inventory.installed(client)
    try:
        await rights.bind(client, namespace, "vnode-target-sets")
        async with Client(endpoint.from_kubeconfig(Kubeconfig.parse(text)), name="c1") as agent:
            lister = TargetLister(agent)
            nodes, pods = Informer(agent, kinds.NODES), Informer(agent, kinds.PODS)
            config, clock = InventoryConfig((namespace, *more)), SystemClock()
            sets = TargetSets(agent, lister, nodes, pods.subscribe, lambda _node: (), config, clock)
            async with background.running(lister.run(), nodes.run(), pods.run(), sets.run()):
                yield
    finally:
        await client.delete(kinds.CLUSTER_ROLE_BINDINGS, namespace)
        await inventory.uninstall(client)
