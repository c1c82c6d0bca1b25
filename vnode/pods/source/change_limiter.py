"""Limits how often changes of proxies are sent to their targets, for each pod and each namespace.

A change costs a request in the source and three in the target. Whoever may edit pods may change an
annotation of each of them fifty times a second, and other namespaces would wait for both API
servers. A pod that has to wait is sent as it is then: what was changed meanwhile is one change.
"""

from __future__ import annotations

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.runtime import write_limits
from vnode.runtime.write_limits import TurnLimiter, WriteLimiter
from vnode.telemetry import turn_waits


class ChangeLimiter:
    """Says when a change of a pod may be sent. Pods are identified by their keys."""

    def __init__(self, clock: Clock) -> None:
        limits = write_limits.CHANGES, write_limits.CHANGES_OF_NAMESPACE
        self._clock = clock
        self._of_pods: WriteLimiter[str] = WriteLimiter("podchaperons", limits[0], clock)
        self._of_namespaces: TurnLimiter[str] = TurnLimiter("podchaperons", limits[1], clock)
        self._since: dict[str, float] = {}  # monotonic; when those that wait were told to
        self._waits = turn_waits.of("changes")

    def wait(self, key: str) -> float:
        """Return the seconds until a change of the pod may be sent: 0 for now."""
        namespace = objects.key_namespace(key)
        wait = self._of_pods.wait(key) or self._of_namespaces.wait(key, namespace, lambda: 1)
        if wait:
            self._since.setdefault(key, self._clock.monotonic())

        return wait

    def sent(self, key: str) -> None:
        """Count a change that is sent."""
        namespace = objects.key_namespace(key)
        self._of_pods.written(key)
        self._of_namespaces.done(key, namespace, 1)
        if (since := self._since.pop(key, None)) is not None:
            self._waits.note(namespace, self._clock.monotonic() - since)

    def settle(self, key: str) -> None:
        """Note that the pod has no change to send."""
        self._since.pop(key, None)

    def forget(self, key: str) -> None:
        """Drop what is known of a pod that is gone."""
        self._of_pods.forget(key)
        self._of_namespaces.forget(key)
        self._since.pop(key, None)
