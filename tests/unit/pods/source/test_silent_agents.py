"""What a target's vnode has written on its ClusterSummary is believed only while it lives.

Each annotation that vnode writes there is tried, and all that a source makes of one: whoever adds
either finds it here.
"""

from __future__ import annotations

from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import pytest

from tests.apiserver import links
from tests.apiserver.server import APIServer
from tests.permitted import all_namespaces
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.api.resources import Resources
from vnode.api.rows import Rows
from vnode.api.target_key import TargetKey
from vnode.kube.store import Store
from vnode.nodes import capacity
from vnode.nodes import summary as summaries
from vnode.pods.source.event_handlers import EventHandlers
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.scheduling.cache import Cache
from vnode.scheduling.node_rows import NodeRows

pytestmark = pytest.mark.looptime

GPU = TargetKey("ns", "gpu")
IDENTITY = {keys.CLUSTER_UID, keys.CLUSTER_NAME}
"""Which cluster it is stays true without an agent."""
REPORTS = sorted({*summaries._OURS} - IDENTITY)
CLASSES = '{"runtimeClasses": ["gvisor"], "priorityClasses": ["low"]}'
NODE: Object = {
    "metadata": {"name": "n"},
    "status": {
        "capacity": {"cpu": "4"},
        "allocatable": {"cpu": "4"},
        "conditions": [{"type": "Ready", "status": "True"}],
        "declaredFeatures": ["InPlacePodLevelResourcesVerticalScaling"],
        "features": {"supplementalGroupsPolicy": True},
        "runtimeHandlers": [{"name": "gvisor", "features": {"userNamespaces": True}}],
    },
}
WRITTEN = capacity.summary(
    [capacity.trim_node(NODE)],
    capacity.Usage(),
    Identity("gpu", "there"),
    classes=CLASSES,
    heartbeat="2026-01-01T00:00:00Z",
    scheduler_silent="2026-01-01T00:00:00Z",
    streams_namespace="vnode",
)


class _RoomCache(Cache):
    """Notes what it is told last that a target has free, and on which of its nodes."""

    room: tuple[object, ...] = ()

    def update_free(
        self,
        name: str,
        free: Resources | None,
        largest: Resources | None,
        nodes: NodeRows | None = None,
        rows: Rows | None = None,
    ) -> bool:
        self.room = free, largest, nodes is None and rows is None
        return super().update_free(name, free, largest, nodes, rows)


async def seen(clock: Clock, annotations: dict[str, str], *, silent: bool) -> dict[str, str]:
    """Return all that a source makes of a target with this summary: of its link, and to schedule.

    Admiralty, or whoever replaced the agent, goes on writing capacity and labels.
    """
    server, cache, known, store = APIServer("gpu", clock), _RoomCache(), Links(), Store()
    metadata = {"name": keys.SUMMARY_NAME, "annotations": annotations}
    server.add(kinds.CLUSTER_SUMMARIES, {**WRITTEN, "metadata": metadata})
    store.put({"metadata": {"name": GPU.node_name}})
    link = links.link_to(server, GPU, Identity("c1", "us"), clock)
    known.add(link)
    informer: Any = SimpleNamespace(store=store, subscribe=lambda _handler: None)
    queue: Any = SimpleNamespace(move=lambda _event: None)
    EventHandlers(informer, all_namespaces(), known, cache, queue).open()
    async with links.connected(link):
        link.set_agent_silent(silent)
        links.set_healthy(link, False, clock)
        links.set_healthy(link, True, clock)
        found = {
            name: repr(getattr(link, name))
            for name, value in vars(Link).items()
            if isinstance(value, property) and name != "summary"
        }
        (node,) = cache.snapshot().nodes
        for part in (node, node.virtual):
            found |= {f"node's {f.name}": repr(getattr(part, f.name)) for f in fields(part)}

        return {**found, "room": repr(cache.room)}


@pytest.mark.parametrize("key", REPORTS)
async def test_no_report_of_an_agent_that_is_silent_is_believed(clock: Clock, key: str) -> None:
    said = objects.annotations(WRITTEN)
    assert key in said
    unsaid = {name: value for name, value in said.items() if name != key}
    assert await seen(clock, said, silent=True) == await seen(clock, unsaid, silent=True)


async def test_those_of_one_that_lives_are(clock: Clock) -> None:
    said = objects.annotations(WRITTEN)
    alive, silent = [await seen(clock, said, silent=silent) for silent in (False, True)]
    differing = {name for name in alive if alive[name] != silent[name]}
    named = {"runs_vnode", "priorities", "node_features", "scheduler_silent_since"}
    assert named | {"node's classes", "room"} <= differing
