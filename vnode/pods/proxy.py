"""What a proxy pod is to us, and its chaperons to it: pure.

A bound proxy is kept without what only scheduling and the making of chaperons needs. A chaperon
whose pod is bound elsewhere is a loser; one whose pod is not there is an orphan, as far as we have
seen: only the API server's own word settles that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vnode.api import changeable, keys, objects
from vnode.api.objects import Object

NODE_INDEX: Final = "node"

# Of an object that was trimmed: the bytes of the annotation that it lacks, since they count.
MANIFEST_BYTES: Final = "manifestBytes"

_KEPT_SPEC: Final = frozenset(
    {
        "nodeName",
        "schedulerName",
        "restartPolicy",
        "overhead",
        "priority",
        "affinity",
        "readinessGates",
    }
)


def node_of(pod: Object) -> Iterator[str]:
    """For an index: the node that the pod is bound to, nothing while it is not."""
    if name := objects.spec(pod).get("nodeName"):
        yield name


def is_loser(chaperon: Object, proxy: Object | None, node_name: str) -> bool:
    """The chaperon is on the target of `node_name`, and its pod is bound to another, or is ending
    without ever having been bound."""
    if proxy is None or is_orphan(chaperon, proxy):
        return False

    bound_to = objects.spec(proxy).get("nodeName")
    return bound_to != node_name if bound_to else objects.is_terminating(proxy)


def is_orphan(chaperon: Object, proxy: Object | None) -> bool:
    """The pod is not there, or is a later one of the same name."""
    return proxy is None or objects.labels(chaperon).get(keys.PARENT_UID) != objects.uid(proxy)


def trim(pod: Object) -> Object:
    """What is kept of a proxy pod: all of it until it is bound."""
    spec = objects.spec(pod)
    if not spec.get("nodeName"):
        return pod

    kept = {k: v for k, v in spec.items() if k in _KEPT_SPEC}
    kept |= changeable.trim(spec)

    notes = objects.annotations(pod)
    metadata = {
        **objects.metadata(pod),
        "annotations": {k: v for k, v in notes.items() if k != keys.SOURCE_POD_MANIFEST},
    }
    trimmed = {**pod, "metadata": metadata, "spec": kept}
    if (manifest := notes.get(keys.SOURCE_POD_MANIFEST)) is not None:
        trimmed[MANIFEST_BYTES] = len(keys.SOURCE_POD_MANIFEST) + len(manifest.encode())

    return trimmed
