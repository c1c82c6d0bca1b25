"""Measures what users see of a target's speed, while another target is frozen.

Two things are timed, by watches on the source past all that is broken: until a new pod runs, and
until what changed of a delegate is shown by its proxy. The limit is generous, so that it holds on a
machine that does much else; work that waits for the frozen target waits longer.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from tests import kit
from tests.faults.plan import Action
from tests.faults.snapshot import Violation, phase
from vnode.api import kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

LIMIT = 15.0  # seconds
PROBE = "example.com/probe"  # the annotation of a delegate that is to be shown by its proxy
_PATIENCE = 60.0  # seconds after which nothing more is to be learned

RECONNECTING = 60.0
"""Seconds after an outage of its API server in which kube-scheduler may watch nothing.

The back-off of client-go's reflectors, 30 s and up to twice that by its jitter; only two minutes
without a failure end it. After outages of 25 and 3 s, 33 s were measured.
"""


@dataclass(frozen=True, slots=True)
class Measure:
    """How long something took; `done` is False if it was given up."""

    what: str
    seconds: float
    done: bool = True

    def __str__(self) -> str:
        return f"{self.what}: {self.seconds:.1f} s" + ("" if self.done else ", and not yet")


def violations(measures: Iterable[Measure]) -> Iterator[Violation]:
    """Yield what was slow without a reason of its own."""
    for measure in measures:
        if not measure.done or measure.seconds > LIMIT:
            rule = "one target never holds up another"
            yield Violation(rule, f"{measure}, at most {LIMIT:g} s")


def can_start(target: str, outages: Mapping[str, float], now: float) -> bool:
    """Tell whether the target's own scheduler is sure to see a pod at once."""
    return now - outages.get(target, -math.inf) > RECONNECTING


class Timer:
    """Of the source; `measures` are all so far."""

    def __init__(self, source: Client, namespace: str) -> None:
        self.measures: list[Measure] = []
        self._source = source
        self._namespace = namespace

    async def until_running(self, action: Action, name: str) -> None:
        """Measure from now until that pod runs."""
        await self._measure(str(action), name, lambda pod: phase(pod) == "Running")

    async def until_shown(self, action: Action, name: str, value: int) -> None:
        """Measure from now until that pod's annotation PROBE is that, or what a later one wrote."""
        await self._measure(str(action), name, lambda pod: _shown(pod) >= value)

    async def _measure(self, what: str, name: str, so: Callable[[Object], bool]) -> None:
        began, done = time.monotonic(), True
        try:
            await kit.until_one(
                self._source, kinds.PODS, name, self._namespace, so, seconds=_PATIENCE
            )
        except AssertionError:
            done = False

        self.measures.append(Measure(what, time.monotonic() - began, done))


def _shown(pod: Object) -> int:
    return int(objects.annotations(pod).get(PROBE, "0"))
