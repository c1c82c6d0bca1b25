"""Reports delegates on their chaperons, where their sources read it.

What a delegate has of status, Events and annotations of others goes to the chaperon in the fewest
writes (`delegate_report` builds them). Kept here is what the chaperon does not say: the last state
of a delegate that is gone, whether it ended before it was deleted, and how long reports may wait.
"""

from __future__ import annotations

import logging

from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Invalid, ServerError
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.pods import delegate_report, status_size
from vnode.pods.delegate_report import DelegateReport
from vnode.pods.target.delegate_events import DelegateEventCollector
from vnode.pods.target.own_delegates import is_of
from vnode.pods.target.start_reports import StartReports
from vnode.runtime.expectations import Expectations

log = logging.getLogger(__name__)


class DelegateReporter:
    """Writes to chaperons what their delegates are like; by the keys of chaperons.

    `expectations` are those of all writes to chaperons.
    """

    def __init__(
        self,
        client: Client,
        expectations: Expectations,
        events: DelegateEventCollector,
        clock: Clock,
    ) -> None:
        self._client = client
        self._expectations = expectations
        self._events = events
        # The last state of a delegate that is gone. Goes with its chaperon, and with the next
        # delegate of that key.
        self._last: dict[str, Object] = {}
        # The UID of a delegate and whether it had ended before it was deleted, once either was
        # seen. Goes with its chaperon.
        self._ended_first: dict[str, tuple[str, bool]] = {}
        self._tight: set[str] = set()  # chaperons that the API server found too large
        self._starts = StartReports(clock)

    def on_delegate(self, key: str, old: Object | None, new: Object | None) -> None:
        """Note a delegate as it is now: events come in order."""
        if new is None:
            self._last[key] = old or {}
            self._starts.forget(key)
        else:
            self._last.pop(key, None)
            self._note_order(key, new)
            self._starts.note(key, new)

    def _note_order(self, key: str, pod: Object) -> None:
        """Note which came first, the end of a delegate or its deletion."""
        ended, uid = objects.is_finished(pod), objects.uid(pod)
        is_known = self._ended_first.get(key, ("", False))[0] == uid
        if ended != objects.is_terminating(pod) and not is_known:
            self._ended_first[key] = uid, ended

    def forget(self, key: str) -> None:
        """Forget a chaperon that is gone."""
        self._last.pop(key, None)
        self._ended_first.pop(key, None)
        self._tight.discard(key)
        self._events.forget(key)

    def last(self, key: str) -> Object:
        """Return the last state of a delegate that is gone; empty if none was seen."""
        return self._last.get(key, {})

    async def report_unless_early(self, chaperon: Object, pod: Object) -> float | None:
        """Report a delegate; of one that starts, the status only when it is worth a write."""
        early = self._starts.left(chaperon, pod)
        warned = self._events.left(chaperon, pod, warnings=True) if early else None
        if not early or warned == 0:
            chaperon = await self.report(chaperon, pod)
            return self._events.left(chaperon, pod)

        await self.report(chaperon, pod, status=False)
        return early if warned is None else min(early, warned)

    async def report(self, chaperon: Object, pod: Object, *, status: bool = True) -> Object:
        """Bring the chaperon up to date with its delegate; return it as it is then.

        Without `status` that of the delegate waits.
        """
        report = self._report_of(chaperon, pod)
        if status and report.has_only_events:
            status = self._events.may_write(chaperon, pod)

        if report.metadata:
            chaperon = await self._patch_annotations(chaperon, report.metadata)

        if report.status and status:
            chaperon = await self._patch_status(chaperon, pod, report)
            self._starts.written(objects.key(chaperon))

        if status:
            self._events.settled(objects.key(chaperon), written=report.has_events)

        return chaperon

    def _report_of(self, chaperon: Object, pod: Object) -> DelegateReport:
        key = objects.key(chaperon)
        uid, ended_first = self._ended_first.get(key, ("", False))
        return delegate_report.build(
            chaperon,
            pod,
            self._events.field(chaperon, pod),
            ended_first=ended_first if uid == objects.uid(pod) else None,
            tight=key in self._tight,
        )

    async def _patch_annotations(self, chaperon: Object, body: Object) -> Object:
        """Patch annotations; only those of vnode if all together are more than may be."""
        try:
            return await self._patch(chaperon, body, if_unchanged=True)
        except Invalid as error:
            own = {k: v for k, v in objects.annotations(body).items() if not keys.is_foreign(k)}
            own.pop(keys.REPORTED, None)
            if own == objects.annotations(body):
                raise

            log.warning("annotations of pod %s stay here: %s", objects.key(chaperon), error)
            less = {"metadata": {"uid": objects.uid(chaperon), "annotations": own}}
            return await self._patch(chaperon, less, if_unchanged=True) if own else chaperon

    async def _patch_status(self, chaperon: Object, pod: Object, report: DelegateReport) -> Object:
        """Patch the status; shortened, from now on, if the API server finds it too large."""
        key = objects.key(chaperon)
        try:
            return await self._patch(chaperon, report.status, subresource="status")
        except (Invalid, ServerError) as error:
            if not status_size.is_too_large(error) or key in self._tight:
                raise

            log.warning("the status of pod %s is shortened: %s", key, error)
            self._tight.add(key)
            body = self._report_of(chaperon, pod).status
            return await self._patch(chaperon, body, subresource="status") if body else chaperon

    async def report_last(self, chaperon: Object) -> Object:
        """Report how a delegate that is gone has ended."""
        pod = self._last.get(objects.key(chaperon))
        if pod is None or not is_of(chaperon, pod):
            return chaperon

        return await self.report(chaperon, pod)

    async def patch_metadata(self, chaperon: Object, **metadata: object) -> Object:
        """Patch annotations or finalizers of a chaperon, unless it is a namesake by now."""
        return await self._patch(chaperon, {"metadata": {"uid": objects.uid(chaperon), **metadata}})

    async def _patch(
        self,
        chaperon: Object,
        body: Object,
        *,
        subresource: str | None = None,
        if_unchanged: bool = False,
    ) -> Object:
        after = await self._expectations.patch(
            self._client,
            kinds.POD_CHAPERONS,
            chaperon,
            body,
            subresource=subresource,
            if_unchanged=if_unchanged,
        )
        return after or chaperon
