"""Has a few targets connect at once, so that the first are of use while others wait.

To connect takes some 0.2 s of processors, of ours and the target's: handshakes, and lists of all
that is there. An agent that began with a hundred targets made all links at the same time, and so
none of them was of use before all were, twenty seconds later. Now the next begins when one is of
use, or has taken its time: whoever does not answer has nobody wait for longer.

Namespaces take turns. A ClusterTarget is for all of them: it has a turn of its own, before those of
namespaces that wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from vnode.api.target_key import TargetKey
from vnode.runtime.fair_slots import FairSlots

AT_ONCE: Final = 10
"""Targets that connect at once."""
PATIENCE: Final = 3.0
"""Seconds after which the next one begins: ten targets take two of a core that they have alone."""


class ConnectionTurns:
    """Says when a connection may begin."""

    def __init__(self) -> None:
        self._slots: FairSlots[str | TargetKey] = FairSlots(AT_ONCE)

    @asynccontextmanager
    async def take(self, key: TargetKey) -> AsyncIterator[Callable[[], None]]:
        """Wait for the turn of a target; yield what ends it, as the end of the block does.

        A turn ends by itself after some time, whatever goes on in the block.
        """
        lane = key.namespace or key
        await self._slots.acquire(lane, rank=1 if key.namespace else 0)
        self._slots.pay(lane, 1.0)
        turn = _Turn(self._slots.release)
        timer = asyncio.get_running_loop().call_later(PATIENCE, turn.end)
        try:
            yield turn.end
        finally:
            timer.cancel()
            turn.end()


class _Turn:
    """Gives a slot back once."""

    def __init__(self, release: Callable[[], None]) -> None:
        self._release: Callable[[], None] | None = release

    def end(self) -> None:
        """End the turn, if it has not ended."""
        release, self._release = self._release, None
        if release is not None:
            release()
