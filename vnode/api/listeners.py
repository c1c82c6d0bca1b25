"""Who hears of changes, and for how long.

Most listeners stay for as long as what they listen to. What a leader adds must not: its term ends
with its Lease, while the informers and links that it followed go on for everybody else. So what is
added within a `period` is gone at its end, as tasks are at the end of their group. Tasks that are
started within it belong to it, and so does what one of its listeners adds when it is called, by
whomever: the period travels in a context variable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Generic, ParamSpec
from weakref import WeakSet

P = ParamSpec("P")


class _Period:
    """What was added to belongs to others, and may go before the period ends: hence weakly."""

    def __init__(self) -> None:
        self.over = False
        self.lists: WeakSet[Listeners[Any]] = WeakSet()


_present: Final[ContextVar[_Period | None]] = ContextVar("period", default=None)


@contextmanager
def period() -> Iterator[None]:
    """Listeners that are added from inside are forgotten at the end of the block, or later on."""
    this = _Period()
    token = _present.set(this)
    try:
        yield
    finally:
        _present.reset(token)
        this.over = True
        for each in list(this.lists):
            each.forget_over()


class _Entry(Generic[P]):
    """A listener that is called in its own period, whoever calls it."""

    __slots__ = ("listener", "period")

    def __init__(self, listener: Callable[P, None], period: _Period | None) -> None:
        self.listener = listener
        self.period = period

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        if _present.get() is self.period:
            self.listener(*args, **kwargs)
            return

        token = _present.set(self.period)
        try:
            self.listener(*args, **kwargs)
        finally:
            _present.reset(token)


class Listeners(Generic[P]):
    """Callbacks, in the order of their addition; they must not await."""

    def __init__(self) -> None:
        self._entries: tuple[_Entry[P], ...] = ()  # replaced, never changed: it may be walked

    def __iter__(self) -> Iterator[Callable[P, None]]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, listener: Callable[P, None]) -> None:
        """Have it called until the present period ends, if there is one; never if it has ended."""
        present = _present.get()
        if present is not None:
            if present.over:
                return

            present.lists.add(self)

        self._entries = (*self._entries, _Entry(listener, present))

    def call(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call all that there are now."""
        for entry in self._entries:
            entry(*args, **kwargs)

    def forget_over(self) -> None:
        """Drop those whose period is over."""
        self._entries = tuple(
            entry for entry in self._entries if entry.period is None or not entry.period.over
        )
