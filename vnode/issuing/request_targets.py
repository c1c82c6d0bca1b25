"""Finds the Target that a request means, and the requests that mean a Target.

A request names a Target, a ClusterTarget or a ClusterProfile, and any of these may come later, go,
or be another one by then. What was made in a cluster is ended there, so the last Target by which a
request was carried out counts when the one that it means is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from vnode.api import objects
from vnode.api.objects import Object, Objects
from vnode.api.target_key import TargetKey
from vnode.issuing import request as requests
from vnode.issuing.request import ClusterReference
from vnode.issuing.state import IssueState
from vnode.kube.informer import Informer
from vnode.targets.target_lister import TargetLister

CLUSTER_INDEX: Final = "cluster"
"""Of requests, by `request.cluster_index`."""


class RequestTargets:
    """Finds both; `states` are of the requests that exist, by key, and the caller's own."""

    def __init__(
        self,
        stored: Informer,
        targets: TargetLister,
        states: Mapping[str, IssueState],
        longest: int,
    ) -> None:
        self._stored = stored
        self._targets = targets
        self._states = states
        self._longest = longest
        # Node -> keys of requests that were carried out by its Target, or were before; none empty.
        self._carried_out: dict[str, dict[str, None]] = {}
        self._nodes: dict[str, str] = {}  # of those, by key

    def note(self, key: str, node: str) -> None:
        """Take by which node's Target a request is carried out from now on; "" for none."""
        before = self._nodes.pop(key, "")
        if before:
            del self._carried_out[before][key]
            if not self._carried_out[before]:
                del self._carried_out[before]

        if node:
            self._nodes[key] = node
            self._carried_out.setdefault(node, {})[key] = None

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

    def last_node(self, obj: Object) -> str:
        """Return the virtual node of a request's Target that is gone; "" if that is not known."""
        state = self._states.get(objects.key(obj))
        if state is not None and state.node and state.uid == objects.uid(obj):
            return state.node

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
            if (self.last_node(obj) if node is None else node) == node_name:
                return True

        return False
