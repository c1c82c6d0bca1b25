"""Runs Jobs that are gangs, or are let in a few at a time, and notes when each starts and ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests import background, kit
from tests.e2e.gang_pods import member
from tests.e2e.gang_watch import GangWatch, watching
from vnode.api import kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer

SIZE: Final = 16  # pods of a gang
RUNS: Final = 30  # seconds for which each pod runs
_PATIENCE: Final = 900.0  # seconds for all of them


@dataclass
class JobTimes:
    """When Jobs started, all pods of each, and were done; seconds from the first create."""

    started: dict[str, float] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)
    half: float = 0.0
    """For how long a part of a Job ran at most, before all of it did."""
    places: dict[str, set[str]] = field(default_factory=dict)
    """The targets in which pods of each ran."""

    @property
    def makespan(self) -> float:
        """Seconds until the last one was done."""
        return max(self.ended.values())

    def starts(self) -> list[float]:
        """Return when the Jobs started, the first one first."""
        return sorted(self.started.values())

    def __str__(self) -> str:
        starts = ", ".join(f"{at:.0f}" for at in self.starts())
        return f"started at {starts}; done at {self.makespan:.0f}; half for {self.half:.2f} s"


def job(name: str, *, together: bool) -> Object:
    """Return a Job whose pods run for a while, and start together or not."""
    pod = member(name, 0, str(SIZE) if together else "")
    complete = {"pod-complete.stage.kwok.x-k8s.io/delay": f"{RUNS}s"}
    metadata = {
        "labels": objects.labels(pod),
        "annotations": objects.annotations(pod) | complete,
    }
    template = {"metadata": metadata, "spec": objects.spec(pod) | {"restartPolicy": "Never"}}
    spec = {"completions": SIZE, "parallelism": SIZE, "backoffLimit": 1000, "template": template}
    return {"metadata": {"name": name}, "spec": spec}


async def run(
    source: Client,
    targets: Mapping[str, Client],
    order: Sequence[str],
    times: JobTimes,
    *,
    together: bool,
    at_once: int,
) -> None:
    """Create Jobs in this order, so many at once, and note how it goes until all are done."""
    left, jobs = list(order), Informer(source, kinds.JOBS, namespace="default")
    async with (
        asyncio.timeout(_PATIENCE),
        watching(SIZE, **targets) as watch,
        background.running(jobs.run()),
    ):
        await jobs.synced.wait()
        jobs.subscribe(lambda _old, _new: watch.changed.set())
        begun = time.monotonic()
        while True:
            watch.changed.clear()
            _note(times, watch, jobs, time.monotonic() - begun)
            while left and len(order) - len(left) - len(times.ended) < at_once:
                await source.create(kinds.JOBS, job(left.pop(0), together=together), "default")

            if len(times.ended) == len(order):
                break

            await watch.changed.wait()

        times.half, times.places = watch.worst(), watch.places

    query = {"propagationPolicy": "Background"}
    await source.request("DELETE", kinds.JOBS.path("default"), query=query)
    await kit.until_gone(source, kinds.PODS, "default")
    for client in targets.values():
        await kit.until_gone(client, kinds.POD_CHAPERONS, "default")


def _note(times: JobTimes, watch: GangWatch, jobs: Informer, now: float) -> None:
    for name in watch.complete():
        times.started[name] = now
        watch.ended.add(name)  # from now on its pods may end one by one

    for found in jobs.store.values():
        if objects.status(found).get("succeeded") == SIZE:
            times.ended.setdefault(objects.name(found), now)
