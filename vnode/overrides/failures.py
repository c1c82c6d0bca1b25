"""Remembers which pods a policy keeps from which targets, for the policy's condition."""

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
        self._failed: dict[str, dict[_Place, str]] = {}  # by key of the policy; no empty ones
        self._changed: Listeners[str] = Listeners()

    def subscribe(self, changed: Callable[[str], None]) -> None:
        """Call `changed` with the key of a policy for which `first` has changed."""
        self._changed.add(changed)

    def first(self, policy: str) -> str:
        """Return one failure of a policy, the first in order; "" if there is none."""
        return min(self._failed.get(policy, {}).values(), default="")

    def add(self, policy: str, pod: Object, node: str, message: str) -> None:
        """Note that a policy cannot be applied to a pod for a target."""
        before = self.first(policy)
        self._failed.setdefault(policy, {})[objects.uid(pod), node] = message
        if self.first(policy) != before:
            self._changed.call(policy)

    def clear(self, pod: Object, node: str) -> None:
        """Note that nothing keeps a pod from a target any more."""
        place = (objects.uid(pod), node)
        self._drop(lambda failed: failed == place)

    def on_pod(self, old: Object | None, new: Object | None) -> None:
        """Forget a pod that is gone, and what failed elsewhere once it is bound; a subscriber."""
        if not self._failed:
            return

        uid, node = objects.uid(objects.latest(old, new)), objects.node_name(new or {})
        if new is None or node:
            self._drop(lambda failed: failed[0] == uid and (new is None or failed[1] != node))

    def forget(self, policy: str) -> None:
        """Forget a policy that has changed, or is gone: what it did before says nothing of it."""
        if self._failed.pop(policy, None):
            self._changed.call(policy)

    def _drop(self, ended: Callable[[_Place], bool]) -> None:
        for policy, failed in list(self._failed.items()):
            before = self.first(policy)
            for place in [place for place in failed if ended(place)]:
                del failed[place]

            if not failed:
                del self._failed[policy]

            if self.first(policy) != before:
                self._changed.call(policy)
