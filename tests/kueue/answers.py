"""All answers of checks, as Kueue saw them: it puts an answer to retry back in a moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import Final

from tests import background
from tests.kueue import queues
from vnode.api import kinds
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer

_OF_AN_ANSWER: Final = ("state", "lastTransitionTime", "requeueAfterSeconds")


class AnswerLog:
    """What each workload of a namespace was told, one after the other, by the name of its job."""

    def __init__(self) -> None:
        self.told: dict[str, list[Object]] = {}
        self._changed = asyncio.Event()

    def note(self, _old: Object | None, new: Object | None) -> None:
        """Take a change of a Workload."""
        entry = queues.state(new or {})
        if new is None or entry.get("state") in (None, "Pending"):
            return

        told = self.told.setdefault(queues.owner(new), [])
        if not told or any(told[-1].get(field) != entry.get(field) for field in _OF_AN_ANSWER):
            told.append(entry)

        self._changed.set()

    def states(self, jobs: Collection[str]) -> list[str]:
        """Return the first answers of these, in their order; "" for none."""
        return [self.told.get(job, [{}])[0].get("state", "") for job in jobs]

    def waits(self, job: str) -> list[int]:
        """Return for how long a workload was told to wait, time after time."""
        found = [each.get("requeueAfterSeconds") for each in self.told.get(job, ())]
        return [each for each in found if each]

    async def until(self, condition: Callable[[], bool], seconds: float = 30) -> None:
        """Wait until a condition holds of what was told."""
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"not so within {seconds:g} s: {self.told}") from None

    async def first(self, *jobs: str, seconds: float = 30) -> dict[str, Object]:
        """Return the first answer to each of these."""
        await self.until(lambda: all(self.states(jobs)), seconds)
        return {job: self.told[job][0] for job in jobs}


@asynccontextmanager
async def logged(client: Client) -> AsyncIterator[AnswerLog]:
    """Have all answers in namespace default be noted in the block."""
    log = AnswerLog()
    workloads = Informer(client, kinds.WORKLOADS, namespace="default")
    workloads.subscribe(log.note)
    async with background.running(workloads.run()):
        await workloads.synced.wait()
        yield log
