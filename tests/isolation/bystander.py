"""The bystander: pods of a namespace that does nothing wrong, and how long their steps take.

One pod after the other is created, admitted, placed and run, gives its log by the kubelet API of
its virtual node, and is deleted, as a user waits for it. What another tenant, a target or a
stranger does meanwhile should not show in these times. Before each a plain pod goes through the
same steps in each of the clusters, with which vnode has nothing to do: they show what everybody
waits for on a machine that is busy.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from tests import kit
from vnode.api import kinds, objects
from vnode.api.errors import VnodeError
from vnode.api.objects import Object
from vnode.kube.client import Client

NAMESPACE: Final = "team-c"
STEPS: Final = ("admitted", "running", "logged", "gone")
PLAIN: Final = {step: f"plain {step}" for step in STEPS}
"""What the same step of plain pods is called."""
LONGEST: Final = 120.0  # seconds that a step is waited for; longer ones count as these
_PAUSE: Final = 0.25  # seconds between two pods


@dataclass(slots=True)
class Times:
    """Seconds of each step, by its name, one figure for each pod."""

    steps: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, step: str, seconds: float) -> None:
        """Note what a step of one pod took."""
        self.steps[step].append(seconds)

    def p99(self, step: str) -> float:
        """Return the time that one in a hundred exceeds; of fewer pods than that, the longest."""
        ordered = sorted(self.steps[step])
        return ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]

    @staticmethod
    def joined(parts: list[Times]) -> Times:
        """Return the times of all parts as one."""
        whole = Times()
        for part in parts:
            for step, seconds in part.steps.items():
                whole.steps[step].extend(seconds)

        return whole


class Bystander:
    """Runs pods of NAMESPACE with the rights of `client`, each under a name of its own.

    `targets` are clients of the clusters to which they are sent.
    """

    def __init__(self, client: Client, targets: Iterable[Client]) -> None:
        self._client = client
        self._clusters = (client, *targets)
        self._number = 0

    async def run(self, pods: int) -> Times:
        """Return what the steps of that many pods took."""
        times = Times()
        for _ in range(pods):
            self._number += 1
            await self._one(f"bystander-{self._number}", times)
            await asyncio.sleep(_PAUSE)

        return times

    async def _one(self, name: str, times: Times) -> None:
        for step, act in _ACTS.items():
            times.add(PLAIN[step], await self._everywhere(act, f"plain-{name}"))

        for step, act in _ACTS.items():
            times.add(step, await _timed(act(self._client, kit.pod(name))))

    async def _everywhere(self, act: _Act, name: str) -> float:
        """Return what an act takes for a plain pod in each cluster, one after the other."""
        pod = kit.pod(name, annotations={})
        return sum([await _timed(act(client, pod)) for client in self._clusters])


async def _create(client: Client, pod: Object) -> None:
    await client.create(kinds.PODS, pod, NAMESPACE)


async def _until_running(client: Client, pod: Object) -> None:
    await kit.until_one(
        client,
        kinds.PODS,
        objects.name(pod),
        NAMESPACE,
        lambda pod: kit.phase(pod) == "Running",
        seconds=LONGEST,
    )


async def _log(client: Client, pod: Object) -> None:
    path = f"{kinds.PODS.path(NAMESPACE, objects.name(pod))}/log"
    async with client.stream("GET", path, query={}, silence=LONGEST) as response:
        assert "hello" in await response.text()


async def _delete(client: Client, pod: Object) -> None:
    name = objects.name(pod)
    await client.delete(kinds.PODS, name, NAMESPACE)
    await kit.until_gone(
        *(client, kinds.PODS, NAMESPACE),
        seconds=LONGEST,
        field_selector=f"metadata.name={name}",
    )


_Act: TypeAlias = Callable[[Client, Object], Coroutine[Any, Any, None]]
_ACTS: Final[Mapping[str, _Act]] = dict(
    zip(STEPS, (_create, _until_running, _log, _delete), strict=True)
)


async def _timed(act: Coroutine[Any, Any, None]) -> float:
    begin = time.monotonic()
    try:
        async with asyncio.timeout(LONGEST):
            await act
    except (VnodeError, TimeoutError, AssertionError):
        return LONGEST  # as if it had been reached then

    return time.monotonic() - begin
