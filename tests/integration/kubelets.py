"""A virtual node without agents: a kubelet server in the test's own process, a Node in one cluster
that points to it, and pods in both clusters that are proxy and delegate of each other.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import trustme

from tests import certificates, kit
from tests.kit import Fleet, phase, until_one
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import NotFound
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.kube import endpoint
from vnode.kube.client import Client
from vnode.kube.endpoint import Endpoint
from vnode.kube.informer import Informer
from vnode.kubelet.server import KubeletServer
from vnode.runtime.certs.keypairs import Pair
from vnode.runtime.link import PARENT_UID_INDEX, Link
from vnode.runtime.link_health import LinkHealth
from vnode.runtime.links import Links

CONTAINER = "app"
_RUNNING = {
    "name": CONTAINER,
    "image": "none",
    "imageID": "",
    "ready": True,
    "restartCount": 0,
    "state": {"running": {}},
}


@dataclass
class Setting:
    """A running server, and everything around it."""

    fleet: Fleet
    server: KubeletServer
    source: Client
    target: Client
    link: Link
    address: str
    serving: asyncio.Task[None]

    @property
    def port(self) -> int:
        port = self.server.port_of(self.link.node_name)
        assert port is not None
        return port

    @asynccontextmanager
    async def pod(self) -> AsyncIterator[Object]:
        """Yield a proxy pod in the source; its delegate, `NAME-child`, runs in the target.

        No two have one name: kwok deletes by name, and can hit a later pod of that name.
        """
        name = f"p{os.urandom(3).hex()}"
        try:
            yield await self._running_pod(name)
        finally:
            for client, own in ((self.source, name), (self.target, f"{name}-child")):
                with suppress(NotFound):
                    await client.delete(kinds.PODS, own, "default", grace=0)

    async def _running_pod(self, name: str) -> Object:
        for client, node, own in (
            (self.target, "c2-node-0", f"{name}-child"),
            (self.source, self.link.node_name, name),
        ):
            await client.create(kinds.PODS, _pod(own, node), "default")

        running = {"phase": "Running", "containerStatuses": [_RUNNING]}
        proxy = await self.source.patch(
            kinds.PODS, name, {"status": running}, "default", subresource="status"
        )
        await until_one(
            self.target, kinds.PODS, f"{name}-child", "default", lambda o: phase(o) == "Running"
        )
        chaperon = {
            "metadata": {
                "name": f"{name}-child",
                "namespace": "default",
                "labels": {keys.PARENT_UID: objects.uid(proxy)},
            }
        }
        self.link.chaperons.store.put(chaperon)
        return proxy

    async def declare(self, *features: str) -> None:
        """Have the Node say what its kubelet can do."""
        body = {"status": {"declaredFeatures": list(features)}}
        await self.source.patch(kinds.NODES, self.link.node_name, body, subresource="status")

    async def kubectl(
        self, *words: str, cluster: str = "c1", stdin: bytes | None = None, spdy: bool = False
    ) -> tuple[int, bytes, bytes]:
        """Exit code, standard output, standard error."""
        process = await self.started(*words, cluster=cluster, spdy=spdy)
        async with asyncio.timeout(kit.PATIENCE):
            out, err = await process.communicate(stdin)

        assert process.returncode is not None
        return process.returncode, out, err

    async def started(
        self, *words: str, cluster: str = "c1", spdy: bool = False
    ) -> asyncio.subprocess.Process:
        """Return a kubectl that runs; what it prints can be read."""
        return await asyncio.create_subprocess_exec(
            *self.fleet.kubectl_command(cluster),
            *words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment(spdy=spdy),
        )


def environment(*, spdy: bool) -> dict[str, str]:
    """Return what makes kubectl speak SPDY, or WebSocket."""
    websockets = "false" if spdy else "true"
    return {
        **os.environ,
        "KUBECTL_REMOTE_COMMAND_WEBSOCKETS": websockets,
        "KUBECTL_PORT_FORWARD_WEBSOCKETS": websockets,
    }


def _pod(name: str, node: str) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {
            "nodeName": node,
            "tolerations": [{"operator": "Exists"}],
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "containers": [{"name": CONTAINER, "image": "none"}],
        },
    }


@asynccontextmanager
async def virtual_node(
    fleet: Fleet,
    name: str,
    *,
    target: Endpoint | None = None,
    client_ca_file: Path | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[Setting]:
    """Yield a virtual node in c1 for c2, served by this process."""
    there = target or endpoint.from_kubeconfig_file(fleet.kubeconfig("c2"))
    async with fleet.client("c1") as source, Client(there, name="c2") as remote:
        link = _link(name, remote)
        address = address_towards(source.endpoint.url)
        every = Links()
        every.add(link)

        async def find_pod(_node: str, namespace: str, pod: str) -> Object | None:
            try:
                return await source.get(kinds.PODS, pod, namespace)
            except NotFound:
                return None

        server = KubeletServer(
            every,
            source,
            address=address,
            certificate=_certificate(address),
            find_pod=find_pod,
            list_pods=lambda _node: [],
            first_port=0,
            client_ca_file=client_ca_file,
            grace=2,
            clock=clock,
        )
        async with _running(server, link.node_name) as serving:
            setting = Setting(fleet, server, source, remote, link, address, serving)
            await _register(setting)
            try:
                yield setting
            finally:
                await source.delete(kinds.NODES, link.node_name)


@asynccontextmanager
async def _running(server: KubeletServer, node: str) -> AsyncIterator[asyncio.Task[None]]:
    open_ = asyncio.Event()
    server.subscribe(lambda changed: open_.set() if changed == node else None)
    serving = asyncio.create_task(server.run(), name="kubelet-server")
    try:
        async with asyncio.timeout(kit.PATIENCE):
            await open_.wait()

        yield serving
    finally:
        serving.cancel()
        await asyncio.wait([serving])


def _link(name: str, client: Client) -> Link:
    chaperons = Informer(
        client,
        kinds.POD_CHAPERONS,
        indexes={PARENT_UID_INDEX: lambda o: [objects.labels(o)[keys.PARENT_UID]]},
    )
    chaperons.synced.set()  # those that a test puts there are all
    return Link(
        TargetKey("", name),
        client,
        chaperons=chaperons,
        summaries=Informer(client, kinds.CLUSTER_SUMMARIES),
        health=LinkHealth(True, "Ready", "", datetime.now(UTC)),
    )


async def _register(setting: Setting) -> None:
    node = {
        "metadata": {"name": setting.link.node_name},
        "spec": {"taints": [keys.PROVIDER_TAINT]},
    }
    await setting.source.create(kinds.NODES, node)
    status = {
        "addresses": [{"type": "InternalIP", "address": setting.address}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": setting.port}},
    }
    await setting.source.patch(
        kinds.NODES, setting.link.node_name, {"status": status}, subresource="status"
    )


def _certificate(address: str) -> Callable[[], Pair]:
    made = trustme.CA().issue_cert(address)
    chain = b"".join(pem.bytes() for pem in made.cert_chain_pems)
    return lambda: Pair(chain, made.private_key_pem.bytes())


def address_towards(url: str) -> str:
    """Return the address of this machine at which that API server can reach it."""
    where = urlsplit(url)
    with socket.create_connection((where.hostname, where.port)) as connection:
        return connection.getsockname()[0]


def with_token(base: Endpoint, token: str) -> Endpoint:
    """Return the same API server without our client certificate, as the owner of that token."""
    context = certificates.unverified()

    async def authorization() -> str | None:
        return f"Bearer {token}"

    return replace(base, ssl=context, authorization=authorization)
