"""Reports why a proxy pod is pending, by an Event and by its condition PodScheduled.

The message names the targets of the pod's namespace one by one: what plugins say of those that did
not pass, what targets say of its candidates, and why others have no connection.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from vnode.api import kinds, objects, scheduled_condition, visible
from vnode.api.clock import Clock
from vnode.api.errors import NotFound
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.kube.client import Client
from vnode.kube.events import WARNING, EventRecorder, about
from vnode.pods import observed_generation
from vnode.runtime.links import Links
from vnode.scheduling import diagnosis
from vnode.scheduling.result import CycleResult

log = logging.getLogger(__name__)


class UnschedulableReporter:
    """Writes about pods that have no node after an attempt.

    `lookup` returns the present proxy of a key; `unconnected` why targets of a namespace have no
    link.
    """

    def __init__(
        self,
        client: Client,
        links: Links,
        *,
        lookup: Callable[[str], Object | None],
        unconnected: Callable[[str], dict[TargetKey, str]],
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        self._client = client
        self._links = links
        self._lookup = lookup
        self._unconnected = unconnected
        self._events = events
        self._clock = clock

    async def report(self, pod: Object, result: CycleResult, reasons: Mapping[str, str]) -> str:
        """Report the result of a cycle, and by node why candidates have no place; return that."""
        message = self._message(pod, result, reasons)
        await self.tell(pod, message)
        return message

    async def tell(self, pod: Object, message: str) -> None:
        """Report on a pod why it is pending."""
        message = visible.line(message)
        self._events.event(about(pod), WARNING, "FailedScheduling", message)
        current = self._lookup(objects.key(pod)) or pod
        known = objects.condition(current, "PodScheduled") or {}
        if known.get("message") == message:
            return

        since = known.get("lastTransitionTime")
        if known.get("reason") != scheduled_condition.UNSCHEDULABLE or not since:
            since = objects.timestamp(self._clock.now())  # of placement policies, the clock

        condition = scheduled_condition.rejected(message, since)
        if generation := objects.metadata(pod).get("generation"):
            condition[observed_generation.FIELD] = generation

        body = objects.status_patch(pod, {"conditions": [condition]})
        try:
            await self._client.patch(
                kinds.PODS,
                objects.name(pod),
                body,
                objects.namespace(pod),
                subresource="status",
                strategic=True,
            )
        except NotFound:
            log.debug("pod %s is gone", objects.key(pod))

    def _message(self, pod: Object, result: CycleResult, reasons: Mapping[str, str]) -> str:
        namespace = objects.namespace(pod)
        verdicts = {node: status.message for node, status in result.statuses.items()}
        verdicts |= reasons
        targets = {
            link.target: verdicts[link.node_name]
            for link in self._links.covering(namespace)
            if link.node_name in verdicts
        }
        targets |= self._unconnected(namespace)
        return diagnosis.explain(targets, namespace)
