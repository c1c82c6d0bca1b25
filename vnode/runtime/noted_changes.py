"""Bounds how often objects are looked at because somebody has changed them, or what they name.

What a look costs is much more than what the change has cost its author: a kubeconfig is read, and a
connection made anew; service accounts and bindings are written. So changes of one object, and of
all of a namespace, have a rate; what changes while one waits is one change, and then its present
state counts. Objects without a namespace share no rate: administrators write them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.runtime.change_limiter import ChangeLimiter
from vnode.runtime.write_limits import WriteLimit

K = TypeVar("K", bound=Hashable)


class NotedChanges(Generic[K]):
    """Knows which objects were changed since they were looked at, and which may be by now.

    `name`, `resource`, `limits` and `namespace` are those of a ChangeLimiter.
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
        self._changed: set[K] = set()
        self._limiter: ChangeLimiter[K] = ChangeLimiter(
            name, resource, limits, clock, namespace=lambda key: namespace(key) or str(key)
        )

    def note(self, key: K) -> None:
        """Note that an object was changed, or what it names."""
        self._changed.add(key)

    def wait(self, key: K) -> float:
        """Return the seconds until an object may be looked at; 0 counts its change, if any."""
        if key not in self._changed:
            return 0.0

        if wait := self._limiter.wait(key):
            return wait

        self._limiter.sent(key)
        self._changed.discard(key)
        return 0.0

    def forget(self, key: K) -> None:
        """Drop what is known of an object that is gone; its namespace's rate goes on."""
        self._changed.discard(key)
        self._limiter.forget(key)


def is_of_users(old: Object | None, new: Object) -> bool:
    """Tell whether more of an object was changed than its status, which its reporter writes."""
    return old is None or old.get("status") == new.get("status") or old["spec"] != new["spec"]
