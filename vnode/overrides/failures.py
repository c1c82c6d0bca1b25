"""Remembers which pods a policy keeps from which targets, for the policy's condition.

A policy of one tenant may fail for thousands of pods. What is asked about another pod does not look
at these.
"""

from __future__ import annotations

from collections.abc import Callable

from vnode.api import objects
from vnode.api.listeners import Listeners
from vnode.api.objects import Object

_Place = tuple[str, str]
"""UID of a pod, and a virtual node."""


class Failures:
    """What failed the last time that it was tried, by policy; only of pods that are there."""

    def __init__(self) -> None:
        # By key of the policy, the oldest first; no empty ones.
        self._failed: dict[str, dict[_Place, str]] = {}
        self._policies: dict[str, set[tuple[str, str]]] = {}  # UID -> policies and nodes; likewise
        self._changed: Listeners[str] = Listeners()

    def subscribe(self, changed: Callable[[str], None]) -> None:
        """Call `changed` with the key of a policy for which `first` has changed."""
        self._changed.add(changed)

    def first(self, policy: str) -> str:
        """Return one failure of a policy, the oldest; "" if there is none."""
        return next(iter(self._failed.get(policy, {}).values()), "")

    def add(self, policy: str, pod: Object, node: str, message: str) -> None:
        """Note that a policy cannot be applied to a pod for a target."""
        uid, before = objects.uid(pod), self.first(policy)
        self._failed.setdefault(policy, {})[uid, node] = message
        self._policies.setdefault(uid, set()).add((policy, node))
        if self.first(policy) != before:
            self._changed.call(policy)

    def clear(self, pod: Object, node: str) -> None:
        """Note that nothing keeps a pod from a target any more."""
        self._drop(objects.uid(pod), lambda failed: failed == node)

    def on_pod(self, old: Object | None, new: Object | None) -> None:
        """Forget a pod that is gone, and what failed elsewhere once it is bound; a subscriber."""
        uid, node = objects.uid(objects.latest(old, new)), objects.node_name(new or {})
        if new is None or node:
            self._drop(uid, lambda failed: new is None or failed != node)

    def forget(self, policy: str) -> None:
        """Forget a policy that has changed, or is gone: what it did before says nothing of it."""
        failed = self._failed.pop(policy, {})
        for uid, node in failed:
            self._release(uid, policy, node)

        if failed:
            self._changed.call(policy)

    def _drop(self, uid: str, ended: Callable[[str], bool]) -> None:
        """Forget what failed for a pod on the nodes for which that has ended."""
        for policy, node in sorted(self._policies.get(uid, ())):
            if not ended(node):
                continue

            before, failed = self.first(policy), self._failed[policy]
            del failed[uid, node]
            if not failed:
                del self._failed[policy]

            self._release(uid, policy, node)
            if self.first(policy) != before:
                self._changed.call(policy)

    def _release(self, uid: str, policy: str, node: str) -> None:
        places = self._policies[uid]
        places.discard((policy, node))
        if not places:
            del self._policies[uid]
