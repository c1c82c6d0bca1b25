"""Knows what of the source's own decides which labels a virtual Node must not, or must, have.

Two things do: the keys over which its pods are spread, which come from the pods that the
ClusterSummary is made of; and whether its machines have the label by which Kubernetes leaves nodes
out of topology-aware routing.

Once a key was seen it counts until this process ends: a Deployment that is scaled to zero and back,
or a CronJob, would else change the Nodes each time. So pods of one namespace may add few.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Set
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.listeners import Listeners
from vnode.api.objects import Object
from vnode.kube.client import Client

ROLE: Final = "node-role.kubernetes.io/master"
"""Kubernetes' EndpointSlice controller looks at this label and at `control-plane`, and leaves the
node out of what it computes; a ready node without zone turns topology-aware routing off for all
Services. `control-plane` means something to kubeadm, Cluster API and others; this one does not,
where machines do not have it."""

MOST_SPREADS: Final = 100
"""Topology keys that pods of one namespace may add to those that others have."""
SPREADS: Final = "spreads"
"""The field of a trimmed pod that has its topology keys."""


class Coexistence:
    """Collects the facts of one term."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._listeners: Listeners[()] = Listeners()
        self._spread_over: set[str] = set()
        self._added = Counter[str]()  # namespace -> how many of those its pods were the first with
        self._is_known = False
        self._role: dict[str, str] | None = None  # None until it was asked for

    @property
    def spread_over(self) -> Set[str]:
        """The keys over which pods of this cluster have to be spread."""
        return self._spread_over

    @property
    def is_known(self) -> bool:
        """Whether all pods were looked at."""
        return self._is_known

    def subscribe(self, changed: Callable[[], None]) -> None:
        """Call `changed` when there are more keys, or all are known."""
        self._listeners.add(changed)

    def pods_known(self) -> None:
        """Note that every pod was passed to `on_pod`."""
        self._is_known = True
        self._changed()

    def on_pod(self, _old: Object | None, new: Object | None) -> None:
        """Take a trimmed pod."""
        pod = new or {}
        namespace = objects.namespace(pod)
        left = MOST_SPREADS - self._added[namespace] if pod.get(SPREADS) else 0
        if left > 0 and (more := sorted(pod[SPREADS] - self._spread_over)[:left]):
            self._spread_over.update(more)
            self._added[namespace] += len(more)
            self._changed()

    def _changed(self) -> None:
        self._listeners.call()

    async def role_label(self) -> dict[str, str]:
        """Return the label that keeps a virtual node out of topology-aware routing.

        Empty where this cluster's own machines have it (OpenShift, K3s): there it says what a
        machine is for, and things are started on each that has it.
        """
        if self._role is None:
            selector = f"{ROLE},{keys.REAL_NODES}"
            used = await self._client.list(kinds.NODES, label_selector=selector)
            self._role = {} if used else {ROLE: ""}

        return self._role
