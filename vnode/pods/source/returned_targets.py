"""Knows the targets that answer again, and have yet to be told which of their pods are to end.

While a target was out of reach its pods may have been replaced elsewhere. Those that run there
still are told to end before any other pod is sent there, or they would take its place. To have been
told once is enough: a request that fails is tried again, and need not keep others away meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vnode.api.listeners import Listeners
from vnode.runtime.link import Link


class ReturnedTargets:
    """Keeps account of them, by virtual node."""

    def __init__(self) -> None:
        self._lost: set[str] = set()
        self._pending: dict[str, set[str]] = {}  # node -> keys of pods; no empty sets
        self._settled: Listeners[str] = Listeners()

    def __contains__(self, node: object) -> bool:
        return node in self._pending

    def subscribe(self, settled: Callable[[str], None]) -> None:
        """Call `settled` with the node of a target that has been told of all of its pods."""
        self._settled.add(settled)

    def observe(self, link: Link, ending: Callable[[], Iterable[str]]) -> None:
        """Take note of a link's health; `ending` returns the pods on its node that are to end."""
        node = link.node_name
        if not link.answers:
            self._lost.add(node)
        elif node in self._lost:
            self._lost.discard(node)
            if keys := set(ending()):
                self._pending[node] = keys

    def forget(self, node: str) -> None:
        """Forget a target: there is no link to it any more."""
        self._lost.discard(node)
        self._pending.pop(node, None)

    def reconciled(self, key: str) -> None:
        """Take note that a pod was reconciled: its target has been told what to do."""
        for node, keys in list(self._pending.items()):
            keys.discard(key)
            if not keys:
                del self._pending[node]
                self._settled.call(node)
