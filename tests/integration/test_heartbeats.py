"""The heartbeats of virtual nodes on a real control plane: no work of the agent holds them up."""

from __future__ import annotations

import asyncio
import operator
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from tests.integration.kept_nodes import (
    FixedTargets,
    connected,
    ready,
    running,
    target,
    until,
)
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.kube import leases
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.nodes.lease_renewal import LeaseRenewal
from vnode.runtime import election
from vnode.runtime.leader import Elector
from vnode.runtime.loop_thread import loop_thread, run_in
from vnode.runtime.supervisor import sleep_forever, supervise

__all__ = ["target"]

STALL = 90.0  # seconds: longer than a leadership lasts then, and than Kubernetes waits for a node


class Observer:
    """Sees, from a thread of its own, when a Lease was renewed, and whether the Node was Ready."""

    def __init__(self, fleet: Fleet, name: str) -> None:
        self._fleet = fleet
        self._name = name
        self.renewals: list[datetime] = []
        self.conditions: set[str] = set()
        self.nodes: set[str] = set()  # UIDs

    async def __call__(self) -> None:
        async with self._fleet.client("c1") as client, supervise() as tasks:
            found = (
                Informer.of_object(client, kinds.LEASES, self._name, leases.NODE_NAMESPACE),
                Informer.of_object(client, kinds.NODES, self._name),
            )
            for informer, handler in zip(found, (self._on_lease, self._on_node), strict=True):
                informer.subscribe(handler)
                tasks.start(informer.run(), informer.kind.plural)

            await sleep_forever()

    def _on_lease(self, _old: Object | None, new: Object | None) -> None:
        if new is not None:
            self.renewals.append(datetime.fromisoformat(objects.spec(new)["renewTime"]))

    def _on_node(self, _old: Object | None, new: Object | None) -> None:
        if new is not None:
            if objects.condition(new, "Ready") is not None:
                self.conditions.add(ready(new))

            self.nodes.add(objects.uid(new))


def block(seconds: float) -> None:
    """Keep the loop from running, as one long computation does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.1)


async def test_a_loop_that_stands_still_makes_no_node_not_ready(
    fleet: Fleet, client: Client, target: TargetKey
) -> None:
    """Longer than its leadership lasts then, too: nobody else takes that over here."""
    links, _link = await connected(client, target)
    seen = Observer(fleet, target.node_name)
    renewal = LeaseRenewal(SystemClock())
    moments: list[datetime] = []  # when it stood still

    def elect(own: Client, may_renew: Callable[[], bool]) -> Elector:
        return Elector(own, "default", "stalled-agent", "stalled", may_renew=may_renew)

    async def stand_still() -> None:
        async with running(client, links, FixedTargets(target), leases=renewal):
            await until(client, target, lambda node: ready(node) == "True")
            moments.append(SystemClock().now())
            block(STALL)
            moments.append(SystemClock().now())
            await sleep_forever()  # until it notices that it leads no more

    async def work() -> None:
        if not moments:
            await stand_still()

    async with loop_thread("observer") as loop:
        observing = asyncio.create_task(run_in(loop, seen, "observer"))
        await election.lead(lambda: fleet.client("c1"), elect, work, renewal.run)
        observing.cancel()
        await asyncio.wait({observing})

    begin, end = moments
    times = [begin, *(at for at in seen.renewals if begin < at < end), end]
    assert max(map(operator.sub, times[1:], times)) < timedelta(seconds=15)
    assert len(times) > STALL / leases.NODE_RENEWAL
    assert seen.conditions == {"True"}
    assert len(seen.nodes) == 1
