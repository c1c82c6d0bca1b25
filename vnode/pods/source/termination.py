"""Ends proxy pods: removes their finalizer when nothing of them can run any more.

A terminating proxy first has its chaperon deleted, which reports until its delegate is gone; the
end of the chaperon means that the containers have stopped, and how. Only then is the finalizer
removed. A pod that vnode moves first waits for its replacement (`awaited_replacements`). As long as
the target cannot be asked, the pod stays, because its name must not be taken while its predecessor
may still run. A pod that finalizers of others keep, and whose end nobody reported, is made Failed,
as Kubernetes does with pods of nodes that are gone: nothing else will ever finish it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from vnode.api import keys, kinds, objects, shapes
from vnode.api.clock import Clock
from vnode.api.errors import NotFound
from vnode.api.identity import is_chaperon_of
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.pods import chaperons
from vnode.pods.source import feedback, proxy_state
from vnode.pods.source.awaited_replacements import AwaitedReplacements
from vnode.pods.source.externally_bound import is_daemon
from vnode.pods.source.status_writer import StatusWriter
from vnode.runtime.link import Link
from vnode.runtime.links import Links

LOOK_AGAIN: Final = 2.0  # seconds between looks at what only a list can show
_LATE: Final = 120.0  # seconds after the grace period of a delegate that lingers, to tell so
_RARELY: Final = 60.0  # seconds between looks at one that is late


class Termination:
    """Removes finalizers from terminating proxy pods."""

    def __init__(
        self,
        client: Client,
        links: Links,
        status_writer: StatusWriter,
        target_exists: Callable[[str], bool],
        clock: Clock,
        replacements: AwaitedReplacements,
    ) -> None:
        self._replacements = replacements
        self._client = client
        self._links = links
        self._status_writer = status_writer
        self._target_exists = target_exists  # by node name; True while in doubt
        self._clock = clock
        # By key, the UID of a terminating pod whose chaperon was deleted with our finalizer on it:
        # when that chaperon ends, so has the delegate. Goes with the pod.
        self._held: dict[str, str] = {}
        # By key, the last state of a bound pod's chaperon. Goes when the pod is released.
        self._last: dict[str, Object] = {}
        # By key, since when a terminating pod lingers (monotonic). Goes when the pod is released.
        self._lingers_since: dict[str, float] = {}

    def saw_last(self, key: str, chaperon: Object) -> None:
        """Keep the last state of a bound pod's chaperon, which is gone."""
        self._last[key] = chaperon

    def last_of(self, proxy: Object) -> Object | None:
        """Return the last state of a bound pod's chaperon, if that is gone and was seen to go."""
        key = objects.key(proxy)
        last = self._last.get(key)
        return last if last and is_chaperon_of(last, key, objects.uid(proxy)) else None

    def forget(self, key: str) -> None:
        """Drop what is known of a pod that is gone."""
        self._held.pop(key, None)
        self._last.pop(key, None)
        self._lingers_since.pop(key, None)

    def not_held(self, key: str) -> None:
        """Note that the end of that pod's chaperon says nothing about the delegate."""
        self._held.pop(key, None)

    async def end(self, proxy: Object, node_name: str | None) -> float | None:
        """Release a terminating pod once nothing of it can run; return when to check again."""
        if node_name and not is_daemon(proxy):
            if mark := self._replacements.mark(proxy):
                proxy = await self._status_writer.patch(proxy, mark, subresource="status")

            link = self._links.get(node_name)
            if link is None and self._target_exists(node_name):
                return None  # the link, when it is back, has the pod reconciled

            if link is not None and link.covers(objects.namespace(proxy)):
                if not link.synced or not link.answers:
                    return None  # its health, when it changes, does the same

                may_run, again = await self._end_delegate(proxy, link)
                if may_run:
                    return again

            await self._finish(proxy)

        if not self._status_writer.pending(objects.key(proxy), proxy):  # else its event comes
            await self._release(proxy)

        return None

    async def _end_delegate(self, proxy: Object, link: Link) -> tuple[bool, float | None]:
        """End what there is of a pod in its target.

        Return whether something may still run there, or say something, and when to check again.
        """
        waits, again = await self._await_replacement(proxy, link)
        if waits:
            return True, again

        if await self._ask_to_end(proxy, link):  # the end of the chaperon has the pod reconciled
            return True, self._status_writer.held(objects.key(proxy))

        if await self._lingers(proxy, link):
            return True, _RARELY if self._is_late(proxy) else LOOK_AGAIN

        held = await self._take_over_last(proxy, link)
        return held is not None, held

    def _is_late(self, proxy: Object) -> bool:
        """Return whether a pod has lingered for longer than its delegate has to end."""
        now, metadata = self._clock.monotonic(), objects.metadata(proxy)
        since = self._lingers_since.setdefault(objects.key(proxy), now)
        return now - since > float(metadata.get("deletionGracePeriodSeconds") or 0) + _LATE

    async def leave_to_kubelet(self, proxy: Object) -> None:
        """Release a pod that others bound to a real node, whose kubelet runs and ends it."""
        body = feedback.without_finalizers(proxy)
        if objects.is_terminating(proxy) and body is not None:
            await self._status_writer.patch(proxy, body)

    async def _await_replacement(self, proxy: Object, link: Link) -> tuple[bool, float | None]:
        """Let a pod that is moved run on, if it is to; return whether, and when to check again."""
        candidate = link.candidate(objects.key(proxy), objects.uid(proxy))
        if candidate is None:
            return False, None

        waits, seconds = self._replacements.waits(proxy, candidate)
        if not waits:
            return False, None

        refused = await self._status_writer.feed_back(proxy, candidate, link)
        return True, min((s for s in (seconds, refused) if s is not None), default=None)

    async def _ask_to_end(self, proxy: Object, link: Link) -> bool:
        """Delete the chaperon of a pod, and take over what it reports; False if it has none.

        What has ended goes with its chaperon, and so does its result: that is taken over first.
        """
        candidate = link.candidate(objects.key(proxy), objects.uid(proxy))
        if candidate is None:
            return False

        if objects.is_finished(candidate):
            await self._status_writer.feed_back(proxy, candidate, link)
            if self._status_writer.held(objects.key(proxy)) is not None:
                return True

            if self._status_writer.pending(objects.key(proxy), proxy):  # its event comes
                return True

        ended: Object | None = candidate
        await self._pass_grace_on(proxy, candidate, link)
        if not objects.is_terminating(candidate):  # the answer counts: our copy may be an old one
            ended = await link.client.discard(kinds.POD_CHAPERONS, candidate)

        if link.lacks_vnode:
            self.not_held(objects.key(proxy))
        elif chaperons.is_held(ended or {}):
            self._held[objects.key(proxy)] = objects.uid(proxy)

        await self._status_writer.feed_back(proxy, candidate, link)
        return True

    async def _pass_grace_on(self, proxy: Object, candidate: Object, link: Link) -> None:
        """Give the delegate the grace period of the pod's deletion."""
        grace = proxy_state.asked_grace(proxy)
        known = objects.annotations(candidate).get(keys.GRACE_PERIOD)
        heeded = link.runs_vnode or chaperons.is_held(candidate)  # its agent may just be down
        if grace is None or known == str(grace) or not heeded:
            return

        annotations = {keys.GRACE_PERIOD: str(grace)}
        body = {"metadata": {"uid": objects.uid(candidate), "annotations": annotations}}
        await link.client.patch(
            kinds.POD_CHAPERONS, objects.name(candidate), body, objects.namespace(candidate)
        )

    async def _lingers(self, proxy: Object, link: Link) -> bool:
        """Return whether something of the pod is left of which no event will come.

        It can be a chaperon that our informer has not shown, or a delegate that outlives its
        chaperon, which only one without our finalizer can: a chaperon with it reports by itself.
        """
        if self._held.get(objects.key(proxy)) == objects.uid(proxy):
            return False

        uid, namespace = objects.uid(proxy), objects.namespace(proxy)
        if (unseen := await link.fetch_candidate(objects.key(proxy), uid)) is not None:
            await link.client.discard(kinds.POD_CHAPERONS, unseen)
            return True

        selector = f"{keys.PARENT_UID}={uid}"
        listed = await link.client.list(kinds.PODS, namespace, label_selector=selector)
        if delegates := [pod for pod in listed if shapes.is_chaperon(pod)]:
            await self._status_writer.feed_back(proxy, delegates[0], link)
            await self._end_unknown(proxy, delegates[0], link)

        return bool(delegates)

    async def _end_unknown(self, proxy: Object, pod: Object, link: Link) -> None:
        """Delete the chaperon of a delegate that is known by nothing any more but by that.

        Somebody has changed or taken off what it says of its pod. A delegate without a chaperon is
        for people to delete, if Kubernetes does not within a while: the source may not.
        """
        try:
            found = await link.client.get(
                kinds.POD_CHAPERONS, objects.name(pod), objects.namespace(pod)
            )
        except NotFound:
            found = {}

        if objects.uid(found) and objects.uid(found) == objects.controller_uid(pod):
            await link.client.discard(kinds.POD_CHAPERONS, found)
        elif self._is_late(proxy):
            text = (
                f"the delegate pod in target {link.target} runs on, and no PodChaperon owns it; "
                f"delete it there: kubectl delete pod {objects.name(pod)} "
                f"--namespace {objects.namespace(pod)}"
            )
            self._status_writer.warn(proxy, "DelegateLingers", text)

    async def _take_over_last(self, proxy: Object, link: Link) -> float | None:
        """Take over the last report of the chaperon, if no reconciliation has done so.

        It is offered though it was refused a moment ago: there will be no other time. Returns the
        seconds for which that has to wait, if it does.
        """
        last = self.last_of(proxy)
        if last is None:
            return None

        self._status_writer.retry_now(objects.key(proxy))
        await self._status_writer.feed_back(proxy, last, link)
        return self._status_writer.held(objects.key(proxy))

    async def _finish(self, proxy: Object) -> None:
        """Make a pod Failed that others' finalizers keep, and whose end no kubelet will report.

        The API server is asked first: a leader that has just begun may have an old copy of a pod
        whose last status its predecessor has written.
        """
        pending = self._status_writer.pending(objects.key(proxy), proxy)
        kept = any(map(keys.is_foreign, objects.finalizers(proxy)))
        if not kept or pending or objects.is_finished(proxy):
            return

        try:
            live = await self._client.get(kinds.PODS, objects.name(proxy), objects.namespace(proxy))
        except NotFound:
            return

        if objects.uid(live) == objects.uid(proxy) and not objects.is_finished(live):
            body = feedback.failed_unseen(live, self._clock.now())
            await self._status_writer.patch(proxy, body, subresource="status")

    async def _release(self, proxy: Object) -> None:
        """Take our finalizers off, and delete the pod, whose grace period is over.

        An API server deletes in two steps, the grace period of 0 and the object. One that is cut
        off in between, as when the former leader was killed, leaves a pod that no finalizer keeps,
        and that goes with the next deletion only.
        """
        body = feedback.without_finalizers(proxy)
        if body is not None:
            proxy = await self._status_writer.patch(proxy, body)

        left_over = body is None and not objects.finalizers(proxy)
        if left_over or objects.metadata(proxy).get("deletionGracePeriodSeconds"):
            await self._client.discard(kinds.PODS, proxy, grace=0)

        self._last.pop(objects.key(proxy), None)
        self._lingers_since.pop(objects.key(proxy), None)
