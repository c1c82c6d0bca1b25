"""Tells where ResourceClaims that pods share by name are used.

A claim has its devices in one target. So the first pod that is bound, or about to be, settles where
all others go that name the same claim, for as long as one of them is there.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from vnode.api import device_claims, objects
from vnode.api.objects import Object

_NONE: Final[frozenset[str]] = frozenset()


class _ClaimUse(NamedTuple):
    node: str
    claims: frozenset[str]  # keys


def claims_of(pod: Object) -> frozenset[str]:
    """Return the keys of the ResourceClaims that a pod names; mostly none."""
    spec, namespace = objects.spec(pod), objects.namespace(pod)
    if not spec.get("resourceClaims"):
        return _NONE

    return frozenset(objects.join_key(namespace, name) for name in device_claims.named(spec))


class ClaimUsers:
    """Knows which pods that name claims are bound where, or about to be; by UID."""

    def __init__(self) -> None:
        self._bound: dict[str, _ClaimUse] = {}
        self._reserved: dict[str, _ClaimUse] = {}
        self._users: dict[str, set[str]] = {}  # by claim, the UIDs; no empty sets

    def set(self, pod: Object) -> None:
        """Note a pod as the API server has it; one that has finished uses nothing."""
        node, claims = objects.node_name(pod), claims_of(pod)
        uid, use = objects.uid(pod), _ClaimUse(node, claims)
        if not claims or not node or objects.is_finished(pod):
            if uid in self._bound:
                self.remove(uid)
        elif self._bound.get(uid) != use:
            self.remove(uid)
            self._bound[uid] = use
            self._count(uid, use)

    def remove(self, uid: str) -> None:
        """Note that a pod is gone."""
        for uses in (self._bound, self._reserved):
            self._drop(uses, uid)

    def reserve(self, pod: Object, node: str) -> None:
        """Note that a pod is about to be bound to the node."""
        if claims := claims_of(pod):
            uid = objects.uid(pod)
            self._reserved[uid] = _ClaimUse(node, claims)
            self._count(uid, self._reserved[uid])

    def unreserve(self, pod: Object) -> None:
        """Note that it is not, after all."""
        self._drop(self._reserved, objects.uid(pod))

    def elsewhere(self, pod: Object, node: str) -> dict[str, str]:
        """Return the claims of a pod that are used on another node, by key, with that node."""
        own, found = objects.uid(pod), {}
        for claim in sorted(claims_of(pod)):
            for uid in self._users.get(claim, ()):
                use = self._bound.get(uid) or self._reserved[uid]
                if uid != own and use.node != node:
                    found[claim] = use.node

        return found

    def _count(self, uid: str, use: _ClaimUse) -> None:
        for claim in use.claims:
            self._users.setdefault(claim, set()).add(uid)

    def _drop(self, uses: dict[str, _ClaimUse], uid: str) -> None:
        use = uses.pop(uid, None)
        if use is None or uid in self._bound or uid in self._reserved:
            return

        for claim in use.claims:
            self._users[claim].discard(uid)
            if not self._users[claim]:
                del self._users[claim]
