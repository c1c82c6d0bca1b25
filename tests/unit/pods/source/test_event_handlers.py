"""What the scheduler is told of targets, by their ClusterSummaries."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.apiserver import links
from tests.apiserver.server import APIServer
from tests.permitted import all_namespaces
from vnode.api import keys, kinds
from vnode.api.clock import Clock
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.kube.store import Store
from vnode.pods.source import event_handlers
from vnode.runtime.links import Links
from vnode.scheduling.cache import Cache
from vnode.scheduling.events import EventKind
from vnode.scheduling.quotas import Quotas


def virtual_node(target: TargetKey, message: str) -> Object:
    """Return a node that is not ready, because there is no connection to its target."""
    labels = {keys.TARGET_NAMESPACE: target.namespace, keys.TARGET_NAME: target.name}
    if not target.namespace:
        labels = {keys.CLUSTER_TARGET_NAME: target.name}

    condition = {"type": "Ready", "status": "False", "message": message}
    return {
        "metadata": {"name": target.node_name, "labels": labels},
        "status": {"conditions": [condition]},
    }


def test_of_targets_without_a_connection_a_pod_hears_of_those_of_its_namespace_only() -> None:
    team, other, every = (TargetKey(space, "c2") for space in ("team", "other", ""))
    store = Store()
    for target in (team, other, every):
        store.put(virtual_node(target, f"the Secret of {target} is missing"))

    informer: Any = SimpleNamespace(store=store)
    unused: Any = None
    known = event_handlers.EventHandlers(informer, all_namespaces(), Links(), Cache(), unused)
    assert known.unconnected("team") == {
        team: "the Secret of team/c2 is missing",
        every: "the Secret of c2 is missing",
    }


def placed(node: str = "a", phase: str = "Running", **metadata: str) -> dict[str, object]:
    """Return a proxy as far as others must keep away from it, or want its room."""
    return {"metadata": metadata, "spec": {"nodeName": node}, "status": {"phase": phase}}


ENDING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (None, placed(""), None),
        (placed(""), placed(), EventKind.POD_ADD),
        (placed(), placed(), None),
        (placed(), None, EventKind.POD_DELETE),
        (placed(), placed(phase="Succeeded"), EventKind.POD_DELETE),
        (placed(), placed(phase="Failed"), EventKind.POD_DELETE),
        (placed(phase="Failed"), None, None),
        (placed(), placed(**ENDING), EventKind.POD_DELETE),
        (placed(**ENDING), placed(**ENDING), None),
        (placed(**ENDING), None, EventKind.POD_DELETE),
        (placed(**ENDING), placed(phase="Failed", **ENDING), EventKind.POD_DELETE),
    ],
)
def test_a_proxy_that_no_longer_counts_on_its_node_is_an_event(old, new, kind):
    event = event_handlers.proxy_event(old, new)
    assert (event and event.kind) is kind
    assert event is None or event.node == "a"


class _Cache:
    """Keeps what it is told that a target has free, None for nothing."""

    def __init__(self) -> None:
        self.updates: list[object] = []
        self.quotas = Quotas()

    def update_free(self, _name: str, free: object, _largest: object, *_rows: object) -> bool:
        self.updates.append(free)
        return False


async def test_what_a_vnode_said_to_be_free_counts_only_while_it_runs(clock: Clock) -> None:
    """Admiralty, back in the target, keeps the annotation."""
    server, cache = APIServer("gpu", clock), _Cache()
    free = '{"sum": {"cpu": "3"}, "largest": {"cpu": "2"}}'
    annotations = {keys.FREE_RESOURCES: free, keys.AGENT_VERSION: "1"}
    metadata = {"name": keys.SUMMARY_NAME, "annotations": annotations}
    server.add(kinds.CLUSTER_SUMMARIES, {"metadata": metadata})
    link = links.link_to(server, TargetKey("ns", "gpu"), Identity("c1", "us"), clock)
    known = Links()
    known.add(link)
    informer: Any = SimpleNamespace(store=Store(), subscribe=lambda _handler: None)
    queue: Any = SimpleNamespace(move=lambda _event: None)
    handlers = event_handlers.EventHandlers(
        *(informer, all_namespaces(), known, cast(Any, cache), queue)
    )
    handlers.open()
    async with links.connected(link):
        link.set_agent_silent(False)
        links.set_healthy(link, False, clock)
        links.set_healthy(link, True, clock)
        link.set_agent_silent(True)
        link.set_agent_silent(False)

    amounts = {"cpu": 3000}
    assert cache.updates == [amounts, None, amounts]
