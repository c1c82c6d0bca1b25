"""Says which objects targets need, by their families, and within the bounds of their namespaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vnode.api import objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.following.family import Family
from vnode.following.reference_index import Key, Need
from vnode.following.remote_copies import RemoteCopies
from vnode.runtime.enabled_namespaces import EnabledNamespaces
from vnode.runtime.link import Link


class NeededCopies:
    """Asks families what is needed where. `complete` is that of the `Follower`."""

    def __init__(
        self,
        families: Mapping[Kind, Family],
        copies: RemoteCopies,
        namespaces: EnabledNamespaces,
        complete: Callable[[str, str], bool],
    ) -> None:
        self._families = families
        self._copies = copies
        self._namespaces = namespaces
        self._complete = complete

    def need(self, key: Key, link: Link) -> Need:
        """Return the need, NONE outside of the namespaces of the target.

        Anybody may name a virtual node in a pod: that alone must not send its objects anywhere.
        What is in the target already may stay if the namespace has lost its label since.
        """
        if not link.covers(key.ref.namespace):
            return Need.NONE

        need = self._families[key.ref.kind].need(key, link)
        if need is Need.NONE or self._namespaces.is_enabled(key.ref.namespace):
            return need

        return Need.TOLERATED

    def may_go(self, key: Key) -> bool:
        """Tell whether all users of a copy are known, so that none can be missed."""
        return self._complete(key.node, key.ref.namespace)

    def is_needed_elsewhere(self, key: Key, copy: Object) -> bool:
        """Tell whether another Target leads to the same cluster and needs this very copy."""
        for other in self._copies:
            node = other.link.node_name
            same = other.copy(key.ref) if node != key.node else None
            if same is not None and objects.uid(same) == objects.uid(copy):
                there = Key(node, key.ref)
                if self.need(there, other.link) is not Need.NONE or not self.may_go(there):
                    return True

        return False
