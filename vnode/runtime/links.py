"""Holds the live connections to targets, as all packages but `vnode.targets` see them.

`vnode.targets` adds a Link for each Target that can work, and removes it; virtual nodes, pods and
the kubelet API find it here. A changed Target, or another user in its Secret, is a new Link in
place of the old one; code that keeps state per link uses `subscribe`. A new token of the same
account, and another address of the same cluster, are taken over by the link's client.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from vnode.api import objects
from vnode.api.listeners import Listeners
from vnode.api.objects import Object
from vnode.runtime.link import Link


class Links:
    """Holds all links, by the name of their virtual node."""

    def __init__(self) -> None:
        self._links: dict[str, Link] = {}
        # Namespace, "" for ClusterTargets -> the number of each of its links, by which the order
        # among all is known; no empty dicts.
        self._covering: dict[str, dict[Link, int]] = {}
        self._numbers = itertools.count()
        self._added: Listeners[Link] = Listeners()
        self._removed: Listeners[Link] = Listeners()

    def __iter__(self) -> Iterator[Link]:
        return iter(list(self._links.values()))

    def __len__(self) -> int:
        return len(self._links)

    def get(self, node_name: str) -> Link | None:
        """Return the link of a virtual node, or None."""
        return self._links.get(node_name)

    def covering(self, namespace: str) -> list[Link]:
        """Return the links that pods of that namespace may use, in the order in which they came.

        It is asked for each change of a pod, while hundreds of others have Targets of their own.
        """
        found = self._covering.get("", {})
        if own := self._covering.get(namespace, {}) if namespace else {}:
            found = found | own

        return sorted(found, key=found.__getitem__)

    def candidates_of(self, pod: Object) -> list[tuple[str, float]]:
        """Return the nodes where a proxy pod has a candidate, oldest first.

        With each comes the moment at which it was created, by its target's wall clock.
        """
        key, uid, found = objects.key(pod), objects.uid(pod), []
        for link in self.covering(objects.namespace(pod)):
            candidate = link.candidate(key, uid)
            if candidate is not None and not objects.is_terminating(candidate):
                created = objects.created_at(candidate)
                found.append((link.node_name, created.timestamp() if created else 0.0))

        return sorted(found, key=lambda entry: entry[1])

    def add(self, link: Link) -> None:
        """Add a link; there must be none of its name."""
        self._links[link.node_name] = link
        self._covering.setdefault(link.target.namespace, {})[link] = next(self._numbers)
        self._added.call(link)

    def remove(self, link: Link) -> None:
        """Remove a link; its client is closed afterwards."""
        if self._links.get(link.node_name) is link:
            del self._links[link.node_name]
            namespace = link.target.namespace
            del self._covering[namespace][link]
            if not self._covering[namespace]:
                del self._covering[namespace]

            self._removed.call(link)

    def subscribe(self, added: Callable[[Link], None], removed: Callable[[Link], None]) -> None:
        """Call `added`, also for present links, and `removed`. They must not await."""
        self._added.add(added)
        self._removed.add(removed)
        for link in self:
            added(link)
