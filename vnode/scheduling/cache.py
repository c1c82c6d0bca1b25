"""The scheduler's memory of targets and placed proxies, kept up to date one change at a time.

Targets say what they have free at most once a second, while the scheduler places hundreds of pods a
second: so each promise is subtracted from the last word of its target until a later word includes
it. A promise that nobody confirms stops counting after a while: a pod must not be kept from a
target for long by book-keeping; the candidate in the target has the final say.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from vnode.api import objects, pod_terms, resources
from vnode.api.objects import Object
from vnode.api.resources import Resources
from vnode.scheduling.placements import Placement, Placements
from vnode.scheduling.snapshot import Snapshot, VirtualNode, VirtualNodeInfo

PROMISE_SECONDS: Final = 15.0
"""How long an unconfirmed promise counts: some bursts' time from promise to reservation."""


@dataclass(slots=True)
class _NodeInfo:
    """What the cache keeps about one node, which may not be known (yet, or any more)."""

    virtual: VirtualNode | None
    # The sum over all placements here.
    requested: Resources
    # The target's last word, if it ever said one.
    free: Resources | None = None
    largest: Resources | None = None
    # The sum over the promises of this node.
    promised: Resources = field(default_factory=dict)
    # The VirtualNodeInfo of all this; None after a change.
    info: VirtualNodeInfo | None = None


@dataclass(frozen=True, slots=True)
class _Placed:
    placement: Placement
    requests: Resources
    counted: bool  # terminating pods hold their resources and do not count for spreading


@dataclass(frozen=True, slots=True)
class _Promise:
    until: float
    requests: Resources


