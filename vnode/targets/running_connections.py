"""Runs the connections of Targets, one for each, and changes as little of one as its Target asks.

With other ways to the same cluster it goes on: at another address, or with a new token. Else the
old one ends before a new one starts. One that ends by itself is run again, in its turn.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from vnode.api.clock import Clock
from vnode.api.identity import Identity
from vnode.api.target_key import TargetKey
from vnode.kube.endpoint import Endpoint
from vnode.kube.namespace_scope import EVERYTHING, NamespaceScope
from vnode.kube.read_limit import ReadTimes
from vnode.runtime.keyed_tasks import KeyedTasks, explain
from vnode.runtime.links import Links
from vnode.runtime.supervisor import Supervisor
from vnode.targets.accesses import TargetAccess
from vnode.targets.connection import Connection
from vnode.targets.connection_turns import ConnectionTurns
from vnode.targets.findings import TargetFindings
from vnode.targets.fingerprints import Fingerprint
from vnode.targets.model import TargetSpec

RECONNECT_DELAY: Final = 1.0
"""Seconds before a connection that has ended is made anew."""

log = logging.getLogger(__name__)


class _Running(NamedTuple):
    """A connection, and the fingerprint of what it was made of."""

    made_of: Fingerprint
    connection: Connection


class RunningConnections:
    """Keeps the connections of `links`; `wake` is called for a Target whose connection has news.

    `scope` is that of this cluster's client, for a cluster that is its own target.
    """

    def __init__(
        self,
        identity: Identity,
        links: Links,
        findings: TargetFindings,
        scope: NamespaceScope,
        wake: Callable[[TargetKey], None],
        clock: Clock,
    ) -> None:
        self._identity = identity
        self._links = links
        self._findings = findings
        self._scope = scope
        self._wake = wake
        self._clock = clock
        self._turns = ConnectionTurns()
        self._read_times = ReadTimes()  # by namespace; each ClusterTarget has its own
        self._running: dict[TargetKey, _Running] = {}  # an entry for each that was started
        self._tasks: KeyedTasks[TargetKey] | None = None  # set once `open` was called

    def open(self, tasks: Supervisor) -> None:
        """Run connections as tasks of a supervisor."""
        self._tasks = tasks.keyed(self._on_end, self._clock)

    def __contains__(self, key: TargetKey) -> bool:
        return key in self._running

    def __getitem__(self, key: TargetKey) -> Connection:
        return self._running[key].connection

    def get(self, key: TargetKey) -> Connection | None:
        """Return the connection of a Target; None if none was started."""
        running = self._running.get(key)
        return running.connection if running else None

    def is_active(self, key: TargetKey) -> bool:
        """Tell whether the connection of a Target has not ended."""
        return self._tasks is not None and self._tasks.is_active(key)

    def is_in_use(self, key: TargetKey) -> bool:
        """Tell whether it is there, and not leaving."""
        connection = self.get(key)
        return connection is not None and self.is_active(key) and not connection.leaving

    async def ensure(self, spec: TargetSpec, access: TargetAccess) -> None:
        """Have a Target connected as it asks now."""
        known = self._running.get(spec.key)
        wanted = access.fingerprint
        goes_on = known and not known.connection.leaving
        if known is None or not goes_on or known.made_of.connection != wanted.connection:
            await self._start(spec, access.endpoint, wanted)
        elif known.made_of.server != wanted.server:
            if known.connection.move_to(access.endpoint):
                self._running[spec.key] = _Running(wanted, known.connection)
            else:
                await self._start(spec, access.endpoint, wanted)
        elif known.made_of.token != wanted.token:
            log.info("the connection goes on with the new token")
            self._running[spec.key] = _Running(wanted, known.connection)
            known.connection.take_over(access.endpoint)

    async def stop(self, key: TargetKey) -> None:
        """End the connection of a Target, if there is one."""
        if self._running.pop(key, None) and self._tasks is not None:
            await self._tasks.end(key)

    async def stay(self) -> list[TargetKey]:
        """Start those anew that were about to leave; return the keys of their Targets."""
        leaving = [
            each
            for each in self._running.values()
            if each.connection.leaving and self.is_active(each.connection.spec.key)
        ]
        for made_of, connection in leaving:
            await self._start(connection.spec, connection.endpoint, made_of)

        return [each.connection.spec.key for each in leaving]

    async def _start(self, spec: TargetSpec, endpoint: Endpoint, made_of: Fingerprint) -> None:
        """Replace the connection that there was by a new one."""
        await self.stop(spec.key)
        assert self._tasks is not None, "ensured before it was opened"
        connection = Connection(
            spec,
            endpoint,
            identity=self._identity,
            links=self._links,
            clock=self._clock,
            expected=lambda: self._findings.expected(spec.key),
            on_cluster=lambda uid: self._findings.set_cluster(spec.key, uid),
            on_name_conflicts=lambda: self._wake(spec.key),
            scope=self._scope if spec.is_self else EVERYTHING,
            read_time=self._read_times.of(spec.key.namespace, spec.key),
        )
        self._running[spec.key] = _Running(made_of, connection)
        run = partial(_run, connection, self._turns, self._clock)
        self._tasks.start(spec.key, run, f"target-{spec.key}")

    def _on_end(self, key: TargetKey, _name: str, error: Exception | None) -> None:
        """Note that a connection failed, works again, or has ended."""
        if error is not None and (connection := self.get(key)):
            connection.failure = explain(error)

        self._wake(key)


async def _run(connection: Connection, turns: ConnectionTurns, clock: Clock) -> None:
    """Run a connection in its turn, and again when it ends, until it leaves.

    One that failed while leaving is not retried: orphans are collected.
    """
    while not (connection.leaving and connection.has_begun):
        async with turns.take(connection.spec.key) as connection.on_settled:
            await connection.run()

        if not connection.leaving:
            await clock.sleep(RECONNECT_DELAY)
