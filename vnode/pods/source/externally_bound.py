"""Watches pods that others bound to our virtual nodes: the default scheduler, Kueue, `nodeName`.

Neither our webhook nor our scheduler saw them, so they are found by the node that they are on: one
informer for each virtual node, on a selector that the API server answers from an index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Handler, Informer
from vnode.runtime.keyed_tasks import KeyedTasks
from vnode.runtime.supervisor import sleep_forever, supervise


def is_daemon(pod: Object) -> bool:
    """Return whether it is a DaemonSet's pod: it is about a machine, and a virtual node is none."""
    owner = objects.controller_reference(pod)
    return owner is not None and owner.get("kind") == "DaemonSet"


class ExternallyBoundPods:
    """Keeps an informer for each virtual node; passes keys of changed pods to `on_change`."""

    def __init__(
        self,
        client: Client,
        on_change: Callable[[str], None],
        trim: Callable[[Object], Object],
    ) -> None:
        self._client = client
        self._on_change = on_change
        self._trim = trim
        self._handlers: list[Handler] = []
        self._informers: dict[str, Informer] = {}
        self._tasks: KeyedTasks[str] | None = None  # by virtual node, while `run` runs

    def get(self, key: str) -> Object | None:
        """Return the pod of that key, on whichever of our nodes."""
        for informer in self._informers.values():
            if (pod := informer.store.get(key)) is not None:
                return pod

        return None

    def knows(self, node_name: str, namespace: str) -> bool:
        """Tell whether it is known which pods of a namespace are on that node."""
        informer = self._informers.get(node_name)
        return informer is not None and informer.knows(namespace)

    def subscribe(self, handler: Handler) -> None:
        """Call `handler(old, new)` for every change of a pod, on whichever of our nodes."""
        self._handlers.append(handler)
        for informer in self._informers.values():
            informer.subscribe(handler)

    def pods_on(self, node_name: str) -> Iterator[Object]:
        """Iterate over the pods on one virtual node."""
        informer = self._informers.get(node_name)
        return iter(informer.store.values() if informer else ())

    def watch(self, node_name: str) -> None:
        """Watch a virtual node."""
        if node_name in self._informers:
            return

        informer = Informer(
            self._client,
            kinds.PODS,
            field_selector=f"spec.nodeName={node_name},spec.schedulerName!={keys.PROXY_SCHEDULER}",
            trim=self._trim,
        )
        informer.subscribe_by_key(self._on_change)
        for handler in self._handlers:
            informer.subscribe(handler)

        self._informers[node_name] = informer
        if self._tasks is not None:
            self._tasks.start(node_name, informer.run, f"on-{node_name}")

    def forget(self, node_name: str) -> None:
        """Stop watching a virtual node."""
        informer = self._informers.pop(node_name, None)
        for pod in informer.store.values() if informer else ():
            for handler in self._handlers:
                handler(pod, None)

        if self._tasks is not None:
            self._tasks.stop(node_name)

    async def run(self) -> None:
        """Run the informers until cancelled."""
        async with supervise() as tasks:
            self._tasks = tasks.keyed()
            try:
                for node_name, informer in self._informers.items():
                    self._tasks.start(node_name, informer.run, f"on-{node_name}")

                await sleep_forever()
            finally:
                self._tasks = None  # a link that is added while this ends is not watched
