"""vnode's agents as production puts them together, as far as pods go through them.

A `SimulatedAgent` is one process, which can be killed: a `SimulatedReplica`, with a `SimulatedTerm`
whenever it leads. Both run the parts of a real agent (`vnode.agent.parts`), but for those that need
servers, and `LEFT_OUT`. There is no leader election.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from tests.apiserver.client import MemoryClient
from tests.apiserver.server import APIServer
from tests.memory_streams import MemoryStreams, StreamPeer
from tests.simulation.clusters import SimulatedCluster, target_key
from vnode.agent.config import AgentConfig
from vnode.agent.parts import AwaitedStep, Part, Parts
from vnode.agent.replica import Agent
from vnode.agent.shared import AgentOptions, Shared
from vnode.agent.term import Term
from vnode.api.errors import Unreachable
from vnode.api.identity import Identity
from vnode.api.target_key import TargetKey
from vnode.following.config import FollowingConfig
from vnode.pods.source.candidates import CandidateSettings
from vnode.pods.streams import SourceStreams
from vnode.pods.target.extender import BindRequest, Extender
from vnode.runtime.health import ProcessHealth
from vnode.runtime.links import Links
from vnode.runtime.stall_guard import StallGuard
from vnode.runtime.supervisor import Supervisor, sleep_forever, supervise
from vnode.targets import link_building
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


LEFT_OUT: Final = {"memory-frozen": "all agents of a simulation are in one process"}
"""Parts that are not simulated although they need no servers, and why."""


def simulated(parts: Parts) -> Parts:
    """Return those parts of a list that are simulated."""
    return tuple(part for part in parts if not part.needs_servers and part.name not in LEFT_OUT)


class SimulatedTerm(Term):
    """A term without what needs servers."""

    def parts(self) -> Parts:
        """List what is simulated of a term."""
        return simulated(super().parts())


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
        link = link_building.make(self._memory_client, self.spec, self._identity, self._clock)
        self._links.add(link)
        try:
            await self._serve(link, recognition)
        finally:
            self._links.remove(link)


class SimulatedReplica(Agent):
    """A replica that has connections to targets in memory, and an extender without a server.

    It leads as long as it lives.
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        targets: Mapping[str, APIServer],
        options: AgentOptions,
        streams: MemoryStreams,
    ) -> None:
        client = WireClient(cluster.server, name=cluster.name, user=f"agent-{cluster.name}")
        super().__init__(client, cluster.identity, options, ProcessHealth(), lambda: client)
        self._shared.open_stream = streams.connect
        self._targets = targets
        self._term: asyncio.Task[None] | None = None
        self.extender: Extender | None = None  # None: there is no connection to it

    @property
    def streams(self) -> SourceStreams:
        """Its ends of streams of sources."""
        return self._shared.streams

    def parts(self) -> Parts:
        """List what is simulated of a replica."""
        own = (Part("targets", self._reach_targets), AwaitedStep("servers", self._serve))
        by_name = {part.name: part for part in own}
        return simulated(tuple(by_name.get(part.name, part) for part in super().parts()))

    def kubelet_parts(self) -> Parts:
        """List what is simulated of the kubelet API."""
        return simulated(super().kubelet_parts())

    def new_term(self) -> None:
        """Have it lose its Lease and get it again."""
        if self._term is not None:
            self._term.cancel()

    async def _reach_targets(self) -> None:
        shared = self._shared
        async with supervise() as tasks:
            for name, server in self._targets.items():
                connection = MemoryConnection(
                    server, target_key(name), shared.identity, shared.links, shared
                )
                tasks.start(connection.run(), f"connection to {name}")

            await sleep_forever()

    async def _serve(self, _tasks: Supervisor) -> None:
        shared = self._shared
        self.extender = Extender(
            shared.client, shared.reservations, shared.delegates, lambda _cert: True, shared.clock
        )

    async def _lead_when_elected(self) -> None:
        """Lead; the heartbeats of nodes have no thread of their own, where nothing takes time."""
        guard = StallGuard(monotonic=self._shared.clock.monotonic)
        async with supervise() as tasks:
            tasks.start(guard.run(), "beat")
            tasks.start(self._shared.node_leases.run(self._shared.client, guard), "node-leases")
            await self._lead_again_and_again()

    async def _lead_again_and_again(self) -> None:
        while True:
            self._term = asyncio.create_task(
                self._lead(), name=f"term of {self._shared.identity.name}"
            )
            try:
                await asyncio.wait({self._term})
            finally:
                self._term.cancel()
                with suppress(asyncio.CancelledError):
                    await self._term

    def make_term(self) -> Term:
        """Make the term of the simulation."""
        return SimulatedTerm(self._shared, self._kubelet)


class SimulatedAgent:
    """The agent of a cluster; one with `targets` is a source, any other one a target."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        targets: Mapping[str, APIServer],
        parallel: int,
        streams: MemoryStreams,
    ) -> None:
        self._streams = streams
        self._cluster = cluster
        self._targets = targets
        config = AgentConfig(
            candidates=CandidateSettings(parallel=parallel),
            # Pods would wait for what is left out.
            following=FollowingConfig(services=False, network_policies=False),
        )
        self._options = AgentOptions("vnode", "192.0.2.1", config, None, cluster.name)
        self._process: asyncio.Task[None] | None = None
        self.replica: SimulatedReplica | None = None  # what the process is
        self._calls: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Start a process that knows nothing."""
        if self._process is None:
            self.replica = SimulatedReplica(
                self._cluster, self._targets, self._options, self._streams
            )
            name = f"agent of {self._cluster.name}"
            self._process = asyncio.create_task(self.replica.run(), name=name)

    async def kill(self) -> None:
        """End the process at once, with its connections."""
        process, self._process, self.replica = self._process, None, None
        self._streams.cut(self._cluster.name)
        for task in (*self._calls, *([process] if process else [])):
            task.cancel()

        if process is not None:
            with suppress(asyncio.CancelledError):
                await process

    def new_term(self) -> None:
        """Have the process lose its Lease and get it again."""
        if self.replica is not None:
            self.replica.new_term()

    def failure(self) -> BaseException | None:
        """Return why the process ended, if it did so by itself."""
        if self._process is None or not self._process.done() or self._process.cancelled():
            return None

        return self._process.exception() or RuntimeError("it ended")

    async def bind(self, wanted: BindRequest) -> None:
        """Call the extender, as the candidate scheduler does."""
        extender = self.replica.extender if self.replica is not None else None
        if extender is None:
            raise Unreachable("the extender does not answer")

        call = asyncio.create_task(extender._bind(wanted), name=f"bind {wanted.name}")
        self._calls.add(call)
        try:
            await asyncio.wait({call})
        finally:
            self._calls.discard(call)
            call.cancel()

        if call.cancelled():
            raise Unreachable("the connection broke")

        call.result()


def streams_between(
    targets: Mapping[str, SimulatedCluster], agent: Callable[[str], SimulatedAgent]
) -> MemoryStreams:
    """Make the streams to the agents of targets, whose API servers they go through."""

    def reached(name: str) -> SourceStreams | None:
        replica = agent(name).replica
        return None if targets[name].down or replica is None else replica.streams

    def peer(name: str, cluster: SimulatedCluster) -> StreamPeer:
        return StreamPeer(
            name, lambda: reached(name), lambda: cluster.dice.random() * 0.01 * cluster.slow
        )

    return MemoryStreams({name: peer(name, cluster) for name, cluster in targets.items()})
