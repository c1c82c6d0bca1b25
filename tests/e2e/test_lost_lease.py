"""Somebody else takes the Lease of an agent: it stops to write, and goes on to serve."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime

import aiohttp

from tests import certificates, kit
from tests.e2e import test_agent_endpoints as endpoints
from tests.e2e.agent_metrics import until_metric
from tests.e2e.own_targets import home, named, put_target
from tests.kit import Fleet
from vnode.api import keys, kinds, objects, webhook_paths
from vnode.api.clock import SystemClock
from vnode.api.errors import Conflict
from vnode.api.objects import Object
from vnode.kube import leases
from vnode.kube.client import Client
from vnode.runtime.leader import AGENT_LEASE
from vnode.runtime.supervisor import supervise

__all__ = ["home"]  # a fixture

Ask = Callable[[aiohttp.ClientSession], Awaitable[str]]

STRANGER = "stranger"
ENOUGH = 10  # requests of each kind: one a second without a leader, however busy the machine is
PAUSE = 0.02  # seconds between two requests of the stream


class Stream:
    """Requests to the webhook and the kubelet API, each on a connection of its own."""

    def __init__(self, fleet: Fleet, configuration: Object, node: Object, pod: str) -> None:
        self._webhook = webhook_paths.address_of(configuration["webhooks"][0]["clientConfig"])
        self._address = endpoints.address(fleet, "c1")
        self._trusting = endpoints.trusting(fleet, "c1")
        shown = certificates.kubelet_client(fleet.folder / "c1" / "pki")
        self._showing = shown.show(certificates.unverified())
        port = objects.status(node)["daemonEndpoints"]["kubeletEndpoint"]["Port"]
        self._kubelet = f"https://{self._address}:{port}"
        self._pod = pod
        self.answers: Counter[str] = Counter()

    @asynccontextmanager
    async def flowing(self) -> AsyncIterator[None]:
        """Ask on and on within the block; what went wrong is counted."""
        connector = aiohttp.TCPConnector(force_close=True)
        async with aiohttp.ClientSession(connector=connector) as session, supervise() as tasks:
            tasks.start(self._ask(session, "webhook", self._admit), "admit")
            tasks.start(self._ask(session, "logs", self._logs), "logs")
            yield

    async def _ask(self, session: aiohttp.ClientSession, kind: str, ask: Ask) -> None:
        while True:
            try:
                answer = await ask(session)
            except (aiohttp.ClientError, OSError) as error:
                answer = f"{kind}: {error!r}"

            self.answers[answer] += 1
            await asyncio.sleep(PAUSE)

    async def _admit(self, session: aiohttp.ClientSession) -> str:
        body = {"request": {"uid": "u", "namespace": "default", "object": kit.pod("never-made")}}
        async with session.post(self._webhook, json=body, ssl=self._trusting) as answer:
            return f"admitted: {(await answer.json())['response']['allowed']}"

    async def _logs(self, session: aiohttp.ClientSession) -> str:
        url = f"{self._kubelet}/containerLogs/default/{self._pod}/main"
        async with session.get(url, ssl=self._showing) as answer:
            return f"logged: {'hello from a pod' in await answer.text()}"


async def take_lease(source: Client) -> None:
    """Take the agent's Lease, as another agent does that thinks this one is gone."""
    while True:
        lease = await source.get(kinds.LEASES, AGENT_LEASE, "vnode")
        body = leases.takeover(lease, STRANGER, 9, SystemClock().now())
        try:
            await source.patch(kinds.LEASES, AGENT_LEASE, body, "vnode")
        except Conflict:  # the agent, which is not gone, has just renewed it
            continue

        return


async def until_held(source: Client, by_stranger: bool) -> Object:
    return await kit.until_one(
        source,
        kinds.LEASES,
        AGENT_LEASE,
        "vnode",
        lambda lease: (objects.spec(lease).get("holderIdentity") == STRANGER) == by_stranger,
    )


def written_at(target: Object) -> datetime:
    """Return when the status of a Target was last written, to the second."""
    fields = objects.metadata(target)["managedFields"]
    entry = next(entry for entry in fields if entry.get("subresource") == "status")
    return datetime.fromisoformat(entry["time"])


async def test_an_agent_that_loses_its_lease_goes_on_to_serve_and_writes_nothing_until_it_leads(
    fleet: Fleet, source: Client, home: str
) -> None:
    await source.create(kinds.PODS, kit.pod("before"), "default")
    pod = await kit.until_running(source, "before")
    node = await source.get(kinds.NODES, objects.spec(pod)["nodeName"])
    configuration = await source.get(kinds.MUTATING_WEBHOOKS, "vnode")
    stream = Stream(fleet, configuration, node, "before")
    async with stream.flowing():
        await take_lease(source)
        await until_metric(fleet, "vnode_leader 0.0")
        await source.create(kinds.PODS, kit.pod("between"), "default")
        await put_target(source, home, named())
        waiting = await source.get(kinds.PODS, "between", "default")
        assert objects.spec(waiting)["schedulerName"] == keys.PROXY_SCHEDULER
        assert "hello" in fleet.kubectl("c1", "logs", "before")

        lease = await until_held(source, by_stranger=False)
        led = datetime.fromisoformat(objects.spec(lease)["acquireTime"]).replace(microsecond=0)
        await kit.until_running(source, "between")
        target = await kit.until_one(
            source,
            kinds.TARGETS,
            "bad",
            home,
            lambda o: (objects.condition(o, "Ready") or {}).get("reason") == "Invalid",
        )

    assert set(stream.answers) == {"admitted: True", "logged: True"}, stream.answers
    assert min(stream.answers.values()) > ENOUGH
    assert written_at(target) >= led
    await source.delete(kinds.PODS, "before", "default")
    await kit.until_gone(source, kinds.PODS, "default", field_selector="metadata.name=before")
