"""Remembers which candidates of a target were allowed by message, until that has had an effect.

What was told shows on the chaperons of the link as if it had been written. It is taken back if the
target does not report in time that the delegate was bound, or if the stream ends; then whoever
allows candidates finds one that is not allowed, and is told to write it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from vnode.api import keys, objects, permissions
from vnode.api.clock import Clock
from vnode.kube.informer import Informer
from vnode.pods.stream_messages import CandidateName

SLOW: Final = 6.0
"""Seconds after which a permission is written: a target reports after three that a pod is bound."""


class ToldPermissions:
    """Keeps what was told about chaperons of one link; `expect` takes back what had no effect."""

    def __init__(self, chaperons: Informer, clock: Clock) -> None:
        self._chaperons = chaperons
        self._clock = clock
        # Oldest first, with the moment (monotonic) at which the effect must show.
        self._told: deque[tuple[float, CandidateName]] = deque()
        self._has_told = asyncio.Event()  # set while `_told` has some
        self._in_vain: set[str] = set()  # UIDs; they go with their chaperons

    def was_in_vain(self, name: CandidateName) -> bool:
        """Tell whether a candidate was allowed by message, and nothing came of it."""
        return name.uid in self._in_vain

    def add(self, name: CandidateName) -> None:
        """Note that a candidate is being allowed by message."""
        self._told.append((self._clock.monotonic() + SLOW, name))
        self._has_told.set()
        self._chaperons.assume(name.key, name.uid, keys.IS_ALLOWED, "true")

    def forget(self, uid: str) -> None:
        """Forget a chaperon that is gone."""
        self._in_vain.discard(uid)

    def give_up(self) -> None:
        """Take back all of which no effect shows yet."""
        while self._told:
            self._settle(self._told.popleft()[1])

        self._has_told.clear()

    async def expect(self) -> None:
        """Take back what had no effect in time, until cancelled."""
        while True:
            await self._has_told.wait()
            left = self._told[0][0] - self._clock.monotonic()
            if left > 0:
                await self._clock.sleep(left)
                continue

            self._settle(self._told.popleft()[1])
            if not self._told:
                self._has_told.clear()

    def _settle(self, name: CandidateName) -> None:
        chaperon = self._chaperons.store.get(name.key)
        if chaperon is None or objects.uid(chaperon) != name.uid:
            return

        if not permissions.was_bound(chaperon):
            self._in_vain.add(name.uid)
            self._chaperons.restore(name.key, name.uid, keys.IS_ALLOWED)
