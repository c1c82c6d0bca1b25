"""Wakes the Ingresses of namespaces whose pods or Services have changed, a few at a time.

Any Ingress may lead to a Service that has come or gone, and with each goes the Secrets that it
names. A namespace may have a thousand Ingresses of a hundred Secrets, and pods that change all the
time: so they are not woken by whoever hears of a change, but here, in slices, and once for all that
has changed meanwhile. Namespaces take turns.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from vnode.following.reference_index import Key
from vnode.following.references import Ref

SLICE: Final = 500  # keys that are woken of a namespace until others have their turn


class StaleIngresses:
    """Calls `wake` for what `ingresses_of` returns for a namespace, in the targets asked for."""

    def __init__(
        self, ingresses_of: Callable[[str], Iterable[Ref]], wake: Callable[[Key], None]
    ) -> None:
        self._ingresses_of = ingresses_of
        self._wake = wake
        self._stale: dict[str, set[str]] = {}  # namespace -> virtual nodes; none empty
        self._under_way: dict[str, Iterator[Key]] = {}  # what is left of each namespace
        self._added = asyncio.Event()

    def add(self, namespace: str, nodes: Iterable[str]) -> None:
        """Have the Ingresses of a namespace woken in those targets, soon."""
        if nodes := set(nodes):
            self._stale.setdefault(namespace, set()).update(nodes)
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
        """Wake some of the namespace whose turn it is; return whether there are more."""
        self._begin()
        namespace = next(iter(self._under_way), None)
        if namespace is not None:
            keys, woken = self._under_way.pop(namespace), 0
            for key in itertools.islice(keys, SLICE):
                self._wake(key)
                woken += 1

            if woken == SLICE:
                self._under_way[namespace] = keys  # behind the others

        return bool(self._stale or self._under_way)

    def _begin(self) -> None:
        """Begin with namespaces that are stale, but not again with those that are under way."""
        for namespace in self._stale.keys() - self._under_way.keys():
            self._under_way[namespace] = self._keys(namespace, self._stale.pop(namespace))

    def _keys(self, namespace: str, nodes: set[str]) -> Iterator[Key]:
        for ref in self._ingresses_of(namespace):
            for node in nodes:
                yield Key(node, ref)
