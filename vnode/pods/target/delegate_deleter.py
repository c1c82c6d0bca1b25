"""Deletes delegates: of chaperons that end, and those that are in the place of another one.

A chaperon that is deleted takes its delegate with it, and, if it has our finalizer, stays until the
delegate is gone.
"""

from __future__ import annotations

import logging

from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Denied, Invalid
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.pods import delegate, rejections, results
from vnode.pods.target.delegate_creator import DelegateCreator
from vnode.pods.target.delegate_reporter import DelegateReporter
from vnode.pods.target.own_delegates import CATCH_UP, fetch, is_of

log = logging.getLogger(__name__)


class DelegateDeleter:
    """Deletes delegates, and reports what is known of them before."""

    def __init__(
        self, client: Client, creator: DelegateCreator, reporter: DelegateReporter, clock: Clock
    ) -> None:
        self._client = client
        self._creator = creator
        self._reporter = reporter
        self._clock = clock

    async def discard_rejected(self, chaperon: Object, pod: Object) -> bool:
        """Delete a delegate that its kubelet rejected, to make it anew; False if it is to fail."""
        known = rejections.of(chaperon)
        if known.uid != objects.uid(pod):
            if known.is_enough(pod):
                return False

            live = await fetch(self._client, chaperon)  # with the times of its writers
            if live is None or objects.uid(live) != objects.uid(pod):
                return True

            if not rejections.is_first_look(live):
                return False

            annotations = {keys.REJECTED: known.next(pod, self._clock.now()).encode()}
            await self._reporter.patch_metadata(chaperon, annotations=annotations)
            await self._creator.explain(chaperon, rejections.reason(pod))

        await self._client.discard(kinds.PODS, pod, grace=0)
        return True

    async def discard_late(self, chaperon: Object) -> None:
        """Delete a delegate that was made after its pod had a result, if it is another one."""
        live = await fetch(self._client, chaperon)  # the store may not have seen how it ended
        if live is None or objects.is_terminating(live) or not results.is_late(chaperon, live):
            return

        log.info("deleting pod %s, which was made again by a late request", objects.key(live))
        await self._client.discard(kinds.PODS, live)

    async def discard_predecessor(self, chaperon: Object, pod: Object) -> float | None:
        """Delete a pod of that name that belongs to an earlier chaperon: its owner is gone."""
        owner = objects.controller_reference(pod) or {}
        if owner.get("kind") != kinds.POD_CHAPERONS.kind:
            return await self._creator.reject_name(chaperon)

        if not objects.is_terminating(pod):
            await self._client.discard(kinds.PODS, pod)

        return None

    async def end(self, chaperon: Object, pod: Object | None) -> float | None:
        """Delete the delegate, report until it is gone, and then let the chaperon go."""
        if pod is not None and is_of(chaperon, pod):
            await self._delete(chaperon, pod)
            if delegate.may_have_run(chaperon, pod):
                await self._reporter.report(chaperon, pod)

            return None

        if keys.DELEGATE_FINALIZER in objects.finalizers(chaperon):
            last = self._reporter.last(objects.key(chaperon))
            # An event of the end also comes if somebody takes the delegate's label off. One that
            # was never bound never will be, and goes with its chaperon; there is nothing to tell.
            if delegate.may_have_run(chaperon, last) or not self._creator.is_last(chaperon, last):
                if (unseen := await fetch(self._client, chaperon)) is not None:
                    await self._delete(chaperon, unseen)
                    return CATCH_UP

                chaperon = await self._reporter.report_last(chaperon)

            kept = objects.finalizers_without(chaperon, keys.DELEGATE_FINALIZER)
            await self._reporter.patch_metadata(chaperon, finalizers=kept)

        return None

    async def _delete(self, chaperon: Object, pod: Object) -> None:
        grace = delegate.asked_grace(chaperon, pod)
        if grace is None and objects.is_terminating(pod):
            return

        try:
            await self._client.discard(kinds.PODS, pod, grace=grace)
        except (Denied, Invalid) as error:  # the source tells its user
            if objects.annotations(chaperon).get(keys.REFUSED) != error.message:
                annotations = {keys.REFUSED: error.message}
                await self._reporter.patch_metadata(chaperon, annotations=annotations)

            raise
