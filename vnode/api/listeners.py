"""Keeps callbacks, and drops those of a leader when its term ends.

Most listeners stay for as long as what they listen to. What a leader adds must not: its term ends
with its Lease, while the informers and links that it watched go on for all others. So a listener
that is added within a `subscription_scope` is dropped at its end, as tasks end with their group.
Tasks that are started within it belong to it, and so does a listener that another one of it adds
when it is called, by any caller: the scope travels in a context variable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Generic, ParamSpec
from weakref import WeakSet

P = ParamSpec("P")


class _Scope:
    """The lists that got a listener; others own them and may drop them earlier, hence weak
    references."""

    def __init__(self) -> None:
        self.ended = False
        self.lists: WeakSet[Listeners[Any]] = WeakSet()


_present: Final[ContextVar[_Scope | None]] = ContextVar("scope", default=None)


@contextmanager
def subscription_scope() -> Iterator[None]:
    """Drop the listeners that are added inside, at the end of the block or later on."""
    this = _Scope()
    token = _present.set(this)
    try:
        yield
    finally:
        _present.reset(token)
        this.ended = True
        for listeners in list(this.lists):
            listeners.drop_ended()


class _Entry(Generic[P]):
    """A listener that is called in its own scope, by any caller."""

    __slots__ = ("listener", "scope")

    def __init__(self, listener: Callable[P, None], scope: _Scope | None) -> None:
        self.listener = listener
        self.scope = scope

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        if _present.get() is self.scope:
            self.listener(*args, **kwargs)
            return

        token = _present.set(self.scope)
        try:
            self.listener(*args, **kwargs)
        finally:
            _present.reset(token)


class Listeners(Generic[P]):
    """Callbacks, called in the order in which they were added; they must not await."""

    def __init__(self) -> None:
        # Replaced, never changed: `call` may be iterating.
        self._entries: tuple[_Entry[P], ...] = ()

    def __iter__(self) -> Iterator[Callable[P, None]]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, listener: Callable[P, None]) -> None:
        """Call a listener until the present scope, if any, ends; never if it has ended."""
        present = _present.get()
        if present is not None:
            if present.ended:
                return

            present.lists.add(self)

        self._entries = (*self._entries, _Entry(listener, present))

    def call(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call all listeners that there are now."""
        for entry in self._entries:
            entry(*args, **kwargs)

    def drop_ended(self) -> None:
        """Drop the listeners whose scope has ended."""
        self._entries = tuple(
            entry for entry in self._entries if entry.scope is None or not entry.scope.ended
        )
