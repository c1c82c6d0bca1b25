"""Keeps the stores of `vnode dashboard`, as a replica of the agent does that never leads.

It watches Targets, connects to them with the credentials of their Secrets, and writes nothing. What
the user may not read is left out, and the pages say so.
"""

from __future__ import annotations

import asyncio
from typing import Final

from vnode.api import cures, keys, kinds
from vnode.api.clock import Clock, happens_within
from vnode.api.errors import ConfigError, Denied, NotFound
from vnode.api.identity import Identity
from vnode.api.kinds import Kind
from vnode.cli import identity
from vnode.dashboard.live_model import LiveModel, Stores
from vnode.kube.client import Client
from vnode.kube.endpoint import Trust
from vnode.kube.informer import Informer
from vnode.placement.policies import decoding as placement
from vnode.pods.source import proxy_state
from vnode.runtime.links import Links
from vnode.runtime.supervisor import Supervisor
from vnode.targets.controller import TargetController
from vnode.targets.target_lister import TargetLister

_POLL_INTERVAL: Final = 0.2  # seconds between two checks whether lists have arrived or failed
_UNNAMED: Final = "this cluster"


class Observer:
    """Keeps the stores of one dashboard. `namespace` None means all."""

    def __init__(
        self,
        client: Client,
        own: Identity,
        namespace: str | None,
        *,
        agent_namespace: str,
        clock: Clock,
    ) -> None:
        links = Links()
        self._namespace = namespace
        self._pods = Informer(client, kinds.PODS, namespace=namespace, trim=proxy_state.trim)
        self._nodes = Informer(
            client, kinds.NODES, label_selector=f"{keys.PROVIDER_LABEL}={keys.PROVIDER}"
        )
        self._sources = (
            Informer(client, kinds.SOURCES, namespace=namespace),
            Informer(client, kinds.CLUSTER_SOURCES),
        )
        self._targets = TargetLister(client, namespace)
        self._policies = tuple(_policies(client, kind, namespace) for kind in placement.KINDS)
        self._overrides = tuple(
            _policies(client, kind, namespace)
            for kind in (kinds.OVERRIDE_POLICIES, kinds.CLUSTER_OVERRIDE_POLICIES)
        )
        self._connections = TargetController(
            client, own, self._targets, links, clock=clock, trust=lambda _target: Trust()
        )
        stores = Stores(
            self._targets.informers,
            self._sources,
            self._nodes,
            self._pods.store.values,
            self._policies,
            self._overrides,
        )
        name = own.name if own.name != own.uid else _UNNAMED
        self.live_model = LiveModel(
            client,
            name,
            stores,
            links,
            agent_namespace=agent_namespace,
            clock=clock,
            reads_events=True,
            namespace=namespace,
        )
        self._pods.subscribe(self.live_model.on_pod)

    async def start(self, tasks: Supervisor) -> None:
        """Start all informers; return when they have their lists, or have failed.

        Raises the error if pods could not be listed, ConfigError if vnode is not installed.
        """
        of_policies = (*self._policies, *self._overrides)
        for informer in (self._pods, self._nodes, *self._sources, *of_policies):
            tasks.start(informer.run(), f"dashboard-{informer.kind.plural}")

        tasks.start(self._targets.run(), "dashboard-targets")
        tasks.start(self._connections.run(), "dashboard-connections")
        async with asyncio.TaskGroup() as group:
            for informer in (self._pods, self._nodes, *self._targets.informers):
                group.create_task(_until_listed(informer), name=f"first-{informer.kind.plural}")

        if isinstance(error := self._pods.failure, Denied) and self._namespace is None:
            raise ConfigError(
                f"you may not see the pods of all namespaces: pass -n NAMESPACE ({error.message})"
            )

        if error is not None:
            raise error

        if isinstance(error := self._targets.informers[0].failure, NotFound):
            raise ConfigError(f"vnode is not installed here: {cures.INSTALL} ({error.message})")


def _policies(client: Client, kind: Kind, namespace: str | None) -> Informer:
    return Informer(client, kind, namespace=namespace if kind.namespaced else None)


async def _until_listed(informer: Informer) -> None:
    """Wait until the informer has its list, or has failed."""
    while informer.failure is None and not await happens_within(informer.synced, _POLL_INTERVAL):
        pass


async def observe(
    client: Client, namespace: str | None, *, agent_namespace: str, clock: Clock
) -> Observer:
    """Make an observer for the cluster of the client."""
    own = await identity.identity(client)
    return Observer(client, own, namespace, agent_namespace=agent_namespace, clock=clock)
