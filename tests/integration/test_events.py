"""Events as a real API server takes them and kubectl describe finds them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests import kit
from vnode.api import kinds, objects
from vnode.kube.client import Client
from vnode.kube.events import NORMAL, WARNING, EventRecorder


@asynccontextmanager
async def recording(client: Client) -> AsyncIterator[EventRecorder]:
    recorder = EventRecorder(client, "vnode")
    async with asyncio.TaskGroup() as group:
        task = group.create_task(recorder.run())
        try:
            yield recorder
        finally:
            task.cancel()


async def test_events_are_found_by_their_object(client: Client, namespace: str) -> None:
    body = {"metadata": {"name": "a", "namespace": namespace}}
    about = objects.reference(await client.create(kinds.CONFIG_MAPS, body), "ConfigMap", "v1")
    async with recording(client) as recorder:
        for _ in range(3):
            recorder.event(about, WARNING, "Refused", "the target said no")

        found = await kit.until(
            client,
            kinds.EVENTS,
            lambda all_: len(all_) == 1,
            namespace=namespace,
            field_selector=f"involvedObject.uid={about['uid']}",
        )

    (event,) = found.values()
    assert (event["type"], event["reason"], event["count"]) == ("Warning", "Refused", 3)
    assert event["source"]["component"] == "vnode"


async def test_events_of_cluster_scoped_objects_are_in_default(
    client: Client, namespace: str
) -> None:
    about = objects.reference(await client.get(kinds.NAMESPACES, namespace), "Namespace", "v1")
    async with recording(client) as recorder:
        recorder.event(about, NORMAL, "Seen", "")
        await kit.until(
            client,
            kinds.EVENTS,
            lambda all_: len(all_) == 1,
            namespace="default",
            field_selector=f"involvedObject.uid={about['uid']}",
        )


async def test_events_in_a_namespace_that_is_gone_stop_no_others(
    client: Client, namespace: str
) -> None:
    gone = {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": "no-such", "uid": "u"}
    here = {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": namespace, "uid": "v"}
    async with recording(client) as recorder:
        recorder.event(gone, NORMAL, "One", "lost")
        recorder.event(here, NORMAL, "Two", "kept")
        await kit.until(
            client,
            kinds.EVENTS,
            lambda all_: len(all_) == 1,
            namespace=namespace,
            field_selector="involvedObject.uid=v",
        )
