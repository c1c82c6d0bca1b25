"""Remembers which candidates of a target were allowed by message, until that has had an effect.

What was told shows on the chaperons of the link as if it had been written. It is taken back if the
target neither confirms it in time nor reports that the delegate was bound, or if the stream ends
before that report; then whoever allows candidates finds one that is not allowed, and is told to
write it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Final

from vnode.api import keys, objects, permissions
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.kube.informer import Informer
from vnode.pods.stream_messages import CandidateName

SLOW: Final = 6.0
"""Seconds until a permission is confirmed; else it is written."""


class ToldPermissions:
    """Keeps what was told about chaperons of one link; `expect` takes back what had no effect."""

    def __init__(self, chaperons: Informer, clock: Clock) -> None:
        self._chaperons = chaperons
        self._clock = clock
        # Oldest first, with the moment (monotonic) at which the effect must show.
        self._told: deque[tuple[float, CandidateName]] = deque()
        self._has_told = asyncio.Event()  # set while `_told` has some
        self._in_vain: set[str] = set()  # UIDs; they go with their chaperons
        # By UID, those of which it shows nowhere yet that the delegate was bound.
        self._confirmed: dict[str, CandidateName] = {}

    def was_in_vain(self, name: CandidateName) -> bool:
        """Tell whether a candidate was allowed by message, and nothing came of it."""
        return name.uid in self._in_vain

    def add(self, name: CandidateName) -> None:
        """Note that a candidate is being allowed by message."""
        self._told.append((self._clock.monotonic() + SLOW, name))
        self._has_told.set()
        self._chaperons.assume(name.key, name.uid, keys.IS_ALLOWED, "true")

    def confirm(self, name: CandidateName) -> None:
        """Note that the target knows that a candidate may run, but for what nobody has told it."""
        if self._chaperons.is_assumed(name.uid, keys.IS_ALLOWED):
            self._confirmed[name.uid] = name

    def note(self, chaperon: Object) -> None:
        """Note a chaperon as it is now."""
        if objects.uid(chaperon) in self._confirmed and permissions.was_bound(chaperon):
            del self._confirmed[objects.uid(chaperon)]

    def forget(self, uid: str) -> None:
        """Forget a chaperon that is gone."""
        self._in_vain.discard(uid)
        self._confirmed.pop(uid, None)

    def give_up(self) -> Iterator[None]:
        """Take back all of which no effect shows yet, little by little as this is iterated over.

        What is told from now on is left alone.
        """
        names = [*(name for _, name in self._told), *self._confirmed.values()]
        self._told.clear()
        self._has_told.clear()
        self._confirmed.clear()

        def settle() -> Iterator[None]:
            for name in names:
                self._settle(name)
                yield

        return settle()

    async def expect(self) -> None:
        """Take back what had no effect in time, until cancelled."""
        while True:
            await self._has_told.wait()
            left = self._told[0][0] - self._clock.monotonic()
            if left > 0:
                await self._clock.sleep(left)
                continue

            _, name = self._told.popleft()
            if name.uid not in self._confirmed:
                self._settle(name)

            if not self._told:
                self._has_told.clear()

    def _settle(self, name: CandidateName) -> None:
        chaperon = self._chaperons.store.get(name.key)
        if chaperon is None or objects.uid(chaperon) != name.uid:
            return

        if not permissions.was_bound(chaperon):
            self._in_vain.add(name.uid)
            self._chaperons.restore(name.key, name.uid, keys.IS_ALLOWED)
