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
)
from vnode.planning.policy import WatchedPolicies
from vnode.pods.source import proxy_state
from vnode.pods.source.begun_moves import BegunMoves
from vnode.pods.source.replacement_rounds import ASK_AGAIN, ReplacementRounds

WAITS: Final = "AwaitsReplacement"
LATE: Final = "ReplacementLate"

# Owners that replace a pod as soon as it is deleted, and may have both run for a while.
_OWNERS: Final = frozenset((("apps/v1", "ReplicaSet"), ("v1", "ReplicationController")))


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
        self._begun = BegunMoves()
        self._waiting: dict[OwnerKey | None, set[str]] = {}  # owner -> keys; no empty sets
        # UIDs of marked pods whose delegates were ready when they asked last; go with the pods.
        self._serving: set[str] = set()
        self._rounds = ReplacementRounds(
            proxies, clock, ending=self._ending, living=self._living, wake=wake
        )

    async def run(self) -> None:
        """Find who waits, until cancelled."""
        await self._rounds.run()

    def follow(self) -> None:
        """Follow pods and policies from now on."""
        self._proxies.subscribe(self._on_pod)
        self._policies.subscribe(self._wake_of)

    def on_other_pod(self, old: Object | None, new: Object | None) -> None:
        """Take a pod that others have bound to a virtual node: it is moved, too, and never waits.

        Nothing of it stays when it is gone.
        """
        if old is not None and new is None:
            self._begun.forget(old)

    def open(self) -> None:
        """Decide from now on: the policies are known."""
        self._is_open = True
        self._wake_of("")

    def await_replacement(self, pod: Object, why: str) -> None:
        """Note that the pod is about to be deleted, for that reason; call it right before."""
        policy, now = self._policies.of(pod), self._clock.now().timestamp()
        grace = policy.replacement_grace if policy is not None else 0.0
        self._begun.begin(pod, why, now, grace)

    def withdraw(self, pod: Object) -> None:
        """Take that back: the pod was not deleted."""
        self._begun.forget(pod)
        self._wake(objects.key(pod))  # others may have deleted it meanwhile

    def is_moved(self, pod: Object) -> bool:
        """Tell whether vnode itself has ended the pod, for another one to replace it elsewhere."""
        return self._is_marked(pod) or disruptions.of(pod).get("reason") == FAILOVER_REASON

    def mark(self, proxy: Object) -> Object:
        """Build the patch of a pod's status by which people and the next leader see that it waits.

        Empty if the pod does not, or has the mark. Its target may be out of reach.
        """
        begun = self._begun.of(proxy)
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

        `wake` is called when the answer is another one; None if nothing else can change it.
        """
        may_wait = self._is_marked(proxy) and _is_replaced_at_once(proxy)
        known = self._proxies.store.get(objects.key(proxy)) or {}
        may_wait = may_wait and objects.uid(known) == objects.uid(proxy)
        if not may_wait or not proxy_state.may_run_on(proxy, chaperon):
            self._serving.discard(objects.uid(proxy))
            self._stop(proxy)
            return False, None

        self._serving.add(objects.uid(proxy))
        waits = self._rounds.waits(proxy) if self._is_open else True
        if waits is None:
            return True, ASK_AGAIN

        left = self._left(proxy) if waits and self._is_open else None
        if not waits or (left is not None and left < TICK):
            self._stop(proxy)
            return False, None

        self._begin(proxy)
        return True, left

    def _left(self, proxy: Object) -> float:
        """Return for how many seconds a pod may wait still; tell if it has waited in vain."""
        left = _deleted_at(proxy) + self._grace(proxy) - self._clock.now().timestamp()
        if left < TICK and self._is_waiting(proxy):
            text = "no pod that replaces this one has become ready in time; it ends now"
            self._events.event(about(proxy), WARNING, LATE, text)

        return left

    def _grace(self, pod: Object) -> float:
        """Return for how many seconds a pod may wait; what a former leader has begun says it."""
        if begun := self._begun.of(pod):
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
        return self._begun.of(pod) is not None or awaits_replacement(pod)

    def _ending(self, pod: Object) -> EndingPod | None:
        """Return what is known of a pod that ends; None if it waits for nothing."""
        if not self._is_marked(pod):
            return None

        uid, begun = objects.uid(pod), self._begun.of(pod)
        since, before = (begun.since, begun.before) if begun else (_deleted_at(pod), None)
        serves = uid in self._serving or objects.is_ready(pod)
        return EndingPod(uid, since, before, _created_at(pod), serves, self._begun.number(pod))

    def _living(self, pod: Object) -> LivePod:
        is_ready, number = objects.is_ready(pod), self._begun.number(pod)
        return LivePod(objects.uid(pod), _created_at(pod), is_ready, number)

    def _on_pod(self, old: Object | None, new: Object | None) -> None:
        owner = owner_key(objects.latest(old, new))
        self._begun.on_pod(old, new)
        if _concerns(old) != _concerns(new):
            self._rounds.look_at(owner)

        if old is not None and (new is None or owner_key(old) != owner):
            self._serving.discard(objects.uid(old))
            self._stop(old)
            self._rounds.forget(old)

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
