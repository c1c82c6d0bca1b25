"""Deletes chaperons of this source that the Target which sent them does not reach.

Each Target looks after the chaperons that name it (`vnode.dev/target`). It no longer can if it has
become another cluster, or was deleted while its cluster did not answer. Any other Target that leads
to their cluster has them in its informer too. By it they are deleted once they are surely of no
use: the API server says that the pod is gone or bound elsewhere, or the Target that sent them is
known to be another cluster than the one in which they are.

The delegate of a pod is never deleted because something is not known: which cluster this is, which
one the Target is, or whether there is such a Target.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from enum import Enum, auto
from typing import Final, NamedTuple

from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import ApiError, Unreachable
from vnode.api.identity import parent_key
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.pods.source import proxy_state
from vnode.pods.source.asked_pods import AskedPods
from vnode.runtime.controller import Controller
from vnode.runtime.link import MOST_ALIKE, OTHERS_INDEX, Link
from vnode.runtime.links import Links
from vnode.runtime.sliced_work import SlicedWork
from vnode.telemetry import audit

_RETRY: Final = 60.0  # seconds; no event shows that a pod is gone that we did not schedule
_AT_ONCE: Final = 4  # pods that are asked for, or chaperons deleted, because of one target

log = logging.getLogger(__name__)


class ParentState(Enum):
    """What has become of the pod that a chaperon was made for."""

    GONE = auto()  # or replaced by a later one of its name
    PENDING = auto()  # or bound elsewhere, and the chaperon is its placeholder
    BOUND = auto()  # to the virtual node of the Target that sent the chaperon
    ELSEWHERE = auto()  # bound to another node, or ending without ever having been bound


def parent_of(chaperon: Object, pod: Object | None, node_name: str) -> ParentState:
    """Return the state of a chaperon's pod; `node_name` is the sending Target's virtual node."""
    if pod is None or proxy_state.is_orphan(chaperon, pod):
        return ParentState.GONE

    if proxy_state.is_loser(chaperon, pod, node_name):
        return ParentState.ELSEWHERE

    is_bound = objects.node_name(pod) == node_name
    return ParentState.BOUND if is_bound else ParentState.PENDING


def is_of_no_use(parent: ParentState, here: str, sender: str | None) -> bool:
    """Return whether another link than that of the Target that sent a chaperon may delete it.

    `here` is the UID of the cluster in which it is, `sender` that of the cluster which the Target
    is; both are "" if unknown, and `sender` is None if there surely is no such Target.
    """
    if parent in (ParentState.GONE, ParentState.ELSEWHERE):
        return True

    if sender is None:  # a pod that is bound to its node is deleted for that, and then gone
        return parent is ParentState.PENDING

    return "" not in (here, sender) and here != sender


class _OrphanPlace(NamedTuple):
    """The chaperons that were made for one pod, in the target that has them."""

    node: str
    pod: str


class OrphanController:
    """Deletes orphans; made anew for each term of a leader.

    `cluster_of` returns the UID of the cluster that a Target is, "" if unknown, and None if there
    is no such Target; it changes with the objects in `targets`.
    """

    def __init__(
        self,
        client: Client,
        proxies: Informer,
        links: Links,
        targets: Iterable[Informer],
        cluster_of: Callable[[TargetKey], str | None],
        clock: Clock,
    ) -> None:
        self._client = client
        self._proxies = proxies
        self._links = links
        self._targets = targets
        self._cluster_of = cluster_of
        self._asked = AskedPods(client, clock)
        self._controller: Controller[_OrphanPlace] = Controller(
            "orphans",
            self._reconcile,
            subject=lambda place: audit.subject(
                kinds.PODS, place.pod, proxies.store.get(place.pod)
            ),
            workers=_AT_ONCE,
            lane=lambda place: place.node,
            namespace=lambda place: objects.key_namespace(place.pod),
        )
        self._stale: SlicedWork[Link] = SlicedWork(self._look_at, clock)

    async def run(self) -> None:
        """Reconcile until cancelled. A target that does not answer holds up no other."""
        await self._proxies.synced.wait()
        self._proxies.subscribe(self._on_proxy)
        for informer in self._targets:
            informer.subscribe(self._on_target)

        self._links.subscribe(self._on_link, lambda _link: self._add_all())
        async with asyncio.TaskGroup() as group:
            group.create_task(self._stale.run(), name="stale-orphans")
            group.create_task(self._controller.run(), name="orphans")

    def _on_proxy(self, old: Object | None, new: Object | None) -> None:
        if new is None or objects.node_name(new) != objects.node_name(old or {}):
            key = objects.key(objects.latest(old, new))
            for link in self._links.covering(objects.split_key(key)[0]):
                if link.chaperons.store.has(OTHERS_INDEX, key):
                    self._controller.add(_OrphanPlace(link.node_name, key))

    def _on_target(self, old: Object | None, new: Object | None) -> None:
        """Look at all if the cluster of a Target may be another one: users change much else."""
        if old is None or new is None or _recorded(old) != _recorded(new):
            self._add_all()

    def _on_link(self, link: Link) -> None:
        link.chaperons.subscribe(lambda _old, new: self._on_chaperon(link, new))
        link.summaries.subscribe(lambda old, new: None if old and new else self._add_all_of(link))
        link.on_health(lambda: self._add_all_of(link))

    def _on_chaperon(self, link: Link, chaperon: Object | None) -> None:
        if chaperon is not None and not link.target.sent(chaperon):
            self._controller.add(_OrphanPlace(link.node_name, parent_key(chaperon)))

    def _add_all(self) -> None:
        for link in self._links:
            self._add_all_of(link)

    def _add_all_of(self, link: Link) -> None:
        """Look at all in a target soon: it may have thousands, and change its mind all the time."""
        self._stale.add(link)

    def _look_at(self, link: Link) -> Iterator[None]:
        for key in link.chaperons.store.values_of(OTHERS_INDEX):
            self._controller.add(_OrphanPlace(link.node_name, key))
            yield

    async def _reconcile(self, place: _OrphanPlace) -> float | None:
        namespace, link = objects.split_key(place.pod)[0], self._links.get(place.node)
        if not self._client.scope.covers(namespace):
            return None  # nobody here may ask for its pods

        if link is None or not (link.covers(namespace) and link.synced and link.health.healthy):
            return None

        found = link.chaperons.store.by_index(OTHERS_INDEX, place.pod, MOST_ALIKE)
        suspects = [
            chaperon
            for chaperon in found
            if not objects.is_terminating(chaperon) and self._is_suspect(chaperon, place.pod, link)
        ]
        left = [c for c in suspects if not self._asked.was_deleted(link, c)]
        if not left:
            self._asked.forget(link, place.pod)
        elif wait := self._asked.wait(link, place.pod):
            return wait

        retry = await self._delete_useless(left, place.pod, link) if left else None
        # Others have their turn as these go, and what its target says is deleted may stay.
        return _RETRY if len(found) == MOST_ALIKE or len(left) < len(suspects) else retry

    def _is_suspect(self, chaperon: Object, key: str, link: Link) -> bool:
        """Return whether a chaperon seems of no use, and no link of its own Target reaches it."""
        own = self._links.get(_sender(chaperon).node_name)
        if own is not None and own.cluster_uid and own.cluster_uid == link.cluster_uid:
            return False

        return self._is_of_no_use(chaperon, self._proxies.store.get(key), link)

    async def _delete_useless(
        self, suspects: Iterable[Object], key: str, link: Link
    ) -> float | None:
        """Ask the API server for the pod, and delete its chaperons that are still of no use."""
        pod, retry = await self._asked.pod(link, key), None
        for chaperon in suspects:
            if not self._is_of_no_use(chaperon, pod, link):
                retry = _RETRY
                continue

            name = objects.key(chaperon)
            log.info("deleting chaperon %s in %s: no Target needs it", name, link.target)
            try:
                await link.client.discard(kinds.POD_CHAPERONS, chaperon)
                self._asked.deleted(link, chaperon)
            except (ApiError, Unreachable) as error:
                log.info("chaperon %s stays in %s: %s", name, link.target, error)

        return retry

    def _is_of_no_use(self, chaperon: Object, pod: Object | None, link: Link) -> bool:
        sender = _sender(chaperon)
        parent = parent_of(chaperon, pod, sender.node_name)
        return is_of_no_use(parent, link.cluster_uid or "", self._cluster_of(sender))


def _sender(chaperon: Object) -> TargetKey:
    return TargetKey(*objects.split_key(objects.annotations(chaperon).get(keys.TARGET, "")))


def _recorded(target: Object) -> object:
    """Return the UID of the cluster that a Target has recorded."""
    return objects.status(target).get("clusterUID")
