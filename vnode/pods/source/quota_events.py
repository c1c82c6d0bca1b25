"""Feeds the scheduler with quotas: ResourceQuotas and LimitRanges of targets -> cache and events.

A target need not let us read them. Then they are unknown, and its API server decides.
"""

from __future__ import annotations

from vnode.api import kinds, limit_ranges, objects, resource_quotas
from vnode.api.objects import Object
from vnode.pods.source import candidates
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.scheduling.cache import Cache
from vnode.scheduling.events import ClusterEvent, EventKind
from vnode.scheduling.queue import SchedulingQueue


class QuotaEvents:
    """Updates cache and queue from informers' callbacks; it has no task of its own."""

    def __init__(self, links: Links, cache: Cache, queue: SchedulingQueue) -> None:
        self._links = links
        self._quotas = cache.quotas
        self._queue = queue

    def open(self) -> None:
        """Subscribe to the links; those that exist are added at once."""
        self._links.subscribe(self._on_link, lambda link: self._quotas.remove_node(link.node_name))

    def _on_link(self, link: Link) -> None:
        for informer in link.quotas:
            if informer.kind is kinds.RESOURCE_QUOTAS:
                informer.subscribe(lambda old, new: self._on_quota(link, old, new))
            else:
                informer.subscribe(lambda old, new: self._on_limit_range(link, old, new))

    def _on_quota(self, link: Link, old: Object | None, new: Object | None) -> None:
        either = objects.latest(old, new)
        quota = resource_quotas.parse(new) if new else None
        place = link.node_name, objects.namespace(either), objects.name(either)
        if self._is_current(link) and self._quotas.set_quota(*place, quota):
            self._move(link)

    def _on_limit_range(self, link: Link, old: Object | None, new: Object | None) -> None:
        either = objects.latest(old, new)
        limit_range = limit_ranges.parse(new) if new else None
        place = link.node_name, objects.namespace(either), objects.name(either)
        if self._is_current(link):
            self._quotas.set_limit_range(*place, limit_range)
            self._move(link)

    def _is_current(self, link: Link) -> bool:
        """Return whether the link is the node's; one that ends may still hear of an event."""
        return self._links.get(link.node_name) is link

    def _move(self, link: Link) -> None:
        self._queue.move(ClusterEvent(EventKind.TARGET_QUOTA, link.node_name))


def is_refused(links: Links, pod: Object, node: str) -> bool:
    """Tell whether a pod has a candidate there that a quota or a limit has refused."""
    link = links.get(node)
    found = link.candidate(objects.key(pod), objects.uid(pod)) if link is not None else None
    return (
        found is not None
        and not objects.is_terminating(found)
        and bool(candidates.quota_refusal(found))
    )


def is_charged(links: Links, pod: Object, node: str) -> bool:
    """Tell whether a target's quotas count a pod: it has a candidate that was not refused."""
    link = links.get(node)
    found = link.candidate(objects.key(pod), objects.uid(pod)) if link is not None else None
    return found is not None and not objects.is_terminating(found) and candidates.is_accepted(found)
