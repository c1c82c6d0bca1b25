"""Keeps callbacks, and forgets those of a leader when its term ends.

Most listeners stay for as long as what they listen to. What a leader adds must not: its term ends
with its Lease, while the informers and links that it followed go on for everybody else. So a
listener that is added within a `subscription_scope` is gone at its end, as tasks are at the end of
their group. Tasks that are started within it belong to it, and so does a listener that another one
of it adds when it is called, by whomever: the scope travels in a context variable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Generic, ParamSpec
from weakref import WeakSet

P = ParamSpec("P")


class _Scope:
    """The lists that got a listener; others own them and may drop them earlier, hence weakly."""

    def __init__(self) -> None:
        self.over = False
        self.lists: WeakSet[Listeners[Any]] = WeakSet()


_present: Final[ContextVar[_Scope | None]] = ContextVar("scope", default=None)


@contextmanager
def subscription_scope() -> Iterator[None]:
    """Forget the listeners that are added inside, at the end of the block or later on."""
    this = _Scope()
    token = _present.set(this)
    try:
        yield
    finally:
        _present.reset(token)
        this.over = True
        for each in list(this.lists):
            each.forget_over()


class _Entry(Generic[P]):
    """A listener that is called in its own scope, whoever calls it."""

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
    """Callbacks, in the order of their addition; they must not await."""

    def __init__(self) -> None:
        self._entries: tuple[_Entry[P], ...] = ()  # replaced, never changed: it may be walked

    def __iter__(self) -> Iterator[Callable[P, None]]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, listener: Callable[P, None]) -> None:
        """Call a listener until the present scope ends, if there is one; never if it has ended."""
        present = _present.get()
        if present is not None:
            if present.over:
                return

            present.lists.add(self)

        self._entries = (*self._entries, _Entry(listener, present))

    def call(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call all listeners that there are now."""
        for entry in self._entries:
            entry(*args, **kwargs)

    def forget_over(self) -> None:
        """Drop the listeners whose scope has ended."""
        self._entries = tuple(
            entry for entry in self._entries if entry.scope is None or not entry.scope.over
        )
