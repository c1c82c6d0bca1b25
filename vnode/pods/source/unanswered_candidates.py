"""Bounds how many candidates of a namespace a target has not answered, and how many are in vain.

A candidate that is refused, that is made anew since its pod was changed, or whose pod is deleted
before it has run, costs the target's API server, agent and scheduler as much as one that gets a
place. So 200 pods of one namespace that fit nowhere, created at once, kept all API servers busy for
ten seconds, where pods of others took fifteen times as long to start. Candidates of a namespace are
therefore created in a target a few at a time: half as many with each that is in vain, and those
that are in vain have a rate, a lower one while pods of others get places there. Of a burst of pods
that all get places as many are under way as the target works on, and a few that wait: more would be
no faster, and have whoever comes next wait behind them. While pods of others get places there, one
waits. Nobody waits for a target other than the
own one. Who waits goes by priority.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable
from typing import Final, NamedTuple

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.durations import TICK
from vnode.api.objects import Object
from vnode.api.token_bucket import TokenBucket, TokenBuckets
from vnode.runtime.answer_windows import AnswerWindows
from vnode.runtime.recent_keys import RecentKeys
from vnode.runtime.recent_least import RecentLeast

MOST: Final = 32
"""Candidates of a namespace that a target has not answered, where it answers each as fast."""
WAITING: Final = 4
"""As many of them wait for the target while it answers others."""
SHARED_WAITING: Final = 1
"""The same while pods of other namespaces get places in the target."""
LEAST_FOR: Final = 60.0
"""Seconds, and up to as many more, for which the fastest answer of a target is what one takes."""
FIRST: Final = 8
"""As many before it has answered: all that are under way by then may be in vain."""
SHARED_FIRST: Final = 2
"""The same while pods of other namespaces get places in the target."""
FEWEST: Final = 4
"""As many where they are in vain."""
LONGEST: Final = 5.0
"""Seconds that one counts: a target that is silent stops nobody for good."""
VAIN_AT_ONCE: Final = 10
"""Candidates of a namespace that are in vain in a target before others of it have to wait."""
VAIN_RATE: Final = 5.0
"""Those that are in a second, over time."""
SHARED_VAIN_RATE: Final = 2.0
"""The same while pods of other namespaces get places in the target."""
SHARED_FOR: Final = 10.0
"""Seconds for which that counts."""
MOST_OWED: Final = 3.0
"""Seconds for which the next ones wait at most, however many were in vain."""

Waited = Callable[[str, float], None]
"""Is told of the namespace of each that may begin, and how many seconds it has waited."""


class _Unanswered(NamedTuple):
    since: float  # monotonic
    among: int  # as many of its namespace as there were, with it
    timer: asyncio.TimerHandle  # ends that it counts


_Turn = tuple[int, int, str, asyncio.Future[None]]  # what comes first, the pod's key


class UnansweredCandidates:
    """Says when a candidate may be created in one target. Pods are named by their keys."""

    def __init__(self, clock: Clock, waited: Waited) -> None:
        self._clock = clock
        self._waited = waited
        self._order = itertools.count()
        self._windows: AnswerWindows[str] = AnswerWindows(MOST, FEWEST, FIRST)
        self._vain: TokenBuckets[str] = TokenBuckets(VAIN_AT_ONCE)
        self._placed: RecentKeys[str] = RecentKeys(SHARED_FOR)  # namespaces
        self._least = RecentLeast(LEAST_FOR)  # seconds to a place, of all namespaces
        # By namespace, then by key, those that count. No inner one is empty.
        self._unanswered: dict[str, dict[str, _Unanswered]] = {}
        self._waiting: dict[str, list[_Turn]] = {}  # by namespace; no heap is empty

    async def begin(self, pod: Object) -> None:
        """Wait until a candidate of the pod may be created; it counts until it is answered."""
        key, namespace, asked = objects.key(pod), objects.namespace(pod), self._clock.monotonic()
        if key not in self._unanswered.get(namespace, {}) and self._is_full(namespace):
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            heap = self._waiting.setdefault(namespace, [])
            heapq.heappush(heap, (-objects.priority(pod), next(self._order), key, turn))
            await self._until(turn, key)
        else:
            self._count(key, namespace)

        try:
            await self._pause(namespace)
        except asyncio.CancelledError:
            self.settle(key)
            raise

        self._waited(namespace, self._clock.monotonic() - asked)

    def answer(self, key: str, *, is_placed: bool) -> None:
        """Note what the target makes of a candidate; only its first answer counts."""
        namespace = objects.key_namespace(key)
        if key not in self._unanswered.get(namespace, {}):
            return

        if is_placed:
            now = self._clock.monotonic()
            self._placed.note(namespace, now)
            answered = self._unanswered[namespace][key]
            took = now - answered.since
            least = self._least.note(took, now)
            waiting = SHARED_WAITING if self._is_shared(namespace, now) else WAITING
            self._windows.note_time(namespace, took, least, waiting, answered.among)
        else:
            self.note_vain(namespace)

        self.settle(key)

    def note_vain(self, namespace: str) -> None:
        """Note that a candidate of a namespace was in vain."""
        if namespace in self._unanswered:
            self._windows.note(namespace, is_good=False)

        now = self._clock.monotonic()
        bucket = self._vain_of(namespace, now)
        if bucket.reserve(now, 0.0) < MOST_OWED:
            bucket.reserve(now)

    def settle(self, key: str) -> None:
        """Count a candidate no longer, and let the next of its namespace begin."""
        namespace = objects.key_namespace(key)
        unanswered = self._unanswered.get(namespace, {})
        if (settled := unanswered.pop(key, None)) is None:
            return

        settled.timer.cancel()
        if not unanswered:
            del self._unanswered[namespace]

        self._let_next(namespace)
        if namespace not in self._unanswered:
            self._windows.forget(namespace)

    def _is_full(self, namespace: str) -> bool:
        return len(self._unanswered.get(namespace, ())) >= self._windows.of(namespace)

    def _is_shared(self, namespace: str, now: float) -> bool:
        """Tell whether pods of another namespace got places in the target of late."""
        return self._placed.has_another(namespace, now)

    def _let_next(self, namespace: str) -> None:
        while not self._is_full(namespace) and (heap := self._waiting.get(namespace)):
            _priority, _order, key, turn = heapq.heappop(heap)
            if not heap:
                del self._waiting[namespace]

            if not turn.done():
                self._count(key, namespace)
                turn.set_result(None)

    async def _until(self, turn: asyncio.Future[None], key: str) -> None:
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.settle(key)

            raise

    async def _pause(self, namespace: str) -> None:
        """Wait while more of the namespace were in vain than may be."""
        now = self._clock.monotonic()
        if (wait := self._vain_of(namespace, now).reserve(now, 0.0)) > TICK:
            await self._clock.sleep(min(wait, MOST_OWED))  # more where the rate fell meanwhile

    def _vain_of(self, namespace: str, now: float) -> TokenBucket:
        rate = SHARED_VAIN_RATE if self._is_shared(namespace, now) else VAIN_RATE
        return self._vain.of(namespace, rate, now)

    def _count(self, key: str, namespace: str) -> None:
        now = self._clock.monotonic()
        if namespace not in self._unanswered and self._is_shared(namespace, now):
            self._windows.begin(namespace, SHARED_FIRST)

        unanswered = self._unanswered.setdefault(namespace, {})
        if (earlier := unanswered.get(key)) is not None:
            earlier.timer.cancel()

        timer = asyncio.get_running_loop().call_later(LONGEST, self.settle, key)
        unanswered[key] = _Unanswered(now, len(unanswered) + (earlier is None), timer)
