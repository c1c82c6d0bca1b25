"""Terms of a leader: what begins with one ends with it, and leaves nothing in its replica."""

from __future__ import annotations

import asyncio
import base64
import gc
import logging
import uuid
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from tests import background, kit
from tests.fleets import SOURCE
from tests.kit import Fleet
from vnode.agent import parts
from vnode.agent.config import AgentConfig
from vnode.agent.kubelet_api import KubeletApi
from vnode.agent.shared import AgentOptions, Shared
from vnode.agent.term import Term
from vnode.api import keys, kinds, objects
from vnode.api.errors import NotFound
from vnode.api.identity import Identity
from vnode.api.listeners import Listeners, subscription_scope
from vnode.api.objects import Object
from vnode.kube import informer
from vnode.kube.client import Client
from vnode.kube.events import EventRecorder
from vnode.runtime.certs.authority import Authority
from vnode.runtime.health import ProcessHealth
from vnode.runtime.link import Link
from vnode.runtime.supervisor import supervise

OFF = {
    kinds.TARGET_SETS,
    kinds.CLUSTER_TARGET_SETS,
    kinds.AUTH_TOKEN_REQUESTS,
    kinds.MANAGED_CLUSTERS,
}
"""What the agent's configuration has to turn on. Profiles and decisions are watched as soon as an
object names one, and other tests leave such objects."""


@pytest.fixture
async def identity(client: Client) -> Identity:
    uid = objects.uid(await client.get(kinds.NAMESPACES, "kube-system"))
    return Identity(f"terms-{uuid.uuid4().hex[:8]}", uid)


@asynccontextmanager
async def replica(client: Client, identity: Identity, home: str) -> AsyncIterator[Shared]:
    """Run what all replicas of an agent run, except for their servers.

    The agent's own namespace is `home`.
    """
    options = AgentOptions(home, "127.0.0.1", AgentConfig(), None, "test")
    shared = Shared(client, identity, options, ProcessHealth())
    async with supervise() as tasks:
        await parts.start(shared.watches(), tasks)
        await shared.targets.wait_synced()
        await shared.proxies.synced.wait()
        await parts.start(shared.connecting(), tasks)
        await shared.chaperons.synced.wait()
        await shared.delegates.synced.wait()
        yield shared


@asynccontextmanager
async def connected(fleet: Fleet, client: Client, shared: Shared, home: str) -> AsyncIterator[Link]:
    """Yield a Target in that namespace, by which the cluster is its own, as an administrator."""
    added: asyncio.Queue[Link] = asyncio.Queue()
    shared.links.subscribe(added.put_nowait, lambda _link: None)
    data = {"config": base64.b64encode(fleet.kubeconfig(SOURCE).read_bytes()).decode()}
    secret = {"metadata": {"name": "kubeconfig", "namespace": home}, "data": data}
    await client.create(kinds.SECRETS, secret)
    metadata = {"name": "own", "namespace": home}
    spec = {"kubeconfigSecret": {"name": "kubeconfig"}}
    await client.create(kinds.TARGETS, {"metadata": metadata, "spec": spec})
    async with asyncio.timeout(kit.PATIENCE):
        while (link := await added.get()).target.namespace != home:
            pass  # another test's

        await link.chaperons.synced.wait()

    try:
        yield link
    finally:
        await client.delete(kinds.SECRETS, "kubeconfig", home)
        with suppress(NotFound):
            await client.delete(kinds.TARGETS, "own", home)


async def kubelet_api(client: Client, shared: Shared, home: str) -> KubeletApi:
    """Return the kubelet API of a replica, with a certificate authority in its own namespace."""
    authority = Authority(client, home)
    await authority.load()
    return KubeletApi(shared, authority, EventRecorder(client, "vnode"))


def listeners(shared: Shared, link: Link) -> dict[str, int]:
    """Return how many listen to what outlives a term."""
    lists: dict[str, Listeners[...]] = {
        "links": shared.links._added,
        "links that go": shared.links._removed,
        "health": link._listeners,
        "scrapes": shared.health._gauges,
    }
    informers = (
        *(shared.proxies, shared.chaperons, shared.delegates, shared.nodes),
        *(*shared.targets.informers, link.chaperons, link.summaries),
    )
    lists |= {f"{number} {i.kind.plural}": i._handlers for number, i in enumerate(informers)}
    return {name: len(each) for name, each in lists.items()}


