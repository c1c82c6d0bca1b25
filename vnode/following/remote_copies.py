"""Caches our copies in each target that has a link.

Only the leader creates copies, so a kind of which a target has none needs no watch before the first
is wanted there. A new link therefore asks once for each kind whether there is any, and of many
targets most are never watched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple, TypeAlias

from vnode.api import keys, kinds, objects, shapes
from vnode.api.clock import Clock
from vnode.api.errors import Denied, NotFound, VnodeError
from vnode.api.identity import Identity
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.following.family import Family
from vnode.following.reference_index import Key
from vnode.following.references import Ref
from vnode.following.remote_informers import RemoteInformer, has_none
from vnode.kube.informer import Informer
from vnode.runtime.keyed_tasks import KeyedTasks, Run
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.runtime.sliced_work import SlicedWork
from vnode.runtime.supervisor import Supervisor

_Stale: TypeAlias = tuple[Kind, str]
"""A kind, and the namespace in which all of it is to be woken; "" for all."""


class TargetCopies(NamedTuple):
    """The copies in one target, by kind.

    Kinds without copies, and of which none is wanted, are in `empty`: their informers do not run.
    Of what is `stale`, all is woken, in slices.
    """

    link: Link
    informers: dict[Kind, RemoteInformer]
    empty: set[Kind]
    stale: SlicedWork[_Stale]

    def is_listed(self, ref: Ref) -> bool:
        """Tell whether all copies of that kind in that namespace are known; if not, none may be
        missed."""
        informer = self.informers.get(ref.kind)
        return informer is not None and (
            ref.kind in self.empty or informer.is_listed(ref.namespace)
        )

    def is_unwatched(self, ref: Ref) -> bool:
        """Tell whether copies of that kind are not watched there, as none was wanted so far."""
        informer = self.informers.get(ref.kind)
        return ref.kind in self.empty or (informer is not None and informer.awaits(ref.namespace))

    def copy(self, ref: Ref) -> Object | None:
        """Return the copy, trimmed; it may be that of another cluster of our name."""
        informer = self.informers.get(ref.kind)
        return informer.get(objects.join_key(ref.namespace, ref.name)) if informer else None


class RemoteCopies:
    """Watches the copies in all targets.

    Calls `wake` for each copy that changed and, after a list, for all that is `wanted` of its kind
    on a node.
    """

    def __init__(
        self,
        links: Links,
        identity: Identity,
        families: Mapping[Kind, Family],
        wake: Callable[[Key], None],
        wanted: Callable[[str, Kind], Iterable[Key | None]],
        known_namespaces: Callable[[Link], Iterable[str]],
        clock: Clock,
    ) -> None:
        self._links = links
        self._identity = identity
        self._selector = f"{identity.selector},!{keys.TOKEN}"
        self._families = families
        self._wake = wake
        self._wanted = wanted
        self._known_namespaces = known_namespaces
        self._clock = clock
        self._by_node: dict[str, TargetCopies] = {}
        self._tasks: KeyedTasks[Link] | None = None  # None until `open`

    def __iter__(self) -> Iterator[TargetCopies]:
        return iter(list(self._by_node.values()))

    def open(self, tasks: Supervisor) -> None:
        """Watch all links, in `tasks`, until the present subscription scope ends."""
        self._tasks = tasks.keyed(lambda link, task, error: link.report(task, error))
        self._links.subscribe(self._on_link, self._on_link_gone)

    def at(self, node: str) -> TargetCopies | None:
        """Return the copies on that virtual node; None for this cluster, or without a link."""
        return self._by_node.get(node)

    def _on_link(self, link: Link) -> None:
        if link.is_self:
            return

        stale: SlicedWork[_Stale] = SlicedWork(partial(self._wake_stale, link), self._clock)
        remote = self._by_node[link.node_name] = TargetCopies(link, {}, set(), stale)
        for kind in [k for k, family in self._families.items() if family.serves(link)]:
            remote.informers[kind] = self._informer(remote, kind)

        self._start(link, stale.run, f"stale-copies-{link.node_name}")
        self._start(link, partial(self._watch_used_kinds, remote), f"copies-{link.node_name}")
        self._start(link, partial(self._await_delegates, remote), f"delegates-{link.node_name}")
        link.on_health(lambda: self._wake_all(remote))

    async def _watch_used_kinds(self, remote: TargetCopies) -> None:
        """Watch the kinds of which there is, or may be, a copy."""
        for kind in remote.informers:
            if await self._has_none(remote.link, kind):
                remote.empty.add(kind)
                remote.stale.add((kind, ""))
            else:
                remote.informers[kind].follow()

    async def _await_delegates(self, remote: TargetCopies) -> None:
        """Wake what selects delegates once all of ours in the target are known."""
        await remote.link.chaperons.synced.wait()
        for kind in remote.informers:
            if self._families[kind].selects_pods:
                remote.stale.add((kind, ""))

    async def _has_none(self, link: Link, kind: Kind) -> bool:
        try:
            return await has_none(link, kind, self._selector)
        except NotFound:
            return kind in kinds.FOLLOWING_WHERE_POSSIBLE  # the target is older than the kind
        except Denied:
            # Where a role of its own is missing, none was made; the first that is wanted says so.
            # Likewise a role that is older than the kind, unless it may be that of some namespaces.
            is_by_role = self._families[kind].role != Family.role
            may_be_older = kind in kinds.FOLLOWING_WHERE_POSSIBLE and link.target.namespace
            return bool(is_by_role or may_be_older)
        except VnodeError:
            return False  # its informer gets the same error, and retries

    def follow(self, remote: TargetCopies, ref: Ref) -> None:
        """Begin to list and watch what was not watched: one of it is wanted now."""
        informer = remote.informers[ref.kind]
        if ref.kind in remote.empty:
            remote.empty.discard(ref.kind)
            informer.follow()
        else:
            informer.follow_in(ref.namespace)

    def _informer(self, remote: TargetCopies, kind: Kind) -> RemoteInformer:
        link = remote.link

        def make(namespace: str | None, *, ends_denied: bool) -> Informer:
            informer = Informer(
                link.client,
                kind,
                namespace=namespace,
                label_selector=self._selector,
                trim=self._families[kind].trim,
                accept=shapes.is_copy,
                ends_denied=ends_denied,
                clock=self._clock,
            )
            informer.subscribe(lambda old, new: self._on_copy(link, kind, objects.latest(old, new)))
            return informer

        return RemoteInformer(
            link,
            kind,
            self._selector,
            make,
            start=partial(self._start, link),
            listed=lambda namespace: remote.stale.add((kind, namespace)),
            known=self._known_namespaces,
            clock=self._clock,
        )

    def _start(self, link: Link, run: Run, name: str) -> None:
        assert self._tasks is not None, "open it first"
        self._tasks.start(link, run, name)

    def _on_link_gone(self, link: Link) -> None:
        remote = self._by_node.get(link.node_name)
        if remote is not None and remote.link is link:
            del self._by_node[link.node_name]
            if self._tasks is not None:
                self._tasks.stop(link)

    def _wake_all(self, remote: TargetCopies) -> None:
        """Wake all copies and all that should be one: the target is healthy again."""
        if self._by_node.get(remote.link.node_name) is remote and remote.link.health.healthy:
            for kind in remote.informers:
                remote.stale.add((kind, ""))

    def wake_kind(self, kind: Kind, namespace: str = "") -> None:
        """Wake all copies of that kind, and all that should be one, in all targets.

        Of one namespace, or of all for "".
        """
        for remote in self:
            if kind in remote.informers:
                remote.stale.add((kind, namespace))

    def _wake_stale(self, link: Link, stale: _Stale) -> Iterator[None]:
        """Wake what is, or should be, in the target of a link, as this is iterated over."""
        kind, namespace = stale
        remote = self._by_node.get(link.node_name)
        if remote is None or remote.link is not link:
            return

        for copy in remote.informers[kind].values():
            if namespace in ("", objects.namespace(copy)):
                self._on_copy(link, kind, copy)

            yield

        for key in self._wanted(link.node_name, kind):
            if key is not None and namespace in ("", key.ref.namespace):
                self._wake(key)

            yield

    def _on_copy(self, link: Link, kind: Kind, copy: Object) -> None:
        if self._identity.owns(copy):
            ref = Ref(kind, objects.namespace(copy), objects.name(copy))
            self._wake(Key(link.node_name, ref))
