"""Reconciles bound proxy pods: everything that follows from `spec.nodeName`.

Binding is the decision (docs/decisions/0002): the virtual node in a proxy pod's spec is the one
durable record of which target won. From it follows, each time anew, what must be so: the winner's
candidate is allowed, all others are deleted, the delegate's status is the proxy's, changes of the
proxy are sent, and the proxy ends when its delegate has. Any process may die between any two of
these steps; the next one finds the same pod and goes on.

Two rules guard against harm: nothing is concluded from a target whose list is not complete, and a
chaperon is lost only if the target itself says that there is none. Keys wait in a queue for each
target, and a target that does not answer is asked nothing, so that it holds up its own pods only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Final

from vnode.api import keys, kinds, names, objects, permissions
from vnode.api.clock import Clock
from vnode.api.errors import AlreadyExists, ApiError
from vnode.api.identity import possible_parents
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.gangs.gang import Gang
from vnode.gangs.table import Gangs
from vnode.kube import urgency
from vnode.kube.client import Client
from vnode.kube.events import EventRecorder
from vnode.kube.informer import Informer
from vnode.planning.policy import WatchedPolicies
from vnode.pods import chaperons
from vnode.pods.source import daemon_pods, proxy_state, unreserved_pods
from vnode.pods.source.awaited_replacements import AwaitedReplacements
from vnode.pods.source.change_sender import ChangeSender, expectation_key
from vnode.pods.source.chaperon_factory import ChaperonFactory
from vnode.pods.source.chaperon_gc import ChaperonGC
from vnode.pods.source.externally_bound import ExternallyBoundPods, is_daemon
from vnode.pods.source.lost_pods import LostPods
from vnode.pods.source.refused_requests import RefusedRequests
from vnode.pods.source.returned_targets import ReturnedTargets
from vnode.pods.source.status_writer import StatusWriter
from vnode.pods.source.target_looks import TargetLooks
from vnode.pods.source.termination import LOOK_AGAIN, Termination
from vnode.pods.source.unreserved_pods import UnreservedPods
from vnode.runtime.controller import Controller
from vnode.runtime.enabled_namespaces import EnabledNamespaces
from vnode.runtime.expectations import Expectations
from vnode.runtime.links import Link, Links
from vnode.runtime.sliced_work import SlicedWork
from vnode.telemetry import audit

EnsureBound = Callable[[Object, Link], Awaitable[None]]
"""Has what a bound pod needs in its target before it runs there: Services, tokens."""
AllowByMessage = Callable[[Link, Object], bool]
"""Tells a target that a candidate may run; False if that is to be written."""
_COALESCE: Final = 0.01  # seconds; statuses of a delegate within this time are written once
_AT_ONCE: Final = 16  # pods of one target that are reconciled at once


class ProxyController:
    """Reconciles bound proxy pods with their chaperons in all targets.

    `proxies` has the indexes `proxy_state.INDEXES`. `replacements` is to be opened once `policies`
    are known.
    """

    def __init__(
        self,
        client: Client,
        proxies: Informer,
        links: Links,
        factory: ChaperonFactory,
        *,
        enabled_namespaces: EnabledNamespaces,
        target_exists: Callable[[str], bool],
        trim: Callable[[Object], Object],
        ensure_bound: EnsureBound,
        events: EventRecorder,
        clock: Clock,
        policies: WatchedPolicies,
        gangs: Gangs,
        allow: AllowByMessage = lambda _link, _candidate: False,
    ) -> None:
        self._gangs = gangs
        self._allow = allow
        self._proxies = proxies
        self._identity = factory.identity
        self._links = links
        self._clock = clock
        self._namespaces = enabled_namespaces
        self._target_exists = target_exists  # by node name; True while in doubt
        self._controller: Controller[str] = Controller(
            "proxies",
            self._reconcile_and_settle,
            subject=audit.finder(kinds.PODS, self._find),
            workers=_AT_ONCE,
            lane=self._node_of,
            namespace=objects.key_namespace,
        )
        self._status_writer = StatusWriter(client, events, clock, self._controller.add)
        self.replacements = AwaitedReplacements(
            proxies, policies, events, clock, self._controller.add
        )
        self._termination = Termination(
            client, links, self._status_writer, target_exists, clock, self.replacements
        )
        self.returned = ReturnedTargets()
        self._answering: SlicedWork[Link] = SlicedWork(self._look_at, clock)
        self._ensure_bound = ensure_bound
        self._candidates = Expectations()  # writes to chaperons, in all targets
        self._change_sender = ChangeSender(client, factory, events, self._candidates, clock)
        self._refused = RefusedRequests(events)
        self._lost = LostPods(client, self._status_writer, events, clock)
        self._unreserved = UnreservedPods(
            client, self._status_writer, factory, enabled_namespaces, events, clock
        )
        self._gc = ChaperonGC(client, links, self._find, self._termination.not_held)
        self.bound = ExternallyBoundPods(client, self._on_pod, trim)

    async def run(self) -> None:
        """Reconcile until cancelled, once the list of proxy pods is complete."""
        await self._proxies.synced.wait()
        self._proxies.subscribe_by_key(self._on_pod)
        self.replacements.follow()
        self._links.subscribe(self._on_link, self._on_link_gone)
        self._namespaces.subscribe(self._on_namespace)
        self._gangs.on_start(self._on_gang)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._gc.run(), name="chaperon-gc")
            group.create_task(self._answering.run(), name="answering-targets")
            group.create_task(self.replacements.run(), name="awaited-replacements")
            group.create_task(self._controller.run(), name="bound-proxies")

    def leftovers(self, node: str, namespace: str) -> int:
        """Count the pods of a namespace that are gone, or elsewhere, and still have candidates in a
        target that wait for their deletion."""
        return self._gc.left(node, namespace)

    def _find(self, key: str) -> Object | None:
        return self._proxies.store.get(key) or self.bound.get(key)

    def _node_of(self, key: str) -> str:
        """Return the node that a pod is bound to, whose target its work may ask; else ""."""
        return objects.node_name(self._find(key) or {})

    def _on_pod(self, key: str) -> None:
        self._controller.add(key)
        self._gc.on_pod(key)

    def _on_link(self, link: Link) -> None:
        self.bound.watch(link.node_name)
        link.chaperons.subscribe(lambda old, new: self._on_chaperon(link, old, new))
        looks = TargetLooks(link)
        link.on_health(lambda: self._on_health(link, looks))
        self.returned.observe(link, lambda: ())

    def _on_link_gone(self, link: Link) -> None:
        """Reconcile the pods on the node if its Target was deleted: they may end without it."""
        self.returned.forget(link.node_name)
        if not self._target_exists(link.node_name):
            self._add_pods_on(link.node_name)
            self.bound.forget(link.node_name)

    def _pods_on(self, node_name: str) -> Iterator[Object]:
        yield from self._proxies.store.by_index(proxy_state.NODE_INDEX, node_name)
        yield from self.bound.pods_on(node_name)

    def _add_pods_on(self, node_name: str) -> None:
        for pod in self._pods_on(node_name):
            self._controller.add(objects.key(pod))

    def _on_gang(self, gang: Gang) -> None:
        """Let the pods of a gang run of which enough are bound now."""
        for member in gang.bound().values():
            self._controller.add(objects.key(member.pod))

    def _on_namespace(self, name: str) -> None:
        """Reconcile the pods of a namespace that others bound before it got its label."""
        nodes = {link.node_name for link in self._links}
        bound = (pod for node in nodes for pod in self.bound.pods_on(node))
        pods = self._proxies.store.by_index(proxy_state.NAMESPACE_INDEX, name)
        for pod in (*pods, *bound):
            if objects.namespace(pod) == name and objects.node_name(pod) in nodes:
                self._controller.add(objects.key(pod))

    def _on_health(self, link: Link, looks: TargetLooks) -> None:
        """Reconcile all of a target that answers again, or whose agent has come or gone."""
        ending = filter(objects.is_terminating, self._pods_on(link.node_name))
        self.returned.observe(link, lambda: map(objects.key, ending))
        if looks.is_due():
            self._answering.add(link)

    def _look_at(self, link: Link) -> Iterator[None]:
        """Reconcile the pods of a target one after the other, as this is iterated over."""
        for chaperon in list(link.chaperons.store.values()):
            self._on_chaperon(link, None, chaperon)
            yield

        for pod in list(self._pods_on(link.node_name)):
            self._controller.add(objects.key(pod))
            yield

    def _on_chaperon(self, link: Link, old: Object | None, new: Object | None) -> None:
        chaperon = objects.latest(old, new)
        if new is not None:
            self._gc.on_chaperon(link, new)
        else:
            self._candidates.forget(expectation_key(link, chaperon))

        for key in possible_parents(chaperon):
            if new is not None:
                self._status_writer.expect(key)
                self._controller.add_after(key, _COALESCE)
            else:
                self._note_last(link, key, chaperon)
                self._controller.add(key)

    def _note_last(self, link: Link, key: str, chaperon: Object) -> None:
        """Keep the last state of a chaperon that is gone, if it was that of the pod."""
        proxy = self._find(key) or {}
        ours = link.is_candidate(chaperon, key, objects.uid(proxy))
        if ours and objects.node_name(proxy) == link.node_name:
            self._termination.saw_last(key, chaperon)

    async def _reconcile_and_settle(self, key: str) -> float | None:
        tells = self._can_tell(key)
        try:
            later = await self._reconcile(key)
        except ApiError as error:
            self._refused.tell(key, self._find(key), error)
            raise
        else:
            self._refused.settle(key)
            return later
        finally:
            if tells:
                self.returned.reconciled(key)

    def _can_tell(self, key: str) -> bool:
        """Tell whether a reconciliation now tells the target of a pod what to do, if anything."""
        proxy = self._find(key)
        if proxy is None:
            return True

        link = self._links.get(objects.node_name(proxy))
        is_there = link is None or (link.synced and link.answers)
        return is_there and not self._status_writer.pending(key, proxy)

    async def _reconcile(self, key: str) -> float | None:
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
