"""Has elected pods run whose API servers are in memory, as the fuzzer's are."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tests.fuzz import canary
from tests.fuzz.environment import FuzzEnvironment
from tests.simulation.owners import TOLERATIONS
from vnode.api import kinds, objects
from vnode.api.objects import Object


def lasting(name: str, namespace: str) -> Object:
    """Build a pod that a pause of the machine does not evict."""
    pod = canary.pod(name, namespace)
    pod["spec"]["tolerations"] = list(TOLERATIONS)
    return pod


def running(env: FuzzEnvironment, namespace: str) -> int:
    """Count the pods of a namespace of the source that run."""
    pods = env.source.store.all(kinds.PODS)
    return sum(
        objects.namespace(pod) == namespace and objects.status(pod).get("phase") == "Running"
        for pod in pods
    )


async def start(
    env: FuzzEnvironment, pods: Sequence[Object], *, at_once: int, patience: float
) -> None:
    """Create pods of one namespace, some at once; return when they run beside those before.

    Raises TimeoutError if they do not within `patience` seconds.
    """
    namespace, gate = objects.namespace(pods[0]), asyncio.Semaphore(at_once)
    before = running(env, namespace)

    async def create(pod: Object) -> None:
        async with gate:
            assert await canary.admit(env, pod) is not None, "refused"

    await asyncio.gather(*map(create, pods))
    if not await env.happens(lambda: running(env, namespace) == before + len(pods), patience):
        ran = running(env, namespace) - before
        raise TimeoutError(f"only {ran} of {len(pods)} pods run")
