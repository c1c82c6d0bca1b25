"""Evicts pods: deletes them as far as disruption budgets allow it, at a rate.

An informer lags behind, and a budget may refuse for long. So an `Evictor` remembers whom it has
evicted, until the store shows that they end, and until when those are left alone whose eviction was
refused: others can go meanwhile.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from vnode.api import disruptions, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import ApiError
from vnode.api.objects import Object
from vnode.api.token_bucket import MinuteLimits
from vnode.kube.client import Client

RETRY_AFTER: Final = 5.0  # seconds until a refused eviction is tried again, as in kubectl

K = TypeVar("K", bound=Hashable)


async def evict(client: Client, pod: Object, *, grace: int | None = None) -> None:
    """Evict a pod, and no later one of its name.

    Raises TooManyRequests if a budget does not allow it now, NotFound or Conflict if the pod is
    gone.
    """
    name, namespace = objects.name(pod), objects.namespace(pod)
    options: Object = {"preconditions": {"uid": objects.uid(pod)}}
    if grace is not None:
        options["gracePeriodSeconds"] = grace

    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
        "deleteOptions": options,
    }
    await client.create(kinds.PODS, body, namespace, name=name, subresource="eviction")


class Evictor(Generic[K]):
    """Evicts pods, as often a minute as each key allows; `burst` of a key pass at once.

    With an `interval`, whose turn it is may be asked as rarely as that.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        burst: int = 1,
        interval: float = 0.0,
        retry_after: float = RETRY_AFTER,
    ) -> None:
        self._client = client
        self._clock = clock
        self._retry_after = retry_after
        self._limits: MinuteLimits[K] = MinuteLimits(burst, interval=interval)
        self._evicted: set[str] = set()  # UIDs, until the store shows that they terminate
        self._refused: dict[str, float] = {}  # by UID: when (monotonic) it is tried again

    def on_pod(self, old: Object | None, new: Object | None) -> None:
        """Forget what is known of a pod that ends; a handler for informers of pods."""
        if old is not None and (new is None or objects.is_terminating(new)):
            self._evicted.discard(objects.uid(old))
            self._refused.pop(objects.uid(old), None)

    def is_ending(self, pod: Object) -> bool:
        """Tell whether a pod terminates, or was evicted and the store does not show it yet."""
        return objects.is_terminating(pod) or objects.uid(pod) in self._evicted

    def retry_in(self, pod: Object) -> float:
        """Return the seconds until a pod may be tried that was refused: 0 for now."""
        now = self._clock.monotonic()
        return max(0.0, self._refused.get(objects.uid(pod), now) - now)

    def wait(self, key: K, per_minute: int) -> float:
        """Return the seconds until the next eviction of that key: 0 for now."""
        return self._limits.wait(key, per_minute, self._clock.monotonic())

    def turn(self, key: K, per_minute: int) -> float:
        """Count an eviction of that key, if it is time; else return the seconds to wait."""
        now, limits = self._clock.monotonic(), self._limits
        return 0.0 if limits.take(key, per_minute, now) else limits.wait(key, per_minute, now)

    async def evict(self, pod: Object) -> ApiError | None:
        """Evict a pod; return why that was refused, None if it was not."""
        try:
            await evict(self._client, pod)
        except ApiError as error:
            wait = max(self._retry_after, getattr(error, "retry_after", 0.0))
            self._refused[objects.uid(pod)] = self._clock.monotonic() + wait
            return error

        self._evicted.add(objects.uid(pod))
        return None

    async def delete(self, pod: Object, reason: str, why: str) -> None:
        """Delete a pod without asking budgets, like Kubernetes does on a node that fails.

        A Job tells by the condition DisruptionTarget that the pod has not failed.
        """
        condition = disruptions.condition(reason, why, self._clock.now())
        await self._client.patch(
            kinds.PODS,
            objects.name(pod),
            objects.status_patch(pod, {"conditions": [condition]}),
            objects.namespace(pod),
            subresource="status",
            strategic=True,
        )
        await self._client.discard(kinds.PODS, pod)
        self._evicted.add(objects.uid(pod))
