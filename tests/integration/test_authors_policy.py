"""The admission policy about authors of AuthTokenRequests: it holds while no webhook is called."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import msgspec
import pytest

from tests import kit
from tests.rights import DRY_RUN, policy_refusal
from vnode.api import keys, kinds, objects
from vnode.api.authors import Author
from vnode.api.errors import Denied
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client

OTHERS: Final = (
    Author("root", groups=("system:masters",)),
    Author("system:admin"),
    Author('x","groups":["system:masters"],"'),
)
SELF: Final = Kind("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", False)


def request(author: Author | None = None) -> Object:
    """Build a request that says who has made it."""
    spec = {
        "targetRef": {"kind": "ClusterTarget", "name": "gpu"},
        "serviceAccountName": "queue",
        "serviceAccountNamespace": "queues",
    }
    said = {keys.AUTHOR: text(author)} if author else {}
    return {
        "apiVersion": kinds.AUTH_TOKEN_REQUESTS.api_version,
        "kind": kinds.AUTH_TOKEN_REQUESTS.kind,
        "metadata": {"generateName": "queue-", "annotations": said},
        "spec": spec,
    }


def text(author: Author) -> str:
    return msgspec.json.encode(author).decode()


@pytest.fixture
async def path(client: Client, namespace: str) -> AsyncIterator[str]:
    """Have no webhook called about requests of a namespace; yield their path."""
    present = await client.get(kinds.MUTATING_WEBHOOKS, "vnode")
    names = [webhook["name"] for webhook in present["webhooks"]]
    conditions = f"/webhooks/{names.index('authors.vnode.dev')}/matchConditions"
    left_out = {"name": "not-here", "expression": f"request.namespace != '{namespace}'"}
    added: list[Object] = [{"op": "add", "path": conditions, "value": [left_out]}]
    await client.json_patch(kinds.MUTATING_WEBHOOKS, "vnode", added)
    there = kinds.AUTH_TOKEN_REQUESTS.path(namespace)
    async with asyncio.timeout(kit.PATIENCE):
        while await is_called(client, there):  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.1)

    yield there
    removed: list[Object] = [{"op": "remove", "path": conditions}]
    await client.json_patch(kinds.MUTATING_WEBHOOKS, "vnode", removed)


async def is_called(client: Client, path: str) -> bool:
    """Tell whether the webhook is called about a request; nothing comes of that one."""
    try:
        made = await client.request("POST", path, query=DRY_RUN, body=request())
    except Denied:
        return True

    return keys.AUTHOR in objects.annotations(made)


async def test_nobody_is_the_author_of_what_another_one_creates(client: Client, path: str) -> None:
    review = await client.create(SELF, {"apiVersion": SELF.api_version, "kind": SELF.kind})
    me = msgspec.convert(objects.status(review)["userInfo"], Author)
    more = Author(me.username, me.uid, (*me.groups, "system:nodes"))
    scoped = Author(me.username, me.uid, me.groups, {**me.extra, "scopes": ("all",)})
    for author in (*OTHERS, more, scoped):
        why = await policy_refusal(client, "POST", path, request(author))
        assert "names another one than who creates" in why

    made = await client.request("POST", path, body=request(me))
    one = f"{path}/{objects.name(made)}"
    for said in (text(more), None):
        body = {"metadata": {"annotations": {keys.AUTHOR: said}}}
        assert "does not change" in await policy_refusal(client, "PATCH", one, body)

    await client.request("DELETE", one)
