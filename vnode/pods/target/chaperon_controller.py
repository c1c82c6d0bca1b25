"""Reconciles chaperons: PodChaperon -> delegate pod -> status of the PodChaperon.

Runs in the leader of every cluster. It needs nothing from the source: a delegate goes on, and is
created again if it is lost, while the source cannot be reached. What is to be done is decided here,
and done by modules beside: `delegate_creator`, `delegate_updater` for later changes of the source,
`delegate_reporter`, `delegate_deleter`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from vnode.api import keys, kinds, objects, permissions
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.api.shared_strings import sharing
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.pods import delegate, preemption, rejections, results, streams
from vnode.pods.delegate import Absence
from vnode.pods.event_record import DelegateEventsMode
from vnode.pods.target.delegate_creator import DelegateCreator
from vnode.pods.target.delegate_deleter import DelegateDeleter
from vnode.pods.target.delegate_events import DelegateEventCollector
from vnode.pods.target.delegate_reporter import DelegateReporter
from vnode.pods.target.delegate_updater import RETRY_DELAY, DelegateUpdater
from vnode.pods.target.nominations import Nominations
from vnode.pods.target.own_delegates import CATCH_UP, fetch, is_of, mended
from vnode.pods.target.unmade_claims import UnmadeClaims
from vnode.runtime.controller import Controller
from vnode.runtime.expectations import Expectations
from vnode.telemetry import audit

_COALESCE: Final = 0.03  # seconds; a pod that was just bound reports more within this time

log = logging.getLogger(__name__)


def trim_chaperon(chaperon: Object) -> Object:
    """Drop the spec once a delegate has been made of it."""
    if not objects.status(chaperon).get("phase"):
        return chaperon

    policy = objects.spec(chaperon).get("restartPolicy", "Always")
    return {**chaperon, "spec": {"restartPolicy": policy}}


def trim_delegate(pod: Object) -> Object:
    """Drop the spec but for where the pod runs, who schedules it, and its device claims."""
    spec, fields = objects.spec(pod), ("nodeName", "schedulerName", "resourceClaims")
    kept = {field: spec[field] for field in fields if field in spec}
    return {**pod, "spec": kept}


def informers(client: Client) -> tuple[Informer, Informer]:
    """Return informers of this cluster's chaperons, and of their delegates."""
    indexes = {streams.DIGEST_INDEX: streams.digest_of}
    chaperons = Informer(client, kinds.POD_CHAPERONS, trim=sharing(trim_chaperon), indexes=indexes)
    delegates = Informer(
        client, kinds.PODS, label_selector=keys.PARENT_UID, trim=sharing(trim_delegate)
    )
    return chaperons, delegates


