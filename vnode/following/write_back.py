"""Writes onto Services and Ingresses of the source what `write_back_patches` computes.

That is: marks that make a Service global, addresses that targets gave to copies, selectors that
Admiralty replaced, and its finalizers. A Ref wakes it; an object that is up to date is not written.
Addresses that keep changing are written in intervals (`vnode.runtime.write_limits`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Invalid
from vnode.api.objects import Object
from vnode.following import write_back_patches
from vnode.following.references import Ref
from vnode.kube.client import Client
from vnode.runtime import write_limits
from vnode.runtime.controller import Controller
from vnode.runtime.expectations import Expectations
from vnode.runtime.write_limits import WriteLimiter

log = logging.getLogger(__name__)


class WriteBackController:
    """Patches Services and Ingresses of the source.

    `original` returns an object of the source, `follows` tells whether it follows pods, `copies_of`
    returns each target's copy. Unless `active`, only Admiralty's changes are undone.
    """

    def __init__(
        self,
        local: Client,
        *,
        original: Callable[[Ref], Object | None],
        follows: Callable[[Ref], bool],
        copies_of: Callable[[Ref], dict[str, Object | None]],
        target_exists: Callable[[str], bool],
        active: bool,
        clock: Clock,
    ) -> None:
        self._local = local
        self._original = original
        self._follows = follows
        self._copies_of = copies_of
        self._target_exists = target_exists
        self._active = active
        self._expectations = Expectations(self.wake)
        self._limiter: WriteLimiter[Ref] = WriteLimiter("services", write_limits.SERVICES, clock)
        self._controller: Controller[Ref] = Controller(
            "services",
            self._reconcile,
            subject=lambda ref: ref.subject,
            workers=4,
            lane=lambda ref: ref.namespace,
            total=16,
        )

    def wake(self, ref: Ref) -> None:
        """Reconcile that object."""
        self._controller.add(ref)

    async def run(self) -> None:
        """Reconcile until cancelled."""
        await self._controller.run()

    async def _reconcile(self, ref: Ref) -> float | None:
        obj = self._original(ref)
        if obj is None:
            self._expectations.forget(ref)
            self._limiter.forget(ref)
            return None

        if self._expectations.pending(ref, obj) or keys.IS_DELEGATE in objects.annotations(obj):
            return None

        body = write_back_patches.restoration(obj)
        if body:
            log.info("undoing what Admiralty did to %s", ref)
        elif self._active and ref.kind is kinds.SERVICES and self._follows(ref):
            body = write_back_patches.global_marks(obj)

        if body:
            await self._patch(ref, obj, body)
            return None

        body = write_back_patches.addresses(
            obj,
            self._copies_of(ref),
            self._target_exists,
            is_service=ref.kind is kinds.SERVICES,
        )
        if not body or not self._active:
            return None

        if wait := self._limiter.take(ref):
            return wait

        await self._patch(ref, obj, body, subresource="status")
        return None

    async def _patch(
        self, ref: Ref, obj: Object, body: Object, *, subresource: str | None = None
    ) -> None:
        # A patch replaces the whole list, to which others write, too: Conflict if they just did.
        try:
            await self._expectations.patch(
                self._local,
                ref.kind,
                obj,
                body,
                key=ref,
                subresource=subresource,
                if_unchanged=True,
            )
        except Invalid as error:  # a target's addresses may be anything
            log.warning("%s was not changed: %s", ref, error)