class Cache:
    """Fed by the driver, read as snapshots. Times are seconds of the clock's `monotonic`."""

    def __init__(self, promise_seconds: float = PROMISE_SECONDS) -> None:
        self._promise_seconds = promise_seconds
        self._books: dict[str, _NodeInfo] = {}
        # Pod UID -> node -> where it is, or is on the way to. No empty dicts.
        self._placed: dict[str, dict[str, _Placed]] = {}
        # By (uid, node), the one that lapses soonest first; a subset of `_placed`.
        self._promises: OrderedDict[tuple[str, str], _Promise] = OrderedDict()
        # Promises that the target has seen to: gone with its next word. A subset of `_promises`.
        self._observed: set[tuple[str, str]] = set()
        self._placements = Placements()
        # The nodes of the last snapshot; None if any of them changed.
        self._nodes: tuple[VirtualNodeInfo, ...] | None = ()
        self._generation = 0

    @property
    def generation(self) -> int:
        """Another number after each change; as long as it is the same, so are all snapshots."""
        return self._generation

    def update_node(self, virtual: VirtualNode) -> None:
        """A target appeared or changed."""
        books = self._books_of(virtual.name)
        books.virtual = virtual
        self._changed(books)

    def remove_node(self, name: str) -> None:
        """A target is gone; proxies still bound to its node stay known."""
        if books := self._books.get(name):
            books.virtual = books.free = books.largest = None
            self._changed(books)
            self._drop_if_empty(name)

    def update_free(self, name: str, free: Resources | None, largest: Resources | None) -> bool:
        """The target's word about what it has free now; None if it does not say such things.

        Promises that were `observe`d before are taken to be in it. True if something became more
        than the target said last time, or cannot be compared: a pod may fit that did not.
        """
        books = self._books_of(name)
        grew = _grew(books.free, free) or _grew(books.largest, largest)
        books.free, books.largest = free, largest
        for key in [key for key in self._observed if key[1] == name]:
            self._settle(key)

        self._changed(books)
        return grew

    def assume(self, pod: Object, node: str, now: float) -> None:
        """The pod is on its way to the node: count it there, and promise it its requests."""
        uid = objects.uid(pod)
        self._settle((uid, node))
        self._place(uid, node, pod)
        requests = self._placed[uid][node].requests
        self._promises[uid, node] = _Promise(now + self._promise_seconds, requests)
        books = self._books[node]
        books.promised = resources.add(books.promised, requests)
        self._changed(books)

    def observe(self, uid: str, node: str) -> None:
        """The target itself now counts the pod (reserved or bound): its next word includes it."""
        if (uid, node) in self._promises:
            self._observed.add((uid, node))

    def has(self, uid: str, node: str) -> bool:
        """Whether the pod is counted there: it is bound, or on its way."""
        return node in self._placed.get(uid, ())

    def forget(self, uid: str, node: str) -> bool:
        """The pod will not go there: the opposite of `assume`. False if it was not counted."""
        counted = self.has(uid, node)
        self._displace(uid, node)
        return counted

    def set_pod(self, pod: Object) -> None:
        """A proxy as the API server has it: its binding, labels and phase count.

        One that is bound is on its node and on no other; one that finished is nowhere; one that
        is not bound leaves the assumptions about it alone.
        """
        uid = objects.uid(pod)
        bound = objects.node_name(pod)
        if objects.is_finished(pod):
            self.remove_pod(uid)
        elif bound:
            for node in [node for node in self._placed.get(uid, ()) if node != bound]:
                self._displace(uid, node)

            self._place(uid, bound, pod)

    def remove_pod(self, uid: str) -> None:
        """The proxy is gone."""
        for node in list(self._placed.get(uid, ())):
            self._displace(uid, node)

    def snapshot(self, now: float) -> Snapshot:
        """The state at this moment; costs nothing where nothing changed."""
        while self._promises and next(iter(self._promises.values())).until <= now:
            self._settle(next(iter(self._promises)))

        if self._nodes is None:
            infos = (_info(self._books[name]) for name in sorted(self._books))
            self._nodes = tuple(info for info in infos if info is not None)

        return Snapshot(self._nodes, self._placements)

    def _place(self, uid: str, node: str, pod: Object) -> None:
        counted = not objects.is_terminating(pod)
        placement = Placement(
            uid,
            node,
            objects.namespace(pod),
            objects.controller_uid(pod),
            objects.labels(pod),
            pod_terms.repelled(pod),
        )
        new = _Placed(placement, resources.pod_requests(pod), counted)
        old = self._placed.get(uid, {}).get(node)
        if old == new:
            return

        if old is not None:
            self._unbook(old)

        self._placed.setdefault(uid, {})[node] = new
        books = self._books_of(node)
        books.requested = resources.add(books.requested, new.requests)
        if counted:
            self._placements.add(placement)

        self._changed(books)

    def _displace(self, uid: str, node: str) -> None:
        nodes = self._placed.get(uid, {})
        placed = nodes.get(node)
        if placed is None:
            return

        self._settle((uid, node))
        self._unbook(placed)
        del nodes[node]
        if not nodes:
            del self._placed[uid]

        self._drop_if_empty(node)

    def _unbook(self, placed: _Placed) -> None:
        books = self._books[placed.placement.node]
        books.requested = resources.subtract(books.requested, placed.requests)
        if placed.counted:
            self._placements.remove(placed.placement)

        self._changed(books)

    def _settle(self, key: tuple[str, str]) -> None:
        """The promise no longer counts."""
        if promise := self._promises.pop(key, None):
            self._observed.discard(key)
            books = self._books[key[1]]
            books.promised = resources.subtract(books.promised, promise.requests)
            self._changed(books)

    def _books_of(self, name: str) -> _NodeInfo:
        return self._books.setdefault(name, _NodeInfo(virtual=None, requested={}))

    def _drop_if_empty(self, name: str) -> None:
        books = self._books[name]
        if books.virtual is None and not books.requested.get(resources.PODS):
            del self._books[name]

    def _changed(self, books: _NodeInfo) -> None:
        books.info = None
        self._nodes = None
        self._generation += 1


def _info(books: _NodeInfo) -> VirtualNodeInfo | None:
    """The node as it is now; None if its target is not known."""
    if books.info is None and books.virtual is not None:
        free = books.free
        if free is not None and books.promised:
            free = resources.subtract(free, books.promised)

        books.info = VirtualNodeInfo(books.virtual, books.requested, free, books.largest)

    return books.info


def _grew(old: Resources | None, new: Resources | None) -> bool:
    if old is None or new is None:
        return True

    return any(amount > old.get(name, 0) for name, amount in new.items())
