"""Limits how often, and how much, a target has this cluster's API server write.

Whatever a target reports ends in objects of the source, each write a new revision in its etcd. A
target may report fifty changes a second, by malice or mistake. So each object has a token bucket,
whose burst is more than an honest change needs, and who reconciles it asks before a write: a key
that has to wait is put back into its queue for that long, and then the present state is written.
Intermediate states are left out, the last one never is.

What all objects of a target share is limited by a `TurnLimiter`. Changes that users make on their
way to a target are limited by the same means.

The numbers are here, for all who write.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from vnode.api.clock import Clock
from vnode.api.durations import TICK
from vnode.api.token_bucket import TokenBucket, TokenBuckets
from vnode.telemetry import metrics

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class WriteLimit:
    """How many writes of one object pass at once, and how many a second over time."""

    burst: int
    rate: float


# A kubelet reports a pod once a second at most, as often as it looks at containers, and a pod that
# starts takes some five reports.
PODS: Final = WriteLimit(10, 1.0)
# As often as a kubelet reports a Node that changes.
NODES: Final = WriteLimit(10, 0.1)
# Addresses of load balancers.
SERVICES: Final = WriteLimit(10, 0.1)
# Conditions: a target is probed every ten seconds.
TARGETS: Final = WriteLimit(10, 0.1)
# Conditions of override policies, which change with what fails for pods.
POLICIES: Final = WriteLimit(10, 0.1)
# What came of a placement policy changes as often as its pods do.
PLACEMENT_POLICIES: Final = WriteLimit(10, 0.1)
# What became of its profiles; targets have no say.
TARGET_SETS: Final = WriteLimit(1, 1.0)
# Scores of a target that are published, when they change.
SCORES: Final = WriteLimit(1, 1 / 30)
# Changes of one pod that users make, on their way to its target. More than a rollout makes by hand
# or a controller in place.
CHANGES: Final = WriteLimit(5, 0.5)
# Those of all pods of a namespace: a label for 500 pods goes at once.
CHANGES_OF_NAMESPACE: Final = WriteLimit(500, 20.0)
# Changes of one object that follows pods, such as a ConfigMap, on their way to one target. Kubelets
# take up to a minute to show them to containers.
COPIES: Final = WriteLimit(5, 0.5)
# Those of all that follow pods of a namespace, to all targets.
COPIES_OF_NAMESPACE: Final = WriteLimit(500, 10.0)
# Changes of one Target, or of the Secret or profile that it names, that are looked at.
TARGET_CHANGES: Final = WriteLimit(10, 0.5)
# Those of all Targets of a namespace, of which twenty are connected.
TARGET_CHANGES_OF_NAMESPACE: Final = WriteLimit(60, 2.0)
# Changes of one Source that are looked at: accounts and bindings are written because of it.
SOURCE_CHANGES: Final = WriteLimit(10, 0.5)
# Those of all Sources of a namespace.
SOURCE_CHANGES_OF_NAMESPACE: Final = WriteLimit(60, 2.0)
# Rebalances of a namespace that begin, each of which looks at all of its pods.
REBALANCES: Final = WriteLimit(20, 0.5)
# Bytes of the pods that are written because of one target: an API server writes a pod as a whole.
# The burst is the start of some 10,000 pods. In the five minutes for which an API server keeps old
# revisions in etcd, that makes 556 MiB, a quarter of etcd's default quota.
BYTES: Final = WriteLimit(256 * 1024 * 1024, 1024 * 1024)
# Pods that are deleted because one target has lost their delegates: their owners make new ones,
# which may go to that target again. Over time as many as Kubernetes evicts from nodes that fail.
LOST_PODS: Final = WriteLimit(1000, 20.0)
# Pods that an API server is asked for since targets have chaperons of them and no agent knows them:
# those of one ClusterTarget, or of all Targets of a namespace.
ORPHANS: Final = WriteLimit(1000, 20.0)


class WriteLimiter(Generic[K]):
    """Limits the writes of objects of one resource, each for itself."""

    def __init__(self, resource: str, limit: WriteLimit, clock: Clock) -> None:
        self._resource = resource
        self._limit = limit
        self._clock = clock
        self._buckets: dict[K, TokenBucket] = {}  # of the objects that were written
        self._waiting: set[K] = set()  # objects whose delay is counted

    def take(self, key: K) -> float:
        """Count a write of the object, which is to follow; else return the seconds to wait."""
        if wait := self.wait(key):
            return wait

        self.written(key)
        return 0.0

    def wait(self, key: K) -> float:
        """Return the seconds until the object may be written: 0 for now."""
        bucket = self._buckets.get(key)
        wait = bucket.wait(self._clock.monotonic()) if bucket is not None else 0.0
        if wait <= TICK:
            return 0.0

        if key not in self._waiting:
            self._waiting.add(key)
            metrics.WRITES_DELAYED.labels(self._resource).inc()

        return wait

    def written(self, key: K) -> None:
        """Count a write of the object."""
        self._waiting.discard(key)
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = TokenBucket(self._limit.rate, self._limit.burst)

        bucket.reserve(self._clock.monotonic())

    def forget(self, key: K) -> None:
        """Drop what is known of an object that is gone."""
        self._buckets.pop(key, None)
        self._waiting.discard(key)


class TurnLimiter(Generic[K]):
    """Limits something that all objects of a target, or of a namespace, share.

    An object that has to wait gets a time of its own, so that thousands that wait do not all wake
    up for the next token.
    """

    def __init__(self, resource: str, limit: WriteLimit, clock: Clock) -> None:
        self._resource = resource
        self._limit = limit
        self._clock = clock
        self._buckets: TokenBuckets[str] = TokenBuckets(limit.burst)  # by target; they come and go
        self._due: dict[K, float] = {}  # monotonic; of objects whose tokens are reserved

    def wait(self, key: K, target: str, tokens: Callable[[], int]) -> float:
        """Return the seconds until the object may have so many tokens: 0 for now.

        `target` is whoever shares them.
        """
        now, bucket = self._clock.monotonic(), self._bucket(target)
        if key in self._due:
            return self.left(key)

        if bucket.wait(now) <= TICK:
            return 0.0

        metrics.WRITES_DELAYED.labels(self._resource).inc()
        self._due[key] = now + bucket.reserve(now, tokens())
        return self.left(key)

    def left(self, key: K) -> float:
        """Return the seconds that an object still has to wait that was told to; else 0."""
        left = self._due.get(key, 0.0) - self._clock.monotonic()
        return left if left > TICK else 0.0

    def done(self, key: K, target: str, tokens: int) -> None:
        """Count the tokens of an object, unless they were reserved."""
        if self._due.pop(key, None) is None:
            self._bucket(target).reserve(self._clock.monotonic(), tokens)

    def forget(self, key: K) -> None:
        """Drop what is known of an object that is gone."""
        self._due.pop(key, None)

    def _bucket(self, target: str) -> TokenBucket:
        return self._buckets.of(target, self._limit.rate, self._clock.monotonic())
