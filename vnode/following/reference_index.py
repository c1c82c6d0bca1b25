"""Indexes which pods use which objects, and in which targets.

Only the source's own objects count. A bound pod uses what it refers to in the target that it is
bound to; a pending one in the targets for which this process has announced a candidate of it. If
only the target says that it has a candidate of a pending pod, a copy there is kept, but none is
created: else a target could ask for any Secret.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple, TypeVar

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.following import references
from vnode.following.references import Ref
from vnode.kube.events import about
from vnode.runtime.links import Link

_CANDIDATE_TIMEOUT: Final = 60.0  # seconds for an announced candidate to appear

_T = TypeVar("_T")


class Key(NamedTuple):
    """One object in one target: the unit of reconciliation. `node` is the target's virtual node."""

    node: str
    ref: Ref


class Need(enum.Enum):
    """Whether an object has to be in a target, the strongest first."""

    WANTED = enum.auto()
    ANNOUNCED = enum.auto()  # wanted for an announced candidate, which may never be created
    TOLERATED = enum.auto()  # a copy may stay, but none is created
    NONE = enum.auto()


def strongest(needs: Iterable[Need]) -> Need:
    """Return the strongest of several needs of one object."""
    return min(needs, key=lambda need: need.value, default=Need.NONE)


class _Use(NamedTuple):
    uid: str
    node: str  # "" while pending
    refs: tuple[Ref, ...]
    introduced: tuple[tuple[str, tuple[Ref, ...]], ...]  # by node, where overrides refer to more

    def on(self, node: str) -> set[Ref]:
        """Return what is needed on a node, if the pod or a candidate of it is there."""
        return {*self.refs, *dict(self.introduced).get(node, ())}

    @property
    def everywhere(self) -> set[Ref]:
        """What the pod refers to, by itself or by overrides."""
        return {*self.refs, *(ref for _node, refs in self.introduced for ref in refs)}


