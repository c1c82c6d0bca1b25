"""The proxy scheduler: pending proxy pods -> queue -> scheduling cycle -> candidate phase.

Cycles run one after the other, in memory, over a snapshot of the virtual nodes; each pod that some
target could take then goes on in a task of its own (`placing`), hundreds at once. Informers wake:
proxies feed the queue, nodes and summaries feed the cache, chaperons wake the tasks.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from vnode.api import keys, kinds, objects, route
from vnode.api.clock import Clock
from vnode.api.errors import NotFound, VnodeError
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.events import EventRecorder
from vnode.kube.informer import Informer
from vnode.pods import candidates, chaperon, delegate, placing
from vnode.pods.candidates import Settings, State
from vnode.pods.chaperon import Parent
from vnode.pods.placing import Bring, Outcome, Phase, Placer, Renew
from vnode.pods.reservations import Refusal
from vnode.runtime.links import Link, Links
from vnode.scheduling import diagnosis, status
from vnode.scheduling.cache import Cache
from vnode.scheduling.events import ClusterEvent, EventKind, WakeOn
from vnode.scheduling.framework import Framework
from vnode.scheduling.outcome import CycleResult
from vnode.scheduling.queue import SchedulingQueue
from vnode.scheduling.queued_pod import QueuedPod
from vnode.scheduling.status import SUCCESS, Code, Status
from vnode.telemetry import metrics

CANDIDATES: Final = "Candidates"
"""What the queue is told to have rejected a pod where its candidates have."""

REGISTRATIONS: Final = {
    CANDIDATES: frozenset(
        WakeOn(kind)
        for kind in (
            EventKind.NODE_ALLOCATABLE,
            EventKind.TARGET_FREE,
            EventKind.TARGET_HEALTH,
            EventKind.TARGET_CHANGED,
        )
    )
}
"""The events after which targets that rejected candidates are worth another attempt."""

log = logging.getLogger(__name__)


class ProxyScheduler:
    """Runs in the leader of every cluster that has targets."""

    def __init__(
        self,
        client: Client,
        proxies: Informer,
        links: Links,
        parent: Parent,
        *,
        framework: Framework,
        queue: SchedulingQueue,
        cache: Cache,
        settings: Settings,
        allowed: Callable[[Object], Awaitable[None]],
        bring: Bring,
        renew: Renew,
        unconnected: Callable[[str], dict[str, str]],
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        self._client = client
        self._proxies = proxies
        self._links = links
        self._framework = framework
        self._queue = queue
        self._cache = cache
        self._allowed = allowed  # returns when a delegate's own source lets it go; else Refusal
        self._unconnected = unconnected  # why targets of a namespace have no link, by name
        self._events = events
        self._clock = clock
        self._phases: dict[str, Phase] = {}  # by UID: the pods in their candidate phase
        self._placer = Placer(
            client,
            links,
            parent,
            settings=settings,
            lookup=proxies.store.get,
            assume=lambda pod, node: cache.assume(pod, node, clock.monotonic()),
            forget=cache.forget,
            bring=bring,
            renew=renew,
            clock=clock,
        )

    async def run(self) -> None:
        """Schedule until cancelled, once the list of proxy pods is complete."""
        await self._proxies.synced.wait()
        self._proxies.subscribe(self._on_proxy)
        self._links.subscribe(self._on_link, self._on_link_gone)
        async with asyncio.TaskGroup() as group:
            while True:
                queued = await self._queue.pop()
                self._cycle(queued, group)
                await asyncio.sleep(0)

    def count_pending(self) -> None:
        """Bring the gauge of pending pods up to date."""
        for place, count in self._queue.statistics().items():
            metrics.PENDING_PODS.labels(place).set(count)

    def _on_proxy(self, old: Object | None, new: Object | None) -> None:
        pod = new or old or {}
        uid = objects.uid(pod)
        if new is None or objects.is_terminating(new) or objects.spec(new).get("nodeName"):
            self._queue.delete(uid)
            self._wake(uid)
        else:
            self._queue.add(new)

        node, before = _node_of(new), _node_of(old)
        if new is None:
            self._cache.remove_pod(uid)
        else:
            self._cache.set_pod(new)

        if node and node != before:
            self._queue.move(ClusterEvent(EventKind.POD_ADD, node))
        elif before and not node:
            self._queue.move(ClusterEvent(EventKind.POD_DELETE, before))

    def _on_link(self, link: Link) -> None:
        link.chaperons.subscribe(lambda _old, new: self._on_chaperon(link, new))
        link.on_health(lambda: self._on_health(link))

    def _on_link_gone(self, link: Link) -> None:
        for phase in self._phases.values():
            phase.moved.set()

    def _on_health(self, link: Link) -> None:
        for phase in self._phases.values():
            if link.node_name in phase.created or link.node_name in phase.ranked:
                phase.moved.set()

    def _on_chaperon(self, link: Link, new: Object | None) -> None:
        uid = objects.labels(new or {}).get(keys.PARENT_UID, "")
        if new is None or link.candidate(uid) is None:
            return  # gone, or by way of another Target of the same cluster

        state = candidates.read(new, 0.0).state
        if state is not State.WAITING:
            self._placer.heard(link.node_name)

        if state in (State.RESERVED, State.COMMITTED):
            self._cache.observe(uid, link.node_name)
            self._queue.activate(uid)

        self._wake(uid)

    def _wake(self, uid: str) -> None:
        if phase := self._phases.get(uid):
            phase.moved.set()

    def _cycle(self, queued: QueuedPod, group: asyncio.TaskGroup) -> None:
        """One scheduling cycle; the pod goes on in a task if there is anything to wait for."""
        pod, now = queued.pod, self._clock.monotonic()
        with metrics.SCHEDULING_CYCLE_SECONDS.time():
            result = self._framework.schedule(pod, self._cache.snapshot(now))

        if result.status.code is Code.ERROR:
            log.error("scheduling %s failed: %s", objects.key(pod), result.status.message)
            metrics.SCHEDULING_ATTEMPTS.labels("error").inc()
            self._queue.retry(queued.uid)
            return

        ranked = tuple(scored.name for scored in result.feasible) or result.nominated
        barred = frozenset(node for node in result.unresolvable() if self._answers(node))
        phase = Phase(objects.key(pod), queued.uid, ranked, now, barred)
        self._phases[queued.uid] = phase
        group.create_task(self._attempt(queued, phase, result), name=f"place {phase.key}")

    def _answers(self, node: str) -> bool:
        link = self._links.get(node)
        return link is not None and link.health.healthy

    async def _attempt(self, queued: QueuedPod, phase: Phase, result: CycleResult) -> None:
        outcome = Outcome.UNSCHEDULABLE
        try:
            if result.feasible and chaperon.skips_reservation(queued.pod):
                bound = await self._bind(queued.pod, phase.ranked[0], result, queued)
                outcome, reasons = placing.ended(bound)
            else:
                outcome, reasons = await self._placer.place(
                    phase, lambda pod, node: self._bind(pod, node, result, queued)
                )

            await self._conclude(queued, phase, outcome, result, reasons)
        except VnodeError as error:
            log.warning("placing %s failed, trying again: %s", phase.key, error)
            self._queue.retry(queued.uid)
        except Exception:
            log.exception("placing %s failed, trying again", phase.key)
            self._queue.retry(queued.uid)
        finally:
            del self._phases[queued.uid]
            if outcome is not Outcome.BOUND:
                for node in phase.created:
                    self._cache.forget(queued.uid, node)

    async def _conclude(
        self,
        queued: QueuedPod,
        phase: Phase,
        outcome: Outcome,
        result: CycleResult,
        reasons: dict[str, str],
    ) -> None:
        if outcome is not Outcome.UNSCHEDULABLE:
            self._queue.done(queued.uid)
            return

        metrics.SCHEDULING_ATTEMPTS.labels("unschedulable").inc()
        if reasons or not result.feasible:
            await self._explain(queued.pod, result, reasons)

        if phase.shaky:
            self._queue.retry(queued.uid)
            return

        rejections = result.rejections()
        rejections.update((node, frozenset({CANDIDATES})) for node in reasons)
        self._queue.reject(queued.uid, rejections)

    async def _bind(self, pod: Object, node: str, result: CycleResult, queued: QueuedPod) -> bool:
        """Reserve, Permit, PreBind, Bind, PostBind; False if a plugin or the pod says no."""
        started = self._clock.monotonic()
        said = self._framework.reserve(result.state, pod, node)
        if said.is_success:
            said = await self._framework.permit(result.state, pod, node)

        if said.is_success and route.is_delegate(pod):
            said = await self._allow_on(pod)

        if said.is_success:
            said = await self._framework.pre_bind(result.state, pod, node)

        if said.is_success:
            said = await self._framework.bind(result.state, pod, node)
            if said.is_skip and await self._hold_and_bind(pod, node):
                now = self._clock.monotonic()
                metrics.SCHEDULING_ATTEMPTS.labels("bound").inc()
                metrics.BINDING_SECONDS.labels("bound").observe(now - started)
                metrics.POD_BOUND_SECONDS.observe(now - queued.added)
                self._framework.post_bind(result.state, pod, node)
                return True

        metrics.BINDING_SECONDS.labels("failed").observe(self._clock.monotonic() - started)
        self._framework.unreserve(result.state, pod, node)
        self._cache.forget(objects.uid(pod), node)
        if said.is_rejected:
            log.info("%s keeps %s off %s: %s", said.plugin, objects.key(pod), node, said.message)

        return False

    async def _allow_on(self, pod: Object) -> Status:
        """A delegate with a place in the next cluster has one here: its own source decides."""
        try:
            await self._allowed(pod)
        except Refusal as refusal:
            return status.unschedulable(str(refusal)).by("its source")

        return SUCCESS

    async def _hold_and_bind(self, pod: Object, node: str) -> bool:
        link = self._links.get(node)
        now = self._proxies.store.get(objects.key(pod))
        if now is not None and objects.uid(now) == objects.uid(pod):
            pod = now  # a finalizer may have gone meanwhile (`released`)

        held = link is not None and await placing.hold(self._client, pod, link.target.finalizer)
        return held and await placing.bind(self._client, pod, node)

    async def _explain(self, pod: Object, result: CycleResult, reasons: dict[str, str]) -> None:
        """Say on the pod, target by target, why it is pending."""
        verdicts = {node: said.message for node, said in result.statuses.items()} | reasons
        targets = {self._target_of(node): text for node, text in sorted(verdicts.items())}
        message = diagnosis.explain(targets | self._unconnected(objects.namespace(pod)))
        current = self._proxies.store.get(objects.key(pod)) or pod
        known = objects.condition(current, "PodScheduled") or {}
        self._events.event(
            objects.reference(pod, "Pod", "v1"), "Warning", "FailedScheduling", message
        )
        if known.get("message") == message:
            return

        since = known.get("lastTransitionTime") or objects.timestamp(self._clock.now())
        condition = delegate.rejected(message, since)
        body = {"metadata": {"uid": objects.uid(pod)}, "status": {"conditions": [condition]}}
        try:
            await self._client.patch(
                kinds.PODS,
                objects.name(pod),
                body,
                objects.namespace(pod),
                subresource="status",
                strategic=True,
            )
        except NotFound:
            log.debug("pod %s is gone", objects.key(pod))

    def _target_of(self, node: str) -> str:
        link = self._links.get(node)
        return link.target.name if link else node


def _node_of(pod: Object | None) -> str:
    return str(objects.spec(pod or {}).get("nodeName") or "")
