"""What attacks have in common: they create many objects at once, and go on and on."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import aiohttp

from tests import kit
from tests.isolation.scene import ATTACKER, Scene
from vnode.api import kinds
from vnode.api.errors import VnodeError
from vnode.api.objects import Object

_STARTS: Final = 90.0  # seconds in which the pods of an attack have to run

Begin = Callable[[], None]
"""Says that all is there which an attack needs."""
Attack = Callable[[Scene, Begin], Awaitable[None]]


async def dry_run(scene: Scene, pod: Object) -> None:
    """Have the API server do all that creating a pod takes, but for storing it."""
    await scene.tenant.request("POST", kinds.PODS.path(ATTACKER), query={"dryRun": "All"}, body=pod)


async def create_all(scene: Scene, kind: kinds.Kind, objects: list[Object]) -> None:
    """Create objects, ten at once."""
    gate = asyncio.Semaphore(10)

    async def create(obj: Object) -> None:
        async with gate:
            await scene.tenant.create(kind, obj, ATTACKER)

    async with asyncio.TaskGroup() as group:
        for obj in objects:
            group.create_task(create(obj))


async def run_all(scene: Scene, pods: list[Object]) -> None:
    """Create pods, and return once they run: an attack by what runs is none by a burst."""
    await create_all(scene, kinds.PODS, pods)
    await until_running(scene, len(pods))


async def run_labelled(scene: Scene, label: str, count: int) -> None:
    """Run so many pods with a label of that name, whose value is yes."""
    pods = [kit.pod(f"{label}-{n}") for n in range(count)]
    for pod in pods:
        pod["metadata"]["labels"] = {label: "yes"}

    await run_all(scene, pods)


async def until_running(scene: Scene, count: int) -> None:
    """Return once so many pods run."""

    def run(pods: dict[str, Object]) -> bool:
        return sum(map(is_running, pods.values())) >= count

    await kit.until(scene.tenant, kinds.PODS, run, namespace=ATTACKER, seconds=_STARTS)


async def come_and_go(scene: Scene, pause: float) -> None:
    """Create a pod and delete it so much later, on and on."""
    for number in itertools.count():
        await scene.tenant.create(kinds.PODS, kit.pod(f"comes-{number}"), ATTACKER)
        await asyncio.sleep(pause)
        await scene.tenant.delete(kinds.PODS, f"comes-{number}", ATTACKER)


async def at_once(count: int, act: Callable[[int], Awaitable[None]]) -> None:
    """Call `act` on and on, `count` at once; that somebody refuses is what should happen."""

    async def go_on(number: int) -> None:
        while True:
            with suppress(VnodeError, aiohttp.ClientError, OSError):
                await act(number)

            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(go_on(number))


def is_running(pod: Object) -> bool:
    """Tell whether a pod runs."""
    return kit.phase(pod) == "Running"
