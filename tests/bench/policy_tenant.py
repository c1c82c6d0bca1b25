"""Measures what one namespace's policies cost all others, with whole agents.

A tenant has many pods, and policies whose selectors are as costly as their schema allows: all
expressions but one hold for each pod. Then one policy is patched again and again. A bystander in
another namespace starts a pod meanwhile, and another when it runs. API servers are in memory, and
everything else is as in `tests.fuzz`, whose meter tells how long callbacks of the agent take.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import aiohttp

from hack.fleetlib import progress
from tests import placement_policies
from tests.bench import accounts, memory_pods, policy_figures
from tests.bench.figures import quantiles
from tests.bench.policy_figures import AFTER, BEFORE, CREATED, PATCHED, PolicyStage
from tests.fuzz import canary
from tests.fuzz.environment import CANARY, TENANT, FuzzEnvironment
from vnode.api import kinds, objects
from vnode.api.objects import Object

_WRITTEN: Final = 0.005  # seconds of CPU time; shorter callbacks are not written down
_AT_ONCE: Final = 8  # pods of the tenant that are created
_PATIENCE: Final = 600.0  # seconds
_ACCEPTED: Final = 120.0  # seconds; if the policies are not in force by then, it goes on
_PAUSE: Final = 0.3  # seconds between pods of the bystander, and looks at the agent's health


class PolicyTenant:
    """The tenant and the bystander; `stages` are measured one after the other."""

    def __init__(self, env: FuzzEnvironment, policies: int) -> None:
        self._env = env
        self._policies = policies
        self._agent = env.agents["source"]
        self._numbers = itertools.count()

    async def fill(self, pods: int) -> None:
        """Have the tenant's pods run."""
        manifests = [_pod(number) for number in range(pods)]
        await memory_pods.start(self._env, manifests, at_once=_AT_ONCE, patience=_PATIENCE)

    async def measure(self, seconds: float, a_second: float) -> list[PolicyStage]:
        """Measure before there are policies, as they are created, as one is patched, and after."""
        return [
            await self._stage(BEFORE, lambda: asyncio.sleep(seconds / 2, 0)),
            await self._stage(CREATED, lambda: self._create(seconds / 2)),
            await self._stage(PATCHED, lambda: self._patch(seconds, a_second)),
            await self._stage(AFTER, lambda: asyncio.sleep(seconds / 2, 0)),
        ]

    async def _stage(self, name: str, act: Callable[[], Awaitable[int]]) -> PolicyStage:
        progress.say(f"{name} ...")
        await self._start_one()
        self._agent.callbacks()  # what was before does not count
        starts, answers = list[float](), list[float]()
        began, before = time.monotonic(), accounts.usage(self._agent.pid).cpu
        async with _repeated(self._start_one, starts), _repeated(self._look, answers):
            patches = await act()

        return PolicyStage(
            name,
            round(time.monotonic() - began, 1),
            patches,
            self._in_force(),
            quantiles(starts),
            quantiles(answers),
            policy_figures.blocks(self._agent.callbacks()),
            round(accounts.usage(self._agent.pid).cpu - before, 2),
        )

    async def _create(self, seconds: float) -> int:
        for number in range(self._policies):
            self._env.source.add(kinds.PLACEMENT_POLICIES, _policy(number))
            await asyncio.sleep(0)

        await self._env.happens(lambda: self._in_force() == self._policies, _ACCEPTED)
        await asyncio.sleep(seconds)
        return self._policies

    def _in_force(self) -> int:
        policies = self._env.source.store.all(kinds.PLACEMENT_POLICIES)
        return sum(map(policy_figures.is_accepted, policies))

    async def _patch(self, seconds: float, a_second: float) -> int:
        begun = time.monotonic()
        for number in range(1, round(seconds * a_second) + 1):
            await asyncio.sleep(max(0.0, begun + number / a_second - time.monotonic()))
            change = functools.partial(_reranked, priority=number)
            self._env.source.writer.update(kinds.PLACEMENT_POLICIES, f"{TENANT}/costly-0", change)

        return number

    async def _start_one(self) -> None:
        """Start a pod of the bystander, whose last one ends; return when it runs."""
        name, store = f"bystander-{next(self._numbers)}", self._env.source.store
        for pod in store.all(kinds.PODS):
            if objects.namespace(pod) == CANARY:
                self._env.source.writer.delete(kinds.PODS, objects.key(pod))

        while True:
            try:
                await canary.admit(self._env, canary.pod(name, CANARY))
                break
            except aiohttp.ClientError:  # who creates a pod is told that the webhook fails
                await asyncio.sleep(_PAUSE)

        def runs() -> bool:
            pod = store.get(kinds.PODS, f"{CANARY}/{name}") or {}
            return objects.status(pod).get("phase") == "Running"

        if not await self._env.happens(runs, _PATIENCE):
            raise TimeoutError(f"{name} does not run")

    async def _look(self) -> None:
        """Ask the agent whether it is healthy."""
        url = f"http://{self._agent.address}:8080/healthz"
        with contextlib.suppress(aiohttp.ClientError):  # that has taken its time, too
            async with aiohttp.ClientSession() as session, session.get(url) as answer:
                await answer.read()


async def stages(
    folder: Path, pods: int, policies: int, seconds: float, a_second: float
) -> list[PolicyStage]:
    """Measure all stages with agents of their own."""
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
    env = FuzzEnvironment(folder, random.Random(), callback_limit=_WRITTEN)
    async with env.running():
        progress.say(f"{pods} pods ...")
        tenant = PolicyTenant(env, policies)
        await tenant.fill(pods)
        return await tenant.measure(seconds, a_second)


@asynccontextmanager
async def _repeated(
    act: Callable[[], Awaitable[None]], seconds: list[float]
) -> AsyncIterator[None]:
    """Do something again and again beside a block, and note the seconds that it takes.

    What is not over at the end of the block counts if nothing else has taken as long.
    """

    async def repeat() -> None:
        while True:
            began, is_over = time.monotonic(), False
            try:
                await act()
                is_over = True
            finally:
                took = time.monotonic() - began
                if is_over or took > max(seconds, default=0.0):
                    seconds.append(took)

            await asyncio.sleep(_PAUSE)

    task = asyncio.create_task(repeat())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def _pod(number: int) -> Object:
    """Build a pod with labels of its own, for which all but one expression of each policy hold."""
    pod = memory_pods.lasting(f"tenant-{number}", TENANT)
    pod["metadata"]["labels"] = placement_policies.costly_labels(number)
    return pod


def _policy(number: int) -> Object:
    policy = placement_policies.costly(number)
    return {**policy, "metadata": {**policy["metadata"], "namespace": TENANT, "generation": 1}}


def _reranked(policy: Object, priority: int) -> Object:
    return {**policy, "spec": {**objects.spec(policy), "priority": priority}}
