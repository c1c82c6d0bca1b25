"""A pod's result arrives in whichever order its delegate ends and goes, and agents come and go.

Whole agents of a source and a target, and API servers in memory. Each order of a few events is
tried: the delegate ends, is cleaned up, and meanwhile two things fail and work again.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Iterator
from contextlib import suppress
from unittest.mock import patch

import pytest

from tests.apiserver.faults import RequestFault
from tests.simulation import loop
from tests.simulation.schedule import SOURCE, Schedule, SimulatedWorkload, WorkloadOwner
from tests.simulation.simulation import Simulation
from vnode.api import kinds, objects
from vnode.api.errors import ServerError, Unreachable
from vnode.api.objects import Object
from vnode.scheduling import registry

ENDS, CLEANED = "the delegate ends", "the delegate is cleaned up"
TROUBLES = ("the source's agent", "the target's agent", "the link", "writes of statuses")
APART = 2.0  # seconds between two events, in which all that can happen does
PATIENCE = 300.0


def orders(*troubles: str) -> Iterator[tuple[str, ...]]:
    """Yield each order in which troubles begin and end, and the delegate ends and goes."""
    events = [ENDS, *(f"- {each}" for each in troubles)]
    events += [CLEANED, *(f"+ {each}" for each in troubles)]
    pairs = [(ENDS, CLEANED), *((f"- {each}", f"+ {each}") for each in troubles)]
    for order in itertools.permutations(events):
        if all(order.index(first) < order.index(then) for first, then in pairs):
            yield order


def is_known(order: tuple[str, ...]) -> bool:
    """Tell whether anybody could learn how the delegate had ended before it was gone."""
    down = False
    for event, after in itertools.pairwise(order):
        down = event.startswith("-") if TROUBLES[1] in event else down
        span = order[order.index(ENDS) : order.index(CLEANED)]
        if event in span and after != "" and not down:
            return True

    return False


class OnePod:
    """A source and a target with one pod that runs."""

    def __init__(self, workload: SimulatedWorkload) -> None:
        schedule = Schedule(1, 0.0002, {"c2": (4,)}, (workload,), (), ())
        self.simulation = Simulation(schedule, traced=False)
        self.source, self.target = (self.simulation.clusters[name] for name in (SOURCE, "c2"))
        self.faults: dict[str, RequestFault] = {}
        self.workload = workload

    async def begin(self) -> None:
        """Have the pod run."""
        self.simulation._begin()
        self.simulation.owners.create(self.workload)
        await self.target.server.until(lambda: bool(self.simulation.kubelets["c2"].running))
        await asyncio.sleep(APART)

    async def cause(self, event: str) -> None:
        """Have one event happen, and what follows from it."""
        agents, server = self.simulation.agents, self.target.server
        match event:
            case "the delegate ends":
                ((uid, key),) = self.simulation.kubelets["c2"].running.items()
                self.simulation.kubelets["c2"]._finish(key, uid, 7)
            case "the delegate is cleaned up":
                for pod in self.target.pods():
                    self.target.writer.delete(kinds.PODS, objects.key(pod))
            case "- the source's agent":
                await agents[SOURCE].kill()
            case "+ the source's agent":
                agents[SOURCE].start()
            case "- the target's agent":
                await agents["c2"].kill()
            case "+ the target's agent":
                agents["c2"].start()
            case "- the link":
                self.faults["link"] = server.fail(
                    Unreachable("cut"), when=lambda request: request.client == SOURCE, times=None
                )
                server.cut_watches()
            case "- writes of statuses":
                self.faults["writes"] = self.source.server.fail(
                    ServerError(500, "InternalError", "slow"),
                    verb="patch",
                    kind=kinds.PODS,
                    subresource="status",
                    times=None,
                )
            case _:
                self.faults.pop(event.split()[1 if "writes" in event else -1]).clear()

        await asyncio.sleep(APART)

    def pod(self, uid: str) -> Object:
        """Return the pod in the source; empty if it is gone."""
        return next((pod for pod in self.source.pods() if objects.uid(pod) == uid), {})

    def events(self, reason: str) -> list[Object]:
        """List the Events of that reason in the source."""
        return [e for e in self.source.server.store.all(kinds.EVENTS) if e["reason"] == reason]


def exit_codes(pod: Object) -> list[int]:
    entries = objects.status(pod).get("containerStatuses") or ()
    return [entry["state"].get("terminated", {}).get("exitCode") for entry in entries]


async def run(order: tuple[str, ...], owner: WorkloadOwner, runs: float) -> list[str]:
    """Return what is wrong after these events."""
    one = OnePod(SimulatedWorkload("once", owner, 0.0, runs=runs))
    await one.begin()
    (uid,) = map(objects.uid, one.source.pods())
    for event in order:
        await one.cause(event)

    with suppress(TimeoutError):
        await one.source.server.until(lambda: objects.is_finished(one.pod(uid)), PATIENCE)

    await asyncio.sleep(100.0)  # longer than a target waits before it makes a delegate anew
    wrong = [event["message"] for event in one.events("DelegateLost")]
    if not (pod := one.pod(uid)) or objects.is_terminating(pod):
        wrong.append("the pod was deleted")
    elif exit_codes(pod) != [7]:
        wrong.append(f"the pod shows {objects.status(pod)}")

    expected = 1 if owner is WorkloadOwner.USER else 2  # a Job makes another for one that failed
    if (ran := one.simulation.monitor.history.delegates) != expected:
        wrong.append(f"{ran} delegates ran")

    if len(one.target.server.store.all(kinds.POD_CHAPERONS)) != expected - 1:
        wrong.append("its chaperon stays")

    for agent in one.simulation.agents.values():
        await agent.kill()

    return wrong


def problems(order: tuple[str, ...], owner: WorkloadOwner, runs: float) -> list[str]:
    random.seed(1)
    with patch.object(registry, "installed", list):
        return loop.run(run(order, owner, runs))


@pytest.mark.parametrize("runs", [1_000_000.0, 0.0], ids=["Never", "Always"])
@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_result_arrives_though_something_fails_meanwhile(trouble: str, runs: float) -> None:
    """Of pods that restart always some end as well: those that their kubelet has evicted."""
    for order in filter(is_known, orders(trouble)):
        assert problems(order, WorkloadOwner.USER, runs) == [], order


@pytest.mark.parametrize("share", range(4))
def test_a_result_arrives_though_two_things_fail_meanwhile(share: int) -> None:
    """A part of all orders, another one each time the list changes."""
    pairs = itertools.combinations(TROUBLES, 2)
    found = [order for pair in pairs for order in orders(*pair) if is_known(order)]
    for order in found[share * 11 :: 97]:
        assert problems(order, WorkloadOwner.USER, 1_000_000.0) == [], order


def test_a_job_that_a_pod_has_failed_makes_one_more_and_no_third() -> None:
    order = ("- the source's agent", ENDS, CLEANED, "+ the source's agent")
    assert problems(order, WorkloadOwner.JOB, 1_000_000.0) == []
