"""Holds the attempts that are under way, one at most for each pod: scheduling -> candidate phase.

An attempt is added once a cycle has found targets for its pod, and goes when it is decided.
Meanwhile what informers tell of the pod, its candidates and its targets wakes it.
"""

from __future__ import annotations

from collections.abc import Iterable

from vnode.api import objects
from vnode.kube.informer import Informer
from vnode.pods.source.attempt import Attempt
from vnode.runtime.link import Link
from vnode.scheduling.assumptions import Assumptions


class Attempts:
    """Keeps attempts by the UIDs of their pods, and what is assumed for them."""

    def __init__(self, proxies: Informer, assumptions: Assumptions) -> None:
        self._proxies = proxies
        self._assumptions = assumptions
        self._attempts: dict[str, Attempt] = {}

    def get(self, uid: str) -> Attempt | None:
        """Return the attempt at a pod, or None."""
        return self._attempts.get(uid)

    def begin(self, attempt: Attempt) -> None:
        """Add an attempt; there must be none at its pod."""
        self._attempts[attempt.uid] = attempt

    def end(self, attempt: Attempt, bound_to: str) -> None:
        """Remove an attempt that is decided, and what is assumed for it on all nodes but one."""
        del self._attempts[attempt.uid]
        self._forget_all_but(attempt, bound_to)

    def forget_promises(self, uid: str) -> None:
        """Withdraw what is assumed for a pod that is gone: whom it kept off is to hear of it."""
        if attempt := self._attempts.get(uid):
            self._forget_all_but(attempt, "")

    def wake(self, uid: str) -> bool:
        """Have the attempt at a pod decide again; return whether there is one."""
        attempt = self._attempts.get(uid)
        if attempt is None:
            return False

        attempt.changed.set()
        return True

    def wake_on(self, link: Link) -> None:
        """Have those decide again that may go to a target, or have a candidate there."""
        node = link.node_name
        self._wake(a for a in self._attempts.values() if node in a.created or node in a.ranked)

    def wake_all(self) -> None:
        """Have all decide again."""
        self._wake(self._attempts.values())

    def _wake(self, attempts: Iterable[Attempt]) -> None:
        for attempt in attempts:
            attempt.changed.set()

    def _forget_all_but(self, attempt: Attempt, winner: str) -> None:
        """Withdraw the assumptions of an attempt that is over, but not where the pod is bound."""
        bound = self._proxies.store.get(attempt.key)
        if bound is not None and objects.uid(bound) == attempt.uid:
            winner = winner or objects.node_name(bound)

        for node in {*attempt.created, attempt.winner} - {winner}:
            self._assumptions.forget(attempt.uid, node)
