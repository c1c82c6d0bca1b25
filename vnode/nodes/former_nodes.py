"""Remembers virtual Nodes that somebody deletes while their Targets exist, for those made anew.

A cloud controller deletes Nodes that are not ready and that its cloud does not know, and people
delete them, too. What people had written on the Node is about the target, which is the same, so
the new Node has it from the start: cordon, taints and labels, but for those that would make a place
of it. What we apply, and the taints by which Kubernetes shows conditions, come by themselves. Every
replica remembers: another leader may be the one who makes the Node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from vnode.api import keys, node_labels, objects
from vnode.api.objects import Object, Objects
from vnode.kube.informer import Informer
from vnode.nodes import written

_KEPT_ANNOTATIONS: Final = (keys.CORDONED_BY_SET, keys.MEMBER_TAINTS)
"""Of our own, those that say who has set a cordon, or a taint."""
_SET_BY_CONDITIONS: Final = frozenset(
    {
        *keys.NODE_FAILURES,
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/network-unavailable",
        "node.kubernetes.io/pid-pressure",
        "node.kubernetes.io/unschedulable",
        "node.cloudprovider.kubernetes.io/shutdown",
        "node.cloudprovider.kubernetes.io/uninitialized",
    }
)


class FormerNodes:
    """Follows the virtual nodes; `is_wanted` tells whether there is a Target for a name."""

    def __init__(self, nodes: Informer, is_wanted: Callable[[str], bool]) -> None:
        self._is_wanted = is_wanted
        self._deleted: dict[str, Object] = {}  # by name
        nodes.subscribe(self._on_node)

    def complete(self, node: Object) -> Object:
        """Return a Node to be created with what people had written on the one before."""
        former = self._deleted.get(objects.name(node))
        return node if former is None else with_former(node, former)

    def forget(self, name: str) -> None:
        """Forget a Node whose Target is gone."""
        self._deleted.pop(name, None)

    def _on_node(self, old: Object | None, new: Object | None) -> None:
        name = objects.name(objects.latest(old, new))
        if new is None and old is not None and self._is_wanted(name):
            self._deleted[name] = old
        else:
            self.forget(name)


def with_former(node: Object, former: Object) -> Object:
    """Return a Node to be created with what people had written on a former one of its name."""
    applied = {key for part, key in written.applied_description(former) if part == "labels"}
    labels = {
        key: value
        for key, value in objects.labels(former).items()
        if key not in applied and not node_labels.is_of_place(key)
    }
    annotations = objects.annotations(former)
    kept = {key: annotations[key] for key in _KEPT_ANNOTATIONS if key in annotations}
    metadata = {**objects.metadata(node), "labels": {**labels, **objects.labels(node)}}
    if kept:
        metadata["annotations"] = kept

    spec = {**objects.spec(node), "taints": _taints(node, former)}
    if objects.spec(former).get("unschedulable"):
        spec["unschedulable"] = True

    return {**node, "metadata": metadata, "spec": spec}


def _taints(node: Object, former: Object) -> Objects:
    wanted: Objects = objects.spec(node).get("taints") or []
    known = {(taint.get("key"), taint.get("effect")) for taint in wanted}
    return [
        *wanted,
        *(
            taint
            for taint in objects.spec(former).get("taints") or ()
            if taint.get("key") not in _SET_BY_CONDITIONS
            and (taint.get("key"), taint.get("effect")) not in known
        ),
    ]
