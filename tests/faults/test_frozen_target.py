"""A target freezes while many of its pods are to end: the other one notices nothing.

Its API server is stopped, which is the hardest case: connections stay open, requests are sent, and
no answer comes. What is measured of the others is compared with the same run before the freeze, so
that it holds on slow machines too.
"""

from __future__ import annotations

import asyncio
import signal
import statistics
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import pytest

from hack.fleetlib.fleet import LocalFleet
from tests import kit
from tests.fleets import started
from tests.kit import Fleet
from vnode.api import keys, kinds, objects, permissions
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer

FROZEN, OTHERS = "c2", ("c3",)
MANY, NEW = 120, 30  # pods that run in the target that freezes, and that are to start there
STARTS, APART = 8, 2.0  # pods for the other, and seconds from one to the next
LONG = STARTS * APART  # seconds that are measured
PAUSE = 0.5  # seconds between two changes of an annotation in the other
RATIO = 3.0  # of what was measured before the freeze, with some seconds for what machines do
MEDIAN_SLACK, MOST_SLACK = 0.5, 3.0
PROBE, VALUE = "probe", "example.com/value"
STAGES = ("candidate", "reservation", "permission", "start")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Yield a source with two targets, each with room for all pods."""
    targets = (FROZEN, *OTHERS)
    connections = [word for target in targets for word in ("--connect", f"c1:{target}")]
    with started(
        tmp_path_factory, "c1", *targets, "--nodes", "3", "--agents", *connections
    ) as there:
        yield there


def pinned(name: str, target: str) -> Object:
    """Return a pod that may be in one target only."""
    pod = kit.pod_in(target, name)
    pod["metadata"]["labels"][PROBE] = target
    return pod


@dataclass
class Seen:
    """Moments at which watches showed what became of pods: by pod, and stage or value."""

    moments: dict[tuple[str, str], float] = field(default_factory=dict)
    _events: defaultdict[tuple[str, str], asyncio.Event] = field(
        default_factory=lambda: defaultdict(asyncio.Event)
    )

    def on_pod(self, _old: Object | None, new: Object | None) -> None:
        """Take note of what a proxy in the source shows."""
        if new is not None:
            name, value = objects.name(new), objects.annotations(new).get(VALUE, "")
            self._note(name, value, bool(value))
            self._note(name, "start", kit.phase(new) == "Running")

    def on_chaperon(self, _old: Object | None, new: Object | None) -> None:
        """Take note of what a chaperon in one of the targets shows."""
        if new is not None:
            annotations = objects.annotations(new)
            name = annotations.get(keys.PARENT_NAME, "")
            self._note(name, "candidate", True)
            is_allowed = permissions.is_allowed(new)  # where a stream says so, once it is bound
            self._note(name, "reservation", is_allowed or keys.IS_RESERVED in annotations)
            self._note(name, "permission", is_allowed)

    def _note(self, name: str, what: str, so: bool) -> None:
        if so and (name, what) not in self.moments:
            self.moments[name, what] = time.monotonic()
            self._events[name, what].set()

    async def until(self, name: str, what: str) -> float:
        """Return the moment; AssertionError if it does not come."""
        try:
            async with asyncio.timeout(kit.PATIENCE):
                await self._events[name, what].wait()
        except TimeoutError:
            raise AssertionError(f"{name}: no {what} within {kit.PATIENCE} s") from None

        return self.moments[name, what]


@asynccontextmanager
async def watched(fleet: Fleet, source: Client) -> AsyncIterator[Seen]:
    """Yield what becomes of probes, in the source and in the targets that do not freeze."""
    seen = Seen()
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        pods = Informer(source, kinds.PODS, namespace="default", label_selector=PROBE)
        pods.subscribe(seen.on_pod)
        informers = [pods]
        for target in OTHERS:
            client = await stack.enter_async_context(fleet.client(target))
            there = Informer(client, kinds.POD_CHAPERONS, namespace="default")
            there.subscribe(seen.on_chaperon)
            informers.append(there)

        tasks = [group.create_task(one.run(), name="watch") for one in informers]
        for informer in informers:
            await informer.synced.wait()

        yield seen
        for task in tasks:
            task.cancel()


Figures = dict[str, list[float]]
"""Seconds that each stage of a start took, and feedback, in the targets that do not freeze."""


async def measured(fleet: Fleet, source: Client, seen: Seen, when: str) -> Figures:
    """Measure starts and changes, in all targets that do not freeze, at the same time.

    Meanwhile other pods are to start in the one that freezes, and do so if they can.
    """
    figures: Figures = {stage: [] for stage in (*STAGES, "feedback")}
    async with asyncio.TaskGroup() as group:
        for number in range(NEW):
            pod = pinned(f"{when}-{FROZEN}-{number}", FROZEN)
            group.create_task(source.create(kinds.PODS, pod, "default"))

        for target in OTHERS:
            group.create_task(_changes(fleet, seen, target, when, figures["feedback"]))
            for number in range(STARTS):
                pod = pinned(f"{when}-{target}-{number}", target)
                group.create_task(_start(source, seen, pod, number * APART, figures))

    return figures


async def _start(source: Client, seen: Seen, pod: Object, at: float, figures: Figures) -> None:
    """Create a pod so many seconds from now, and follow it until it runs."""
    await asyncio.sleep(at)
    before = time.monotonic()
    await source.create(kinds.PODS, pod, "default")
    for stage in STAGES:
        moment = await seen.until(objects.name(pod), stage)
        figures[stage].append(max(0.0, moment - before))  # one watch may be ahead of another
        before = moment


async def _changes(fleet: Fleet, seen: Seen, target: str, when: str, lags: list[float]) -> None:
    """Annotate a delegate, and again some time after the proxy shows it."""
    name = bystander(target)
    async with fleet.client(target) as client:
        chaperons = await client.list(kinds.POD_CHAPERONS, "default")
        (own,) = [c for c in chaperons if objects.annotations(c)[keys.PARENT_NAME] == name]
        begun = time.monotonic()
        while (changed := time.monotonic()) < begun + LONG:
            value = f"{when}-{len(lags)}"
            body = {"metadata": {"annotations": {VALUE: value}}}
            await client.patch(kinds.PODS, objects.name(own), body, "default")
            lags.append(await seen.until(name, value) - changed)
            await asyncio.sleep(PAUSE)


def bystander(target: str) -> str:
    """Return the name of a pod that runs all the time in a target."""
    return f"bystander-{target}"


async def crowd(source: Client) -> None:
    """Run many pods in the target that is to freeze; return once all run."""
    many = kit.deployment("crowd", MANY, pinned("crowd", FROZEN))
    await source.create(kinds.DEPLOYMENTS, many, "default")
    await kit.until_pods(source, "crowd", lambda all_: kit.running(all_, MANY))


async def asked_to_end(source: Client) -> None:
    """Delete the crowd's Deployment, and wait until all its pods are terminating."""
    await source.delete(kinds.DEPLOYMENTS, "crowd", "default", propagation="Background")
    await kit.until_pods(
        source, "crowd", lambda all_: all(map(objects.is_terminating, all_.values()))
    )


