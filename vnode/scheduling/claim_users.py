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
        # By claim and node, the UIDs of all in these; nothing in it is empty.
        self._users: dict[str, dict[str, set[str]]] = {}

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
            self._drop(self._reserved, uid)
            self._reserved[uid] = _ClaimUse(node, claims)
            self._count(uid, self._reserved[uid])

    def unreserve(self, pod: Object) -> None:
        """Note that it is not, after all."""
        self._drop(self._reserved, objects.uid(pod))

    def elsewhere(self, pod: Object, node: str) -> dict[str, str]:
        """Return the claims of a pod that are used on another node, by key, with that node."""
        own, found = objects.uid(pod), {}
        for claim in sorted(claims_of(pod)):
            for other, uids in self._users.get(claim, {}).items():
                if other != node and len(uids) > (own in uids):
                    found[claim] = other
                    break

        return found

    def _count(self, uid: str, use: _ClaimUse) -> None:
        for claim in use.claims:
            self._users.setdefault(claim, {}).setdefault(use.node, set()).add(uid)

    def _drop(self, uses: dict[str, _ClaimUse], uid: str) -> None:
        use = uses.pop(uid, None)
        if use is None:
            return

        other = self._bound.get(uid) or self._reserved.get(uid)
        still = other.claims if other is not None and other.node == use.node else _NONE
        for claim in use.claims - still:
            nodes = self._users[claim]
            nodes[use.node].discard(uid)
            if not nodes[use.node]:
                del nodes[use.node]

            if not nodes:
                del self._users[claim]
