"""The admission policy about the webhook configuration: what the agent's token changes of it."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from tests.fleets import SOURCE
from tests.kit import Fleet
from tests.rights import DRY_RUN, holder, policy_refusal
from vnode.api import kinds
from vnode.api.objects import Object
from vnode.kube.client import JSON_PATCH, Client

NAME: Final = "vnode"
PATH: Final = kinds.MUTATING_WEBHOOKS.path(None, NAME)


@pytest.fixture
async def agent(fleet: Fleet, client: Client) -> AsyncIterator[Client]:
    """Yield a client with the agent's token."""
    async with await holder(fleet, SOURCE, client, "vnode", "vnode") as held:
        yield held


def webhooks(configuration: Object, **changes: Any) -> Object:
    """Build a patch that has the first webhook changed."""
    first, *others = configuration["webhooks"]
    return {"webhooks": [{**first, **changes}, *others]}


async def test_who_is_called_about_what_stays_as_it_was_installed(
    agent: Client, client: Client
) -> None:
    present = await client.get(kinds.MUTATING_WEBHOOKS, NAME)
    [first, *others] = present["webhooks"]
    service = first["clientConfig"]["service"]
    refused: list[Object] = [
        webhooks(present, rules=[{**first["rules"][0], "resources": ["*"]}]),
        webhooks(present, namespaceSelector={}),
        webhooks(present, matchConditions=[]),
        webhooks(present, failurePolicy="Ignore"),
        webhooks(present, clientConfig={"service": {**service, "namespace": "default"}}),
        webhooks(present, clientConfig={"url": "https://192.0.2.1/mutate--v1-pod"}),
        {"webhooks": others},
        {"webhooks": [*present["webhooks"], {**first, "name": "more.example.com"}]},
    ]
    for body in refused:
        why = await policy_refusal(agent, "PATCH", PATH, body)
        assert "the caBundle and the ends of paths only" in why


async def test_bundle_and_secret_are_the_agents_to_change(agent: Client) -> None:
    config = "/webhooks/0/clientConfig"
    patch: list[Object] = [
        {"op": "replace", "path": f"{config}/service/path", "value": "/mutate--v1-pod/other"},
        {"op": "add", "path": f"{config}/caBundle", "value": base64.b64encode(b"ca").decode()},
    ]
    await agent.request("PATCH", PATH, query=DRY_RUN, body=patch, content_type=JSON_PATCH)


async def test_no_owner_has_it_collected(agent: Client) -> None:
    """The garbage collector deletes what is owned by nothing that exists."""
    owner = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "name": "gone",
        "uid": "00000000-0000-0000-0000-000000000000",
    }
    for owners in ([owner], [{**owner, "apiVersion": "rbac.authorization.k8s.io/v1"}]):
        body = {"metadata": {"ownerReferences": owners}}
        assert "no owner" in await policy_refusal(agent, "PATCH", PATH, body)
