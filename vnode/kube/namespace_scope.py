"""Says to which namespaces a client is held, where an agent has rights in those only.

Objects of all namespaces are then those of the named ones, each listed and watched by itself. A
namespace that cannot be read yet, as it does not exist or nobody has given the rights there, keeps
no other waiting. Whoever waits to read it is woken when somebody else could, so that all kinds of
it become known together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from vnode.api.kinds import Kind


class NamespaceScope:
    """The names of the namespaces; none means all that there are."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names = tuple(names)
        self._waiting: dict[str, set[asyncio.Event]] = {name: set() for name in self.names}

    def places(self, kind: Kind, namespace: str | None) -> tuple[str | None, ...]:
        """Return the namespaces to ask for objects of a kind in `namespace`, which is None for all;
        None stands for the whole cluster."""
        if namespace or not kind.namespaced or not self.names:
            return (namespace,)

        return self.names

    def covers(self, namespace: str) -> bool:
        """Tell whether objects of that namespace may be read."""
        return not self.names or namespace in self.names

    @contextmanager
    def waiting(self, namespace: str, wake: asyncio.Event) -> Iterator[None]:
        """Have `retry` set an event, within the block."""
        events = self._waiting[namespace]
        events.add(wake)
        try:
            yield
        finally:
            events.discard(wake)

    def retry(self, namespace: str) -> None:
        """Have a namespace be read again by who waits: it may have come, or rights in it."""
        for wake in self._waiting.get(namespace, ()):
            wake.set()


EVERYTHING = NamespaceScope()
"""Of clients that nothing is kept from."""
