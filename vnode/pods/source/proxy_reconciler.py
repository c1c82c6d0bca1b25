"""Reconciles one bound proxy pod: what its binding, its candidate and its target ask for now.

Binding is the decision (docs/decisions/0002): the virtual node in a proxy pod's spec is the one
durable record of which target won. From it follows, each time anew, what must be so: the winner's
candidate is allowed, the delegate's status is the proxy's, changes of the proxy are sent, and the
proxy ends when its delegate has. Any process may die between any two of these steps; the next one
finds the same pod and goes on.

Two rules guard against harm: nothing is concluded from a target whose list is not complete, and a
chaperon is lost only if the target itself says that there is none.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

from vnode.api import keys, kinds, names, objects, permissions
from vnode.api.clock import Clock
from vnode.api.errors import AlreadyExists
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.gangs.table import Gangs
from vnode.kube import urgency
from vnode.kube.client import Client
from vnode.kube.events import EventRecorder
from vnode.pods import chaperons
from vnode.pods.source import daemon_pods, proxy_state, unreserved_pods
from vnode.pods.source.change_sender import ChangeSender, expectation_key
from vnode.pods.source.chaperon_factory import ChaperonFactory
from vnode.pods.source.externally_bound import is_daemon
from vnode.pods.source.lost_pods import LostPods
from vnode.pods.source.refused_requests import RefusedRequests
from vnode.pods.source.status_writer import StatusWriter
from vnode.pods.source.termination import LOOK_AGAIN, Termination
from vnode.pods.source.unreserved_pods import UnreservedPods
from vnode.runtime.enabled_namespaces import EnabledNamespaces
from vnode.runtime.expectations import Expectations
from vnode.runtime.link import Link
from vnode.runtime.links import Links

EnsureBound = Callable[[Object, Link], Awaitable[None]]
"""Has what a bound pod needs in its target before it runs there: Services, tokens."""
AllowByMessage = Callable[[Link, Object], bool]
"""Tells a target that a candidate may run; False if that is to be written."""


class ProxyReconciler:
    """Reconciles a pod that `find` returns for its key; `refused` tells of requests about it."""

    def __init__(
        self,
        client: Client,
        links: Links,
        factory: ChaperonFactory,
        *,
        find: Callable[[str], Object | None],
        enabled_namespaces: EnabledNamespaces,
        target_exists: Callable[[str], bool],
        status_writer: StatusWriter,
        termination: Termination,
        refused: RefusedRequests,
        ensure_bound: EnsureBound,
        allow: AllowByMessage,
        gangs: Gangs,
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        self._links = links
        self._identity = factory.identity
        self._find = find
        self._target_exists = target_exists  # by node name; True while in doubt
        self._status_writer = status_writer
        self._termination = termination
        self._refused = refused
        self._ensure_bound = ensure_bound
        self._allow = allow
        self._gangs = gangs
        self._clock = clock
        self._candidates = Expectations()  # writes to chaperons, in all targets
        self._change_sender = ChangeSender(client, factory, events, self._candidates, clock)
        self._lost = LostPods(client, status_writer, events, clock)
        self._unreserved = UnreservedPods(
            client, status_writer, factory, enabled_namespaces, events, clock
        )

    def forget_chaperon(self, link: Link, chaperon: Object) -> None:
        """Forget what was written to a chaperon that is gone."""
        self._candidates.forget(expectation_key(link, chaperon))

    async def reconcile(self, key: str) -> float | None:
        """Do what is to be done for a pod; return in how many seconds to look again, if at all."""
        proxy = self._find(key)
        if proxy is None:
            self._status_writer.forget(key)
            self._termination.forget(key)
            self._change_sender.forget(key)
            self._lost.forget(key)
            return None

        if self._status_writer.pending(key, proxy):
            return None

        node_name = objects.node_name(proxy)
        if node_name and not names.may_be_virtual_node(node_name):
            await self._termination.leave_to_kubelet(proxy)
            return None

        if objects.is_terminating(proxy):
            self._refused.tell_of_end(proxy, self._links.get(node_name))
            return await self._termination.end(proxy, node_name)

        if not node_name or is_daemon(proxy):
            self._status_writer.nothing_to_feed(key)
            ready = daemon_pods.ready_patch(proxy, self._clock.now()) if node_name else None
            if ready is not None:
                await self._status_writer.patch(proxy, ready, subresource="status")

            return None

        link = self._links.get(node_name)
        if not self._target_exists(node_name):
            return await self._without_target(proxy, link)

        if link is None or not link.synced:
            return None

        candidate = link.candidate(objects.key(proxy), objects.uid(proxy))
        if candidate is not None:
            return await self._with_candidate(proxy, candidate, link)

        return await self._without_candidate(proxy, link) if link.answers else None

    async def _with_candidate(self, proxy: Object, candidate: Object, link: Link) -> float | None:
        if proxy_state.has_lost_delegate(proxy, candidate):
            await self._status_writer.feed_back(proxy, candidate, link)
            reported = keys.DELEGATE_DELETED in objects.annotations(candidate)
            return await self._lost.delete_of(link, proxy, disrupted=not reported)

        annotations, leaving = objects.annotations(candidate), objects.is_terminating(candidate)
        may_ask = link.answers and not leaving
        if keys.POD_MISSING_SINCE in annotations:
            return await self._keep_result(proxy, candidate, link, may_ask=may_ask)

        takes_changes = may_ask and link.runs_vnode
        if takes_changes and not permissions.is_allowed(candidate):
            # Somebody else may have bound a pod that was changed before; it is allowed after that.
            await self._change_sender.send(proxy, candidate, link, at_once=True)

        if may_ask:
            await self._mark(link, proxy, candidate)

        refused = await self._status_writer.feed_back(proxy, candidate, link)
        later = await self._change_sender.send(proxy, candidate, link) if takes_changes else None
        return min((wait for wait in (refused, later) if wait is not None), default=None)

    async def _keep_result(
        self, proxy: Object, candidate: Object, link: Link, *, may_ask: bool
    ) -> float | None:
        """Show how a delegate has ended that was cleaned up since.

        The chaperon has that result and goes only when the source's API server has it, too.
        """
        refused = await self._status_writer.feed_back(proxy, candidate, link)
        if may_ask and objects.is_finished(proxy):
            await link.client.discard(kinds.POD_CHAPERONS, candidate)

        return refused

    async def _without_target(self, proxy: Object, link: Link | None) -> float | None:
        """Delete a pod whose Target was deleted, unless it has ended: it goes with its node."""
        if objects.is_finished(proxy):
            return None

        if link is not None and (result := self._result_of(proxy, link)) is not None:
            return await self._status_writer.feed_back(proxy, result, link)

        await self._lost.delete(proxy, "its Target was deleted")
        return None

    def _result_of(self, proxy: Object, link: Link) -> Object | None:
        """Return the chaperon that says how a pod has ended, though it may be gone."""
        candidate = link.candidate(objects.key(proxy), objects.uid(proxy))
        found = candidate or self._termination.last_of(proxy)
        return found if found is not None and proxy_state.has_result(proxy, found) else None

    async def _mark(self, link: Link, proxy: Object, candidate: Object) -> None:
        """Allow a candidate, unless it is, and put back by what it is known."""
        marks = chaperons.lost_marks(candidate, proxy, self._identity, str(link.target))
        if self._gangs:
            self._note_place(objects.uid(proxy), candidate)

        is_allowed = permissions.is_allowed(candidate)
        if not is_allowed and (not self._gangs or self._gangs.may_run(objects.uid(proxy))):
            await self._ensure_bound(proxy, link)
            if not self._allow(link, candidate):
                given = {keys.IS_ALLOWED: "true"}
                marks["annotations"] = {**given, **marks.get("annotations", {})}

        key = expectation_key(link, candidate)
        if not marks or self._candidates.pending(key, candidate):
            return

        body = {"metadata": {"uid": objects.uid(candidate), **marks}}
        with urgency.awaited():  # by the target's scheduler, which holds the place until then
            await self._candidates.patch(link.client, kinds.POD_CHAPERONS, candidate, body, key=key)

    def _note_place(self, uid: str, candidate: Object) -> None:
        """Note what the target says of a pod that may be of a gang: too few alone must not run."""
        annotations = objects.annotations(candidate)
        if permissions.is_allowed(candidate):
            self._gangs.saw_allowed(uid)
        else:
            self._gangs.saw_reserved(uid, reserved=keys.IS_RESERVED in annotations)

    def _is_misnamed(self, chaperon: Object, uid: str, link: Link) -> bool:
        """Tell whether a chaperon of the pod's own name and UID gives a source that is none.

        Somebody has changed that. One by another Target of ours is the other's to delete.
        """
        by = TargetKey(*objects.split_key(objects.annotations(chaperon).get(keys.TARGET, "")))
        is_anothers = by != link.target and self._target_exists(by.node_name)
        return objects.labels(chaperon).get(keys.PARENT_UID) == uid and not is_anothers

    async def _without_candidate(self, proxy: Object, link: Link) -> float | None:
        """Create the chaperon of a bound pod, or delete the pod whose chaperon is lost.

        One that went through a reservation had one, so it is lost, and the proxy goes, for its
        owner to replace. A pod that has ended just outlives its delegate, also if its chaperon is
        gone before the source has written how it ended.
        """
        namespace = objects.namespace(proxy)
        if not link.covers(namespace):
            why = f"node {link.node_name} is not for pods of namespace {namespace}"
            await self._unreserved.turn_away(proxy, why)
            return None

        if objects.is_finished(proxy):
            return None

        if (result := self._result_of(proxy, link)) is not None:
            return await self._status_writer.feed_back(proxy, result, link)

        if unreserved_pods.is_unreserved(proxy):
            await self._ensure_bound(proxy, link)
            with suppress(AlreadyExists):
                return await self._unreserved.send(proxy, link)

        key, uid = objects.key(proxy), objects.uid(proxy)
        unseen = await link.fetch_candidate(key, uid, lambda c: self._is_misnamed(c, uid, link))
        if unseen is not None:
            await self._mark(link, proxy, unseen)
            return LOOK_AGAIN

        return await self._lost.delete_of(link, proxy)
