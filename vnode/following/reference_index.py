"""Indexes which pods use which objects, and in which targets.

Only the source's own objects count. A bound pod uses what it refers to in the target that it is
bound to; a pending one in the targets for which this process has announced a candidate of it. If
only the target says that it has a candidate of a pending pod, a copy there is kept, but none is
created: else a target could ask for any Secret.

What is asked about an object looks at the pods that use it, and at no other tenant's; of those, at
the first few. Of a pod, the first `references.MOST` count.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any, Final, NamedTuple, TypeVar

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.following import references
from vnode.following.references import Ref
from vnode.kube.events import about
from vnode.runtime.link import Link

_CANDIDATE_TIMEOUT: Final = 60.0  # seconds for an announced candidate to appear
_ASKED_ABOUT: Final = 100  # pods whose candidates are looked for, of those that use one object

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
    """Return the strongest of several needs of one object; none is asked for after WANTED."""
    found = Need.NONE
    for need in needs:
        if need is Need.WANTED:
            return need

        found = min(found, need, key=lambda each: each.value)

    return found


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
        # The keys of the pods that use an object, in order; no empty dicts. Of pending pods: where
        # a candidate is announced, and, by `_pending`, whatever they refer to.
        self._bound: dict[Key, dict[str, None]] = {}
        self._awaiting: dict[Key, dict[str, None]] = {}
        self._pending: dict[Ref, dict[str, None]] = {}
        # Where it takes too many pods to tell whether a copy may stay: by object, virtual nodes.
        self._undecided: dict[Ref, set[str]] = {}
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
            key, uid = objects.key(pod), objects.uid(pod)
            until = self._clock.monotonic() + _CANDIDATE_TIMEOUT
            self._announced.setdefault(uid, {})[node] = until
            use = self._uses.get(key)
            if use is not None and use.uid == uid and not use.node:
                for ref in use.on(node):
                    self._awaiting.setdefault(Key(node, ref), {})[key] = None

        return [Key(node, ref) for ref in refs]

    def need(self, key: Key, link: Link) -> Need:
        """Return whether the object has to be in the target of `link`, whose node the key names.

        Where more pending pods use it than are asked about, a copy that they may need stays.
        """
        if key in self._bound:
            return Need.WANTED

        awaiting = self._awaiting.get(key, {})
        need = Need.ANNOUNCED if len(awaiting) > _ASKED_ABOUT else Need.NONE
        for pod in islice(awaiting, _ASKED_ABOUT):
            uid = self._uses[pod].uid
            if link.candidate(pod, uid) is not None:
                return Need.WANTED

            if self._announced[uid][key.node] > self._clock.monotonic():
                need = Need.ANNOUNCED

        return self._need_of_pending(key, link) if need is Need.NONE else need

    def _need_of_pending(self, key: Key, link: Link) -> Need:
        pods = self._pending.get(key.ref, {})
        if len(pods) > _ASKED_ABOUT:
            self._undecided.setdefault(key.ref, set()).add(key.node)
            return Need.TOLERATED

        found = any(self._has_candidate(pod, key, link) for pod in pods)
        return Need.TOLERATED if found else Need.NONE

    def concerns(self, key: Key) -> bool:
        """Tell whether pods, or candidates announced there, use an object in a target."""
        return key in self._bound or key in self._awaiting

    def _has_candidate(self, pod: str, key: Key, link: Link) -> bool:
        """Tell whether the target says that it has a candidate of a pod that uses it there."""
        use = self._uses[pod]
        return link.candidate(pod, use.uid) is not None and key.ref in use.on(key.node)

    def involved_objects(self, key: Key) -> Iterator[Object]:
        """Yield references to the pods that use an object in a target, for Events."""
        for pod in chain(self._bound.get(key, ()), self._awaiting.get(key, ())):
            namespace, name = objects.split_key(pod)
            uid = self._uses[pod].uid
            yield about({"metadata": {"namespace": namespace, "name": name, "uid": uid}})

    def keys_on(self, node: str) -> Iterator[Key | None]:
        """Yield all that pods, and candidates announced there, use in one target; else None."""
        for index in (self._bound, self._awaiting):
            for key in list(index):  # pods come and go meanwhile
                yield key if key.node == node else None

    def release(self, pod_key: str, uid: str, node: str) -> None:
        """Note that the candidate of exactly that pod in a target is deleted."""
        use = self._uses.get(pod_key)
        if use is None or use.uid != uid:
            return

        if self._announced.get(uid, {}).pop(node, None) is not None and not use.node:
            for ref in use.on(node):
                _discard(self._awaiting, Key(node, ref), pod_key)

        for ref in use.on(node):
            self._wake(Key(node, ref))

    def in_namespace(self, namespace: str) -> bool:
        """Tell whether any pod of that namespace refers to something."""
        return namespace in self._namespaces

    def _use(self, pod: Object) -> _Use | None:
        """Return what a pod uses; None for a finished one, whose containers never start again."""
        refs = references.of(pod)[: references.MOST]
        introduced = self._introduced.get(objects.uid(pod), {})
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
        for index, entry in self._entries(use):
            index.setdefault(entry, {})[key] = None

    def _drop(self, key: str, use: _Use) -> None:
        del self._uses[key]
        _decrement(self._namespaces, objects.split_key(key)[0])
        for index, entry in self._entries(use):
            _discard(index, entry, key)

        if self._undecided and not use.node:
            self._decide(use)

    def _decide(self, use: _Use) -> None:
        """Wake what so many pending pods had used that it was undecided; fewer do now."""
        for ref in use.everywhere & self._undecided.keys():
            if len(self._pending.get(ref, ())) <= _ASKED_ABOUT:
                for node in self._undecided.pop(ref):
                    self._wake(Key(node, ref))

    def _entries(self, use: _Use) -> Iterator[tuple[dict[Any, dict[str, None]], Any]]:
        """Yield where a pod is to be found, by what it uses."""
        if use.node:
            yield from ((self._bound, Key(use.node, ref)) for ref in use.on(use.node))
            return

        yield from ((self._pending, ref) for ref in use.everywhere)
        for node in self._announced.get(use.uid, ()):
            yield from ((self._awaiting, Key(node, ref)) for ref in use.on(node))


def _discard(index: dict[_T, dict[str, None]], entry: _T, pod: str) -> None:
    pods = index.get(entry, {})
    pods.pop(pod, None)
    if not pods:
        index.pop(entry, None)


def _decrement(counts: Counter[_T], key: _T) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
