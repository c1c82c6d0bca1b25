"""Answers the AdmissionChecks of workloads that have quota.

Ready when one target has room for all pods now, beside what others were promised: the answer holds
the pods there, by a node selector that Kueue adds to them. Without room it is Retry, with times
that grow as Kueue counts attempts, so that others get a turn with the quota; but first the workload
is looked at again for some seconds, since quota is often given back a moment before the target
reports the room that came with it, and for longer while pods end that leave it. Rejected where all
targets are too small, or none is meant. What was let in is told to retry when its target is lost
(`lost_workloads`).

One workload is looked at after the other, of each namespace in turn, and a promise is made before
the answer is written: two are never told of the same room (`promised_room`). Nothing is watched
before there is a check.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.api.slices import Slices
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.kueue import workloads
from vnode.kueue.checks import PlacementChecks
from vnode.kueue.deciding import RoomAnswer, RoomDecision
from vnode.kueue.judging import JudgedBy
from vnode.kueue.lost_workloads import Losses, LostWorkloads
from vnode.kueue.patience import Patience
from vnode.kueue.promised_room import PROMISED_FOR, PromisedPodSet, PromisedRoom
from vnode.kueue.workload_rooms import WorkloadRooms
from vnode.runtime import supervisor
from vnode.runtime.controller import Controller
from vnode.runtime.expectations import Expectations
from vnode.runtime.keyed_tasks import KeyedTasks
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.runtime.served_informer import ServedInformer
from vnode.telemetry import audit

FIRST_RETRY: Final = 60
"""Seconds; Kueue's own checks begin with as many, and double them."""
LAST_RETRY: Final = 300
"""Seconds, not 1,800 as theirs: until then a workload that fits nowhere keeps its quota."""
_AFTER_LOSS: Final = 1
"""Seconds, since none would have Kueue retry without end."""

_CHECK: Final = "check "  # begins the keys of AdmissionChecks in the queue

log = logging.getLogger(__name__)


def retry_after(attempts: int) -> int:
    """Return how long a workload waits that was told to retry so often before."""
    return int(min(FIRST_RETRY * 2 ** min(attempts, 16), LAST_RETRY))


