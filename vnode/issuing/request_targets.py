"""Finds the Target that a request means, and the requests that mean a Target.

A request names a Target, a ClusterTarget or a ClusterProfile, and any of these may come later, go,
or be another one by then. What was made in a cluster is ended there, so the last Target by which a
request was carried out counts when the one that it means is gone.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from vnode.api import objects
from vnode.api.objects import Object, Objects
from vnode.api.target_key import TargetKey
from vnode.issuing import request as requests
from vnode.issuing.attempt import IssuePlace
from vnode.issuing.leaving import LeavingLinks
from vnode.issuing.request import ClusterReference
from vnode.kube.informer import Informer
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.targets.target_lister import TargetLister

CLUSTER_INDEX: Final = "cluster"
"""Of requests, by `request.cluster_index`."""


class _CarriedOut(NamedTuple):
    """By which node's Target a request is carried out, or was last."""

    uid: str  # of the request
    node: str


class RequestTargets:
    """Finds both, and the links by which requests are carried out."""

    def __init__(self, stored: Informer, targets: TargetLister, links: Links, longest: int) -> None:
        self._stored = stored
        self._targets = targets
        self._links = links
        self._leaving = LeavingLinks()
        self._longest = longest
        # Node -> keys of requests that were carried out by its Target, or were before; none empty.
        self._carried_out: dict[str, dict[str, None]] = {}
        self._last: dict[str, _CarriedOut] = {}  # of those, by key

    def place(self, obj: Object) -> IssuePlace:
        """Return where a request is to be carried out, from now on."""
        node = self.node_of(obj)
        last = self._last_node(obj) if node is None else node
        self.note(obj, last)
        return IssuePlace(node is not None, self._links.get(last) or self._leaving.get(last))

    def note(self, obj: Object, node: str) -> None:
        """Take by which node's Target a request is carried out from now on; "" for none."""
        key = objects.key(obj)
        self.forget(key)
        if node:
            self._last[key] = _CarriedOut(objects.uid(obj), node)
            self._carried_out.setdefault(node, {})[key] = None

    def forget(self, key: str) -> None:
        """Drop what is known of a request that is gone."""
        if (before := self._last.pop(key, None)) is not None:
            del self._carried_out[before.node][key]
            if not self._carried_out[before.node]:
                del self._carried_out[before.node]

    def hold(self, link: Link) -> None:
        """Keep a link that leaves, if a request is, or was, carried out by it."""
        if link.leaves and self.are_any_for(self.requests_of(link.target), link.node_name):
            self._leaving.hold(link)

    def close(self) -> None:
        """Let go of the links that leave."""
        self._leaving.close()

    def requests_of(self, target: TargetKey) -> Objects:
        """Return the requests for a Target, which may be gone, and those carried out by it."""
        found = self._targets.get(target) or {
            "metadata": {"namespace": target.namespace, "name": target.name}
        }
        return self.requests_for(found)

    def requests_for(self, target: Object) -> Objects:
        """Return the requests for a Target, and those that were carried out in its cluster."""
        namespace, store = objects.namespace(target), self._stored.store
        node = TargetKey(namespace, objects.name(target)).node_name
        found = {key: store.get(key) for key in self._carried_out.get(node, ())}
        for reference in requests.references_to(target):
            for obj in store.by_index(CLUSTER_INDEX, reference):
                if namespace in ("", objects.namespace(obj)):
                    found[objects.key(obj)] = obj

        return [obj for _, obj in sorted(found.items()) if obj is not None]

    def node_of(self, obj: Object) -> str | None:
        """Return the virtual node of the Target that a request means; None if there is none."""
        return self._node(requests.decode(obj, self._longest).cluster, objects.namespace(obj))

    def _node(self, cluster: ClusterReference, namespace: str) -> str | None:
        if (named := requests.named_target(cluster)) is not None:
            target = self._targets.get(named)
        else:
            profile = objects.join_key(cluster.namespace, cluster.name)
            target = self._targets.of_profile(profile, namespace)

        found = requests.find_target(cluster, namespace, [target] if target is not None else ())
        return found.node_name if found is not None else None

    def _last_node(self, obj: Object) -> str:
        """Return the virtual node of a request's Target that is gone; "" if that is not known."""
        last = self._last.get(objects.key(obj))
        if last is not None and last.uid == objects.uid(obj):
            return last.node

        named = requests.named_target(requests.decode(obj, self._longest).cluster)
        return named.node_name if named is not None else ""

    def are_any_for(self, found: Objects, node_name: str) -> bool:
        """Tell whether one of these requests is, or was, carried out by the Target of that node.

        Most name the same, which is looked up once.
        """
        nodes: dict[tuple[ClusterReference, str], str | None] = {}
        for obj in found:
            key = requests.decode(obj, self._longest).cluster, objects.namespace(obj)
            if key not in nodes:
                nodes[key] = self._node(*key)

            node = nodes[key]
            if (self._last_node(obj) if node is None else node) == node_name:
                return True

        return False
