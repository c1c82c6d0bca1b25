"""Renews the Leases of virtual Nodes, whatever their targets do: they show that the agent lives.

That must not wait for anything else that the agent does, or a burst of work would make all Nodes
NotReady. So it runs in the thread that renews the leader's own Lease (`vnode.runtime.election`),
with that thread's client, and goes on while the work stands still. The work's thread only says
which Nodes there are, by their names and UIDs.

A Lease vouches for what the Node's status says. That is written at least every five minutes, as by
a kubelet; so work that has stood still for longer does not have its Leases renewed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from vnode.api import durations
from vnode.api.clock import Clock
from vnode.api.errors import VnodeError
from vnode.kube import leases
from vnode.kube.client import Client
from vnode.runtime.controller import Controller
from vnode.runtime.stall_guard import StallGuard
from vnode.telemetry import audit

FRESH: Final = 300.0  # seconds for which a status that nobody has looked at is vouched for
_RETRY_DELAY: Final = 2.0  # seconds after a renewal that failed

log = logging.getLogger(__name__)


class LeaseRenewal:
    """Renews the Leases of the Nodes that are kept; it outlives the terms of a leader.

    One thread calls `keep`, `drop` and `clear`, and one `run`: they share a dict of strings, of
    which each access is one step, and nothing else.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._uids: dict[str, str] = {}  # by the name of the Node
        self._wake: Callable[[str], object] = _nobody

    def keep(self, name: str, uid: str) -> None:
        """Renew the Lease of that Node from now on."""
        if self._uids.get(name) != uid:
            self._uids[name] = uid
            self._wake(name)

    def drop(self, name: str) -> None:
        """Renew the Lease of that Node no more: it ends with the Node."""
        self._uids.pop(name, None)

    def clear(self) -> None:
        """Renew nothing, until somebody says which Nodes there are."""
        self._uids.clear()

    async def run(self, client: Client, guard: StallGuard) -> None:
        """Renew until cancelled, as long as the loop that the guard watches is not stuck."""
        loop = asyncio.get_running_loop()

        async def renew(name: str) -> float | None:
            return await self._renew(client, name, is_fresh=guard.ran_within(FRESH))

        controller: Controller[str] = Controller(
            "node-leases", renew, subject=audit.agent, workers=4
        )
        self._wake = lambda name: loop.call_soon_threadsafe(controller.add, name)
        try:
            for name in self._uids.copy():
                controller.add(name)

            await controller.run()
        finally:
            self._wake = _nobody

    async def _renew(self, client: Client, name: str, *, is_fresh: bool) -> float | None:
        uid = self._uids.get(name)
        if uid is None:
            return None

        if not is_fresh:
            return _RETRY_DELAY

        try:
            await leases.renew_for_node(client, name, uid, self._clock.now())
        except VnodeError as error:
            log.warning("the lease of node %s was not renewed: %s", name, error)
            return _RETRY_DELAY

        return durations.coalesced(self._clock.monotonic(), leases.NODE_RENEWAL)


def _nobody(_name: str) -> None:
    """Wake nobody: no thread renews now; one that begins to looks at all names."""
