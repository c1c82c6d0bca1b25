"""Renews the Leases of virtual Nodes, whatever their targets do: they show that the agent lives."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from vnode.api.clock import Clock
from vnode.api.errors import VnodeError
from vnode.api.objects import Object
from vnode.kube import leases
from vnode.kube.client import Client
from vnode.runtime.controller import Controller

_RETRY_DELAY: Final = 2.0  # seconds after a renewal that failed

log = logging.getLogger(__name__)


class LeaseRenewal:
    """Renews while `find` returns the Node of a name; `add` begins again after it returned None."""

    def __init__(self, client: Client, find: Callable[[str], Object | None], clock: Clock) -> None:
        self._client = client
        self._find = find
        self._clock = clock
        self._controller: Controller[str] = Controller("node-leases", self._renew, workers=4)

    def add(self, name: str) -> None:
        """Renew the Lease of that Node now, and from now on."""
        self._controller.add(name)

    async def run(self) -> None:
        """Renew until cancelled."""
        await self._controller.run()

    async def _renew(self, name: str) -> float | None:
        node = self._find(name)
        if node is None:
            return None

        try:
            await leases.renew_for_node(self._client, node, self._clock.now())
        except VnodeError as error:
            log.warning("the lease of node %s was not renewed: %s", name, error)
            return _RETRY_DELAY

        return leases.NODE_RENEWAL
