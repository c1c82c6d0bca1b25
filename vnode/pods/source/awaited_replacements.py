"""Has the delegates of pods that vnode moves run on until the pods that replace them are ready.

Who moves a pod says so here, and then deletes it; its owner makes another one at once, and the
finalizer keeps the old one. `Termination` asks here before it has a delegate end. What waits gets a
condition, which tells people why the pod still runs, and the next leader that it is to wait. The
condition alone has nothing wait for long: the pod's owner, its policy, and the moment of the
deletion say whether, and until when (docs/decisions/0051). The policy that counts is that of the
moment at which the pod was moved: what becomes of it later ends no pod that waits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from vnode.api import disruptions, keys, objects
from vnode.api.clock import Clock
from vnode.api.durations import TICK
from vnode.api.objects import Object
from vnode.api.owners import OwnerKey, owner_key
from vnode.kube.events import NORMAL, WARNING, EventRecorder, about
from vnode.kube.informer import Informer
from vnode.planning.failover import (
    FAILOVER_REASON,
    LONGEST_GRACE,
    EndingPod,
    LivePod,
    awaiting,
)
from vnode.planning.policy import WatchedPolicies
from vnode.pods.source import proxy_state

WAITS: Final = "AwaitsReplacement"
LATE: Final = "ReplacementLate"

# Owners that replace a pod as soon as it is deleted, and may have both run for a while.
_OWNERS: Final = frozenset((("apps/v1", "ReplicaSet"), ("v1", "ReplicationController")))


@dataclass(frozen=True, slots=True)
class _Begun:
    """A pod that this leader has deleted, or is about to."""

    why: str
    since: float  # wall clock
    known: frozenset[str]  # UIDs of its owner's pods before
    grace: float  # seconds for which it may wait, by its policy


class AwaitedReplacements:
    """Runs in the leader; implements `vnode.planning.failover.Replacements`.

    Until `open` is called, all that is marked waits: the policies may not be known yet. `wake` is
    called with the key of a pod that waits, when it may end.
    """

    def __init__(
        self,
        proxies: Informer,
        policies: WatchedPolicies,
        events: EventRecorder,
        clock: Clock,
        wake: Callable[[str], None],
    ) -> None:
        self._proxies = proxies
        self._policies = policies
        self._events = events
        self._clock = clock
        self._wake = wake
        self._is_open = False
        self._begun: dict[str, _Begun] = {}  # by UID; goes with the pod
        self._waiting: dict[OwnerKey | None, set[str]] = {}  # owner -> keys; no empty sets

    def follow(self) -> None:
        """Follow pods and policies from now on."""
        self._proxies.subscribe(self._on_pod)
        self._policies.subscribe(self._wake_of)

    def open(self) -> None:
        """Decide from now on: the policies are known."""
        self._is_open = True
        self._wake_of("")

    def await_replacement(self, pod: Object, why: str) -> None:
        """Note that the pod is about to be deleted, for that reason; call it right before."""
        known = frozenset(objects.uid(other) for other in self._of_owner(pod))
        policy, now = self._policies.of(pod), self._clock.now().timestamp()
        grace = policy.replacement_grace if policy is not None else 0.0
        self._begun[objects.uid(pod)] = _Begun(why, now, known, grace)

    def withdraw(self, pod: Object) -> None:
        """Take that back: the pod was not deleted."""
        self._begun.pop(objects.uid(pod), None)

    def is_moved(self, pod: Object) -> bool:
        """Tell whether vnode itself has ended the pod, for another one to replace it elsewhere."""
        return self._is_marked(pod) or disruptions.of(pod).get("reason") == FAILOVER_REASON

    def mark(self, proxy: Object) -> Object:
        """Build the patch of a pod's status by which people and the next leader see that it waits.

        Empty if the pod does not, or has the mark. Its target may be out of reach.
        """
        begun = self._begun.get(objects.uid(proxy))
        if begun is None or not begun.grace:
            return {}

        if awaits_replacement(proxy) or not _is_replaced_at_once(proxy):
            return {}

        until = datetime.fromtimestamp(_deleted_at(proxy) + begun.grace, UTC)
        condition = {
            "type": keys.AWAITS_REPLACEMENT,
            "status": "True",
            "reason": WAITS,
            "message": (
                f"{begun.why}; runs on until a pod that replaces it is ready, until "
                f"{objects.timestamp(until)} at most; kubectl delete pod --now ends it"
            ),
            "lastTransitionTime": objects.timestamp(self._clock.now()),
        }
        return objects.status_patch(proxy, {"conditions": [condition]})

    def waits(self, proxy: Object, chaperon: Object) -> tuple[bool, float | None]:
        """Tell whether a terminating pod is to run on, and in how many seconds to ask again.

        `wake` is called when pods or policies change; None if nothing else can.
        """
        may_wait = self._is_marked(proxy) and _is_replaced_at_once(proxy)
        if not may_wait or not proxy_state.may_run_on(proxy, chaperon):
            waits, seconds = False, None
        else:
            waits, seconds = self._decide(proxy) if self._is_open else (True, None)

        if waits:
            self._begin(proxy)
        else:
            self._stop(proxy)

        return waits, seconds

    def _decide(self, proxy: Object) -> tuple[bool, float | None]:
        now = self._clock.now().timestamp()
        left = _deleted_at(proxy) + self._grace(proxy) - now
        waiting, seconds = awaiting(self._ending(proxy), self._living(proxy), now)
        if objects.uid(proxy) not in waiting or seconds is None:
            return False, None

        if left < TICK and self._is_waiting(proxy):
            text = "no pod that replaces this one has become ready in time; it ends now"
            self._events.event(about(proxy), WARNING, LATE, text)

        return left >= TICK, min(seconds, left)

    def _grace(self, pod: Object) -> float:
        """Return for how many seconds a pod may wait; what a former leader has begun says it."""
        if begun := self._begun.get(objects.uid(pod)):
            return begun.grace

        said = str((objects.condition(pod, keys.AWAITS_REPLACEMENT) or {}).get("message") or "")
        until = objects.parse_timestamp(said.rpartition(" until ")[2].partition(" ")[0])
        if until is not None:
            return min(until.timestamp() - _deleted_at(pod), LONGEST_GRACE)

        policy = self._policies.of(pod)
        return policy.replacement_grace if policy is not None else 0.0

    def _begin(self, pod: Object) -> None:
        condition = objects.condition(pod, keys.AWAITS_REPLACEMENT)
        if condition is not None and not self._is_waiting(pod):
            self._events.event(about(pod), NORMAL, WAITS, str(condition.get("message") or ""))

        self._waiting.setdefault(owner_key(pod), set()).add(objects.key(pod))

    def _is_waiting(self, pod: Object) -> bool:
        return objects.key(pod) in self._waiting.get(owner_key(pod), ())

    def _stop(self, pod: Object) -> None:
        if self._is_waiting(pod):
            owner = owner_key(pod)
            self._waiting[owner].discard(objects.key(pod))
            if not self._waiting[owner]:
                del self._waiting[owner]

    def _is_marked(self, pod: Object) -> bool:
        return objects.uid(pod) in self._begun or awaits_replacement(pod)

    def _of_owner(self, pod: Object) -> list[Object]:
        owner = owner_key(pod)
        return self._proxies.store.by_index(proxy_state.CONTROLLER_INDEX, owner) if owner else []

    def _ending(self, proxy: Object) -> list[EndingPod]:
        """Return the pods of the owner that wait, or waited; this one serves."""
        own = objects.uid(proxy)
        return [
            self._ending_pod(pod, serves=objects.uid(pod) == own or objects.is_ready(pod))
            for pod in self._of_owner(proxy)
            if objects.is_terminating(pod) and self._is_marked(pod)
        ]

    def _ending_pod(self, pod: Object, *, serves: bool) -> EndingPod:
        uid, created = objects.uid(pod), _created_at(pod)
        begun = self._begun.get(uid)
        if begun is None:
            return EndingPod(uid, _deleted_at(pod), None, created, serves)

        return EndingPod(uid, begun.since, begun.known, created, serves)

    def _living(self, proxy: Object) -> list[LivePod]:
        return [
            LivePod(objects.uid(pod), _created_at(pod), objects.is_ready(pod))
            for pod in self._of_owner(proxy)
            if not objects.is_terminating(pod) and not objects.is_finished(pod)
        ]

    def _on_pod(self, old: Object | None, new: Object | None) -> None:
        pod = objects.latest(old, new)
        if new is None or (old is not None and objects.uid(old) != objects.uid(new)):
            self._begun.pop(objects.uid(old or {}), None)
            self._stop(old or {})

        waiting = self._waiting.get(owner_key(pod))
        if waiting and _concerns(old) != _concerns(new):
            for key in list(waiting):
                self._wake(key)

    def _wake_of(self, namespace: str) -> None:
        """Look at the pods of a namespace again that wait; "" for all."""
        for waiting in list(self._waiting.values()):
            for key in list(waiting):
                if namespace in ("", objects.key_namespace(key)):
                    self._wake(key)


def awaits_replacement(pod: Object) -> bool:
    """Tell whether the pod is marked as one that waits."""
    return objects.is_condition_true(pod, keys.AWAITS_REPLACEMENT)


def _is_replaced_at_once(pod: Object) -> bool:
    owner = objects.controller_reference(pod) or {}
    return (owner.get("apiVersion"), owner.get("kind")) in _OWNERS


def _deleted_at(pod: Object) -> float:
    """Return when the pod was deleted, by the API server's clock."""
    metadata = objects.metadata(pod)
    grace = float(metadata.get("deletionGracePeriodSeconds") or 0)
    return _seconds(metadata.get("deletionTimestamp")) - grace


def _created_at(pod: Object) -> float:
    return _seconds(objects.created(pod))


def _seconds(timestamp: object) -> float:
    moment = objects.parse_timestamp(str(timestamp or ""))
    return moment.timestamp() if moment else 0.0


def _concerns(pod: Object | None) -> tuple[bool, ...]:
    """Return what of a pod those that wait depend on."""
    if pod is None:
        return ()

    return objects.is_terminating(pod), objects.is_finished(pod), objects.is_ready(pod)
