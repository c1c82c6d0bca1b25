"""The copies of ours in each target: known while there is a link to it.

Nobody but the leader makes copies, so a kind of which a target has none needs no watch before the
first is wanted there. A new link therefore asks once for each kind whether there is any, and most
targets of many are never watched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from vnode.api import keys, objects, shapes
from vnode.api.errors import VnodeError
from vnode.api.identity import Identity
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.following.family import Family
from vnode.following.reference_index import Key
from vnode.following.references import Ref
from vnode.kube.informer import Informer
from vnode.runtime.certs import renewal
from vnode.runtime.keyed_tasks import KeyedTasks, Run
from vnode.runtime.links import Link, Links
from vnode.runtime.supervisor import Supervisor


class TargetCopies(NamedTuple):
    """The copies in one target, by kind.

    Kinds of which there are none, and none are wanted, are in `empty`: their informers do not run.
    """

    link: Link
    informers: dict[Kind, Informer]
    empty: set[Kind]

    def is_listed(self, kind: Kind) -> bool:
        """All copies of that kind are known; before that, an absent one means nothing."""
        informer = self.informers.get(kind)
        return informer is not None and (kind in self.empty or informer.synced.is_set())

    def copy(self, ref: Ref) -> Object | None:
        """The copy, trimmed; perhaps of another cluster of our name."""
        informer = self.informers.get(ref.kind)
        return informer.store.get(objects.join_key(ref.namespace, ref.name)) if informer else None


async def has_none(link: Link, kind: Kind, selector: str) -> bool:
    """The target surely has no such object, by a request for one; VnodeError if it fails."""
    path = kind.path(link.target.namespace or None)
    query = {"labelSelector": selector, "limit": "1"}
    page = await link.client.request("GET", path, query=query)
    return isinstance(page, dict) and page.get("items") == []


class RemoteCopies:
    """Follows them; `wake` hears of each that changed, and, after a list, of all that is `wanted`
    of that kind on a node."""

    def __init__(
        self,
        links: Links,
        identity: Identity,
        families: Mapping[Kind, Family],
        wake: Callable[[Key], None],
        wanted: Callable[[str, Kind], Iterable[Key]],
    ) -> None:
        self._links = links
        self._identity = identity
        self._selector = f"{identity.selector},!{keys.TOKEN}"
        self._families = families
        self._wake = wake
        self._wanted = wanted
        self._by_node: dict[str, TargetCopies] = {}
        self._tasks: KeyedTasks[Link] | None = None  # None until `open`

    def __iter__(self) -> Iterator[TargetCopies]:
        return iter(list(self._by_node.values()))

    def open(self, tasks: Supervisor) -> None:
        """Follow all links, in `tasks`, for the present period."""
        self._tasks = tasks.keyed(lambda link, task, error: link.report(task, error))
        self._links.subscribe(self._on_link, self._on_link_gone)

    def at(self, node: str) -> TargetCopies | None:
        """The target of that virtual node; None for this cluster itself, or without a link."""
        return self._by_node.get(node)

    def _on_link(self, link: Link) -> None:
        if link.is_self:
            return

        there = self._by_node[link.node_name] = TargetCopies(link, {}, set())
        for kind in [k for k, family in self._families.items() if family.serves(link)]:
            there.informers[kind] = self._informer(link, kind)

        self._start(link, partial(self._look_for_any, there), f"copies-{link.node_name}")
        link.on_health(lambda: self._look_at_all(there))

    async def _look_for_any(self, there: TargetCopies) -> None:
        """Follow the kinds of which there is a copy, or of which that cannot be told."""
        for kind in there.informers:
            if await self._has_none(there.link, kind):
                there.empty.add(kind)
                self._look_at(there, kind)
            else:
                self._follow(there, kind)

    async def _has_none(self, link: Link, kind: Kind) -> bool:
        try:
            return await has_none(link, kind, self._selector)
        except VnodeError:
            return False  # its informer meets the same, and tries again

    def follow(self, there: TargetCopies, kind: Kind) -> None:
        """One of an empty kind is wanted: list it again, and watch it from now on."""
        if kind in there.empty:
            there.empty.discard(kind)
            self._follow(there, kind)

    def _follow(self, there: TargetCopies, kind: Kind) -> None:
        informer, name = there.informers[kind], f"{kind.plural}-{there.link.node_name}"
        listed = partial(self._look_at, there, kind)
        self._start(there.link, partial(renewal.follow, informer, listed), name)

    def _informer(self, link: Link, kind: Kind) -> Informer:
        informer = Informer(
            link.client,
            kind,
            namespace=link.target.namespace or None,
            label_selector=self._selector,
            trim=self._families[kind].trim,
            accept=shapes.is_copy,
        )
        informer.subscribe(lambda old, new: self._on_copy(link, kind, new or old or {}))
        return informer

    def _start(self, link: Link, run: Run, name: str) -> None:
        assert self._tasks is not None, "open it first"
        self._tasks.start(link, run, name)

    def _on_link_gone(self, link: Link) -> None:
        there = self._by_node.get(link.node_name)
        if there is not None and there.link is link:
            del self._by_node[link.node_name]
            if self._tasks is not None:
                self._tasks.stop(link)

    def _look_at_all(self, there: TargetCopies) -> None:
        """The target is back: look at what is there, and at what should be."""
        if self._by_node.get(there.link.node_name) is there and there.link.health.healthy:
            for kind in there.informers:
                self._look_at(there, kind)

    def wake_kind(self, kind: Kind) -> None:
        """Wake all that is or should be there of that kind, in all targets."""
        for there in self:
            if kind in there.informers:
                self._look_at(there, kind)

    def _look_at(self, there: TargetCopies, kind: Kind) -> None:
        for copy in there.informers[kind].store.values():
            self._on_copy(there.link, kind, copy)

        for key in self._wanted(there.link.node_name, kind):
            self._wake(key)

    def _on_copy(self, link: Link, kind: Kind, copy: Object) -> None:
        if self._identity.owns(copy):
            ref = Ref(kind, objects.namespace(copy), objects.name(copy))
            self._wake(Key(link.node_name, ref))
