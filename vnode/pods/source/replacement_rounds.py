"""Finds which ending pods of an owner wait for replacements: once for all of them, in rounds.

An owner may have thousands of pods, which end together when their cluster is lost, and each that
comes or becomes ready changes for how many others are waited. So a pod that asks is answered by
what the last round has found, and a change has nobody asked again but those for whom the answer is
another one. Rounds have slices, and a quarter of the time at most.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from vnode.api import objects
from vnode.api.clock import Clock, happens_within
from vnode.api.durations import TICK
from vnode.api.objects import Object
from vnode.api.owners import OwnerKey, owner_key
from vnode.api.slices import in_slices
from vnode.kube.informer import Informer
from vnode.planning.failover import EndingPod, LivePod, awaiting
from vnode.pods.source import proxy_state
from vnode.runtime.rounds import WorkRounds

ASK_AGAIN: Final = 10.0
"""Seconds after which a pod that has no answer yet asks again; it is woken before."""


@dataclass(slots=True)
class _Awaited:
    """What the last round has found for one owner."""

    waiting: frozenset[str] = frozenset()
    asked: dict[str, str] = field(default_factory=dict)  # UID -> key: the ending pods that serve
    until: float = math.inf  # wall clock: when it may change though no pod does


class ReplacementRounds:
    """Runs in the leader. `ending` tells of a pod that ends what is known of it; None if it is not
    one that may wait. `living` tells of another one. `wake` is called with the key of a pod for
    which there is another answer.
    """

    def __init__(
        self,
        proxies: Informer,
        clock: Clock,
        *,
        ending: Callable[[Object], EndingPod | None],
        living: Callable[[Object], LivePod],
        wake: Callable[[str], None],
    ) -> None:
        self._proxies = proxies
        self._clock = clock
        self._ending = ending
        self._living = living
        self._wake = wake
        # Owners of whose pods one has asked, and is there.
        self._found: dict[OwnerKey, _Awaited] = {}
        self._stale: dict[OwnerKey, None] = {}  # those to look at in the next round
        self._rounds = WorkRounds(self._look, clock)
        self._changed = asyncio.Event()  # something was found

    async def run(self) -> None:
        """Look at what has changed, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._rounds.run(), name="replacement-rounds")
            group.create_task(self._look_in_time(), name="late-replacements")

    def waits(self, pod: Object) -> bool | None:
        """Tell whether a pod that serves waits; None if nobody knows yet, and it will be woken."""
        owner = owner_key(pod)
        if owner is None:
            return False

        found = self._found.setdefault(owner, _Awaited())
        if objects.uid(pod) in found.asked:
            return objects.uid(pod) in found.waiting

        self.look_at(owner)
        return None

    def look_at(self, owner: OwnerKey | None) -> None:
        """Look at an owner's pods soon, if one of them has asked."""
        if owner in self._found:
            self._stale[owner] = None
            self._rounds.ask()

    def forget(self, pod: Object) -> None:
        """Forget a pod that is gone."""
        owner = owner_key(pod)
        found = self._found.get(owner) if owner else None
        if owner is not None and found is not None:
            found.asked.pop(objects.uid(pod), None)
            if not found.asked:
                self.look_at(owner)  # a round forgets it, if no other pod has asked meanwhile

    async def _look(self) -> None:
        stale, self._stale = self._stale, {}
        for owner in stale:
            await self._look_at(owner)

    async def _look_at(self, owner: OwnerKey) -> None:
        """Find who of an owner's pods waits, and wake those who do not know it."""
        ending, living, keys = list[EndingPod](), list[LivePod](), dict[str, str]()
        pods = self._proxies.store.by_index(proxy_state.CONTROLLER_INDEX, owner)
        async for pod in in_slices(pods, self._clock):
            if not objects.is_terminating(pod):
                if not objects.is_finished(pod):
                    living.append(self._living(pod))
            elif (known := self._ending(pod)) is not None:
                ending.append(known)
                if known.serves:
                    keys[known.uid] = objects.key(pod)

        now = self._clock.now().timestamp()
        waiting, seconds = awaiting(ending, living, now)
        before, present = self._found.pop(owner, _Awaited()), self._proxies.store.get
        asked = {uid: key for uid, key in keys.items() if objects.uid(present(key) or {}) == uid}
        if asked or owner in self._stale:
            until = now + seconds if seconds is not None else math.inf
            self._found[owner] = _Awaited(waiting, asked, until)
            self._changed.set()

        async for uid, key in in_slices(asked.items(), self._clock):
            if uid not in before.asked or (uid in before.waiting) != (uid in waiting):
                self._wake(key)

    async def _look_in_time(self) -> None:
        """Look at owners again when the answer may change though no pod does."""
        while True:
            self._changed.clear()
            until = min((found.until for found in self._found.values()), default=math.inf)
            left = max(TICK, until - self._clock.now().timestamp())
            if await happens_within(self._changed, left if left < math.inf else None):
                continue

            now = self._clock.now().timestamp()
            for owner, found in self._found.items():
                if found.until <= now:
                    found.until = math.inf
                    self.look_at(owner)
