"""Feeds the scheduler: virtual nodes, health and summaries of targets -> cache and move events.

The cache holds the state for a scheduling cycle; the queue gets an event for each change, so that
it tries those pods again that the change may help, and no others.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from vnode.api import keys, node_labels, objects
from vnode.api.clock import Clock
from vnode.api.cluster_scores import NO_SCORES, TargetScores
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.kube.informer import Informer
from vnode.planning.policy import GroupingPolicies
from vnode.pods.source.quota_events import QuotaEvents
from vnode.pods.source.returned_targets import ReturnedTargets
from vnode.runtime.enabled_namespaces import EnabledNamespaces
from vnode.runtime.link import Link
from vnode.runtime.link_health import CONNECTING
from vnode.runtime.links import Links
from vnode.scheduling import reported
from vnode.scheduling.cache import Cache
from vnode.scheduling.events import ClusterEvent, EventKind
from vnode.scheduling.queue import SchedulingQueue
from vnode.scheduling.snapshot import VirtualNode


class EventHandlers:
    """Updates cache and queue from informers' callbacks; it has no task of its own."""

    def __init__(
        self,
        nodes: Informer,
        namespaces: EnabledNamespaces,
        links: Links,
        cache: Cache,
        queue: SchedulingQueue,
    ) -> None:
        self._nodes = nodes
        self._namespaces = namespaces
        self._links = links
        self._cache = cache
        self._queue = queue
        self._quota_events = QuotaEvents(links, cache, queue)
        self._returned: ReturnedTargets | None = None
        self._without_vnode: set[str] = set()  # nodes of targets that were known to lack it
        self._scores_of: Callable[[Link], TargetScores] = lambda _link: NO_SCORES
        self._scores: dict[str, TargetScores] = {}  # by node, as the cache has them

    def open(self) -> None:
        """Subscribe to nodes and links; those that exist are added at once."""
        self._nodes.subscribe(self._on_node)
        self._namespaces.subscribe(self._on_namespace)
        self._links.subscribe(self._on_link, self._on_link_gone)
        self._quota_events.open()

    def follow(self, policies: GroupingPolicies) -> None:
        """Have pods tried again by the placement policies that are in force now."""

        def changed(namespace: str) -> None:
            self._cache.workloads.keep(namespace, policies.groupings)
            event = ClusterEvent(EventKind.POLICY_CHANGED, namespace=namespace or None)
            self._queue.move(event)

        policies.subscribe(changed)

    def await_ends(self, returned: ReturnedTargets) -> None:
        """Have no pod sent to a target that has yet to be told which of its pods are to end."""

        def on_returned(node: str) -> None:
            self._update(node)
            self._move(EventKind.TARGET_HEALTH, node)

        self._returned = returned
        returned.subscribe(on_returned)

    def follow_scores(
        self,
        scores_of: Callable[[Link], TargetScores],
        subscribe: Callable[[Callable[[], None]], None],
        clock: Clock,
    ) -> None:
        """Count by the scores of targets; `subscribe` has a callback called when any may have
        changed."""
        self._scores_of = scores_of
        subscribe(lambda: self._on_scores(clock.now()))

    def on_plan_freed(self, namespace: str) -> None:
        """Have pods tried again that wait for another cluster than they may go to now.

        A workload is of one namespace.
        """
        self._queue.move(ClusterEvent(EventKind.PLAN_FREED, namespace=namespace))

    def unconnected(self, namespace: str) -> dict[TargetKey, str]:
        """Return the targets of that namespace's pods that have no connection, and why.

        The cache does not have them, since nothing can go there: a Secret is missing, say.
        """
        found = {}
        for node in self._nodes.store.values():
            labels, ready = objects.labels(node), objects.condition(node, "Ready") or {}
            home = labels.get(keys.TARGET_NAMESPACE, "")
            name = labels.get(keys.CLUSTER_TARGET_NAME) or labels.get(keys.TARGET_NAME)
            idle = ready.get("status") == "False" and self._links.get(objects.name(node)) is None
            if name and idle and home in ("", namespace):
                reason = str(ready.get("message") or ready.get("reason") or "")
                found[TargetKey(home, name)] = reason

        return found

    def _on_node(self, old: Object | None, new: Object | None) -> None:
        name = objects.name(objects.latest(old, new))
        if new is None:
            self._cache.remove_node(name)
            self._move(EventKind.TARGET_LOST, name, old)
            return

        self._update(name)
        for kind in _changes(old, new):
            self._move(kind, name, new)

    def _on_link_gone(self, link: Link) -> None:
        self._scores.pop(link.node_name, None)
        self._cache.remove_target(link.node_name)
        self._move_for(link, EventKind.TARGET_LOST)

    def _on_scores(self, now: datetime) -> None:
        """Count by scores that have changed; one that was only renewed helps no pod."""
        for link in self._links:
            name = link.node_name
            before, after = self._scores.get(name), self._scores_of(link)
            if before is not None and before != after:
                self._update(name)
                if before.counting(now) != after.counting(now):
                    self._move(EventKind.TARGET_SCORES, name)

    def _on_namespace(self, _name: str) -> None:
        self._queue.move(ClusterEvent(EventKind.NAMESPACE_LABEL))

    def _on_link(self, link: Link) -> None:
        link.summaries.subscribe(lambda old, new: self._on_summary(link, old, new))
        link.on_health(lambda: self._on_health(link))
        self._update(link.node_name)
        self._move_for(link, EventKind.NODE_ADD)
        self._move_for(link, EventKind.TARGET_CHANGED)

    def _on_health(self, link: Link) -> None:
        self._update(link.node_name)
        if link.lacks_vnode != (link.node_name in self._without_vnode):
            self._update_free(link)  # its classes are not believed any more, or again
            self._move_for(link, EventKind.TARGET_CHANGED)

        kind = EventKind.TARGET_HEALTH if link.health.healthy else EventKind.TARGET_LOST
        self._move_for(link, kind)

    def _on_summary(self, link: Link, old: Object | None, new: Object | None) -> None:
        self._update(link.node_name)
        before, after = (objects.annotations(obj or {}) for obj in (old, new))
        if any(before.get(key) != after.get(key) for key in (keys.CLUSTER_UID, keys.CLASSES)):
            self._move_for(link, EventKind.TARGET_CHANGED)

        self._update_free(link)

    def _update_free(self, link: Link) -> None:
        """Count what the target has free; what a vnode said that has left is not so any more."""
        if link.lacks_vnode:
            self._without_vnode.add(link.node_name)
            free, largest, nodes, rows = None, None, None, None
        else:
            self._without_vnode.discard(link.node_name)
            free, largest = reported.read_free(link.summary)
            rows = reported.read_rows(link.summary)
            nodes = reported.read_nodes(link.summary, rows, largest)

        if self._cache.update_free(link.node_name, free, largest, nodes, rows):
            self._move_for(link, EventKind.TARGET_FREE)

    def _move(self, kind: EventKind, name: str, node: Object | None = None) -> None:
        """Tell the queue of a node, and whose pods alone may go there.

        When an agent starts, hundreds of targets of others connect: whoever waits for a target of
        its own would be tried in vain at each, and be in back-off when that answers.
        """
        if (link := self._links.get(name)) is not None:
            self._move_for(link, kind)
        else:
            home = objects.labels(node or {}).get(keys.TARGET_NAMESPACE) or None
            self._queue.move(ClusterEvent(kind, name, home=home))

    def _move_for(self, link: Link, kind: EventKind) -> None:
        home = link.target.namespace or None
        self._queue.move(ClusterEvent(kind, link.node_name, home=home))

    def _update(self, name: str) -> None:
        node, link = self._nodes.store.get(name), self._links.get(name)
        if node is None or link is None:
            return

        health, why = link.health, ""
        if not health.healthy:
            why = f"{health.message} (since {objects.timestamp(health.since)})"
        elif self._returned is not None and name in self._returned:
            why = (
                "it answers again, and the pods that were replaced meanwhile are told to end first"
            )

        scores = self._scores[name] = self._scores_of(link)
        self._cache.update_node(
            VirtualNode(
                name,
                node,
                (link.target.namespace, link.target.name),
                target_namespace=link.target.namespace or None,
                healthy=not why,
                unhealthy_reason=why,
                connecting=not health.healthy and health.reason == CONNECTING,
                allocatable=reported.read_allocatable(link.summary, node),
                cluster_uid=link.cluster_uid,
                classes=link.priorities.classes,
                priority_classes=link.options.priority_classes,
                unlisted=link.options.unlisted_resources | link.classes.claimed_resources,
                pools=link.options.node_pools,
                scores=scores,
            )
        )


