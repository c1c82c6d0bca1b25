"""Checks that extreme, but valid objects of one tenant do not make an event of anybody longer.

A scenario is measured with some hostile objects and with four times as many. Counted are the
lines and calls that the longest part of a step takes that is without a pause, which are as many on
any machine; C code that walks a list is not seen. When the objects have gone, all caches and
indexes are empty. A new way for one tenant to hold up others is a new scenario, in the
`test_one_tenants_*.py` beside the tests of what it holds up.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Iterator, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from vnode.api.clock import Clock
from vnode.api.errors import ConfigError

SIZES: Final = (600, 2_400)
GROWTH: Final = 1.3  # of what four times as many objects may cost more
LEEWAY: Final = 400  # operations, for what begins only beyond a bound


@dataclass
class TenantScenario:
    """Hostile objects: what is measured beside them, how they go, and what is left then."""

    step: Callable[[], Coroutine[Any, Any, Any] | Any]
    remove: Callable[[], Any]
    kept: Callable[[], int]


class Operations:
    """Counts what Python does between pauses."""

    def __init__(self) -> None:
        self._now = self.longest = 0

    def pause(self) -> None:
        """Begin to count anew."""
        self.longest, self._now = max(self.longest, self._now), 0

    def _trace(self, *_event: Any) -> Any:
        self._now += 1
        return self._trace

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count what is done within."""
        before = sys.gettrace()
        sys.settrace(self._trace)
        try:
            yield
        finally:
            sys.settrace(before)
            self.pause()


class Pause:
    """Awaited where the event loop gets its turn."""

    def __await__(self) -> Iterator[None]:
        yield


def measured(step: Callable[[], Any]) -> int:
    """Return how much the longest part of a step takes that is without a pause."""
    operations = Operations()
    with operations.counted():
        running = step()
        while hasattr(running, "send"):
            try:
                running.send(None)
            except (StopIteration, ConfigError):
                break

            operations.pause()

    return operations.longest


def sizes(*kept: Sized) -> int:
    return sum(len(each) for each in kept)


def check(scenario: Callable[[int, Clock], TenantScenario], clock: Clock) -> None:
    """Check that more objects make no step of a scenario longer, and that nothing is left."""
    costs = []
    for size in SIZES:
        given = scenario(size, clock)
        costs.append(max(measured(given.step) for _ in range(2)))  # of news, and of what is known
        given.remove()
        assert given.kept() == 0

    few, many = costs
    assert 0 < many <= GROWTH * few + LEEWAY, costs
