"""Demands the Secrets that Ingresses name for TLS wherever the Ingress goes.

This is a second reason, besides references of pods, for which a Secret follows. `ConfigObjects`
carries it; only the need for it, and the objects that get Events, come from here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from vnode.api import kinds, objects
from vnode.api.objects import Object
from vnode.following import services
from vnode.following.network_objects import NetworkObjects
from vnode.following.reference_index import Key, Need, strongest
from vnode.following.references import Ref
from vnode.runtime.link import Link

LOOKED_AT: Final = 2_000
"""Ingresses, and what each of them takes to judge, in one look at a Secret."""
_PLACES: Final = 1_000


class TlsSecrets:
    """The demand of Ingresses for Secrets.

    Thousands of Ingresses may name one Secret. A look begins with the one that wanted it when it
    was looked at before, or, if there was none, where that look has ended.
    """

    def __init__(self, network: NetworkObjects) -> None:
        self._network = network
        self._places: dict[Key, str] = {}  # names of the Ingresses to begin with

    def need(self, key: Key, link: Link) -> Need:
        """Return the strongest need of the Ingresses that name it.

        Before Ingresses are known, no Secret is copied or removed; nor is one that none wants of
        those that were looked at, while there are more.
        """
        if not self._network.known:
            return Need.TOLERATED

        found, left = Need.NONE, LOOKED_AT
        for ingress in self._in_order(key):
            if left <= 0:
                self._begin_with(key, ingress)
                return strongest((found, Need.TOLERATED))

            need = self._network.need_of_certificates(Key(key.node, _ref(ingress)), link)
            if need is Need.WANTED:
                self._begin_with(key, ingress)
                return need

            found = strongest((found, need))
            left -= self._network.cost_of_need(ingress, need)

        self._places.pop(key, None)
        return found

    def _in_order(self, key: Key) -> list[Object]:
        """Return the Ingresses that name a Secret, beginning at its place."""
        named, place = self._network.ingresses_with(key.ref), self._places.get(key, "")
        first = bisect_left(named, place, key=objects.name)  # they are sorted, of one namespace
        return named[first:] + named[:first]

    def _begin_with(self, key: Key, ingress: Object) -> None:
        self._places.pop(key, None)
        self._places[key] = objects.name(ingress)
        if len(self._places) > _PLACES:
            del self._places[next(iter(self._places))]  # then a look begins with the first one

    def keys_on(self, node: str) -> Iterator[Key | None]:
        for found in self._network.ingresses_on(node):
            yield None
            for ref in services.certificates(found) if found is not None else ():
                yield Key(node, ref)

    def involved_objects(self, key: Key) -> Iterator[Object]:
        """Yield the Ingresses that name it."""
        for found in self._network.ingresses_with(key.ref):
            yield objects.reference(found, kinds.INGRESSES.kind, kinds.INGRESSES.api_version)

    def concerns(self, key: Key) -> bool:
        """Tell whether an Ingress that may be in a target names it."""
        return self._network.may_name(key)

    def in_namespace(self, namespace: str) -> bool:
        """Tell whether an Ingress of that namespace may want a Secret where its pods are."""
        return self._network.has_certificates(namespace)


def _ref(ingress: Object) -> Ref:
    return Ref(kinds.INGRESSES, objects.namespace(ingress), objects.name(ingress))
