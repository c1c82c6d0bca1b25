"""Bounds how often a Target is looked at because somebody has changed it, or what it names.

Whoever administers a namespace may change the Secret that twenty Targets name fifty times a second.
Each look at a kubeconfig takes some milliseconds, one with a client certificate twenty, and other
credentials take a new connection, with all its lists and watches. So changes of one Target, and of
all Targets of a namespace, have a rate; what changes while one waits is one change, and then its
present state counts. ClusterTargets share no rate: administrators write them.
"""

from __future__ import annotations

from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.runtime import write_limits
from vnode.runtime.change_limiter import ChangeLimiter


class TargetChanges:
    """Knows which Targets were changed since they were looked at, and which may be by now."""

    def __init__(self, clock: Clock) -> None:
        self._changed: set[TargetKey] = set()
        self._limiter: ChangeLimiter[TargetKey] = ChangeLimiter(
            "changes of targets",
            "connections",
            (write_limits.TARGET_CHANGES, write_limits.TARGET_CHANGES_OF_NAMESPACE),
            clock,
            namespace=lambda key: key.namespace or str(key),
        )

    def note(self, key: TargetKey) -> None:
        """Note that a Target was changed, or what it names."""
        self._changed.add(key)

    def wait(self, key: TargetKey) -> float:
        """Return the seconds until a Target may be looked at; 0 counts its change, if any."""
        if key not in self._changed:
            return 0.0

        if wait := self._limiter.wait(key):
            return wait

        self._limiter.sent(key)
        self._changed.discard(key)
        return 0.0

    def forget(self, key: TargetKey) -> None:
        """Drop what is known of a Target that is gone; its namespace's rate goes on."""
        self._changed.discard(key)
        self._limiter.forget(key)


def is_of_users(old: Object | None, new: Object) -> bool:
    """Tell whether more of a Target was changed than its status, which its reporter writes."""
    return old is None or old.get("status") == new.get("status") or old["spec"] != new["spec"]
