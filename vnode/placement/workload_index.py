"""Knows which placement policy each pod has, and tells of the pods for which that is another one.

A policy concerns the pods of its namespace only. When one changes, these are looked at again, once,
however many others need to know, and in slices between which everything else has its turn. What
changes while that goes on is gathered: the namespace is looked at once more, after those of others.
Whoever acts by policies subscribes here and to the pods, and walks no pods itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.listeners import Listeners
from vnode.api.objects import Object
from vnode.api.slices import in_slices
from vnode.kube.informer import Handler, Informer
from vnode.planning.policy import Policy, WatchedPolicies
from vnode.runtime.rounds import WorkRounds

EVERYWHERE: Final = ""
"""In place of a namespace: all of them."""


class OtherBoundPods(Protocol):
    """The pods that others bound to virtual nodes."""

    def get(self, key: str) -> Object | None:
        """Return the pod of that key."""

    def subscribe(self, handler: Handler) -> None:
        """Call `handler(old, new)` for every change."""

    def pods_on(self, node_name: str) -> Iterator[Object]:
        """Iterate over those on one virtual node."""


class WorkloadIndex:
    """The policies of all pods that live; one for each term of a leader.

    Subscribers are told of a pod after each change of its policy, not of the pods that come and go.
    """

    def __init__(
        self, proxies: Informer, bound: OtherBoundPods, policies: WatchedPolicies, clock: Clock
    ) -> None:
        self._proxies = proxies
        self._bound = bound
        self._policies = policies
        self._clock = clock
        self._keys: dict[str, set[str]] = {}  # of live pods, by namespace; no empty sets
        self._known: dict[str, Policy] = {}  # by key; pods without a policy are absent
        self._of: dict[str, set[str]] = {}  # keys of pods by the key of their policy; none empty
        self._dirty: dict[str, None] = {}  # namespaces to be looked at again, oldest first
        self._looks = WorkRounds(self._look_at_dirty, clock)
        self._listeners: Listeners[Object] = Listeners()

    async def run(self) -> None:
        """Follow pods and policies until cancelled, once all pods are known."""
        await self._proxies.synced.wait()
        self._policies.subscribe(self._on_policies)
        self._proxies.subscribe(self._on_pod)
        self._bound.subscribe(self._on_pod)
        await self._looks.run()

    async def current(self) -> None:
        """Return once all that has changed until now is known of each pod."""
        await self._looks.done()

    def subscribe(self, changed: Callable[[Object], None]) -> None:
        """Call `changed` with each pod that lives and has another policy than before, or none."""
        self._listeners.add(changed)

    def planned(self) -> Iterator[Object]:
        """Iterate over the pods that have a policy."""
        return self._pods(self._known)

    def pods_of(self, policy: str) -> Iterator[Object]:
        """Iterate over the pods that have the policy of that key."""
        return self._pods(self._of.get(policy, ()))

    def pods_in(self, namespace: str) -> Iterator[Object]:
        """Iterate over the pods of a namespace."""
        return self._pods(self._keys.get(namespace, ()))

    def _pods(self, keys: Iterable[str]) -> Iterator[Object]:
        found = (self._find(key) for key in list(keys))
        return (pod for pod in found if pod is not None)

    def _find(self, key: str) -> Object | None:
        return self._proxies.store.get(key) or self._bound.get(key)

    def _on_policies(self, namespace: str) -> None:
        self._dirty[namespace] = None
        self._looks.ask()

    def _on_pod(self, old: Object | None, new: Object | None) -> None:
        pod = objects.latest(old, new)
        key, namespace = objects.key(pod), objects.namespace(pod)
        if new is None or objects.is_finished(new) or objects.is_terminating(new):
            keys = self._keys.get(namespace, set())
            keys.discard(key)
            if not keys:
                self._keys.pop(namespace, None)

            self._set(key, None)
        else:
            self._keys.setdefault(namespace, set()).add(key)
            self._set(key, self._policies.of(new) if self._policies else None)

    def _set(self, key: str, policy: Policy | None) -> bool:
        """Note the policy of a pod; return whether it is another one than before."""
        before = self._known.pop(key, None)
        if before is not None:
            keys = self._of[before.key]
            keys.discard(key)
            if not keys:
                del self._of[before.key]

        if policy is not None:
            self._known[key] = policy
            self._of.setdefault(policy.key, set()).add(key)

        return before is not policy

    async def _look_at_dirty(self) -> None:
        dirty, self._dirty = self._dirty, {}
        for namespace in dirty:
            await self._look_again(namespace)

    async def _look_again(self, namespace: str) -> None:
        """Find the policies of a namespace's pods anew, and tell of those that are others."""
        if namespace == EVERYWHERE:
            keys = list(itertools.chain.from_iterable(self._keys.values()))
        else:
            keys = list(self._keys.get(namespace, ()))

        async for key in in_slices(keys, self._clock):
            pod = self._find(key)
            if pod is None or key not in self._keys.get(objects.namespace(pod), ()):
                continue

            if self._set(key, self._policies.of(pod) if self._policies else None):
                self._listeners.call(pod)