class ChaperonController:
    """Keeps each chaperon's delegate, and reports its status.

    `goes_on` tells whether a delegate may be sent to a target of this cluster. `sources` returns by
    which Sources chaperons may be made in a namespace. With `writes_permissions`, those that were
    given on streams are written, too: for an older agent, which knows no other ones.
    """

    def __init__(
        self,
        client: Client,
        chaperons: Informer,
        delegates: Informer,
        *,
        goes_on: Callable[[Object], bool],
        clock: Clock,
        sources: Callable[[str], tuple[str, ...]] = lambda _namespace: (),
        delegate_events: DelegateEventsMode = "Summary",
        writes_permissions: bool = False,
    ) -> None:
        self._client = client
        self._writes_permissions = writes_permissions
        self._chaperons = chaperons
        self._delegates = delegates
        self._clock = clock
        self._sources = sources
        self._updater = DelegateUpdater(client, clock)
        self._nominations = Nominations(client)
        self._unmade_claims = UnmadeClaims(client, clock)
        self._controller: Controller[str] = Controller(
            "chaperons",
            self._reconcile,
            subject=self._subject,
            workers=32,
            namespace=objects.key_namespace,
        )
        self._expectations = Expectations(self._controller.add)
        self._creator = DelegateCreator(
            client, self._expectations, self._controller.add, goes_on=goes_on, clock=clock
        )
        self._events = DelegateEventCollector(
            client,
            chaperons,
            delegates,
            self._controller.add_after,
            mode=delegate_events,
            clock=clock,
        )
        self._reporter = DelegateReporter(client, self._expectations, self._events, clock)
        self._deleter = DelegateDeleter(client, self._creator, self._reporter, clock)

    async def run(self) -> None:
        """Reconcile until cancelled, once both lists are complete."""
        await self._chaperons.synced.wait()
        await self._delegates.synced.wait()
        self._chaperons.subscribe(self._on_chaperon)
        self._delegates.subscribe(self._on_delegate)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._events.run(), name="events-of-delegates")
            group.create_task(self._controller.run(), name="chaperons")

    def _on_chaperon(self, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self._creator.on_chaperon(new)

        self._controller.add(objects.key(objects.latest(old, new)))

    def _on_delegate(self, old: Object | None, new: Object | None) -> None:
        key = objects.key(objects.latest(old, new))
        self._creator.on_delegate(key, new)
        self._reporter.on_delegate(key, old, new)
        if new is None or objects.is_terminating(new):
            self._controller.add(key)
        else:
            self._controller.add_after(key, _COALESCE)

    def _subject(self, key: str) -> audit.Subject:
        sources = self._sources(objects.key_namespace(key))
        return audit.of_chaperon(key, self._chaperons.store.get(key) or {}, sources=sources)

    async def _reconcile(self, key: str) -> float | None:
        chaperon = self._chaperons.store.get(key)
        if chaperon is None:
            self._expectations.forget(key)
            self._updater.forget(key)
            self._creator.forget(key)
            self._unmade_claims.forget(key)
            self._reporter.forget(key)
            return None

        if self._expectations.pending(key, chaperon):
            return None

        pod = self._delegates.store.get(key)
        if objects.is_terminating(chaperon):
            return await self._deleter.end(chaperon, pod)

        if pod is None:
            return await self._replace(chaperon)

        if not is_of(chaperon, pod):
            return await self._deleter.discard_predecessor(chaperon, pod)

        return await self._keep(chaperon, await mended(self._client, chaperon, pod))

    async def _keep(self, chaperon: Object, pod: Object) -> float | None:
        """Bring the delegate up to date with its chaperon, and then the chaperon with it."""
        if self._updater.under_way(pod):
            return None

        if results.is_late(chaperon, pod):
            await self._deleter.discard_late(chaperon)
            return None

        if rejections.may_be(chaperon, pod) and await self._deleter.discard_rejected(chaperon, pod):
            return None

        if self._writes_permissions and permissions.is_unwritten(chaperon):
            permission = {keys.IS_ALLOWED: "true"}
            chaperon = await self._reporter.patch_metadata(chaperon, annotations=permission)

        chaperon = await self._end_nomination(chaperon, pod)
        refusal = None
        if not objects.is_terminating(pod):
            refusal = await self._updater.update(chaperon, pod)
            if refusal != objects.annotations(chaperon).get(keys.REFUSED):
                annotations = {keys.REFUSED: refusal}
                chaperon = await self._reporter.patch_metadata(chaperon, annotations=annotations)

            if self._updater.under_way(pod):
                return None

        pod, unmade = await self._unmade_claims.judge(pod)
        later = await self._reporter.report_unless_early(chaperon, pod)
        waits = (RETRY_DELAY if refusal else None, later, unmade)
        return min((wait for wait in waits if wait is not None), default=None)

    async def _end_nomination(self, chaperon: Object, pod: Object) -> Object:
        """Keep the room of victims no longer, if the delegate does not wait for it any more."""
        rounds = preemption.rounds(chaperon)
        if not (rounds.node and preemption.is_over(chaperon, pod)):
            return chaperon

        if not await self._nominations.end(chaperon):
            return chaperon

        annotations = {keys.PREEMPTED: rounds.without_node().encode()}
        return await self._reporter.patch_metadata(chaperon, annotations=annotations)

    async def _replace(self, chaperon: Object) -> float | None:
        last = self._reporter.last(objects.key(chaperon))
        is_unreported = not objects.status(chaperon).get("phase")
        was_rejected = rejections.of(chaperon).uid == objects.uid(last)
        if objects.node_name(last) and is_unreported and not was_rejected:
            # It may have run: none is to run again.
            chaperon = await self._reporter.report_last(chaperon)

        action, later = delegate.on_absence(chaperon, self._clock.now())
        if action is Absence.CREATE:
            return await self._creator.create(chaperon)

        if action is Absence.MARK:
            if await fetch(self._client, chaperon) is not None:
                return CATCH_UP

            chaperon = await self._reporter.report_last(chaperon)
            since = objects.timestamp(self._clock.now())
            annotations = {keys.POD_MISSING_SINCE: since}
            await self._reporter.patch_metadata(chaperon, annotations=annotations)

        return later.total_seconds() or None
