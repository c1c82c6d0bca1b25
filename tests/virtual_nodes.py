"""A virtual node whose target is whatever server a test makes of it; everybody is let in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

from aiohttp import web
from aiohttp.test_utils import TestServer

from tests import answering
from tests.answering import Answer
from vnode.api import keys
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.kube.store import Store
from vnode.kubelet.auth.authentication import UserInfo
from vnode.kubelet.auth.gate import Gate
from vnode.kubelet.delegates import ServedNode
from vnode.kubelet.routes import Routes
from vnode.kubelet.streams.disconnects import DisconnectWatch
from vnode.kubelet.streams.routes import Streams
from vnode.runtime.link import PARENT_UID_INDEX, Link
from vnode.runtime.link_health import LinkHealth
from vnode.runtime.links import Links

TARGET = TargetKey("default", "c2")
POD: Object = {
    "metadata": {"name": "web", "namespace": "default", "uid": "u"},
    "spec": {"nodeName": TARGET.node_name, "containers": [{"name": "main"}]},
}
CHAPERON: Object = {
    "metadata": {"name": "web-abcde", "namespace": "default", "labels": {keys.PARENT_UID: "u"}}
}


class Open:
    """A gate that lets everybody in."""

    async def check(self, _node: str, _request: Any) -> UserInfo:
        """Allow the request, whoever sends it."""
        return UserInfo("anybody")


async def find(_node: str, _namespace: str, _name: str) -> Object | None:
    """Return the one pod that there is."""
    return POD


@asynccontextmanager
async def node(
    answer: Answer,
    chaperon: Object = CHAPERON,
    pods: Sequence[Object] = (POD,),
    authorization: Callable[[], Awaitable[str | None]] | None = None,
) -> AsyncIterator[TestServer]:
    """Yield a virtual node with these pods; its target has `chaperon` and answers with `answer`."""
    async with answering.client(answer, "c2") as client:
        if authorization is not None:
            client.take_over(authorization)

        async with node_of(client, chaperon, pods) as served:
            yield served


@asynccontextmanager
async def node_of(
    client: Client, chaperon: Object = CHAPERON, pods: Sequence[Object] = (POD,)
) -> AsyncIterator[TestServer]:
    """Yield a virtual node with these pods, whose target is behind the client."""
    async with AsyncExitStack() as stack:
        disconnects = DisconnectWatch()
        stack.callback(disconnects.close)
        served = TestServer(routes_of(client, disconnects, chaperon, pods).application())
        await served.start_server()
        stack.push_async_callback(served.close)
        yield served


def routes_of(
    client: Client,
    disconnects: DisconnectWatch,
    chaperon: Object = CHAPERON,
    pods: Sequence[Object] = (POD,),
    on_authorized: Callable[[web.Request], None] = lambda _request: None,
) -> Routes:
    """Make the routes of such a node."""
    store = Store({PARENT_UID_INDEX: lambda _chaperon: "u"})
    store.put(chaperon)
    synced = asyncio.Event()
    synced.set()
    chaperons = cast("Informer", SimpleNamespace(store=store, synced=synced))
    health = LinkHealth(True, "Ready", "", datetime.now(UTC))
    links = Links()
    links.add(Link(TARGET, client, chaperons=chaperons, summaries=chaperons, health=health))
    virtual = ServedNode(TARGET.node_name, links, find, lambda _node: list(pods))
    streams = Streams(disconnects)
    return Routes(virtual, cast("Gate", Open()), streams, on_authorized=on_authorized)
