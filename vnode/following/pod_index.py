"""Indexes proxy pods by namespace: their labels, and the virtual nodes they are on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set
from typing import NamedTuple

from vnode.api import objects
from vnode.api.objects import Object


class IndexedPod(NamedTuple):
    """What the index keeps of a pod."""

    labels: dict[str, str]
    node: str  # "" while pending


class PodIndex:
    """Kept up to date by `on_pod`. Finished pods are left out, since they are behind no Service."""

    def __init__(self) -> None:
        # By namespace: the pods by key, and how many are on each node; nothing empty, no zeros.
        self._pods: dict[str, dict[str, IndexedPod]] = {}
        self._nodes: dict[str, Counter[str]] = {}
        # By namespace and label: keys of the pods that have it; none empty.
        self._labelled: dict[tuple[str, str, str], dict[str, None]] = {}

    def on_pod(self, old: Object | None, new: Object | None) -> list[IndexedPod]:
        """Update the index; return the states before and after, between which the pod moved."""
        pod = objects.latest(old, new)
        namespace, key = objects.namespace(pod), objects.key(pod)
        before, after = self._pods.get(namespace, {}).get(key), _resident(new)
        if before == after:
            return []

        if before is not None:
            self._drop(namespace, key, before)

        if after is not None:
            self._pods.setdefault(namespace, {})[key] = after
            for label in after.labels.items():
                self._labelled.setdefault((namespace, *label), {})[key] = None

            if after.node:
                self._nodes.setdefault(namespace, Counter())[after.node] += 1

        return [state for state in (before, after) if state is not None]

    def _drop(self, namespace: str, key: str, before: IndexedPod) -> None:
        pods, nodes = self._pods[namespace], self._nodes.get(namespace, Counter())
        del pods[key]
        if not pods:
            del self._pods[namespace]

        for label in before.labels.items():
            labelled = self._labelled[namespace, *label]
            del labelled[key]
            if not labelled:
                del self._labelled[namespace, *label]

        if before.node:
            nodes[before.node] -= 1
            if not nodes[before.node]:
                del nodes[before.node]

            if not nodes:
                del self._nodes[namespace]

    def namespaces(self) -> Iterable[str]:
        """Return the namespaces that have pods."""
        return self._pods.keys()

    def nodes(self, namespace: str) -> Counter[str]:
        """Count the pods of a namespace on each node."""
        return self._nodes.get(namespace, Counter())

    def has(self, namespace: str, selector: dict[str, str]) -> bool:
        """Tell whether a selector selects some pod of the namespace; an empty one selects none."""
        if not selector:
            return False

        pods, wanted = self._pods.get(namespace, {}), selector.items()
        labelled = [self._labelled.get((namespace, *label), {}) for label in wanted]
        fewest, *others = sorted(labelled, key=len)
        if (first := next(iter(fewest), None)) is None or wanted <= pods[first].labels.items():
            return first is not None  # as with most

        # Thousands may have each of the labels, and none all of them: sets find that out soonest.
        found: Set[str] = fewest.keys()
        for other in others:
            found = found & other.keys()
            if not found:
                return False

        return True


def _resident(pod: Object | None) -> IndexedPod | None:
    if pod is None or objects.is_finished(pod):
        return None

    return IndexedPod(objects.labels(pod), objects.node_name(pod))