class WorkloadChecks:
    """Answers for one term of a leader; `nodes` is an informer of virtual nodes."""

    def __init__(
        self,
        client: Client,
        judged_by: JudgedBy,
        links: Links,
        nodes: Informer,
        losses: Losses,
        clock: Clock,
    ) -> None:
        self._client = client
        self._links = links
        self._nodes = nodes
        self._clock = clock
        self.promised = PromisedRoom()
        self._controller: Controller[str] = Controller(
            "kueue-checks",
            self._reconcile,
            subject=self._subject,
            workers=1,
            namespace=objects.key_namespace,
        )
        self._checks = PlacementChecks(
            client, lambda name: self._controller.add(_CHECK + name), self._on_checks, clock
        )
        self._workloads = ServedInformer(
            client, kinds.WORKLOADS, self._on_workload, trim=_without_idle_templates
        )
        self._flavors = ServedInformer(client, kinds.RESOURCE_FLAVORS, self._on_flavor)
        self._rooms = WorkloadRooms(judged_by, nodes, self._flavors, self.promised, clock)
        self._expectations = Expectations(self._controller.add)
        self._patience = Patience()
        self._lost = LostWorkloads(losses, self._look_at_all)
        self._is_recalled = False  # what the status of all workloads says was promised
        self._tasks: KeyedTasks[str] | None = None

    async def run(self) -> None:
        """Work until cancelled."""
        async with supervisor.supervise() as tasks:
            self._tasks = tasks.keyed()
            self._links.subscribe(self._on_link, lambda _link: self._look_again())
            self._nodes.subscribe(lambda _old, _new: self._look_again())
            self._checks.watch(self._tasks)
            self._lost.watch()
            await self._controller.run()

    def on_pod(self, old: Object | None, new: Object | None) -> None:
        """Take the change of a pod that may be of a workload."""
        self.promised.on_pod(old, new)

    def _on_link(self, link: Link) -> None:
        link.summaries.subscribe(lambda _old, _new: self._look_again())
        link.on_health(self._look_again)
        self._look_again()

    def _on_checks(self) -> None:
        self._is_recalled = False
        if self._checks.names and self._tasks is not None:
            self._workloads.watch(self._tasks)
            self._flavors.watch(self._tasks)

        self._look_at_all()

    def _look_at_all(self) -> None:
        for workload in self._workloads.values():
            self._controller.add(objects.key(workload))

    def _on_workload(self, old: Object | None, new: Object | None) -> None:
        known = (objects.latest(old, new),) if old or new else self._workloads.values()
        for workload in known:
            self._controller.add(objects.key(workload))

    def _on_flavor(self, _old: Object | None, _new: Object | None) -> None:
        self._look_again()

    def _look_again(self) -> None:
        for key in self._patience:
            self._controller.add(key)

    def _subject(self, key: str) -> audit.Subject:
        if key.startswith(_CHECK):
            return audit.subject(kinds.ADMISSION_CHECKS, key.removeprefix(_CHECK), None)

        return audit.subject(kinds.WORKLOADS, key, self._workloads.get(key))

    async def _reconcile(self, key: str) -> float | None:
        if key.startswith(_CHECK):
            return await self._checks.report(key.removeprefix(_CHECK))

        workload = self._workloads.get(key)
        if workload is None:
            self._forget(key)
            self._expectations.forget(key)
            return None

        if self._expectations.pending(key, workload):
            return None

        entries = workloads.states(workload, self._checks.names)
        states = {entry.get("state") for entry in entries}
        if not workloads.has_quota(workload) or not states:
            self._forget(key)
            return None

        if workloads.PENDING in states:
            return await self._answer(key, workload) if self._is_ready() else None

        self._patience.forget(key)
        if states == {workloads.READY}:
            self._recall(key, workload, entries[0])
            return await self._leave_lost(key, workload, entries[0])

        self.promised.drop(key)
        return None

    def _is_ready(self) -> bool:
        """Tell whether it is known what others were promised, and what flavors say."""
        return self._workloads.is_known and self._flavors.is_known

    def _forget(self, key: str) -> None:
        self._patience.forget(key)
        self.promised.drop(key)

    async def _answer(self, key: str, workload: Object) -> float | None:
        if not self._is_recalled:
            await self._recall_all()

        sets, pods = workloads.pod_sets(workload), dict[str, PromisedPodSet]()
        all_known = self._rooms.are_targets_known()
        try:
            pods = self._rooms.pods(workload, sets)
        except ConfigError as error:
            decision = RoomDecision(RoomAnswer.NEVER, f"no target can ever take its pods: {error}")
        else:
            decision = await self._rooms.decide(key, sets, pods, all_known=all_known)

        if decision.answer is RoomAnswer.NOW:
            await self._let_in(key, workload, decision, pods)
            return None

        now = self._clock.monotonic()
        left = self._patience.left(key, now, all_known=all_known, is_soon=decision.is_soon)
        if left:
            return left

        await self._turn_away(key, workload, decision)
        return None

    async def _turn_away(self, key: str, workload: Object, decision: RoomDecision) -> None:
        """Tell Kueue that there is no room now, or never."""
        mine = workloads.states(workload, self._checks.names)
        may_reject = all(self._checks.may_reject(str(entry["name"])) for entry in mine)
        if decision.answer is RoomAnswer.NEVER and may_reject:
            rejected = workloads.answer(workloads.REJECTED, decision.message)
            await self._write(key, workload, rejected)
            return

        attempts = max(int(entry.get("retryCount") or 0) for entry in mine)
        wait = retry_after(attempts)
        retry = workloads.answer(workloads.RETRY, decision.message, retry_after=wait)
        await self._write(key, workload, retry)

    async def _let_in(
        self, key: str, workload: Object, decision: RoomDecision, pods: Mapping[str, PromisedPodSet]
    ) -> None:
        """Promise the room, then say so.

        If that fails, nobody knows whether it was said: the workload is looked at again.
        """
        by_topology = {each.name for each in workloads.pod_sets(workload) if each.domains}
        updates = []
        for pod_set, placement in decision.placement.items():
            node = next(iter(placement))
            selector = {} if pod_set in by_topology else self._rooms.selector(node)
            updates.append(workloads.update(workload, pod_set, selector))

        self.promised.make(key, decision.placement, pods, self._clock.now(), anew=True)
        ready = workloads.answer(workloads.READY, decision.message, updates=updates)
        await self._write(key, workload, ready)

    async def _leave_lost(self, key: str, workload: Object, entry: Object) -> float | None:
        """Tell Kueue to retry with what is held in a target that is lost, if it is time."""
        held = self._rooms.held(workloads.pod_sets(workload), entry)
        pods = self.promised.pods(key)
        lefts = []
        for node in self._lost.among(held, pods):
            left = self._lost.left(node, pods)
            if left == 0:
                why = f"target {self._rooms.target_name(node)}, which it is held in, is lost"
                retry = workloads.answer(workloads.RETRY, why, retry_after=_AFTER_LOSS)
                await self._write(key, workload, retry, instead_of=workloads.READY)
                return None

            lefts += [left] if left is not None else []

        return min(lefts, default=None)

    async def _write(
        self,
        key: str,
        workload: Object,
        answer: Mapping[str, object],
        *,
        instead_of: str = workloads.PENDING,
    ) -> None:
        checks = workloads.answered(
            workload, self._checks.names, answer, self._clock.now(), instead_of=instead_of
        )
        body = objects.status_patch(workload, {"admissionChecks": checks})
        self._patience.forget(key)
        log.info("workload %s: %s: %s", key, answer["state"], answer["message"])
        await self._expectations.patch(
            self._client,
            kinds.WORKLOADS,
            workload,
            body,
            key=key,
            subresource="status",
            if_unchanged=True,
        )

    async def _recall_all(self) -> None:
        """Promise anew what the status of workloads says: a new leader must know all of it."""
        self._is_recalled = True
        slices = Slices(self._clock)
        for workload in list(self._workloads.values()):
            entries = workloads.states(workload, self._checks.names)
            ready = entries and all(e.get("state") == workloads.READY for e in entries)
            if ready and workloads.has_quota(workload):
                self._recall(objects.key(workload), workload, entries[0])

            await slices.give_way()

    def _recall(self, key: str, workload: Object, entry: Object) -> None:
        """Promise a workload what its status says, unless the time of that is over."""
        now = self._clock.now()
        since = objects.parse_timestamp(str(entry.get("lastTransitionTime") or "")) or now
        if self.promised.has(key) or now >= since + PROMISED_FOR:
            return

        sets = workloads.pod_sets(workload)
        try:
            pods = self._rooms.pods(workload, sets)
        except ConfigError:
            return

        placement = self._rooms.recalled(sets, entry)
        self.promised.make(key, placement, pods, since, anew=False)


def _without_idle_templates(workload: Object) -> Object:
    """Drop what is large of workloads that no check is asked about."""
    if objects.status(workload).get("admissionChecks"):
        return workload

    return {**workload, "spec": {}}
