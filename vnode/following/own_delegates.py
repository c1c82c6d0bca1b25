"""Tells by which labels the delegates of this cluster, and nobody else's, are selected in a target.

Several sources may send pods with the same labels to one namespace. A copy that selects pods there
must not take in those of another source, nor lose any of ours while they run: an upgrade does not
change labels of pods that are there. So it selects by those that all our chaperons of a namespace
have given to their delegates. An earlier vnode gave the name of the cluster and not its UID. A pod
that Admiralty has sent may name no cluster, though `vnode migrate` has named its chaperon.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from vnode.api import keys, objects
from vnode.api.identity import Identity
from vnode.api.listeners import Listeners
from vnode.api.objects import Object
from vnode.following.first_pods import NodeNamespace
from vnode.runtime.link import Link
from vnode.runtime.links import Links

_ORDER: Final = (keys.PARENT_CLUSTER_NAME, keys.PARENT_CLUSTER_UID)
"""Labels by which a source is selected: a delegate that has one has those before it."""


class OwnDelegates:
    """Counts, for each namespace of a target, our delegates that lack a label."""

    def __init__(self, links: Links, identity: Identity) -> None:
        self._links = links
        self._identity = identity
        self._lacking: dict[str, Counter[NodeNamespace]] = {label: Counter() for label in _ORDER}
        self._changed: Listeners[NodeNamespace] = Listeners()

    def open(self) -> None:
        """Begin to count, until the present subscription scope ends."""
        self._links.subscribe(self._on_link, lambda link: self._forget(link.node_name))

    def subscribe(self, listener: Callable[[NodeNamespace], None]) -> None:
        """Call `listener`, which must not await, where `labels` has changed.

        That a target has listed our chaperons changes it as well, and is for the caller to notice.
        """
        self._changed.add(listener)

    def labels(
        self, namespace: str, link: Link, present: Mapping[str, str] | None
    ) -> dict[str, str]:
        """Return the labels that all our delegates in a namespace have, and no other source's.

        `present` are those by which a copy selects now, None if there is no copy: they stay until
        it is known whom they would leave out.
        """
        own = self._identity.labels
        if link.synced:
            missing = self._missing(NodeNamespace(namespace, link.node_name))
            return {label: own[label] for label in _ORDER if label not in missing}

        if present is None:
            return {keys.PARENT_CLUSTER_NAME: self._identity.name}

        return {label: own[label] for label in _ORDER if present.get(label) == own[label]}

    def _missing(self, there: NodeNamespace) -> set[str]:
        return {label for label, lacking in self._lacking.items() if lacking[there]}

    def _on_link(self, link: Link) -> None:
        def on_chaperon(old: Object | None, new: Object | None) -> None:
            there = NodeNamespace(objects.namespace(objects.latest(old, new)), link.node_name)
            before = self._missing(there)
            for chaperon, step in ((old, -1), (new, 1)):
                for label in self._lacking_of(chaperon):
                    self._count(label, there, step)

            if self._missing(there) != before:
                self._changed.call(there)

        self._forget(link.node_name)
        link.chaperons.subscribe(on_chaperon)

    def _lacking_of(self, chaperon: Object | None) -> tuple[str, ...]:
        """Return the labels that the delegate of a chaperon may lack; none if it is not ours."""
        if chaperon is None or not self._identity.owns(chaperon):
            return ()

        if keys.PARENT_CLUSTER_UID in objects.labels(chaperon):
            return ()

        is_of_vnode = keys.PARENT_CLUSTER_UID in objects.annotations(chaperon)
        return (keys.PARENT_CLUSTER_UID,) if is_of_vnode else _ORDER

    def _count(self, label: str, there: NodeNamespace, step: int) -> None:
        lacking = self._lacking[label]
        lacking[there] += step
        if not lacking[there]:
            del lacking[there]

    def _forget(self, node: str) -> None:
        for lacking in self._lacking.values():
            for there in [there for there in lacking if there.node == node]:
                del lacking[there]
