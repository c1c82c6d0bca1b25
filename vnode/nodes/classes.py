"""Watches the RuntimeClasses and PriorityClasses of the local cluster, for its ClusterSummary.

An agent may lack the right to list them, as one with the roles of an older release does. Then they
are unknown to sources, which find out by a candidate, and nothing else waits for them.
"""

from __future__ import annotations

from collections.abc import Callable

from vnode.api import class_names, kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.runtime.certs import renewal
from vnode.runtime.supervisor import Supervisor


class Classes:
    """Knows the names of classes, and calls `changed` when they may have changed."""

    def __init__(self, client: Client, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._runtime, self._priority = (
            Informer(client, kind, metadata_only=True, trim=_only_name)
            for kind in (kinds.RUNTIME_CLASSES, kinds.PRIORITY_CLASSES)
        )

    def start(self, tasks: Supervisor) -> None:
        """Start to watch, in `tasks`."""
        for informer in (self._runtime, self._priority):
            informer.subscribe(self._on_class)
            name = f"summary-{informer.kind.plural}"
            tasks.start(renewal.follow(informer, self._changed), name)

    def text(self, present: str) -> str:
        """Return the names for the summary, "" for none that are known.

        That is `present`, what the summary has, until it is known whether they can be listed.
        """
        informers = (self._runtime, self._priority)
        if not all(informer.answered.is_set() for informer in informers):
            return present

        return class_names.encode(*(_names(informer) for informer in informers))

    def _on_class(self, old: Object | None, new: Object | None) -> None:
        if old is None or new is None:
            self._changed()


def _names(informer: Informer) -> list[str] | None:
    if not informer.synced.is_set():
        return None

    return [objects.name(obj) for obj in informer.store.values()]


def _only_name(obj: Object) -> Object:
    meta = objects.metadata(obj)
    kept = ("name", "uid", "resourceVersion")
    return {"metadata": {field: meta[field] for field in kept if field in meta}}
