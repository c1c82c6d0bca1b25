"""Demands the Secrets that Ingresses name for TLS wherever the Ingress goes.

This is a second reason, besides references of pods, for which a Secret follows. `ConfigObjects`
carries it; only the need for it, and the objects that get Events, come from here.
"""

from __future__ import annotations

from collections.abc import Iterator

from vnode.api import kinds, objects
from vnode.api.objects import Object
from vnode.following import services
from vnode.following.network_objects import NetworkObjects
from vnode.following.reference_index import Key, Need, strongest
from vnode.following.references import Ref
from vnode.runtime.links import Link


class TlsSecrets:
    """The demand of Ingresses for Secrets."""

    def __init__(self, network: NetworkObjects) -> None:
        self._network = network

    def need(self, key: Key, link: Link) -> Need:
        """Return the strongest need of the Ingresses that name it.

        Before Ingresses are known, no Secret is copied or removed.
        """
        if not self._network.known:
            return Need.TOLERATED

        return strongest(
            self._network.need_of_certificates(Key(key.node, _ref(found)), link)
            for found in self._network.ingresses_with(key.ref)
        )

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
