"""Tells which Services and Ingresses go to all targets that serve their namespace.

Most go where pods of their namespace are. Those that users have marked as global go further: pods
of the target itself may call them, and load balancers may expect them everywhere. So does an
Ingress that leads to such a Service. Where a Namespace is marked, so do all Services that select
its elected pods, which is what Admiralty does in all namespaces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.following import services
from vnode.kube.store import Store

INDEX: Final = "global"


def index(obj: Object) -> Iterable[str]:
    """Yield the namespace of a marked object: the index `INDEX` of its store."""
    if _is_marked(obj):
        yield objects.namespace(obj)


class GlobalObjects:
    """Reads the stores of Services and Ingresses of the source, which have the index `INDEX`.

    `has_whole` tells whether a Namespace is marked.
    """

    def __init__(self, stores: dict[Kind, Store], has_whole: Callable[[str], bool]) -> None:
        self._stores = stores
        self.has_whole = has_whole

    def namespaces(self) -> set[str]:
        """Return the namespaces in which some object is marked."""
        return {name for store in self._stores.values() for name in store.values_of(INDEX)}

    def may_have_some(self, namespace: str) -> bool:
        """Tell whether objects of a namespace may go to targets without pods of it."""
        marked = any(store.has(INDEX, namespace) for store in self._stores.values())
        return marked or self.has_whole(namespace)

    def reaches_all(self, kind: Kind, obj: Object) -> bool:
        """Tell whether an object goes to all targets of its namespace, if it follows at all."""
        return self.has_whole(objects.namespace(obj)) or self.includes(kind, obj)

    def includes(self, kind: Kind, obj: Object) -> bool:
        """Tell whether an object goes to all targets of its namespace, even without pods."""
        if kind is kinds.SERVICES:
            return _is_marked(obj) and bool(services.selector(obj))

        backends = list(services.backends(obj))
        if backends and _is_marked(obj):
            return True

        return any(self._is_global_service(objects.namespace(obj), name) for name in backends)

    def _is_global_service(self, namespace: str, name: str) -> bool:
        service = self._stores[kinds.SERVICES].get(objects.join_key(namespace, name))
        if service is None or objects.is_terminating(service):
            return False

        return self.includes(kinds.SERVICES, service)


def _is_marked(obj: Object) -> bool:
    return objects.annotations(obj).get(keys.GLOBAL) == "true"
