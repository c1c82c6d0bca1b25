"""Watches the classes of the local cluster, for its ClusterSummary.

Those are RuntimeClasses, PriorityClasses and DeviceClasses. Of a PriorityClass it needs more than
the name: what it means decides which one stands in for another that a source has. A DeviceClass may
stand for an extended resource.

An agent may lack the right to list them, as one with the roles of an older release does, and an
older cluster has no DeviceClasses. Then they are unknown to sources, which find out by a candidate,
and nothing else waits for them.
"""

from __future__ import annotations

from collections.abc import Callable

from vnode.api import class_names, kinds, objects, priorities
from vnode.api.class_names import PriorityValue
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.runtime.certs import renewal
from vnode.runtime.supervisor import Supervisor


class Classes:
    """Knows the classes, and calls `changed` when they may have changed."""

    def __init__(self, client: Client, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._runtime = Informer(client, kinds.RUNTIME_CLASSES, metadata_only=True, trim=_only_name)
        self._priority = Informer(client, kinds.PRIORITY_CLASSES, trim=_with_value)
        self._device = Informer(client, kinds.DEVICE_CLASSES, trim=_with_resource, optional=True)
        self._informers = (self._runtime, self._priority, self._device)

    def start(self, tasks: Supervisor) -> None:
        """Start to watch, in `tasks`."""
        for informer in self._informers:
            informer.subscribe(self._on_class)
            name = f"summary-{informer.kind.plural}"
            tasks.start(renewal.follow(informer, self._changed), name)

    def text(self, present: str) -> str:
        """Return the classes for the summary, "" for none that are known.

        That is `present`, what the summary has, until it is known whether they can be listed.
        """
        if not all(informer.answered.is_set() for informer in self._informers):
            return present

        meanings = {objects.name(obj): _meaning(obj) for obj in self._priority.store.values()}
        devices = {objects.name(obj): obj["value"] for obj in self._device.store.values()}
        return class_names.encode(
            _names(self._runtime),
            _names(self._priority),
            meanings,
            devices if self._device.synced.is_set() else None,
        )

    def _on_class(self, old: Object | None, new: Object | None) -> None:
        if old is None or new is None or old.get("value") != new.get("value"):
            self._changed()


def _names(informer: Informer) -> list[str] | None:
    if not informer.synced.is_set():
        return None

    return [objects.name(obj) for obj in informer.store.values()]


def _only_name(obj: Object) -> Object:
    meta = objects.metadata(obj)
    kept = ("name", "uid", "resourceVersion")
    return {"metadata": {field: meta[field] for field in kept if field in meta}}


def _with_value(obj: Object) -> Object:
    value = [obj.get("value", 0), obj.get(priorities.POLICY) == priorities.NEVER]
    return {**_only_name(obj), "value": value}


def _with_resource(obj: Object) -> Object:
    return {**_only_name(obj), "value": str(objects.spec(obj).get("extendedResourceName") or "")}


def _meaning(trimmed: Object) -> PriorityValue:
    return PriorityValue(*trimmed["value"])
