"""Admiralty 0.17 in a target, as docs/admiralty-contract.md has it: sections 7, 9 and 13.

It plays the chaperon controller and the candidate scheduler, which binds to the first node that
there is. Its words on the wire are spelt out here, not taken from vnode.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from tests import background
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.api.errors import NotFound
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.runtime.controller import Controller
from vnode.telemetry import audit

PREFIX: Final = "multicluster.admiralty.io/"
RESERVED, ALLOWED, MISSING = (
    PREFIX + "is-reserved",
    PREFIX + "is-allowed",
    PREFIX + "pod-missing-since",
)
VNODE: Final = ("agent", "candidate-scheduler")
"""The processes of a fleet that Admiralty replaces."""


@asynccontextmanager
async def instead_of_vnode(fleet: Fleet, name: str, client: Client) -> AsyncIterator[None]:
    """Run Admiralty in place of vnode in a cluster of the fleet, as Helm would install it."""
    for process in VNODE:
        fleet.run("stop", name, process)

    try:
        async with running(client):
            yield
    finally:
        for process in reversed(VNODE):
            fleet.run("start", name, process)


async def forget_vnode(client: Client) -> None:
    """Take off the summary what says that vnode writes it, without waiting for its heartbeat.

    Admiralty keeps annotations: which cluster it is stays.
    """
    gone = dict.fromkeys(("vnode.dev/agent-version", "vnode.dev/heartbeat", "vnode.dev/free"))
    body = {"metadata": {"annotations": gone}}
    await client.patch(kinds.CLUSTER_SUMMARIES, "singleton", body)


@asynccontextmanager
async def running(client: Client) -> AsyncIterator[None]:
    """Have Admiralty at work in that cluster, namespace default."""
    async with background.running(_Admiralty(client).run()):
        yield


class _Admiralty:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._chaperons = Informer(client, kinds.POD_CHAPERONS, namespace="default")
        selector = f"{PREFIX}parent-uid"
        self._pods = Informer(client, kinds.PODS, namespace="default", label_selector=selector)
        self._controller: Controller[str] = Controller(
            "admiralty", self._reconcile, subject=audit.agent
        )

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for informer in (self._chaperons, self._pods):
                informer.subscribe(
                    lambda old, new: self._controller.add(objects.key(new or old or {}))
                )
                group.create_task(informer.run())
                await informer.synced.wait()

            await self._controller.run()

    async def _reconcile(self, key: str) -> None:
        chaperon, pod = self._chaperons.store.get(key), self._pods.store.get(key)
        if chaperon is None or objects.is_terminating(chaperon):
            return  # with its end Kubernetes deletes the pod, its child

        if pod is None:
            await self._without_pod(chaperon)
            return

        if objects.controller_uid(pod) != objects.uid(chaperon):
            return  # of a former chaperon of that name; its end is an event, too

        if (
            not objects.node_name(pod)
            and objects.spec(pod)["schedulerName"] == "admiralty-candidate"
        ):
            await self._schedule(chaperon, pod)

        feedback = {k: v for k, v in objects.annotations(pod).items() if not k.startswith(PREFIX)}
        if not feedback.items() <= objects.annotations(chaperon).items():
            await self._annotate(chaperon, feedback)

        if objects.status(pod) != objects.status(chaperon):
            await self._patch(chaperon, {"status": objects.status(pod)}, "status")

    async def _without_pod(self, chaperon: Object) -> None:
        if objects.status(chaperon).get("phase"):
            if MISSING not in objects.annotations(chaperon):
                await self._annotate(chaperon, {MISSING: "2026-01-01T00:00:00Z"})

            return

        owner = {
            **objects.reference(chaperon, "PodChaperon", kinds.POD_CHAPERONS.api_version),
            "controller": True,
        }
        metadata = {
            "name": objects.name(chaperon),
            "labels": objects.labels(chaperon),
            "annotations": objects.annotations(chaperon),
            "ownerReferences": [{k: v for k, v in owner.items() if k != "namespace"}],
        }
        await self._client.create(
            kinds.PODS, {"metadata": metadata, "spec": objects.spec(chaperon)}, "default"
        )

    async def _schedule(self, chaperon: Object, pod: Object) -> None:
        annotations, name = objects.annotations(chaperon), objects.name(pod)
        if RESERVED not in annotations:
            await self._annotate(chaperon, {RESERVED: "true"})
        elif ALLOWED in annotations:
            nodes = await self._client.list(kinds.NODES, label_selector="type!=virtual-kubelet")
            target = {"kind": "Node", "name": objects.name(nodes[0])}
            body = {"metadata": {"name": name}, "target": target}
            await self._client.create(kinds.PODS, body, "default", name=name, subresource="binding")

    async def _annotate(self, chaperon: Object, annotations: dict[str, str]) -> None:
        await self._patch(chaperon, {"metadata": {"annotations": annotations}}, None)

    async def _patch(self, chaperon: Object, body: Object, subresource: str | None) -> None:
        try:
            await self._client.patch(
                kinds.POD_CHAPERONS,
                objects.name(chaperon),
                body,
                "default",
                subresource=subresource,
            )
        except NotFound:
            return
