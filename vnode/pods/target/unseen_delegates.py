"""Bounds how many delegates of a namespace wait at once for the first look of their scheduler.

A kube-scheduler looks at one pod after the other, the oldest of a priority first, and a pod that
fits nowhere costs it a write to the API server. So behind the candidates of one namespace those of
all others would wait: 600 that fit nowhere held up each of them for 13 s, where one takes 0.05 s.
Delegates of a namespace are therefore made a few at a time, the next when the scheduler has placed
or refused one, the highest priority first: half as many with each that is refused, twice as many
with each that is placed. What it has refused waits in its own back-off, not here.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable
from typing import Final

from vnode.api import keys, objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.runtime.answer_windows import AnswerWindows
from vnode.telemetry import turn_waits

MOST: Final = 16
"""Delegates of a namespace that wait for the first look at once: 10 ms each, if they are placed."""
FEWEST: Final = 2
"""As many where they are refused: 80 ms each on a busy machine."""
LONGEST: Final = 5.0
"""Seconds that one counts: a scheduler that does not run, or is silent, stops nobody for good."""

WORK: Final = "delegates"

_GATED: Final = "SchedulingGated"


class UnseenDelegates:
    """Says which chaperons may have their delegates made.

    `wake` is called with the key of a chaperon that was told to wait, once its turn has come.
    """

    def __init__(self, wake: Callable[[str], None], clock: Clock) -> None:
        self._wake = wake
        self._clock = clock
        self._waits = turn_waits.of(WORK)
        self._order = itertools.count()
        # By namespace, then by key, those that count, and what ends that. No inner one is empty.
        self._unseen: dict[str, dict[str, asyncio.TimerHandle]] = {}
        # By namespace, for as long as one counts. Where a key waits, no fewer count.
        self._windows: AnswerWindows[str] = AnswerWindows(MOST, FEWEST, MOST)
        self._since: dict[str, float] = {}  # by key that waits: when it asked first, monotonic
        # By namespace, the keys that wait, and some that no longer do, each with what comes first.
        self._waiting: dict[str, list[tuple[int, int, str]]] = {}  # no heap is empty

    def admits(self, chaperon: Object) -> bool:
        """Tell whether the delegate may be made now; if so, it counts until `settle`."""
        key, namespace = objects.key(chaperon), objects.namespace(chaperon)
        unseen = self._unseen.get(namespace, {})
        if key in unseen:
            return True

        if len(unseen) < self._windows.of(namespace):
            self._count(key, namespace)
            return True

        if key not in self._since:
            self._since[key] = self._clock.monotonic()
            priority = objects.priority(chaperon)
            heap = self._waiting.setdefault(namespace, [])
            heapq.heappush(heap, (-priority, next(self._order), key))

        return False

    def note_chaperon(self, chaperon: Object) -> None:
        """Note a chaperon as it is now: the scheduler has placed one that is reserved."""
        key = objects.key(chaperon)
        if keys.IS_RESERVED in objects.annotations(chaperon):
            self._see(key, is_placed=True)
        elif objects.is_terminating(chaperon):
            self.forget(key)

    def note_delegate(self, key: str, pod: Object | None) -> None:
        """Note a delegate as it is now; None if it is gone."""
        if pod is None or objects.is_terminating(pod):
            self.settle(key)
        elif objects.node_name(pod):
            self._see(key, is_placed=True)
        elif (condition := objects.condition(pod, "PodScheduled")) is not None:
            if condition.get("reason") == _GATED:  # no scheduler looks at it
                self.settle(key)
            else:
                self._see(key, is_placed=False)

    def forget(self, key: str) -> None:
        """Forget a chaperon that is gone, or needs no delegate any more."""
        self._since.pop(key, None)
        self.settle(key)

    def settle(self, key: str) -> None:
        """Count a delegate no longer, and let the next one of its namespace be made."""
        namespace = objects.key_namespace(key)
        unseen = self._unseen.get(namespace, {})
        if (timer := unseen.pop(key, None)) is None:
            return

        timer.cancel()
        self._let_next(namespace)
        if not unseen:
            del self._unseen[namespace]
            self._windows.forget(namespace)

    def _see(self, key: str, *, is_placed: bool) -> None:
        """Note what the scheduler made of a delegate at its first look."""
        namespace = objects.key_namespace(key)
        if key in self._unseen.get(namespace, {}):
            self._windows.note(namespace, is_good=is_placed)
            self.settle(key)

    def _count(self, key: str, namespace: str) -> None:
        timer = asyncio.get_running_loop().call_later(LONGEST, self.settle, key)
        self._unseen.setdefault(namespace, {})[key] = timer

    def _let_next(self, namespace: str) -> None:
        unseen, limit = self._unseen[namespace], self._windows.of(namespace)
        while len(unseen) < limit and (heap := self._waiting.get(namespace)):
            _priority, _order, key = heapq.heappop(heap)
            if not heap:
                del self._waiting[namespace]

            asked = self._since.pop(key, None)
            if asked is not None:
                self._waits.note(namespace, self._clock.monotonic() - asked)
                self._count(key, namespace)
                self._wake(key)
