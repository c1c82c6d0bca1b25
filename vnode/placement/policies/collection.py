"""Keeps the placement policies that are in force: valid ones whose clusters exist, or did.

Of each namespace, and of those for all, these are the oldest (`quota`). Pods without one may be
kept together by their labels (`vnode.planning.kept_together`).

A Target or a decision that changes may concern thousands of policies. These are judged again in
slices, once for all that has changed meanwhile, and in a quarter of the time at most.

All replicas watch both kinds. A cluster without their CRDs, or an agent without the right to list
them, has no policies, and nothing else waits for them: who has none pays nothing. Who schedules
learns by `subscribe` that a policy has begun, changed or ended.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from vnode.api import objects, visible
from vnode.api.clock import Clock, SystemClock, happens_within
from vnode.api.durations import TICK
from vnode.api.errors import MESSAGE_LIMIT, ConfigError
from vnode.api.listeners import Listeners
from vnode.api.objects import Object
from vnode.api.slices import in_slices
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.placement.decisions.followed import FollowedDecisions
from vnode.placement.policies import decoding, judging, quota
from vnode.placement.policies.asked_clusters import AskedClusters, KnownClusters
from vnode.placement.policies.judging import INVALID, UNKNOWN_CLUSTER, PolicyVerdict, in_time
from vnode.placement.policies.matching import PolicyIndex
from vnode.placement.policies.quota import PolicyQuota
from vnode.planning.cluster_decision import DecisionReference
from vnode.planning.kept_together import KeptTogether
from vnode.planning.policy import Policy
from vnode.runtime.rounds import WorkRounds
from vnode.runtime.supervisor import supervise

_CLOCK_CHECK: Final = 600.0  # seconds after which the wall clock is looked at again: it may jump


class PlacementPolicies:
    """The policies that are in force; implements `vnode.planning.policy.Policies`."""

    def __init__(
        self,
        client: Client,
        clusters: KnownClusters,
        clock: Clock | None = None,
        kept_together: Sequence[str] = (),
    ) -> None:
        self._kept_together = KeptTogether(kept_together)
        self._clock: Clock = clock or SystemClock()
        self._drain_ends: dict[str, float] = {}  # by policy: when (wall clock) its next drain does
        self._ends_changed = asyncio.Event()
        self.informers = tuple(Informer(client, kind) for kind in decoding.KINDS)
        self._clusters = clusters
        self._decisions = FollowedDecisions(client, self._on_decisions)
        self._asked = AskedClusters(clusters, self._decisions)
        self._quota = PolicyQuota()
        self._verdicts: dict[str, PolicyVerdict] = {}  # by the key of the object
        self._in_force: dict[str, Policy] = {}
        self._index = PolicyIndex()  # of those in force
        self._decoded: dict[str, tuple[Object, Policy]] = {}  # by key, each of that object
        # Policies to be judged again: by key, the oldest first, and all of namespaces for which
        # there may be other clusters, "" for all.
        self._again: dict[str, None] = {}
        self._stale: set[str] = set()
        self._judging = WorkRounds(self._judge_pending, self._clock)
        self._judge_all("")
        self._listeners: Listeners[str] = Listeners()
        self._verdict_listeners: Listeners[str] = Listeners()
        for informer in self.informers:
            informer.subscribe(self._on_policy)

        for informer in clusters.informers:
            informer.subscribe(self._on_target)

    def __bool__(self) -> bool:
        """Return whether there may be one for a pod."""
        return bool(self._in_force or self._kept_together)

    async def run(self) -> None:
        """Watch them until cancelled."""
        async with supervise() as tasks, asyncio.TaskGroup() as group:
            self._decisions.start(tasks.keyed(clock=self._clock))
            for informer in self.informers:
                group.create_task(informer.run(), name=informer.kind.plural)

            group.create_task(self._end_drains(), name="drains")
            await self._clusters.wait_synced()
            self._judge_all("")
            group.create_task(self._judging.run(), name="judging")

    async def wait_known(self) -> None:
        """Return once all are known, or it is known that there can be none."""
        for informer in self.informers:
            await informer.answered.wait()

        await self._clusters.wait_synced()
        await self._decisions.wait_known()
        await self._judging.done()

    def of(self, pod: Object) -> Policy | None:
        """Return the policy of a pod, None if there is none for it."""
        found = self._index.of(pod) if self._in_force else None
        return self._kept_together.of(pod) if found is None else found

    def in_force(self) -> Mapping[str, Policy]:
        """Return those in force, by the keys of their objects; do not change it."""
        return self._in_force

    def groupings(self, namespace: str) -> frozenset[str]:
        """Return what policies for pods of a namespace group by, "" for their owners."""
        return self._index.groupings(namespace) | self._kept_together.groupings

    def get(self, key: str) -> Object | None:
        """Return the object of that key: NAMESPACE/NAME, or NAME for a cluster-wide one."""
        local, cluster_wide = self.informers
        return (local if "/" in key else cluster_wide).store.get(key)

    def keys(self) -> list[str]:
        """Return the keys of all policies that there are, in force or not."""
        return list(self._verdicts)

    def verdict(self, key: str) -> PolicyVerdict | None:
        """Return whether the policy of that key is in force; None if there is no such policy."""
        return self._verdicts.get(key)

    def subscribe(self, changed: Callable[[str], None]) -> None:
        """Call `changed` whenever a policy begins or ceases to be in force, or is another one.

        With the namespace whose pods that concerns, "" for all.
        """
        self._listeners.add(changed)

    def subscribe_verdicts(self, changed: Callable[[str], None]) -> None:
        """Call `changed` with the key of a policy that there is whenever its verdict is another."""
        self._verdict_listeners.add(changed)

    def _on_policy(self, old: Object | None, new: Object | None) -> None:
        key, other = objects.key(objects.latest(old, new)), self._quota.observe(old, new)
        if new is None:
            self._verdicts.pop(key, None)
            self._decoded.pop(key, None)
            self._drain_ends.pop(key, None)
            self._decisions.use(key, None)
        else:
            if old is not None and objects.uid(old) != objects.uid(new):
                self._verdicts.pop(key, None)  # what was accepted before is another one

            if old is None or objects.spec(old) != objects.spec(new):
                self._asked.forget_decisions()  # one that nobody has followed may be another now

            self._decide(key, new)

        if self._enforce(key):
            self._listeners.call(objects.split_key(key)[0])

        if other is not None:
            self._judge_again((other,))

    def _on_target(self, old: Object | None, new: Object | None) -> None:
        if old is None or new is None or objects.spec(old) != objects.spec(new):
            self._asked.forget()
            self._judge_all(objects.namespace(objects.latest(old, new)))

    def _on_decisions(self, concerns: Callable[[DecisionReference], bool]) -> None:
        """Judge the policies again that follow these decisions."""
        self._asked.forget_decisions()
        follows = [
            key
            for key, policy in self._in_force.items()
            if policy.decision is not None and concerns(policy.decision.reference)
        ]
        self._judge_again(follows)

    def _judge_all(self, namespace: str) -> None:
        """Judge the policies that name clusters again: a Target of a namespace, or of all, has
        come, gone or changed."""
        self._stale.add(namespace)
        self._judging.ask()

    def _judge_again(self, policies: Iterable[str]) -> None:
        self._again.update(dict.fromkeys(policies))
        if self._again:
            self._judging.ask()

    async def _judge_pending(self) -> None:
        again, self._again = self._again, {}
        stale, self._stale = self._stale, set()
        changed = set[str]()
        self._asked.forget_decisions()
        async for key in in_slices(self._pending(again, stale), self._clock):
            if (obj := self.get(key)) is not None:
                self._decide(key, obj)
                if self._enforce(key):
                    changed.add(objects.namespace(obj))

        for namespace in sorted(changed):
            self._listeners.call(namespace)

    def _pending(self, again: Iterable[str], stale: Collection[str]) -> Iterator[str]:
        """Iterate over the keys of policies that are to be judged again."""
        yield from again
        for key, verdict in list(self._verdicts.items()) if stale else ():
            namespace, policy = objects.key_namespace(key), verdict.policy
            if not ("" in stale or namespace in stale or not namespace):
                continue  # no policy may name a Target of another namespace

            asks = policy is not None and judging.asks_for_clusters(policy)
            if asks or verdict.reason == UNKNOWN_CLUSTER:
                yield key

    def _decide(self, key: str, obj: Object) -> None:
        """Judge a policy, and tell if the verdict is another one than before."""
        before, verdict = self._verdicts.get(key), self._judge(obj)
        self._verdicts[key] = verdict
        if verdict != before:
            self._verdict_listeners.call(key)

    def _enforce(self, key: str) -> bool:
        """Put the policy into force, or out of it; return whether that changed anything."""
        verdict, before = self._verdicts.get(key), self._in_force.get(key)
        policy = verdict.policy if verdict else None
        if policy == before:
            return False

        if policy is None:
            self._index.remove(self._in_force.pop(key))
        else:
            self._in_force[key] = policy
            self._index.set(policy)

        return True

    def _judge(self, obj: Object) -> PolicyVerdict:
        key = objects.key(obj)
        if problem := self._quota.problem(key):
            self._decisions.use(key, None)
            self._decoded.pop(key, None)
            self._drain_ends.pop(key, None)
            return PolicyVerdict(None, quota.TOO_MANY, problem)

        try:
            policy = self._decode(key, obj)
        except ConfigError as error:
            self._decisions.use(key, None)
            return PolicyVerdict(None, INVALID, visible.line(str(error))[:MESSAGE_LIMIT])

        known, before = self._asked.names(policy.namespace), self._verdicts.get(key)
        if known is None:
            verdict = PolicyVerdict(policy, is_final=not judging.names_of(policy))
        else:
            was = before.policy if before is not None and before.is_final else None
            existed = judging.names_of(was)
            if judging.was_accepted(obj):
                existed |= judging.names_of(policy)

            verdict = judging.judge(policy, known, existed)

        if verdict.policy is None:
            return verdict

        decided = self._decided(key, self._without_ended(key, policy))
        return dataclasses.replace(verdict, policy=decided)

    def _decided(self, key: str, policy: Policy) -> Policy:
        """Return the policy with what is decided now, if it follows a decision."""
        reference = policy.decision.reference if policy.decision is not None else None
        self._decisions.use(key, reference)
        if reference is None:
            return policy

        decision = self._asked.decision(policy.namespace, reference)
        return dataclasses.replace(policy, decision=decision)

    def _decode(self, key: str, obj: Object) -> Policy:
        """Return the policy of an object, which is decoded once for each specification."""
        known, policy = self._decoded.pop(key, None), None
        if known is not None and objects.uid(known[0]) == objects.uid(obj):
            policy = known[1] if objects.spec(known[0]) == objects.spec(obj) else None

        policy = policy or decoding.decode(obj)
        self._decoded[key] = obj, policy
        return policy

    def _without_ended(self, key: str, policy: Policy) -> Policy:
        """Return the policy without the drains that have ended, and note when the next one does."""
        left = in_time(policy, self._clock.now().timestamp())
        ends = [drain.until for drain in left.drains if drain.until is not None]
        self._drain_ends.pop(key, None)
        if ends:
            self._drain_ends[key] = min(ends)
            self._ends_changed.set()

        return left

    async def _end_drains(self) -> None:
        """Judge policies again when one of their drains ends."""
        while True:
            self._ends_changed.clear()
            now = self._clock.now().timestamp()
            wait = min(self._drain_ends.values()) - now if self._drain_ends else None
            if wait is not None and wait < TICK:
                self._judge_ended(now)
            else:
                limit = None if wait is None else min(wait, _CLOCK_CHECK)
                await happens_within(self._ends_changed, limit)

    def _judge_ended(self, now: float) -> None:
        ended = [key for key, end in self._drain_ends.items() if end - now < TICK]
        for key in ended:
            del self._drain_ends[key]

        self._judge_again(ended)
