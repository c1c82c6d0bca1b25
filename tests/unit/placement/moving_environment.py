"""A source whose pods are moved: a Deployment's owner, kubelets, and targets that say what is free.

Pods of the owner are made anew as soon as one ends, as by a ReplicaSet controller. A pod that is
bound is ready after a second, and one that is deleted is gone after another.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests import background
from tests.apiserver.links import following
from tests.apiserver.store import Change
from tests.unit.placement.indexed import indexed
from tests.unit.pods.policies import Planned, Room, add_replicas, entry, spread
from vnode.api import keys, kinds, objects, resources
from vnode.api.clock import Clock
from vnode.api.errors import ApiError, TooManyRequests
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.events import EventRecorder
from vnode.kube.informer import Informer
from vnode.placement.moves.controller import Moves
from vnode.placement.moves.mover import Mover
from vnode.placement.moves.rebalances import Rebalances
from vnode.placement.placeholders.controller import Placeholders
from vnode.planning.move_policy import Openings
from vnode.planning.policy import Policy
from vnode.pods.source import proxy_state
from vnode.scheduling import rooms
from vnode.scheduling.events import ClusterEvent, EventKind
from vnode.scheduling.snapshot import Snapshot

BUDGET = TooManyRequests(429, "TooManyRequests", "Cannot evict pod as it would violate")


class FrankRoom(Room):
    """Says in its summary how many places are free, of one CPU each."""

    def __init__(self, name: str, clock: Clock, places: int) -> None:
        self.lies: int | None = None  # so many are free, it says
        super().__init__(name, clock, places)
        self.server.store.changed.add(self._on_any)
        self.report_room()

    def grow(self, places: int) -> None:
        super().grow(places)
        self.report_room()

    def report_room(self) -> None:
        free = max(0, self.places - len(self.taken)) if self.lies is None else self.lies
        amounts = {"pods": "1000", "cpu": str(free)}
        text = json.dumps({"sum": amounts, "largest": amounts})

        def change(summary: Object) -> None:
            summary["metadata"]["annotations"][keys.FREE_RESOURCES] = text

        summary = self.server.find(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)
        assert summary is not None
        if objects.annotations(summary)[keys.FREE_RESOURCES] != text:
            self.server.change(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME, "", change)

    def _on_any(self, kind: Kind, _change: Change) -> None:
        if kind is kinds.POD_CHAPERONS:
            asyncio.get_running_loop().call_soon(self.report_room)


class AwaitedPods:
    """Remembers the pods that are to wait for their replacements; by name, why."""

    def __init__(self) -> None:
        self.why: dict[str, str] = {}

    def await_replacement(self, pod: Object, why: str) -> None:
        self.why[objects.name(pod)] = why

    def withdraw(self, pod: Object) -> None:
        del self.why[objects.name(pod)]


class MovingEnvironment(Planned):
    """Has `replicas` pods; `living` counts them by target, and `evictions` has those evicted."""

    def __init__(self, clock: Clock, policy: Policy | None, *targets: FrankRoom) -> None:
        super().__init__(clock, policy, *targets)
        self.rooms = targets
        self.replicas = 0
        self.owner = "web-1"
        self.most_missing = 0
        self._made = 0
        self._ending: set[str] = set()
        self.server.store.changed.add(self._own)
        self.moves: Moves
        self.placeholders: Openings | None = None
        self.replacements = AwaitedPods()
        self.keeper: Placeholders | None = None
        self.start_after = 1.0

    @asynccontextmanager
    async def moving(self) -> AsyncIterator[None]:
        """Schedule and move, as one leader does."""
        async with self.running(), self.leading():
            yield

    def _rooms_for(self, pod: Object, snapshot: Snapshot) -> dict[str, int | None]:
        return rooms.rooms(pod, resources.pod_requests(pod), snapshot.nodes, self.handle)

    def _on_plan_freed(self, namespace: str) -> None:
        self.queue.move(ClusterEvent(EventKind.PLAN_FREED, namespace=namespace))

    @asynccontextmanager
    async def leading(self) -> AsyncIterator[None]:
        """Move, with nothing known of what another leader has done."""
        client = self.server.client()
        nodes = Informer(client, kinds.NODES)
        proxies = Informer(client, kinds.PODS, trim=proxy_state.trim)
        events = EventRecorder(client, "vnode", self._clock)
        async with following(nodes, proxies):
            mover = Mover(
                client,
                self.cache,
                self.framework.takers,
                self._rooms_for,
                self.policy,
                events=events,
                clock=self._clock,
                replacements=self.replacements,
                placeholders=self.placeholders,
                on_plan_freed=self._on_plan_freed,
            )
            index = indexed(proxies, self.policy, self._clock)
            self.moves = Moves(
                mover,
                proxies,
                nodes,
                self.links,
                self.cache,
                self.policy,
                index,
                clock=self._clock,
                on_plan_freed=self._on_plan_freed,
            )
            rebalances = Rebalances(client, self.moves, events=events, clock=self._clock)
            async with background.running(
                index.run(), self.moves.run(), rebalances.run(), events.run()
            ):
                yield

    def rebalance(self, name: str = "now", **spec: Any) -> None:
        metadata = {"name": name, "namespace": "default", "generation": 1}
        self.server.add(kinds.REBALANCES, {"metadata": metadata, "spec": spec})

    def rebalanced(self, name: str = "now") -> Object:
        """Return the status of a Rebalance; empty once it is gone."""
        found = self.server.find(kinds.REBALANCES, name, "default")
        return objects.status(found) if found else {}

    def scale(self, replicas: int) -> None:
        """Make pods, or delete those that wait, then by cost."""
        self.replicas = replicas
        for pod in self.pods()[replicas:]:
            self._end(objects.name(pod))

        self._replace()
        self.most_missing = 0

    def scale_in(self, replicas: int, kept: dict[str, int]) -> None:
        """Delete pods down to that, as the owner does by their costs, which keep so many."""
        self.replicas = replicas
        left = Counter(kept)
        for pod in self.pods():
            name = next(r.link.target.name for r in self.rooms if r.node == objects.node_name(pod))
            left[name] -= 1
            if left[name] < 0:
                self._end(objects.name(pod))

    def pods(self) -> list[Object]:
        """Return the live pods, those to be deleted first last."""
        live = [p for p in self.server.all(kinds.PODS) if not objects.is_terminating(p)]

        def order(pod: Object) -> tuple[bool, int, str]:
            cost = int(objects.annotations(pod).get(keys.POD_DELETION_COST, 0))
            return not objects.node_name(pod), -cost, objects.uid(pod)

        return sorted(live, key=order)

    def living(self) -> dict[str, int]:
        """Count the pods by target; those that wait are under ""."""
        known = {target.node: target.link.target.name for target in self.targets}
        return dict(Counter(known.get(objects.node_name(pod), "") for pod in self.pods()))

    @property
    def evictions(self) -> list[str]:
        return [each.name for each in self.server.received("create", kinds.PODS, "eviction")]

    def forbid(self, times: int | None = None, error: ApiError = BUDGET) -> None:
        """Have a disruption budget refuse evictions."""
        self.server.fail(
            error,
            verb="create",
            kind=kinds.PODS,
            when=lambda request: request.subresource == "eviction",
            times=times,
        )

    def events_of(self, reason: str) -> list[tuple[str, str]]:
        """Return kind and message of the Events of that reason."""
        return [
            (event["involvedObject"]["kind"], event["message"])
            for event in self.server.all(kinds.EVENTS)
            if event["reason"] == reason
        ]

    def _own(self, kind: Kind, change: Change) -> None:
        if kind is not kinds.PODS:
            return

        loop, new = asyncio.get_running_loop(), change.new
        if new is not None and objects.is_terminating(new):
            self._end(objects.name(new))
            loop.call_soon(self._replace)
        elif new is not None and objects.node_name(new) and not objects.status(new).get("ready"):
            loop.call_later(self.start_after, self._start, objects.name(new))

    def _replace(self) -> None:
        missing = self.replicas - len(self.pods())
        self.most_missing = max(self.most_missing, missing)
        if missing > 0:
            add_replicas(self, missing, self._made, self.owner)
            self._made += missing

    def _start(self, name: str) -> None:
        pod = self.server.find(kinds.PODS, name, "default")
        if pod is None or objects.status(pod).get("ready") or objects.is_terminating(pod):
            return

        others = [c for c in objects.status(pod).get("conditions", ()) if c["type"] != "Ready"]
        conditions = [*others, {"type": "Ready", "status": "True"}]
        self.change(name, status={"phase": "Running", "ready": True, "conditions": conditions})

    def _end(self, name: str) -> None:
        if name not in self._ending:
            self._ending.add(name)
            asyncio.get_running_loop().call_later(1, self._gone, name)

    def _gone(self, name: str) -> None:
        if self.server.find(kinds.PODS, name, "default") is not None:
            self.remove(name)


def fleet(clock: Clock, *places: int, minimum: int = 2, **fields: Any) -> MovingEnvironment:
    """Return three targets with room for that many pods, of weights 40, 40 and 20."""
    rooms = [FrankRoom(f"c{number}", clock, count) for number, count in enumerate(places, 1)]
    weights = (40, 40, 20)
    entries = [
        entry(r.node, weight=w, minimum=minimum) for r, w in zip(rooms, weights, strict=True)
    ]
    return MovingEnvironment(clock, spread(*entries, **fields), *rooms)
