"""API servers show the webhook the pods of which the agent thinks that it must see them, no others.

The conditions are those of the manifest; the namespace, and what answers, are the test's.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import secrets
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from aiohttp import web

from tests import background, kit
from tests.integration.served_webhook import own_address
from tests.kit import Fleet
from vnode.api import keys, kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.errors import ApiError
from vnode.api.objects import Object
from vnode.cli import manifests
from vnode.kube.client import Client
from vnode.runtime.certs.authority import Authority
from vnode.runtime.certs.issued import ServingCertificate
from vnode.runtime.certs.webhook_bundle import TrustedWebhook
from vnode.runtime.serving import Server
from vnode.webhook import election

KINDS = ["ReplicaSet", "DaemonSet", "Node", "PodChaperon", "Job"]
ANNOTATIONS = [
    {},
    {keys.ELECT: ""},
    {keys.NO_ELECT: ""},
    {keys.FORWARD: ""},
    {"example.com/elect": "", "multicluster.admiralty.io/elec": ""},
]
AFFINITIES: list[Object | None] = [
    None,
    {},
    {"podAntiAffinity": {}},
    {"nodeAffinity": {}},
    {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
]
SELECTORS: list[Object | None] = [
    None,
    {},
    {"app": "x"},
    {"kubernetes.io/hostname": "admiralty-x"},
]
TOLERATIONS: list[list[Object] | None] = [
    None,
    [],
    [{"operator": "Exists"}],
    [{"key": "", "operator": "Exists", "effect": "NoExecute"}],
    [{"key": "a", "operator": "Exists"}, {"key": "b", "value": "c"}],
]


def owner(kind: str) -> Object:
    return {"apiVersion": "example.com/v1", "kind": kind, "name": "o", "uid": "u"}


def forms() -> list[Object]:
    """Return pods that differ in one thing from a plain one or a delegate, and some others."""
    dice = random.Random(29)
    owning = [[], *([kind] for kind in KINDS), ["PodChaperon", "ReplicaSet"]]
    choices: tuple[list[Any], ...] = (
        owning,
        ANNOTATIONS,
        AFFINITIES,
        SELECTORS,
        TOLERATIONS,
        [None, "", "n1"],
    )
    plain = [options[0] for options in choices]
    drawn: list[list[Any]] = []
    for base in (plain, [["PodChaperon"], *plain[1:]]):
        for index, options in enumerate(choices):
            drawn += [[*base[:index], option, *base[index + 1 :]] for option in options]

    drawn += [[dice.choice(options) for options in choices] for _ in range(150)]
    return [pod(f"pod-{number}", *each) for number, each in enumerate(drawn)]


def pod(
    name: str,
    kinds_of_owners: list[str],
    annotations: dict[str, str],
    affinity: Object | None,
    selector: Object | None,
    tolerations: list[Object] | None,
    node: str | None,
) -> Object:
    made = kit.pod(name, annotations=annotations)
    if kinds_of_owners:
        made["metadata"]["ownerReferences"] = [owner(kind) for kind in kinds_of_owners]

    fields = {
        "affinity": affinity,
        "nodeSelector": selector,
        "tolerations": tolerations,
        "nodeName": node,
    }
    made["spec"] |= {key: value for key, value in fields.items() if value is not None}
    return {**made, "apiVersion": "v1", "kind": "Pod"}


class Shown:
    """The pods that an API server has shown, by name."""

    def __init__(self) -> None:
        self.pods: dict[str, Object] = {}

    async def answer(self, request: web.Request) -> web.Response:
        review = msgspec.json.decode(await request.read())
        seen = review["request"]["object"]
        self.pods[objects.name(seen)] = seen
        review["response"] = {"uid": review["request"]["uid"], "allowed": True}
        return web.Response(body=msgspec.json.encode(review), content_type="application/json")


@pytest.fixture
async def shown(bare_fleet: Fleet) -> AsyncIterator[tuple[Client, str, Shown]]:
    """Yield a client, a namespace whose pods are shown as the manifest says, and what was shown."""
    name = f"conditions-{secrets.token_hex(4)}"
    async with bare_fleet.client("c1") as client:
        await client.create(kinds.NAMESPACES, {"metadata": {"name": name}})
        await client.apply(
            kinds.SERVICE_ACCOUNTS, {"metadata": {"name": "default", "namespace": name}}
        )
        found, address = Shown(), own_address(client.endpoint.url)
        authority = Authority(client, name)
        await authority.load()
        certificate = ServingCertificate(authority, "webhook", (address,))
        app = web.Application()
        app.add_routes([web.post("/{path:.*}", found.answer)])
        server = Server("webhook", app, address, 0, ssl_context=await certificate.start())
        async with background.running(server.run()):
            await server.ready.wait()
            hook = manifests.webhook("vnode", f"https://{address}:{server.port}")
            hook["metadata"]["name"] = name
            pods = {**hook["webhooks"][0], "name": "pods.vnode.dev"}
            label = {"kubernetes.io/metadata.name": name}
            pods["namespaceSelector"] = {"matchLabels": label}
            await client.create(kinds.MUTATING_WEBHOOKS, {**hook, "webhooks": [pods]})
            keeper = TrustedWebhook(client, authority, lambda: bytes(32), SystemClock(), name)
            try:
                async with background.running(keeper.run()):
                    await keeper.trusted.wait()
                    yield client, name, found
            finally:
                await client.delete(kinds.MUTATING_WEBHOOKS, name)
                await client.delete(kinds.NAMESPACES, name)


async def create(client: Client, namespace: str, body: Object) -> None:
    """Create a pod by a dry run; an API server may refuse it after the webhook has seen it."""
    try:
        await client.request("POST", kinds.PODS.path(namespace), query={"dryRun": "All"}, body=body)
    except ApiError:
        return


async def test_the_conditions_of_the_manifest_say_what_the_agent_decides(
    shown: tuple[Client, str, Shown],
) -> None:
    client, namespace, found = shown
    async with asyncio.timeout(kit.PATIENCE):
        for number in itertools.count():  # API servers read configurations with a delay
            plain = pod(f"probe-{number}", [], {}, None, None, None, None)
            await create(client, namespace, plain)
            if found.pods:
                break

            await asyncio.sleep(0.1)

    made = forms()
    for each in made:
        await create(client, namespace, each)

    wanted = {objects.name(each) for each in made if not election.is_left_alone(each)}
    seen = {name for name in found.pods if name.startswith("pod-")}
    assert seen == wanted
    assert 50 < len(wanted) < len(made) - 50
    # As the API server shows them, with its defaults, they are judged as they were sent.
    assert not any(election.is_left_alone(each) for each in found.pods.values())
