"""Reports pods of DaemonSets on virtual nodes as ready, for nothing is to be done there. Pure.

Kubernetes makes a pod for each node whose taints a DaemonSet tolerates, so many that tolerate
everything get one for each virtual node. It is about a machine, and there is none: it is never sent
to a target. As long as it is not ready, though, it counts as one that fails, and a rollout of the
DaemonSet ends at its `maxUnavailable`, on the machines as well. So it is ready, which for a
DaemonSet is the one condition; its phase stays Pending, and without an address it is no endpoint of
a Service.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from vnode.api import objects
from vnode.api.objects import Object

REASON: Final = "VirtualNode"
_MESSAGE: Final = (
    "the node is virtual: it stands for another cluster and has no machine for a DaemonSet to look "
    "after, so this pod runs nothing; a required node affinity of the DaemonSet with "
    "virtual-kubelet.io/provider NotIn admiralty makes none"
)


def ready_patch(pod: Object, now: datetime) -> Object | None:
    """Return the patch of the status that says so; None if it does."""
    status = objects.status(pod)
    ready = objects.condition(pod, "Ready") or {}
    if (ready.get("status"), status.get("reason")) == ("True", REASON):
        return None

    condition = {
        "type": "Ready",
        "status": "True",
        "reason": REASON,
        "message": _MESSAGE,
        "lastTransitionTime": objects.timestamp(now),
    }
    return {"status": {"reason": REASON, "message": _MESSAGE, "conditions": [condition]}}