def figures_of(stage: str, before: list[float], during: list[float]) -> str:
    """Return a line that a failure shows."""
    middles = (statistics.median(before), statistics.median(during))
    most = (max(before), max(during))
    return (
        f"{stage}: median {middles[0]:.2f} s before, {middles[1]:.2f} s during the freeze; "
        f"at most {most[0]:.2f} s and {most[1]:.2f} s"
    )


def is_usual(before: list[float], during: list[float]) -> bool:
    """Tell whether seconds are within the ratio to those before, in the middle and at the worst."""
    middle = statistics.median(during) <= RATIO * statistics.median(before) + MEDIAN_SLACK
    return middle and max(during) <= RATIO * max(before) + MOST_SLACK


async def test_a_frozen_target_with_many_pods_to_end_slows_no_other(
    fleet: Fleet, source: Client
) -> None:
    site = LocalFleet(fleet.folder)
    async with watched(fleet, source) as seen:
        for target in OTHERS:
            await source.create(kinds.PODS, pinned(bystander(target), target), "default")
            await seen.until(bystander(target), "start")

        await crowd(source)
        before = await measured(fleet, source, seen, "before")
        site.send_signal(FROZEN, "kube-apiserver", signal.SIGSTOP)
        try:
            await asked_to_end(source)
            during = await measured(fleet, source, seen, "during")
        finally:
            site.send_signal(FROZEN, "kube-apiserver", signal.SIGCONT)

    lines = {stage: figures_of(stage, before[stage], during[stage]) for stage in before}
    print("\n" + "\n".join(lines.values()))
    slow = [lines[stage] for stage in before if not is_usual(before[stage], during[stage])]
    assert not slow, slow
    await kit.until_gone(source, kinds.PODS, "default", label_selector="app=crowd")
