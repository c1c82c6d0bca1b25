"""Has the first pods of a namespace in a target wait until its Services are there.

A kubelet tells containers of the Services that exist when they start, and programs look up names as
soon as they run. Where a whole namespace moves to another cluster, its first pod would find none.
Later pods do not wait: Services of a namespace that has pods in a target are kept up to date there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, NamedTuple

from vnode.api.errors import VnodeError

TIMEOUT: Final = 10.0
"""Seconds that pods wait at most: a pod may do without a Service, but not without its start."""

log = logging.getLogger(__name__)


class NodeNamespace(NamedTuple):
    """A namespace in the target of a virtual node."""

    namespace: str
    node: str


class FirstPods:
    """Knows for which namespaces of targets somebody has waited.

    `ensure_copies` returns once all Services that are to be there are, and raises VnodeError if
    one cannot.
    """

    def __init__(self, ensure_copies: Callable[[NodeNamespace], Awaitable[None]]) -> None:
        self._ensure_copies = ensure_copies
        # Set once the Services of one were waited for; there is none without pods.
        self._turns: dict[NodeNamespace, asyncio.Event] = {}

    async def wait(self, there: NodeNamespace) -> None:
        """Return once it has its Services, or cannot have them soon."""
        if (turn := self._turns.get(there)) is not None:
            await turn.wait()
            return

        turn = self._turns[there] = asyncio.Event()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(TIMEOUT):
                    await self._ensure_copies(there)
        except VnodeError as error:  # which the follower tells whoever made the Service
            log.debug("%s on %s starts without all Services: %s", *there, error)
        finally:
            turn.set()

    def leave(self, there: NodeNamespace) -> None:
        """Forget one without pods, whose Services go."""
        self._turns.pop(there, None)

    def leave_node(self, node: str) -> None:
        """Forget all of a target that is gone."""
        for there in [there for there in self._turns if there.node == node]:
            self.leave(there)
