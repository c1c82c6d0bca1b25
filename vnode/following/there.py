"""The copies of ours in each target: listed and watched while there is a link to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, NamedTuple

from vnode.api import keys, objects, shapes
from vnode.api.identity import Identity
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.following.family import Family
from vnode.following.references import Ref
from vnode.following.users import Key
from vnode.kube.informer import Informer
from vnode.runtime.links import Link, Links


class There(NamedTuple):
    """The copies in one target, by kind, and the tasks that follow them."""

    link: Link
    informers: dict[Kind, Informer]
    tasks: list[asyncio.Task[None]]

    def is_listed(self, kind: Kind) -> bool:
        """All copies of that kind are known; before that, an absent one means nothing."""
        return kind in self.informers and self.informers[kind].synced.is_set()

    def copy(self, ref: Ref) -> Object | None:
        """The copy, trimmed; perhaps of another cluster of our name."""
        informer = self.informers.get(ref.kind)
        return informer.store.get(objects.join_key(ref.namespace, ref.name)) if informer else None


class Copies:
    """Follows them; `wake` hears of each that changed, and, after a list, of all that is wanted."""

    def __init__(
        self,
        links: Links,
        identity: Identity,
        families: Mapping[Kind, Family],
        wake: Callable[[Key], None],
    ) -> None:
        self._links = links
        self._identity = identity
        self._families = families
        self._wake = wake
        self._by_node: dict[str, There] = {}
        self._group: asyncio.TaskGroup | None = None

    def __iter__(self) -> Iterator[There]:
        return iter(list(self._by_node.values()))

    def open(self, group: asyncio.TaskGroup) -> None:
        """Follow all links, in tasks of `group`."""
        self._group = group
        self._links.subscribe(self._on_link, self._on_link_gone)

    def at(self, node: str) -> There | None:
        """The target of that virtual node; None for this cluster itself, or without a link."""
        return self._by_node.get(node)

    def _on_link(self, link: Link) -> None:
        if link.is_self:
            return

        there = self._by_node[link.node_name] = There(link, {}, [])
        for kind in [k for k, family in self._families.items() if family.serves(link)]:
            there.informers[kind] = informer = self._informer(link, kind)
            self._start(there, informer.run(), f"{kind.plural}-{link.node_name}")
            self._start(there, self._once_synced(there, kind), f"synced-{link.node_name}")

        link.on_health(lambda: self._look_at_all(there))

    def _informer(self, link: Link, kind: Kind) -> Informer:
        informer = Informer(
            link.client,
            kind,
            namespace=link.target.namespace or None,
            label_selector=f"{self._identity.selector},!{keys.TOKEN}",
            trim=self._families[kind].trim,
            accept=shapes.is_copy,
        )
        informer.subscribe(lambda old, new: self._on_copy(link, kind, new or old or {}))
        return informer

    def _start(self, there: There, coroutine: Coroutine[Any, Any, None], name: str) -> None:
        assert self._group is not None, "a link came before open"
        there.tasks.append(self._group.create_task(coroutine, name=name))

    def _on_link_gone(self, link: Link) -> None:
        there = self._by_node.get(link.node_name)
        if there is not None and there.link is link:
            del self._by_node[link.node_name]
            for task in there.tasks:
                task.cancel()

    async def _once_synced(self, there: There, kind: Kind) -> None:
        await there.informers[kind].synced.wait()
        self._look_at(there, kind)

    def _look_at_all(self, there: There) -> None:
        """The target is back: look at what is there, and at what should be."""
        if self._by_node.get(there.link.node_name) is there and there.link.health.healthy:
            for kind in there.informers:
                self._look_at(there, kind)

    def _look_at(self, there: There, kind: Kind) -> None:
        for copy in there.informers[kind].store.values():
            self._on_copy(there.link, kind, copy)

        for key in self._families[kind].on(there.link.node_name):
            if key.ref.kind is kind:
                self._wake(key)

    def _on_copy(self, link: Link, kind: Kind, copy: Object) -> None:
        if self._identity.owns(copy):
            ref = Ref(kind, objects.namespace(copy), objects.name(copy))
            self._wake(Key(link.node_name, ref))
