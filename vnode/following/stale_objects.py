"""Wakes what follows of namespaces whose pods or Services have changed, a few at a time.

Any Service may select a pod that has changed, any Ingress may lead to a Service that has come or
gone, and with each goes the Secrets that it names. A namespace may have thousands of each, and pods
that change all the time: so they are not woken by whoever hears of a change, but here, in slices,
and once for all that has changed meanwhile. Namespaces take turns, each of a few milliseconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from vnode.api.clock import Clock
from vnode.api.slices import Slices
from vnode.following.pod_index import IndexedPod
from vnode.following.reference_index import Key

SLICE: Final = 200  # objects that are looked at of a namespace until others have their turn
PODS: Final = 32  # sets of labels that Services are compared with; beyond, all are woken


@dataclass(slots=True)
class StaleParts:
    """What has changed in a namespace, by virtual nodes."""

    nodes: set[str] = field(default_factory=set)
    """Where Ingresses, or objects of other kinds, are stale."""
    services: set[str] = field(default_factory=set)
    """Where all Services are."""
    pods: dict[frozenset[tuple[str, str]], set[str]] = field(default_factory=dict)
    """By the labels of a pod: where the Services that select it are."""

    def add(self, nodes: set[str], pod: IndexedPod | None, services: bool) -> None:
        """Take note of a change."""
        self.nodes |= nodes
        if pod is None:
            self.services |= nodes if services else set()
            return

        self.pods.setdefault(frozenset(pod.labels.items()), set()).update(nodes)
        if len(self.pods) > PODS:
            self.services.update(*self.pods.values())
            self.pods.clear()

    def nodes_of(self, selector: dict[str, str]) -> set[str]:
        """Return where a Service with that selector is stale."""
        wanted, found = selector.items(), set(self.services)
        for labels, nodes in self.pods.items() if selector else ():
            if labels.issuperset(wanted):
                found |= nodes

        return found


class StaleObjects:
    """Calls `wake` for the keys that `keys_of` yields for a namespace and what is stale there.

    `keys_of` yields None for an object that it has looked at and that is not stale.
    """

    def __init__(
        self,
        keys_of: Callable[[str, StaleParts], Iterator[Key | None]],
        wake: Callable[[Key], None],
        clock: Clock,
    ) -> None:
        self._keys_of = keys_of
        self._wake = wake
        self._clock = clock
        self._stale: dict[str, StaleParts] = {}
        self._under_way: dict[str, Iterator[Key | None]] = {}  # what is left of each namespace
        self._added = asyncio.Event()

    def add(
        self,
        namespace: str,
        nodes: Iterable[str],
        *,
        pod: IndexedPod | None = None,
        services: bool = False,
    ) -> None:
        """Have the Ingresses of a namespace woken in those targets, soon.

        With them all Services, or those that select a pod.
        """
        if nodes := set(nodes):
            self._stale.setdefault(namespace, StaleParts()).add(nodes, pod, services)
            self._added.set()

    async def run(self) -> None:
        """Wake them until cancelled."""
        while True:
            await self._added.wait()
            self._added.clear()
            if self.step():
                self._added.set()
                await asyncio.sleep(0)

    def step(self) -> bool:
        """Look at some of the namespace whose turn it is; return whether there are more."""
        self._begin()
        namespace = next(iter(self._under_way), None)
        if namespace is not None:
            keys = self._under_way.pop(namespace)
            if self._look_at_some(keys):
                self._under_way[namespace] = keys  # behind the others

        return bool(self._stale or self._under_way)

    def _look_at_some(self, keys: Iterator[Key | None]) -> bool:
        """Return whether there may be more."""
        slices = Slices(self._clock)
        for seen, key in enumerate(keys, start=1):
            if key is not None:
                self._wake(key)

            if seen == SLICE or slices.is_over:
                return True

        return False

    def _begin(self) -> None:
        """Begin with namespaces that are stale, but not again with those that are under way."""
        for namespace in self._stale.keys() - self._under_way.keys():
            self._under_way[namespace] = self._keys_of(namespace, self._stale.pop(namespace))
