"""Limits how often changes that users make go to targets, for each object and each namespace.

A change of a pod costs a request in the source and three in the target, that of a ConfigMap which
follows one in each. Whoever may edit them may change each fifty times a second, and other
namespaces would wait for both API servers. An object that has to wait is sent as it is then: what
was changed meanwhile is one change.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from vnode.api.clock import Clock
from vnode.runtime.write_limits import TurnLimiter, WriteLimit, WriteLimiter
from vnode.telemetry import turn_waits

K = TypeVar("K", bound=Hashable)


class ChangeLimiter(Generic[K]):
    """Says when a change of an object may be sent.

    `name` is what metrics call these changes, `resource` what is written. `limits` are those of one
    object, and of all of a namespace, which `namespace` returns for a key.
    """

    def __init__(
        self,
        name: str,
        resource: str,
        limits: tuple[WriteLimit, WriteLimit],
        clock: Clock,
        *,
        namespace: Callable[[K], str],
    ) -> None:
        self._clock = clock
        self._namespace = namespace
        self._of_objects: WriteLimiter[K] = WriteLimiter(resource, limits[0], clock)
        self._of_namespaces: TurnLimiter[K] = TurnLimiter(resource, limits[1], clock)
        self._since: dict[K, float] = {}  # monotonic; when those that wait were told to
        self._waits = turn_waits.of(name)

    def wait(self, key: K) -> float:
        """Return the seconds until a change of the object may be sent: 0 for now."""
        namespace = self._namespace(key)
        wait = self._of_objects.wait(key) or self._of_namespaces.wait(key, namespace, lambda: 1)
        if wait:
            self._since.setdefault(key, self._clock.monotonic())

        return wait

    def sent(self, key: K) -> None:
        """Count a change that is sent."""
        namespace = self._namespace(key)
        self._of_objects.written(key)
        self._of_namespaces.done(key, namespace, 1)
        if (since := self._since.pop(key, None)) is not None:
            self._waits.note(namespace, self._clock.monotonic() - since)

    def settle(self, key: K) -> None:
        """Note that the object has no change to send."""
        self._since.pop(key, None)

    def forget(self, key: K) -> None:
        """Drop what is known of an object that is gone."""
        self._of_objects.forget(key)
        self._of_namespaces.forget(key)
        self._since.pop(key, None)
