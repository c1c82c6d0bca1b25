"""Has bound proxy pods reconciled when anything that they depend on changes.

Pods, chaperons, targets, gangs and namespaces wake keys of pods; what is done for each is said in
`proxy_reconciler`, and candidates that did not win are deleted by `chaperon_gc`. Keys wait in a
queue for each target, and a target that does not answer is asked nothing, so that it holds up its
own pods only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import ApiError
from vnode.api.identity import possible_parents
from vnode.api.objects import Object
from vnode.gangs.gang import Gang
from vnode.gangs.table import Gangs
from vnode.kube.client import Client
from vnode.kube.events import EventRecorder
from vnode.kube.informer import Informer
from vnode.planning.policy import WatchedPolicies
from vnode.pods.source import proxy_state
from vnode.pods.source.awaited_replacements import AwaitedReplacements
from vnode.pods.source.chaperon_factory import ChaperonFactory
from vnode.pods.source.chaperon_gc import ChaperonGC
from vnode.pods.source.externally_bound import ExternallyBoundPods
from vnode.pods.source.proxy_reconciler import AllowByMessage, EnsureBound, ProxyReconciler
from vnode.pods.source.refused_requests import RefusedRequests
from vnode.pods.source.returned_targets import ReturnedTargets
from vnode.pods.source.status_writer import StatusWriter
from vnode.pods.source.target_looks import TargetLooks
from vnode.pods.source.termination import Termination
from vnode.runtime.controller import Controller
from vnode.runtime.enabled_namespaces import EnabledNamespaces
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.runtime.sliced_work import SlicedWork
from vnode.telemetry import audit

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
        self._proxies = proxies
        self._links = links
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
        self._refused = RefusedRequests(events)
        self._reconciler = ProxyReconciler(
            client,
            links,
            factory,
            find=self._find,
            enabled_namespaces=enabled_namespaces,
            target_exists=target_exists,
            status_writer=self._status_writer,
            termination=self._termination,
            refused=self._refused,
            ensure_bound=ensure_bound,
            allow=allow,
            gangs=gangs,
            events=events,
            clock=clock,
        )
        self._gc = ChaperonGC(client, links, self._find, clock, self._termination.not_held)
        self.bound = ExternallyBoundPods(client, self._on_pod, trim)

    async def run(self) -> None:
        """Reconcile until cancelled, once the list of proxy pods is complete."""
        await self._proxies.synced.wait()
        self._proxies.subscribe_by_key(self._on_pod)
        self.replacements.follow()
        self.bound.subscribe(self.replacements.on_other_pod)
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
            self._reconciler.forget_chaperon(link, chaperon)

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
            later = await self._reconciler.reconcile(key)
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