def proxy_event(old: Object | None, new: Object | None) -> ClusterEvent | None:
    """Return the event by which a change of a proxy may help waiting pods, as the cache counts."""
    before, after = _node_of(old), _node_of(new)
    if after and after != before:
        return ClusterEvent(EventKind.POD_ADD, after, pod=new)

    if before and (not after or (_is_ending(new) and not _is_ending(old))):
        return ClusterEvent(EventKind.POD_DELETE, before, pod=old)

    return None


def _node_of(pod: Object | None) -> str:
    """Return the node on which the pod holds resources; "" for none."""
    if pod is None or objects.is_finished(pod):
        return ""

    return objects.node_name(pod)


def _is_ending(pod: Object | None) -> bool:
    """Return whether the pod is terminating: it holds resources, but keeps no others away."""
    return pod is not None and objects.is_terminating(pod)


def _changes(old: Object | None, new: Object) -> list[EventKind]:
    if old is None:
        return [EventKind.NODE_ADD]

    changed = []
    if node_labels.of_node(old) != node_labels.of_node(new):
        changed.append(EventKind.NODE_LABELS)

    if objects.spec(old) != objects.spec(new):
        changed.append(EventKind.NODE_TAINTS)

    if objects.status(old).get("allocatable") != objects.status(new).get("allocatable"):
        changed.append(EventKind.NODE_ALLOCATABLE)

    return changed
