"""Bound pods, where the agent knows less of the target than there is, or the pod is none of its."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests import kit
from tests.integration.delegates import chaperon, free, make_link
from tests.permitted import MANIFESTS, all_namespaces
from vnode.api import kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.gangs.pod_groups import GroupStanding
from vnode.gangs.table import Gangs
from vnode.kube.client import Client
from vnode.kube.events import EventRecorder
from vnode.kube.informer import Informer
from vnode.placement.policies.collection import PlacementPolicies
from vnode.pods.overriding import NoOverrides
from vnode.pods.source import proxy_state
from vnode.pods.source.chaperon_factory import ChaperonFactory
from vnode.pods.source.proxy_controller import ProxyController
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.runtime.supervisor import supervise
from vnode.targets.target_lister import TargetLister


@asynccontextmanager
async def looked_after(client: Client, namespace: str, link: Link) -> AsyncIterator[None]:
    """Reconcile the pods of one namespace as an agent with one target does."""
    proxies = Informer(
        client,
        kinds.PODS,
        namespace=namespace,
        indexes=proxy_state.INDEXES,
    )
    links, events = Links(), EventRecorder(client, "vnode")
    links.add(link)
    controller = ProxyController(
        client,
        proxies,
        links,
        ChaperonFactory(Identity("c1", "uid-of-c1"), MANIFESTS, NoOverrides(), _ensure_nothing),
        enabled_namespaces=all_namespaces(),
        target_exists=lambda _node: True,
        trim=proxy_state.trim,
        ensure_bound=_ensure_no_services,
        events=events,
        clock=SystemClock(),
        policies=PlacementPolicies(client, TargetLister(client)),
        gangs=Gangs(lambda _key: GroupStanding()),
    )
    async with supervise() as tasks:
        for name, run in (("pods", proxies), ("events", events), ("proxies", controller)):
            tasks.start(run.run(), name)

        yield


async def _ensure_nothing(_pod: Object, _link: Link) -> tuple[str, tuple[str, ...]]:
    return "", ()


async def _ensure_no_services(_pod: Object, _link: Link) -> None:
    pass


async def bound_pod(client: Client, namespace: str, link: Link) -> Object:
    """Return a pod of the link's node, whose container has run."""
    await client.create(kinds.PODS, kit.pod("web", nodeName=link.node_name), namespace)
    status = {"status": {"phase": "Running"}}
    return await client.patch(kinds.PODS, "web", status, namespace, subresource="status")


async def event_of(client: Client, pod: Object, reason: str) -> Object:
    """Return the Event, once it is there."""
    about = f"involvedObject.uid={objects.uid(pod)},reason={reason}"
    return await kit.until_event(client, objects.namespace(pod), about)


async def test_a_pod_is_lost_only_if_its_target_says_so(
    client: Client, pod_namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its chaperon is there, and no event of it has come."""
    link = make_link(client, TargetKey("", "c2"))
    pod = await bound_pod(client, pod_namespace, link)
    unseen = await chaperon(client, pod_namespace, "web-abcde", objects.uid(pod))
    answers: asyncio.Queue[Object | None] = asyncio.Queue()
    ask = link.fetch_candidate

    async def look(*asked: Any) -> Object | None:
        found = await ask(*asked)
        answers.put_nowait(found)
        return found

    monkeypatch.setattr(link, "fetch_candidate", look)
    async with looked_after(client, pod_namespace, link):
        for _ in range(2):
            assert objects.uid(await answers.get() or {}) == objects.uid(unseen)

        assert not objects.is_terminating(await client.get(kinds.PODS, "web", pod_namespace))
        keep: Object = {"metadata": {"finalizers": ["example.com/kept"]}}
        await client.patch(kinds.PODS, "web", keep, pod_namespace)
        await free(client, unseen)
        await client.discard(kinds.POD_CHAPERONS, unseen)
        await event_of(client, pod, "DelegateLost")
        ended = await kit.until_one(
            client, kinds.PODS, "web", pod_namespace, lambda found: kit.phase(found) == "Failed"
        )
        condition = objects.condition(ended, "DisruptionTarget") or {}
        assert condition["message"] == "the delegate pod in target c2 was deleted there"
        await client.patch(kinds.PODS, "web", {"metadata": {"finalizers": None}}, pod_namespace)
        await kit.until_gone(client, kinds.PODS, pod_namespace)


async def test_a_node_of_a_namespaced_target_runs_no_pod_of_another_namespace(
    client: Client, pod_namespace: str
) -> None:
    """Anybody who may create pods may name a node; the credentials behind it are others'."""
    link = make_link(client, TargetKey("default", "c2"))
    pod = await bound_pod(client, pod_namespace, link)
    async with looked_after(client, pod_namespace, link):
        event = await event_of(client, pod, "DelegateRefused")
        refusal = f"node {link.node_name} is not for pods of namespace {pod_namespace}"
        assert refusal in event["message"]
        assert await client.list(kinds.POD_CHAPERONS, pod_namespace) == []

        await client.delete(kinds.PODS, "web", pod_namespace)
        await kit.until_gone(client, kinds.PODS, pod_namespace)
