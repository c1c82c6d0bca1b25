"""Only who may read the webhook configuration can have an agent review anything."""

from __future__ import annotations

from typing import Final

import aiohttp
import pytest

from tests import kit
from tests.e2e import test_agent_endpoints as endpoints
from tests.kit import Fleet
from vnode.api import kinds, webhook_paths
from vnode.api.objects import Object
from vnode.kube.client import Client

ROOT: Final = {"username": "root", "groups": ["system:masters"]}


def review(path: str) -> Object:
    """Build what a stranger would have signed."""
    kind, obj = "Pod", kit.pod("stranger")
    if path == webhook_paths.AUTHORS:
        kind, obj = "AuthTokenRequest", {"metadata": {"name": "stranger"}, "spec": {}}

    request = {
        "uid": "u",
        "operation": "CREATE",
        "namespace": "default",
        "userInfo": ROOT,
        "object": {"kind": kind, **obj},
    }
    return {"request": request}


def plain(fleet: Fleet) -> str:
    return f"https://{endpoints.address(fleet, 'c1')}:9443"


@pytest.mark.parametrize("path", webhook_paths.PLAIN)
async def test_who_does_not_know_the_secret_finds_no_webhook(
    fleet: Fleet, source: Client, path: str
) -> None:
    context = endpoints.trusting(fleet, "c1")
    configuration = await source.get(kinds.MUTATING_WEBHOOKS, "vnode")
    hooks = (hook["clientConfig"] for hook in configuration["webhooks"])
    [known] = [each for hook in hooks if path in (each := webhook_paths.address_of(hook))]
    async with aiohttp.ClientSession() as session:
        for ending in ("", "/", "/" + "0" * 40, f"/{known[-40:-1]}0x"):
            url = plain(fleet) + path + ending
            async with session.post(url, json=review(path), ssl=context) as answer:
                assert answer.status == 404, ending

        async with session.post(known, json=review(path), ssl=context) as answer:
            assert answer.status == 200
            assert "allowed" in (await answer.json())["response"]
