"""Watches how many pods of gangs run in two targets at each moment."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from tests import background, kit
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer

LONGEST: Final = 15.0
"""Seconds for which too few pods of a gang may run where other suites run beside.

Three are promised, and the simulation, whose clock is not that of the machine, holds to them. A
gang of which a part waits for room would exceed both.
"""

GANG = keys.PREFIX + "gang"
"""The label `gang` of the pods, as delegates have it."""


@dataclass(slots=True)
class GangWatch:
    """Notes since when too few pods of a gang run, and for how long they did at most."""

    minimum: int
    running: Counter[str] = field(default_factory=Counter)
    places: dict[str, set[str]] = field(default_factory=dict)  # gang -> targets
    longest: dict[str, float] = field(default_factory=dict)  # gang -> seconds
    ended: set[str] = field(default_factory=set)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    _half: dict[str, float] = field(default_factory=dict)

    def complete(self) -> list[str]:
        """Return the gangs that run, and have not been ended."""
        return [g for g, n in self.running.items() if n >= self.minimum and g not in self.ended]

    def worst(self) -> float:
        """Return for how long too few pods of any gang ran; those that are ended do not count."""
        now = time.monotonic()
        lasting = [now - since for gang, since in self._half.items() if gang not in self.ended]
        return max([*self.longest.values(), *lasting], default=0.0)

    def on_pod(self, target: str, old: Object | None, new: Object | None) -> None:
        """Take the change of a delegate."""
        gang = objects.labels(objects.latest(old, new)).get(GANG)
        if gang is None:
            return

        self.running[gang] += _runs(new) - _runs(old)
        if _runs(new):
            self.places.setdefault(gang, set()).add(target)

        count, now = self.running[gang], time.monotonic()
        if 0 < count < self.minimum and gang not in self.ended:
            self._half.setdefault(gang, now)
        elif (since := self._half.pop(gang, None)) is not None:
            self.longest[gang] = max(self.longest.get(gang, 0.0), now - since)

        self.changed.set()


def _runs(pod: Object | None) -> bool:
    return pod is not None and kit.phase(pod) == "Running" and not objects.is_terminating(pod)


@asynccontextmanager
async def watching(minimum: int, **targets: Client) -> AsyncIterator[GangWatch]:
    """Watch the delegates of targets, by their names."""
    watch = GangWatch(minimum)
    informers = {name: Informer(client, kinds.PODS) for name, client in targets.items()}
    for name, informer in informers.items():
        informer.subscribe(lambda old, new, name=name: watch.on_pod(name, old, new))

    async with background.running(*(informer.run() for informer in informers.values())):
        yield watch
