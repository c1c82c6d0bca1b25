"""Tells what becomes of the pods of a `DeploymentEnvironment` in a log, line by line.

It looks once in each second in which anything has changed. What happened within a second is told in
one order, whatever its own was, so that a log changes only with what it tells.
"""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from tests.apiserver.store import Change
from tests.unit.placement.golden.deployment import DeploymentEnvironment, number_of
from tests.unit.placement.golden.observing import Observation, SeenEvent, SeenPod, seen
from vnode.api import kinds
from vnode.api.kinds import Kind

_TICK: Final = 0.0005
"""Seconds by which a timer that is due in a second may be early."""


class GoldenLog:
    """The lines of a log; time is that of the event loop."""

    def __init__(self, env: DeploymentEnvironment) -> None:
        self.lines: list[str] = []
        self._env = env
        self._first: list[str] = []
        self._last = Observation()
        self._counts = ""
        self._is_due = False
        self._shown_at = ""
        for server in (env.server, *(room.server for room in env.rooms)):
            server.store.changed.add(self._on_change)

    def act(self, text: str) -> None:
        """Tell what is done from outside, before what comes of it."""
        self.tell(f"> {text}")

    def tell(self, text: str) -> None:
        """Tell what is so before anything else becomes of it."""
        self._first.append(text)
        self._look_soon()

    def _on_change(self, _kind: Kind, _change: Change) -> None:
        self._look_soon()

    def _look_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            loop = asyncio.get_running_loop()
            second = math.floor(loop.time() + _TICK)
            loop.call_at(second + 1 - _TICK, self._look, second)

    def _look(self, second: int) -> None:
        self._is_due = False
        former, self._last = self._last, seen(self._env)
        first, self._first = self._first, []
        told = [*first, *differences(former, self._last)]
        counts = self._last.counts(self._env.room)
        if counts != self._counts and self._last.pods.keys() | former.pods.keys():
            self._counts = counts
            told.append(counts)

        for line in told:
            at = f"{second // 60}:{second % 60:02}"
            self.lines.append(f"{'' if at == self._shown_at else at:>7}  {line}")
            self._shown_at = at


def differences(former: Observation, now: Observation) -> Iterator[str]:
    """Yield what has become of `former`."""
    for name in sorted(former.rebalances.keys() | now.rebalances.keys()):
        status = now.rebalances.get(name, "gone")
        if status != former.rebalances.get(name):
            yield f"rebalance {name}: {status}"

    told = defaultdict[tuple[int, str], list[str]](list)
    for name in sorted(former.pods.keys() | now.pods.keys(), key=number_of):
        for order, line in enumerate(_of_pod(former.pods.get(name), now.pods.get(name))):
            if line:
                told[order, line].append(name)

    for (_, line), pods in sorted(told.items()):
        yield line.replace("{}", listed(pods))

    yield from _new_events(event for e, event in now.events.items() if e not in former.events)


def _new_events(events: Iterable[SeenEvent]) -> Iterator[str]:
    about = defaultdict[tuple[str, str], dict[str, set[str]]](lambda: defaultdict(set))
    for event in events:
        about[event.reason, event.message][event.about].add(event.name)

    for (reason, message), kinds_of in sorted(about.items()):
        named = "; ".join(
            f"{kind} {listed(names) if kind == kinds.PODS.kind else ', '.join(sorted(names))}"
            for kind, names in sorted(kinds_of.items())
        )
        yield f'Event {reason} of {named}: "{message}"'


def _of_pod(old: SeenPod | None, new: SeenPod | None) -> tuple[str, ...]:
    """Return lines with a place for the pod's name, in the order in which they are told."""
    if new is None:
        return ("gone: {}",)

    was = old or SeenPod()
    if new.end:
        return ("" if was.end else f"{new.end}: {{}}",)

    return (
        "",
        "made: {}" if old is None else "",
        f'bound to {new.cluster}, "{new.why}": {{}}' if new.cluster != was.cluster else "",
        _waiting(was, new),
        _placeholders(was, new),
        "ready: {}" if new.is_ready and not was.is_ready else "",
    )


def _waiting(was: SeenPod, new: SeenPod) -> str:
    is_same = (was.waits_in, was.refusal) == (new.waits_in, new.refusal)
    if new.cluster or is_same:
        return ""

    return f'waits in {", ".join(new.waits_in) or "no cluster"}, "{new.refusal}": {{}}'


def _placeholders(was: SeenPod, new: SeenPod) -> str:
    if new.placeholders == was.placeholders:
        return ""

    return f"has a placeholder in {', '.join(new.placeholders) or 'no cluster any more'}: {{}}"


def listed(pods: Iterable[str]) -> str:
    """Shorten names of pods that follow each other: web-1-0..3, web-1-7."""
    spans: list[list[str]] = []
    for pod in sorted(pods, key=number_of):
        last = spans[-1][-1] if spans else ""
        stem, _, number = pod.rpartition("-")
        if last and last == f"{stem}-{int(number) - 1}":
            spans[-1].append(pod)
        else:
            spans.append([pod])

    return ", ".join(
        span[0] if len(span) == 1 else f"{span[0]}..{number_of(span[-1])}" for span in spans
    )
