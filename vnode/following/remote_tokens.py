"""Watches the Secrets with tokens of the source in the targets that have, or may get, any."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from vnode.api import keys, kinds, names, objects, shapes
from vnode.api.clock import Clock
from vnode.api.errors import Denied, VnodeError
from vnode.api.identity import Identity, parent_key
from vnode.api.objects import Object
from vnode.following.remote_informers import RemoteInformer, has_none
from vnode.kube.informer import Informer
from vnode.runtime.keyed_tasks import KeyedTasks, Run
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.runtime.sliced_work import SlicedWork
from vnode.runtime.supervisor import Supervisor

log = logging.getLogger(__name__)


class Place(NamedTuple):
    """A pod in a target: the unit of reconciliation. `pod` is its key, `node` the virtual node."""

    node: str
    pod: str
    uid: str

    @property
    def namespace(self) -> str:
        """The namespace, in both clusters."""
        return objects.split_key(self.pod)[0]


class _TargetTokens(NamedTuple):
    """The Secrets in one target; of `stale` namespaces, "" for all, all is woken in slices."""

    link: Link
    informer: RemoteInformer
    stale: SlicedWork[str]


class RemoteTokens:
    """Watches token Secrets in all targets.

    Calls `wake` for each Secret that changed and, after a list or an outage, for all of a target
    and for all pods that are `bound` to it.
    """

    def __init__(
        self,
        links: Links,
        identity: Identity,
        wake: Callable[[Place], None],
        bound: Callable[[str], Iterable[Place]],
        clock: Clock,
    ) -> None:
        self._links = links
        self._identity = identity
        self._selector = f"{identity.selector},{keys.TOKEN}"
        self._wake = wake
        self._bound = bound
        self._clock = clock
        self._tasks: KeyedTasks[Link] | None = None  # None until `open`
        self._by_node: dict[str, _TargetTokens] = {}

    def open(self, tasks: Supervisor) -> None:
        """Watch all links, in `tasks`, until the present subscription scope ends."""
        self._tasks = tasks.keyed(lambda link, task, error: link.report(task, error))
        self._links.subscribe(self._on_link, self._on_link_gone)

    def is_watched(self, node: str) -> bool:
        """Tell whether the Secrets of that target are watched."""
        return node in self._by_node

    def is_listed(self, place: Place) -> bool:
        """Tell whether all Secrets of a pod's namespace in that target are known.

        One that is not watched yet, as namespaces are watched one by one there, is from now on.
        """
        if (found := self._by_node.get(place.node)) is None:
            return False

        found.informer.follow_in(place.namespace)
        return found.informer.is_listed(place.namespace)

    def copy(self, place: Place) -> Object | None:
        """Return the metadata of a pod's Secret in a target."""
        namespace, name = objects.split_key(place.pod)
        found = self._by_node.get(place.node)
        if found is None:
            return None

        for secret in (names.token_secret, names.former_token_secret):
            key = objects.join_key(namespace, secret(name, place.uid))
            if (copy := found.informer.get(key)) is not None:
                return copy

        return None

    def wake_all(self, node: str, namespace: str = "") -> None:
        """Wake all Secrets of a target or a namespace of it, and all pods that are bound there."""
        if found := self._by_node.get(node):
            found.stale.add(namespace)

    def _wake_stale(self, node: str, namespace: str) -> Iterator[None]:
        """Wake those of a namespace, of all for "", as this is iterated over."""
        found = self._by_node.get(node)
        for copy in found.informer.values() if found else ():
            if namespace in ("", objects.namespace(copy)):
                self._on_copy(node, copy)

            yield

        for place in list(self._bound(node)) if found else ():
            if namespace in ("", place.namespace):
                self._wake(place)

            yield

    def _on_link(self, link: Link) -> None:
        if link.is_self:
            return

        if link.options.source_api is not None:
            self._watch(link)
        else:
            self._start(link, partial(self._watch_if_any, link), f"tokens-left-{link.node_name}")

    def _start(self, link: Link, run: Run, name: str) -> None:
        assert self._tasks is not None, "open it first"
        self._tasks.start(link, run, name)

    async def _watch_if_any(self, link: Link) -> None:
        """Watch tokens that are left from when the Target asked for them, to remove them later."""
        try:
            if await has_none(link, kinds.SECRETS, self._selector):
                return
        except Denied:
            return  # hence none was ever created
        except VnodeError as error:  # its informer gets the same error, and retries
            log.debug("%s cannot be asked whether it has tokens: %s", link.target, error)

        if self._links.get(link.node_name) is link:
            self._watch(link)

    def _watch(self, link: Link) -> None:
        node = link.node_name

        def make(namespace: str | None, *, ends_denied: bool) -> Informer:
            informer = Informer(
                link.client,
                kinds.SECRETS,
                namespace=namespace,
                label_selector=self._selector,
                metadata_only=True,
                accept=lambda copy: shapes.is_copy(copy) and self._is_of(copy, link),
                ends_denied=ends_denied,
                clock=self._clock,
            )
            informer.subscribe(lambda old, new: self._on_copy(node, objects.latest(old, new)))
            return informer

        informer = RemoteInformer(
            link,
            kinds.SECRETS,
            self._selector,
            make,
            start=lambda run, name: self._start(link, run, f"tokens-{name}"),
            listed=partial(self.wake_all, node),
            known=lambda _link: (place.namespace for place in self._bound(node)),
            clock=self._clock,
        )
        stale = SlicedWork(partial(self._wake_stale, node), self._clock)
        self._by_node[node] = _TargetTokens(link, informer, stale)
        self._start(link, stale.run, f"stale-tokens-{node}")
        informer.follow()
        self._start(link, partial(self._await_chaperons, link), f"tokens-chaperons-{node}")
        link.on_health(lambda: self.wake_all(node))

    async def _await_chaperons(self, link: Link) -> None:
        """Look at all again once the chaperons are known, by which they are judged."""
        await link.chaperons.synced.wait()
        self.wake_all(link.node_name)

    def _is_of(self, copy: Object, link: Link) -> bool:
        """Tell whether that Target created the copy: several may lead to one cluster."""
        target = objects.annotations(copy).get(keys.TARGET)
        return self._identity.owns(copy) and target == str(link.target)

    def _on_link_gone(self, link: Link) -> None:
        found = self._by_node.get(link.node_name)
        if found is not None and found.link is link:
            del self._by_node[link.node_name]

        if self._tasks is not None:
            self._tasks.stop(link)

    def _on_copy(self, node: str, copy: Object) -> None:
        uid = objects.labels(copy).get(keys.PARENT_UID, "")
        self._wake(Place(node, parent_key(copy), uid))