class ReferenceIndex:
    """Kept up to date by `on_pod`; calls `wake` for each key whose `need` may have changed."""

    def __init__(self, wake: Callable[[Key], None], clock: Clock) -> None:
        self._wake = wake
        self._clock = clock
        self._uses: dict[str, _Use] = {}  # by pod key; only pods that refer to something
        self._bound: Counter[Key] = Counter()  # how many bound pods use it there; no zeros
        self._pending: dict[Ref, set[str]] = {}  # pod keys; no empty sets
        self._announced: dict[str, dict[str, float]] = {}  # pod UID -> node -> until (monotonic)
        self._namespaces: Counter[str] = Counter()  # how many of `_uses` each has; no zeros
        # By UID and node: what pods refer to by overrides alone; no empty ones.
        self._introduced: dict[str, dict[str, tuple[Ref, ...]]] = {}

    def on_pod(self, old: Object | None, new: Object | None) -> None:
        """Update the index; a subscriber of informers."""
        key = objects.key(objects.latest(old, new))
        if new is None or (old is not None and objects.uid(old) != objects.uid(new)):
            self._introduced.pop(objects.uid(old or {}), None)

        self._update(key, new)

    def introduce(self, pod: Object, node: str, refs: Iterable[Ref]) -> None:
        """Record what a pod refers to on a node by overrides alone; nothing, once it has left.

        `pod` is as informers have it.
        """
        uid, wanted = objects.uid(pod), tuple(sorted(refs, key=str))
        known = self._introduced.get(uid, {})
        if known.get(node, ()) == wanted:
            return

        left = {each: there for each, there in known.items() if each != node}
        if wanted:
            left[node] = wanted

        self._introduced[uid] = left
        if not left:
            del self._introduced[uid]

        self._update(objects.key(pod), pod)

    def _update(self, key: str, new: Object | None) -> None:
        before, after = self._uses.get(key), self._use(new) if new is not None else None
        if before == after:
            return

        changed: set[Key] = set()
        if before is not None:
            self._drop(key, before)
            changed.update(self._keys(before))

        if after is not None:
            changed.update(self._keys(after))
            self._put(key, after)

        if before is not None and (after is None or after.node or after.uid != before.uid):
            self._announced.pop(before.uid, None)

        for entry in changed:
            self._wake(entry)

    def announce(self, pod: Object, node: str) -> list[Key]:
        """Record that a candidate of a pod is about to be created; return all that it needs.

        The pod may be as overrides have it for that node.
        """
        refs = references.of(pod)
        if refs and not objects.node_name(pod):
            until = self._clock.monotonic() + _CANDIDATE_TIMEOUT
            self._announced.setdefault(objects.uid(pod), {})[node] = until

        return [Key(node, ref) for ref in refs]

    def need(self, key: Key, link: Link) -> Need:
        """Return whether the object has to be in the target of `link`, whose node the key names."""
        if key in self._bound:
            return Need.WANTED

        needs: set[Need] = set()
        for pod in self._pending.get(key.ref, ()):
            uid = self._uses[pod].uid
            if key.ref not in self._uses[pod].on(key.node):
                continue

            candidate = link.candidate(pod, uid) is not None
            until = self._announced.get(uid, {}).get(key.node)
            if candidate:
                needs.add(Need.WANTED if until is not None else Need.TOLERATED)
            elif until is not None and until > self._clock.monotonic():
                needs.add(Need.ANNOUNCED)

        return strongest(needs)

    def involved_objects(self, key: Key) -> Iterator[Object]:
        """Yield references to the pods that use an object in a target, for Events."""
        for pod, use in self._uses.items():
            if key.ref in use.on(key.node) and (
                use.node == key.node or key.node in self._announced.get(use.uid, ())
            ):
                namespace, name = objects.split_key(pod)
                body = {"metadata": {"namespace": namespace, "name": name, "uid": use.uid}}
                yield about(body)

    def keys_on(self, node: str) -> list[Key]:
        """Return all that pods, and candidates announced there, use in one target."""
        announced = (
            Key(node, ref)
            for ref, pods in self._pending.items()
            if any(
                node in self._announced.get(self._uses[pod].uid, ())
                and ref in self._uses[pod].on(node)
                for pod in pods
            )
        )
        return list({*(key for key in self._bound if key.node == node), *announced})

    def release(self, pod_key: str, uid: str, node: str) -> None:
        """Note that the candidate of exactly that pod in a target is deleted."""
        use = self._uses.get(pod_key)
        if use is not None and use.uid == uid:
            self._announced.get(use.uid, {}).pop(node, None)
            for ref in use.on(node):
                self._wake(Key(node, ref))

    def in_namespace(self, namespace: str) -> bool:
        """Tell whether any pod of that namespace refers to something."""
        return namespace in self._namespaces

    def _use(self, pod: Object) -> _Use | None:
        """Return what a pod uses; None for a finished one, whose containers never start again."""
        refs, introduced = references.of(pod), self._introduced.get(objects.uid(pod), {})
        if not (refs or introduced) or objects.is_finished(pod):
            return None

        there = tuple(sorted(introduced.items()))
        return _Use(objects.uid(pod), objects.node_name(pod), refs, there)

    def _keys(self, use: _Use) -> Iterator[Key]:
        nodes = {use.node} if use.node else set()
        nodes.update(self._announced.get(use.uid, ()))
        return (Key(node, ref) for node in nodes for ref in use.on(node))

    def _put(self, key: str, use: _Use) -> None:
        self._uses[key] = use
        self._namespaces[objects.split_key(key)[0]] += 1
        for ref in use.on(use.node) if use.node else use.everywhere:
            if use.node:
                self._bound[Key(use.node, ref)] += 1
            else:
                self._pending.setdefault(ref, set()).add(key)

    def _drop(self, key: str, use: _Use) -> None:
        del self._uses[key]
        _decrement(self._namespaces, objects.split_key(key)[0])
        for ref in use.on(use.node) if use.node else use.everywhere:
            if use.node:
                _decrement(self._bound, Key(use.node, ref))
            else:
                self._pending[ref].discard(key)
                if not self._pending[ref]:
                    del self._pending[ref]


def _decrement(counts: Counter[_T], key: _T) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
