"""Tells which namespaces take part: those with the label by which the API server calls the webhook.

The label is a gate, not a convenience (docs/decisions/0037): whoever names our scheduler or a
virtual node in a pod of another namespace sends nothing to a target. What runs there already, from
a time when the label was set, goes on.
"""

from __future__ import annotations

from collections.abc import Callable

from vnode.api import keys, objects
from vnode.api.objects import Object
from vnode.kube.informer import Informer


class EnabledNamespaces:
    """Reads the labels of all namespaces; unless `label_required`, every namespace takes part."""

    def __init__(self, namespaces: Informer, *, label_required: bool) -> None:
        self._namespaces = namespaces
        self._label_required = label_required

    def is_enabled(self, namespace: str) -> bool:
        """Tell whether pods of the namespace of that name may go to targets."""
        return not self._label_required or _has_label(self._namespaces.store.get(namespace))

    def names(self) -> list[str]:
        """Return the namespaces that take part now."""
        return [name for name in self._namespaces.store if self.is_enabled(name)]

    def refusal(self, namespace: str) -> str:
        """Return why pods of a namespace cannot go to targets now; "" if they can.

        In a namespace that is being terminated nothing is created, not even a binding.
        """
        if not self.is_enabled(namespace):
            return keys.not_enabled(namespace)

        if objects.is_terminating(self._namespaces.store.get(namespace) or {}):
            return f"namespace {namespace} is being terminated"

        return ""

    def is_global(self, namespace: str) -> bool:
        """Tell whether Services of elected pods of that namespace go to all targets, as under
        Admiralty."""
        return _is_marked(self._namespaces.store.get(namespace))

    def subscribe(self, listener: Callable[[str], None]) -> None:
        """Call `listener`, which must not await, with each namespace that gets the label, or whose
        `is_global` changes."""

        def on_change(old: Object | None, new: Object | None) -> None:
            enabled = _has_label(new) and not _has_label(old)
            if enabled or _is_marked(new) != _is_marked(old):
                listener(objects.name(objects.latest(old, new)))

        self._namespaces.subscribe(on_change)


def _is_marked(namespace: Object | None) -> bool:
    return objects.annotations(namespace or {}).get(keys.GLOBAL) == "true"


def _has_label(namespace: Object | None) -> bool:
    key, value = keys.WEBHOOK_NAMESPACE_LABEL
    return objects.labels(namespace or {}).get(key) == value
