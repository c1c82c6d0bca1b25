"""Draws the tables of `vnode top`, live: fed by watches, redrawn when something changes.

Metrics cannot be watched; they are read as often as they change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.clock import SystemClock, happens_within
from vnode.api.errors import ApiError
from vnode.api.objects import Object
from vnode.api.resources import Resources
from vnode.cli import tables
from vnode.cli.tables import Column
from vnode.insight import accounts, measuring, status_text
from vnode.kube.client import Client
from vnode.kube.informer import Informer

_MIN_INTERVAL: Final = 0.5  # seconds between two drawings

TARGET_COLUMNS: Final = (
    Column("TARGET", lambda row: row.name, names_row=True),
    Column("STATUS", lambda row: row.status),
    Column("PODS", lambda row: str(row.pods)),
    Column("RUNNING", lambda row: str(row.running)),
    Column("CPU(requested)", lambda row: accounts.cpu(row.requested), short="CPU(req)"),
    Column("CPU%", lambda row: accounts.share(row.requested, row.allocatable, "cpu")),
    Column("MEMORY(requested)", lambda row: accounts.memory(row.requested), short="MEM(req)"),
    Column(
        "MEMORY%",
        lambda row: accounts.share(row.requested, row.allocatable, "memory"),
        short="MEM%",
    ),
    Column("CPU(used)", lambda row: accounts.cpu(row.used), short="CPU(used)"),
    Column("MEMORY(used)", lambda row: accounts.memory(row.used), short="MEM(used)"),
)
POD_COLUMNS: Final = (
    Column("NAMESPACE", lambda row: row.namespace, names_row=True),
    Column("NAME", lambda row: row.name, names_row=True),
    Column("TARGET", lambda row: row.target),
    Column("CPU(requested)", lambda row: accounts.cpu(row.requested), short="CPU(req)"),
    Column("MEMORY(requested)", lambda row: accounts.memory(row.requested), short="MEM(req)"),
    Column("CPU(used)", lambda row: accounts.cpu(row.used), short="CPU(used)"),
    Column("MEMORY(used)", lambda row: accounts.memory(row.used), short="MEM(used)"),
)


class Screen:
    """One of the two tables; `show` gets its text, once or at each change."""

    def __init__(
        self, client: Client, namespace: str | None, *, of_pods: bool, show: Callable[[str], None]
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._of_pods = of_pods
        self._show = show
        self._changed = asyncio.Event()
        self._used: dict[str, Resources] = {}  # by pod key, or by node
        self._no_metrics = ""  # a line that explains why there are none
        self._nodes = Informer(
            client, kinds.NODES, label_selector=f"{keys.PROVIDER_LABEL}={keys.PROVIDER}"
        )
        # The table of targets counts pods of all namespaces.
        self._pods = Informer(client, kinds.PODS, namespace=namespace if of_pods else None)

    async def run(self, *, live: bool) -> None:
        """Draw once, or until cancelled."""
        for informer in (self._nodes, self._pods):
            informer.subscribe(lambda _old, _new: self._changed.set())

        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(informer.run(), name=f"top-{informer.kind.plural}")
                for informer in (self._nodes, self._pods)
            ]
            await self._until_synced()
            await self._measure()
            self._show(self.text())
            if live:
                tasks.append(group.create_task(self._keep_measuring(), name="top-metrics"))
                await self._keep_drawing()

            for task in tasks:
                task.cancel()

    async def _until_synced(self) -> None:
        """Wait for the first lists; raise the failure of an informer, which would retry forever."""
        for informer in (self._nodes, self._pods):
            while not await happens_within(informer.synced, _MIN_INTERVAL):
                if informer.failure is not None:
                    raise informer.failure

    async def _keep_drawing(self) -> None:
        clock = SystemClock()
        while True:
            self._changed.clear()
            await self._changed.wait()
            self._show(self.text())
            await clock.sleep(_MIN_INTERVAL)

    async def _keep_measuring(self) -> None:
        clock = SystemClock()
        while True:
            await clock.sleep(measuring.RESOLUTION)
            await self._measure()
            self._changed.set()

    async def _measure(self) -> None:
        try:
            if self._of_pods:
                self._used = await measuring.of_pods(self._client, self._namespace)
            else:
                self._used = await measuring.of_nodes(self._client)
        except ApiError:
            self._used, self._no_metrics = {}, "No metrics API answers: what pods use is unknown."
        else:
            self._no_metrics = ""

    def text(self) -> str:
        """Format the table as it is now."""
        nodes, proxies = list(self._nodes.store.values()), self._proxies()
        if self._of_pods:
            targets = {objects.name(node): status_text.node_target(node) for node in nodes}
            rows = tables.lines(POD_COLUMNS, accounts.of_pods(proxies, targets, self._used))
        else:
            rows = tables.lines(TARGET_COLUMNS, accounts.of_targets(nodes, proxies, self._used))

        return "\n".join([*rows, *filter(None, (self._no_metrics,))])

    def _proxies(self) -> list[Object]:
        return [pod for pod in self._pods.store.values() if status_text.is_proxy(pod)]
