"""The candidate scheduler of a target: finds a node with room, and has the extender bind the pod.

As the real one, it keeps the place for as long as the extender holds the call, and tries again when
the call fails, or when something else makes room.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from tests.apiserver.status import StatusError
from tests.apiserver.store import Change
from tests.simulation.agents import SimulatedAgent
from tests.simulation.clusters import DEVICE, SimulatedCluster
from tests.simulation.device_claims import ClaimAllocator
from vnode.api import keys, kinds, objects
from vnode.api.errors import VnodeError
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.pods.target.extender import BindRequest

Amounts: TypeAlias = tuple[int, int]
"""CPUs and devices, wanted or free."""

_BACKOFF: Final = 2.0  # seconds after a call that failed
_HTTP_TIMEOUT: Final = 40.0  # seconds that a call may take


@dataclass(slots=True)
class CandidateScheduler:
    """Plays the kube-scheduler of one cluster."""

    cluster: SimulatedCluster
    agent: SimulatedAgent
    claims: ClaimAllocator | None = None
    """Knows the devices by claim, where there are any."""
    _assumed: dict[str, tuple[str, Amounts]] = field(default_factory=dict)  # UID -> node, wanted
    _waiting: dict[str, str] = field(default_factory=dict)  # UID -> key, of those without a place
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def follow(self) -> None:
        """Hear of all changes from now on."""
        self.cluster.server.store.changed.add(self._on_change)
        if self.claims is not None:
            self.claims.follow(self._try_waiting)

    def free(self) -> dict[str, Amounts]:
        """Tell what is free on each node."""
        left = {
            objects.name(node): _amounts(objects.status(node)["allocatable"])
            for node in self.cluster.server.store.all(kinds.NODES)
        }
        held = dict(self._assumed)
        for pod in self.cluster.pods():
            if (node := objects.spec(pod).get("nodeName")) and not objects.is_finished(pod):
                held[objects.uid(pod)] = node, wanted(pod)

        for node, (cpu, devices) in held.values():
            left[node] = left[node][0] - cpu, left[node][1] - devices

        return left

    def _on_change(self, kind: Kind, change: Change) -> None:
        if kind is not kinds.PODS:
            return

        if change.old is None and change.new is not None:
            self._queue(change.new)
        elif change.new is None or objects.is_finished(change.new):
            self._assumed.pop(objects.uid(change.old or {}), None)
            self._try_waiting()

    def _queue(self, pod: Object) -> None:
        self._try_later(objects.key(pod), objects.uid(pod), 0.0)

    def _try_later(self, key: str, uid: str, seconds: float) -> None:
        self.cluster.later(seconds, lambda: self.cluster.soon(lambda: self._try(key, uid)))

    def _try_waiting(self) -> None:
        """Try those without a place again, as there is room: a pod is gone, or was not bound."""
        waiting, self._waiting = self._waiting, {}
        for uid, key in waiting.items():
            self._try_later(key, uid, 0.0)

    def _try(self, key: str, uid: str) -> None:
        pod = self.cluster.pod(key, uid)
        if pod is None or objects.is_terminating(pod) or objects.spec(pod).get("nodeName"):
            return

        claims = self._claims(pod)
        if claims is None:  # held in PreEnqueue, where no condition is written
            self._waiting[uid] = key
            return

        needed, free = wanted(pod), self.free()
        node = next(
            (n for n, left in free.items() if self._has_room(needed, left, claims, n)), None
        )
        if node is None:
            self._waiting[uid] = key
            lacking = _lacking(needed, free) or f"{len(free)} cannot allocate all claims"
            text = f"0/{len(free)} nodes are available: {lacking}."
            self._unscheduled(pod, "Unschedulable", text)
            return

        if objects.spec(pod).get("schedulerName") != keys.CANDIDATE_SCHEDULER:
            self.cluster.writer.bind(key, {"target": {"name": node}})
            return

        self._assumed[uid] = node, needed
        if self.claims is not None:
            self.claims.allocate(claims, node, uid)

        call = asyncio.create_task(self._bind(pod, node), name=f"schedule {key}")
        self._tasks.add(call)
        call.add_done_callback(self._tasks.discard)

    def _claims(self, pod: Object) -> Objects | None:
        return [] if self.claims is None else self.claims.claims(pod)

    def _has_room(self, needed: Amounts, left: Amounts, claims: Objects, node: str) -> bool:
        return fits(needed, left) and (self.claims is None or self.claims.fits(claims, node))

    async def _bind(self, pod: Object, node: str) -> None:
        key, uid = objects.key(pod), objects.uid(pod)
        namespace, name = objects.split_key(key)
        try:
            async with asyncio.timeout(_HTTP_TIMEOUT):
                await self.agent.bind(BindRequest(namespace, name, uid, node))
        except (VnodeError, TimeoutError) as error:
            failure = str(error)
            if self.claims is not None:
                self.claims.give_back(self._claims(pod) or [], uid)

            self.cluster.soon(lambda: self._failed(key, uid, failure))
            self._try_waiting()
        finally:
            self._assumed.pop(uid, None)

    def _failed(self, key: str, uid: str, text: str) -> None:
        pod = self.cluster.pod(key, uid)
        if pod is not None and not objects.spec(pod).get("nodeName"):
            try:
                self._unscheduled(pod, "SchedulerError", text)
            finally:
                self._try_later(key, uid, _BACKOFF)

    def _unscheduled(self, pod: Object, reason: str, text: str) -> None:
        try:
            self.cluster.set_condition(
                pod,
                {"type": "PodScheduled", "status": "False", "reason": reason, "message": text},
            )
        except StatusError as error:
            if error.code != 404:
                raise


def wanted(pod: Object) -> Amounts:
    """Sum up what a pod asks for."""
    found = [_amounts(c["resources"]["requests"]) for c in objects.spec(pod)["containers"]]
    return sum(cpu for cpu, _ in found), sum(devices for _, devices in found)


def cpus(pod: Object) -> int:
    """Sum up the CPUs that a pod asks for."""
    return wanted(pod)[0]


def fits(needed: Amounts, left: Amounts) -> bool:
    """Tell whether a pod finds a place on a node with so much left."""
    return needed[0] <= left[0] and needed[1] <= left[1]


def _amounts(listed: Object) -> Amounts:
    return int(listed["cpu"]), int(listed.get(DEVICE, 0))


def _lacking(needed: Amounts, free: dict[str, Amounts]) -> str:
    """Return how many nodes lack what, as kube-scheduler says it."""
    counts = {
        name: sum(left[number] < needed[number] for left in free.values())
        for number, name in enumerate(("cpu", DEVICE))
    }
    return ", ".join(f"{count} Insufficient {name}" for name, count in counts.items() if count)
