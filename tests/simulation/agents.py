"""vnode's agents as production puts them together, as far as pods go through them.

A `SimulatedAgent` is one process, which can be killed; it has a `SimulatedTerm` whenever it leads.
Left out are the servers, leader election, virtual nodes and what follows pods.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import cast

from tests.apiserver.client import MemoryClient
from tests.apiserver.server import APIServer
from tests.simulation.clusters import SimulatedCluster, target_key
from vnode.agent.config import AgentConfig
from vnode.agent.kubelet_api import KubeletApi
from vnode.agent.shared import AgentOptions, Shared
from vnode.agent.term import Term
from vnode.api.errors import Unreachable
from vnode.api.identity import Identity
from vnode.api.listeners import subscription_scope
from vnode.api.target_key import TargetKey
from vnode.following.config import FollowingConfig
from vnode.nodes.controller import NodeController
from vnode.pods.source.candidates import CandidateSettings
from vnode.pods.target.extender import BindRequest, Extender
from vnode.runtime import startup
from vnode.runtime.health import ProcessHealth
from vnode.runtime.links import Links
from vnode.runtime.supervisor import supervise
from vnode.targets.cluster_identity import Expected, Recognition
from vnode.targets.connection import Connection
from vnode.targets.model import SecretReference, TargetSpec


class WireClient(MemoryClient):
    """A client whose writes are on their way once they are sent, whatever becomes of the sender."""

    async def _exchange(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        data: bytes | None,
        headers: dict[str, str],
        *,
        limit: int,
    ) -> bytes:
        exchange = super()._exchange(method, path, query, data, headers, limit=limit)
        if method == "GET":
            return await exchange

        sent = asyncio.create_task(exchange, name=f"{method} {path}")
        sent.add_done_callback(_hear)
        return await asyncio.shield(sent)


def _hear(sent: asyncio.Task[bytes]) -> None:
    """Take note of an answer for which nobody may wait any more."""
    if not sent.cancelled():
        sent.exception()


class SimulatedTerm(Term):
    """A term that does what pods need of it, in a source or in a target."""

    def __init__(self, shared: Shared, *, is_source: bool) -> None:
        super().__init__(shared, cast("KubeletApi", None))
        self._is_source = is_source

    def _make_nodes(self) -> NodeController:
        shared = self._shared
        return NodeController(
            shared.client,
            shared.nodes,
            shared.links,
            shared.targets,
            advertise_address=shared.options.address,
            port_of=lambda _node: None,
            clock=shared.clock,
        )

    async def run(self) -> None:
        """Lead until cancelled."""
        async with supervise() as tasks:
            if not self._is_source:
                tasks.start(self._make_summary_writer().run(), "summary")
                tasks.start(self._make_chaperons().run(), "chaperons")
                await asyncio.get_running_loop().create_future()

            bound = self._proxies.bound
            with self._shared.including(bound):
                tasks.start(self._proxies.run(), "proxies")
                tasks.start(bound.run(), "bound-pods")
                tasks.start(self._make_delegate_events().run(), "delegate-events")
                await self._placement.keep(tasks)
                await self._schedule(tasks)


class MemoryConnection(Connection):
    """A connection to a target in memory."""

    def __init__(
        self, server: APIServer, target: TargetKey, identity: Identity, links: Links, shared: Shared
    ) -> None:
        self._memory_client = WireClient(server, name=str(target), user=identity.name)
        secret = SecretReference(target.namespace, target.name, "config", "")
        super().__init__(
            TargetSpec(target, secret, ""),
            self._memory_client.endpoint,
            identity=identity,
            links=links,
            clock=shared.clock,
            expected=Expected,
            on_cluster=lambda _uid: None,
            on_name_conflicts=lambda: None,
        )

    async def run(self) -> None:
        """Publish the link and keep it alive."""
        recognition = Recognition(self.spec.key, Expected, lambda _uid: None)
        link = self._make_link(self._memory_client)
        self._links.add(link)
        try:
            await self._serve(link, recognition)
        finally:
            self._links.remove(link)


class SimulatedAgent:
    """The agent of a cluster; one with `targets` is a source, any other one a target."""

    def __init__(
        self, cluster: SimulatedCluster, targets: Mapping[str, APIServer], parallel: int
    ) -> None:
        self._cluster = cluster
        self._targets = targets
        config = AgentConfig(
            candidates=CandidateSettings(parallel=parallel),
            # Pods would wait for what is left out.
            following=FollowingConfig(services=False, network_policies=False),
        )
        self._options = AgentOptions("vnode", "192.0.2.1", config, None, cluster.name)
        self._process: asyncio.Task[None] | None = None
        self._term: asyncio.Task[None] | None = None
        self._extender: Extender | None = None  # None: there is no connection to it
        self._calls: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Start a process that knows nothing."""
        if self._process is None:
            self._process = asyncio.create_task(self._run(), name=f"agent of {self._cluster.name}")

    async def kill(self) -> None:
        """End the process at once, with its connections."""
        process, self._process, self._extender = self._process, None, None
        for task in (*self._calls, *([process] if process else [])):
            task.cancel()

        if process is not None:
            with suppress(asyncio.CancelledError):
                await process

    def new_term(self) -> None:
        """Have the process lose its Lease and get it again."""
        if self._term is not None:
            self._term.cancel()

    def failure(self) -> BaseException | None:
        """Return why the process ended, if it did so by itself."""
        if self._process is None or not self._process.done() or self._process.cancelled():
            return None

        return self._process.exception() or RuntimeError("it ended")

    async def bind(self, wanted: BindRequest) -> None:
        """Call the extender, as the candidate scheduler does."""
        if self._extender is None:
            raise Unreachable("the extender does not answer")

        call = asyncio.create_task(self._extender._bind(wanted), name=f"bind {wanted.name}")
        self._calls.add(call)
        try:
            await asyncio.wait({call})
        finally:
            self._calls.discard(call)
            call.cancel()

        if call.cancelled():
            raise Unreachable("the connection broke")

        call.result()

    async def _run(self) -> None:
        name = self._cluster.name
        client = WireClient(self._cluster.server, name=name, user=f"agent-{name}")
        shared = Shared(client, self._cluster.identity, self._options, ProcessHealth())
        async with supervise() as tasks:
            tasks.start(shared.namespaces.run(), "namespaces")
            if self._targets:
                await startup.wait_for_answer(shared.manifest_key.load, shared.clock)
                tasks.start(shared.targets.run(), "watch-targets")
                tasks.start(shared.proxies.run(), "pods")
                for informer in shared.overrides.informers:
                    tasks.start(informer.run(), informer.kind.plural)

                tasks.start(shared.policies.run(), "placement-policies")
                tasks.start(shared.nodes.run(), "nodes")
                await shared.targets.wait_synced()
                await shared.proxies.synced.wait()
                for name, server in self._targets.items():
                    connection = MemoryConnection(
                        server, target_key(name), shared.identity, shared.links, shared
                    )
                    tasks.start(connection.run(), f"connection to {name}")

                await shared.nodes.synced.wait()
            else:
                tasks.start(shared.chaperons.run(), "chaperons")
                tasks.start(shared.delegates.run(), "delegates")
                self._extender = Extender(
                    client,
                    shared.reservations,
                    shared.delegates,
                    lambda _certificate: True,
                    shared.clock,
                )

            while True:
                await self._lead(shared)

    async def _lead(self, shared: Shared) -> None:
        with subscription_scope():
            term = SimulatedTerm(shared, is_source=bool(self._targets))
            self._term = asyncio.create_task(term.run(), name=f"term in {self._cluster.name}")
            try:
                await asyncio.wait({self._term})
            finally:
                self._term.cancel()
                with suppress(asyncio.CancelledError):
                    await self._term
