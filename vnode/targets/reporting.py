"""What is said of a Target where its user looks: conditions in its status, and Events on it.

A condition holds for as long as it is true, and is written only if it changes; an Event tells of
each turn of one. Only the leader writes, and never twice upon the same version of the object, so
that what others write is neither fought nor doubled.
"""

from __future__ import annotations

import logging

from vnode.api import kinds, objects
from vnode.api.errors import NotFound
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.events import NORMAL, WARNING, EventRecorder
from vnode.runtime.echoes import Echoes
from vnode.targets import conditions

log = logging.getLogger(__name__)


class Reporter:
    """Writes conditions of Targets and ClusterTargets, once `leading` is set."""

    def __init__(self, local: Client, events: EventRecorder) -> None:
        self.leading = False
        self._local = local
        self._events = events
        self._echoes = Echoes()

    def must_wait(self, target: Object) -> bool:
        """A write of ours to this object is on its way; its echo wakes the reconciler."""
        return self._echoes.pending(objects.key(target), target)

    def forget(self, key: str) -> None:
        """The object is gone."""
        self._echoes.forget(key)

    async def report(self, target: Object, *news: Object) -> None:
        """Put these conditions into the status of the object."""
        merged = conditions.merged(target, *news)
        if merged is None or not self.leading:
            return

        key, namespace = objects.key(target), objects.namespace(target)
        kind = kinds.TARGETS if namespace else kinds.CLUSTER_TARGETS
        body = {"status": {"conditions": merged}, "metadata": {"uid": objects.uid(target)}}
        try:
            after = await self._local.patch(
                kind, objects.name(target), body, namespace or None, subresource="status"
            )
        except NotFound:
            log.debug("%s is gone", key)
            return

        self._echoes.expect(key, target, after)
        about = objects.reference(target, kind.kind, kind.api_version)
        for condition in news:
            if conditions.turned(target, condition):
                good = condition["status"] == "True"
                log.info("%s is %s: %s", key, condition["reason"], condition["message"])
                self._events.event(
                    about, NORMAL if good else WARNING, condition["reason"], condition["message"]
                )
