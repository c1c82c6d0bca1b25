"""Lists objects for `vnode get`, once, or with a watch afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Final

from vnode.api import cures, kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.errors import ConfigError, Denied, Gone, NotFound, VnodeError
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.cli import tables
from vnode.cli.fitting import TableLayout
from vnode.cli.get import views
from vnode.cli.get.cluster_views import NODES, PODS
from vnode.cli.get.views import Row, View
from vnode.insight import status_text
from vnode.kube import watching
from vnode.kube.client import Client
from vnode.kube.watching import ListOptions

Print = Callable[[str], None]

_CLUSTER_WIDE: Final = (
    kinds.CLUSTER_TARGETS,
    kinds.CLUSTER_TARGET_SETS,
    kinds.CLUSTER_SOURCES,
    kinds.CLUSTER_PLACEMENT_POLICIES,
    kinds.CLUSTER_OVERRIDE_POLICIES,
)
[_NODES] = NODES.selections(None)


@dataclass(frozen=True, slots=True)
class ListRequest:
    """The arguments of the command: what to list, and in which format."""

    view: View
    names: tuple[str, ...]
    namespace: str | None  # None: all
    format: str
    selector: str = ""

    def shows(self, obj: Object) -> bool:
        """Tell whether the request includes the object."""
        return (not self.names or objects.name(obj) in self.names) and self.view.shows(obj)


class Listing:
    """Prints what `request` asks for."""

    def __init__(self, client: Client, request: ListRequest, out: Print) -> None:
        self._client = client
        self._request = request
        self._out = out
        self._clock = SystemClock()
        self._layout = TableLayout()
        # Read for pods only: virtual nodes with their targets, and those that are not ready.
        self._targets: dict[str, str] = {}
        self._away: set[str] = set()
        # Read for override policies only, which count them; None if they were not read.
        self._pods: Objects | None = None
        self._nodes_version = ""  # to watch nodes from; "" if they may not be read

    async def once(self) -> dict[int, str]:
        """List and print; return the versions to watch from, by the number of the selection.

        Raises ConfigError for a name that is not found.
        """
        if self._request.view is PODS:
            self._nodes_version = await self._read_nodes()

        if self._request.view.counts_pods and self._request.format in ("table", "wide"):
            self._pods = await self._read_pods()

        found: list[tuple[Kind, Object]] = []
        versions: dict[int, str] = {}
        for number, selection in enumerate(self._selections()):
            listed = await self._list(selection)
            if listed is not None:
                versions[number] = listed[1]
                found += [(selection.kind, obj) for obj in listed[0] if self._request.shows(obj)]

        self._show(found)
        missing = set(self._request.names) - {objects.name(obj) for _kind, obj in found}
        if missing:
            raise ConfigError(f"{self._request.view.name} {', '.join(sorted(missing))}: not found")

        return versions

    async def follow(self) -> None:
        """List and print, and print each change, until cancelled."""
        self._layout.followed = True
        versions = await self.once()
        self._pods = None  # they are not watched, so what is printed later has no number
        async with asyncio.TaskGroup() as group:
            for number, selection in enumerate(self._selections()):
                if number in versions:
                    group.create_task(
                        self._watch(selection, versions[number], self._show_change),
                        name=f"watch-{number}",
                    )

            if self._nodes_version:
                group.create_task(self._follow_nodes(), name="watch-nodes")

    def _selections(self) -> list[ListOptions]:
        request = self._request
        return [
            ListOptions(
                selection.kind,
                selection.namespace,
                ",".join(filter(None, (selection.label_selector, request.selector))),
                selection.field_selector,
            )
            for selection in request.view.selections(request.namespace)
        ]

    async def _list(self, selection: ListOptions) -> tuple[list[Object], str] | None:
        """List one selection; None for a cluster-scoped kind that may not be read.

        Namespaced Targets, Sources and policies may be readable nevertheless.
        """
        try:
            return await self._client.list_at(
                selection.kind,
                selection.namespace,
                label_selector=selection.label_selector,
                field_selector=selection.field_selector,
            )
        except NotFound as error:
            raise ConfigError(
                f"vnode is not installed here: {cures.INSTALL} ({error.message})"
            ) from error
        except Denied:
            if selection.kind in _CLUSTER_WIDE:
                return None

            raise

    async def _read_nodes(self) -> str:
        """Read the targets of virtual nodes; return the version to watch from, "" if denied."""
        try:
            nodes, version = await self._client.list_at(
                _NODES.kind, label_selector=_NODES.label_selector
            )
        except VnodeError:  # without the permission, pods are shown with the names of their nodes
            return ""

        self._targets, self._away = {}, set()
        for node in nodes:
            self._record(node)

        return version

    async def _read_pods(self) -> Objects | None:
        """Read the proxy pods that override policies may select; None if denied."""
        try:
            pods = await self._client.list(kinds.PODS, self._request.namespace)
        except VnodeError:
            return None

        return [pod for pod in pods if status_text.is_proxy(pod)]

    async def _follow_nodes(self) -> None:
        """Watch the targets of virtual nodes, and whether they are ready."""
        with suppress(Denied):  # nodes may be listed, but not watched
            await self._watch(_NODES, self._nodes_version, lambda _kind, node: self._record(node))

    def _record(self, node: Object) -> None:
        name = objects.name(node)
        self._targets[name] = status_text.node_target(node)
        self._away.discard(name)
        if (objects.condition(node, "Ready") or {}).get("status", "True") != "True":
            self._away.add(name)

    async def _watch(
        self, selection: ListOptions, version: str, changed: Callable[[Kind, Object], None]
    ) -> None:
        while True:
            try:
                stream = watching.stream(self._client, selection, version)
                async with aclosing(stream) as batches:
                    async for batch in batches:
                        for event in batch:
                            version = objects.resource_version(event.object)
                            if event.type != watching.BOOKMARK:
                                changed(selection.kind, event.object)
            except Gone:
                _items, version = await self._client.list_at(
                    selection.kind, selection.namespace, label_selector=selection.label_selector
                )

    def _show_change(self, kind: Kind, obj: Object) -> None:
        if self._request.shows(obj):
            self._show([(kind, obj)], heading=False)

    def _show(self, found: Sequence[tuple[Kind, Object]], *, heading: bool = True) -> None:
        request = self._request
        if request.format == "name":
            for kind, obj in found:
                self._out(tables.reference(kind, obj))
        elif request.format in ("json", "yaml"):
            objs = [tables.typed(kind, obj) for kind, obj in found]
            single = not heading or (len(request.names) == 1 and len(objs) == 1)
            self._out(tables.document(objs, request.format, single=single))
            if request.format == "yaml" and not heading:
                self._out("---")
        elif found or not heading:
            self._table(found, heading=heading)
        elif not request.names:
            where = f" in namespace {request.namespace}" if request.namespace else ""
            self._out(f"No {request.view.name} found{where if request.view.namespaced else ''}.")

    def _table(self, found: Sequence[tuple[Kind, Object]], *, heading: bool) -> None:
        now = self._clock.now()
        rows = [Row(kind, obj, now, self._targets, self._away, self._pods) for kind, obj in found]
        everywhere = self._request.namespace is None
        for line in tables.lines(
            views.columns(self._request.view, everywhere=everywhere),
            rows,
            wide=self._request.format == "wide",
            heading=heading,
            layout=self._layout,
        ):
            self._out(line)
