"""Pods that are made at a rate while something else happens, and what watches show of them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from tests import kit
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer


class PodFlow:
    """`count` pods for a virtual node, in namespace default of the source; `name` begins theirs."""

    def __init__(self, source: Client, node: str, count: int, name: str = "flow") -> None:
        self.all_run = asyncio.Event()
        self._name = name
        self._source = source
        self._node = node
        self._count = count
        self._uids: dict[str, set[str]] = {}  # by name of a pod
        self._running: set[str] = set()
        self._failed: list[str] = []
        self._not_ready: list[str] = []

    def watches(self) -> list[Coroutine[Any, Any, None]]:
        """Return what has to run beside the flow."""
        pods = Informer(self._source, kinds.PODS, namespace="default", label_selector=self._name)
        pods.subscribe(self._on_pod)
        node = Informer.of_object(self._source, kinds.NODES, self._node)
        node.subscribe(self._on_node)
        return [pods.run(), node.run()]

    async def run(self, rate: float) -> None:
        """Make the pods, each at its time."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._count):
                group.create_task(self._make(number, number / rate))

    async def check(self, target: Client) -> None:
        """See that all run, that none has failed or was made twice, and the node stayed Ready."""
        assert self._failed == []
        assert self._not_ready == []
        assert {len(uids) for uids in self._uids.values()} == {1}
        delegates = [
            pod
            for pod in await target.list(kinds.PODS, "default")
            if objects.annotations(pod).get(keys.PARENT_NAME, "").startswith(f"{self._name}-")
        ]
        assert len(delegates) == self._count
        assert {kit.phase(pod) for pod in delegates} == {"Running"}

    async def _make(self, number: int, seconds: float) -> None:
        await asyncio.sleep(seconds)
        pod = kit.pod(f"{self._name}-{number}", nodeSelector=on(self._node))
        pod["metadata"]["labels"][self._name] = ""
        await self._source.create(kinds.PODS, pod, "default")

    def _on_pod(self, _old: Object | None, new: Object | None) -> None:
        if new is None:
            return

        name = objects.name(new)
        self._uids.setdefault(name, set()).add(objects.uid(new))
        if kit.phase(new) == "Failed" or objects.is_terminating(new):
            self._failed.append(name)
        elif kit.phase(new) == "Running":
            self._running.add(name)

        if len(self._running) == self._count:
            self.all_run.set()

    def _on_node(self, _old: Object | None, new: Object | None) -> None:
        if new is not None and not kit.is_ready(new):
            self._not_ready.append(str(objects.condition(new, "Ready")))


def on(node: str) -> dict[str, str]:
    """Return the nodeSelector of a pod that runs behind a virtual node."""
    return {"kubernetes.io/hostname": node}