async def until_all_listen(shared: Shared, link: Link, before: dict[str, int]) -> None:
    """Wait until each of these has more listeners than before.

    Raise AssertionError if one has not in time.
    """
    quiet = list(before)
    try:
        async with asyncio.timeout(kit.PATIENCE):
            while True:
                now = listeners(shared, link)
                quiet = [name for name, count in now.items() if count <= before[name]]
                if not quiet:
                    return

                await asyncio.sleep(0.05)  # to be listened to is no event
    except TimeoutError:
        raise AssertionError(f"nobody listens to {quiet}") from None


async def until_collected(gone: Callable[[], object]) -> None:
    """Wait until nothing keeps an object: requests that were cut short need a moment to end."""
    async with asyncio.timeout(kit.PATIENCE):
        while True:
            gc.collect()
            if gone() is None:
                return

            await asyncio.sleep(0.05)  # to be collected is no event


def chaperon(name: str, identity: Identity, link: Link, **metadata: object) -> Object:
    """Return a chaperon that this cluster has made by way of the link."""
    annotations = {keys.PARENT_CLUSTER_UID: identity.uid, keys.TARGET: str(link.target)}
    labels = {keys.PARENT_CLUSTER_NAME: identity.name, keys.PARENT_UID: "u"}
    return {
        "metadata": {"name": name, "labels": labels, "annotations": annotations, **metadata},
        "spec": {"containers": [{"name": "main", "image": "busybox"}]},
    }


async def test_a_term_that_ends_leaves_nothing_behind_and_another_does_all_again(
    fleet: Fleet,
    client: Client,
    identity: Identity,
    namespace: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    # A captured record holds its error, hence the frames that it passed, hence the term.
    caplog.set_level(logging.CRITICAL, "vnode")
    async with (
        replica(client, identity, namespace) as shared,
        connected(fleet, client, shared, namespace) as link,
    ):
        kubelet = await kubelet_api(client, shared, namespace)
        before = listeners(shared, link)
        for _term in range(2):
            with subscription_scope():
                term = Term(shared, kubelet)
                async with background.running(term.run()):
                    await kit.until_one(client, kinds.NODES, link.node_name, "", bool)
                    await until_all_listen(shared, link, before)

            assert listeners(shared, link) == before
            gone = weakref.ref(term)
            del term
            await until_collected(gone)
            await client.delete(kinds.NODES, link.node_name)


async def test_what_is_off_by_default_is_not_watched(
    fleet: Fleet, client: Client, identity: Identity, namespace: str
) -> None:
    async with (
        replica(client, identity, namespace) as shared,
        connected(fleet, client, shared, namespace) as link,
    ):
        kubelet = await kubelet_api(client, shared, namespace)
        before = listeners(shared, link)
        with subscription_scope():
            async with background.running(Term(shared, kubelet).run()):
                await until_all_listen(shared, link, before)
                watched = {each.kind for each in informer._running}

        assert kinds.PLACEMENT_POLICIES in watched
        assert watched.isdisjoint(OFF)


async def test_a_farewell_ends_with_the_term_and_is_said_in_the_next(
    fleet: Fleet, client: Client, identity: Identity, namespace: str
) -> None:
    async with (
        replica(client, identity, namespace) as shared,
        connected(fleet, client, shared, namespace) as link,
    ):
        leaving, left = asyncio.Event(), asyncio.Event()
        shared.links.subscribe(lambda _link: None, lambda _link: left.set())
        link.on_health(lambda: leaving.set() if link.health.reason == "Leaving" else None)
        held = chaperon("held", identity, link, finalizers=[keys.DELEGATE_FINALIZER])
        await client.create(kinds.POD_CHAPERONS, held, namespace)
        events = EventRecorder(client, "vnode")
        leading = asyncio.create_task(shared.connections.lead(events))
        await client.delete(kinds.TARGETS, "own", namespace)
        async with asyncio.timeout(kit.PATIENCE):
            await leaving.wait()

        assert not left.is_set()
        leading.cancel()
        async with asyncio.timeout(6):  # by itself it would go on for ten seconds
            await asyncio.wait([leading])
            assert left.is_set()

        body = {"metadata": {"finalizers": None}}
        await client.patch(kinds.POD_CHAPERONS, "held", body, namespace)
        late = chaperon("late", identity, link)
        await client.create(kinds.POD_CHAPERONS, late, namespace)
        async with background.running(shared.connections.lead(events)):
            await kit.until_gone(client, kinds.POD_CHAPERONS, namespace)
