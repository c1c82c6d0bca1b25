"""An index of pods of which nobody else has bound any."""

from __future__ import annotations

from collections.abc import Iterator

from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.kube.informer import Handler, Informer
from vnode.placement.workload_index import WorkloadIndex
from vnode.planning.policy import WatchedPolicies


class Nobody:
    """The pods that others bound: none."""

    def get(self, _key: str) -> Object | None:
        return None

    def subscribe(self, _handler: Handler) -> None:
        pass

    def pods_on(self, _node_name: str) -> Iterator[Object]:
        return iter(())


def indexed(proxies: Informer, policies: WatchedPolicies, clock: Clock) -> WorkloadIndex:
    """Return the index of these pods, which is to be run."""
    return WorkloadIndex(proxies, Nobody(), policies, clock)
