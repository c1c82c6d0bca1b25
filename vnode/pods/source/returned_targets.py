"""Knows the targets that answer again, and have yet to be told which of their pods are to end.

While a target was out of reach its pods may have been replaced elsewhere. Those that run there
still are told to end before any other pod is sent there, or they would take its place. To have been
told once is enough: a request that fails is tried again, and need not keep others away meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vnode.api.listeners import Listeners
from vnode.runtime.links import Link


class ReturnedTargets:
    """Keeps account of them, by virtual node."""

    def __init__(self) -> None:
        self._lost: set[str] = set()
        self._untold: dict[str, set[str]] = {}  # node -> keys of pods; no empty sets
        self._told: Listeners[str] = Listeners()

    def __contains__(self, node: object) -> bool:
        return node in self._untold

    def subscribe(self, told: Callable[[str], None]) -> None:
        """Call `told` with the node of a target that has been told of all of its pods."""
        self._told.add(told)

    def observe(self, link: Link, ending: Callable[[], Iterable[str]]) -> None:
        """Take note of a link's health; `ending` returns the pods on its node that are to end."""
        node = link.node_name
        if not link.answers:
            self._lost.add(node)
        elif node in self._lost:
            self._lost.discard(node)
            if keys := set(ending()):
                self._untold[node] = keys

    def forget(self, node: str) -> None:
        """Forget a target: there is no link to it any more."""
        self._lost.discard(node)
        self._untold.pop(node, None)

    def told(self, key: str) -> None:
        """Take note that somebody has looked at a pod, and told its target what to do."""
        for node, keys in list(self._untold.items()):
            keys.discard(key)
            if not keys:
                del self._untold[node]
                self._told.call(node)
