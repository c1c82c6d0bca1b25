"""Tokens of the source's service accounts, in a target that is given them."""

from __future__ import annotations

import asyncio
import base64
from typing import Any
from urllib.parse import urlsplit

from tests import kit
from tests.e2e import own_targets as own
from tests.e2e.own_targets import home, shared
from tests.kit import Fleet
from vnode.api import keys, kinds, names, objects
from vnode.api.objects import Object
from vnode.cli import kubeconfigs
from vnode.kube.client import Client

__all__ = ["home", "shared"]

REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
MINTER = "vnode-token-minter"


async def review(client: Client, token: str, audience: str = "") -> Any:
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": token, **({"audiences": [audience]} if audience else {})},
    }
    answer: Object = await client.request("POST", REVIEWS, body=body)
    return answer["status"]


def held(secret: Object, name: str) -> str:
    return base64.b64decode(secret["data"][name]).decode()


async def test_a_target_is_given_a_token_of_the_source_that_lives_as_long_as_its_pod(
    fleet: Fleet, source: Client, c2: Client, shared: str
) -> None:
    done = own.connect(fleet, shared, "c2")
    assert not done.code, done.err
    await own.assert_connects(source, shared)
    reach, _name = kubeconfigs.read(fleet.kubeconfig("c1"))
    address = urlsplit(reach.server)
    notes = {keys.TOKENS: f"source={address.hostname}:{address.port}"}
    await source.patch(kinds.TARGETS, "bad", {"metadata": {"annotations": notes}}, shared)

    await source.create(kinds.PODS, kit.pod("web"), shared)
    await kit.until_one(
        *(source, kinds.PODS, "web", shared),
        lambda pod: f"--clusterrole={MINTER}" in str(objects.condition(pod, "PodScheduled")),
        seconds=60,
    )
    assert not await c2.list(kinds.SECRETS, shared, label_selector=keys.TOKEN)
    await source.delete(kinds.PODS, "web", shared)
    await kit.until_gone(source, kinds.PODS, shared)

    # Only in this namespace: a right to make tokens is a strong one.
    granted = ("create", "rolebinding", MINTER, f"--clusterrole={MINTER}")
    fleet.kubectl("c1", "-n", shared, *granted, "--serviceaccount=vnode:vnode")
    projected = {"path": "t", "audience": "vault.example.com", "expirationSeconds": 600}
    volumes = [
        {"name": "own", "projected": {"sources": [{"serviceAccountToken": projected}]}},
    ]
    await source.create(kinds.PODS, kit.pod("web", volumes=volumes), shared)
    pod = await kit.until_one(
        *(source, kinds.PODS, "web", shared), lambda pod: kit.phase(pod) == "Running"
    )
    name = names.token_secret("web", objects.uid(pod))
    secret = await c2.get(kinds.SECRETS, name, shared)
    token = held(secret, "token")
    status = await review(source, token)
    assert status["authenticated"]
    assert status["user"]["username"] == f"system:serviceaccount:{shared}:default"
    extra = status["user"]["extra"]
    assert extra["authentication.kubernetes.io/pod-uid"] == [objects.uid(pod)]
    assert not (await review(c2, token)).get("authenticated")
    assert held(secret, "namespace") == shared
    root = await source.get(kinds.CONFIG_MAPS, "kube-root-ca.crt", shared)
    assert held(secret, "ca.crt") == root["data"]["ca.crt"]

    delegate = await c2.get(kinds.PODS, names.chaperon("web", objects.uid(pod)), shared)
    spec = objects.spec(delegate)
    (volume,) = [v for v in spec["volumes"] if "secret" in v]
    assert volume["secret"]["secretName"] == name
    (volume,) = [v for v in spec["volumes"] if "projected" in v]
    (taken,) = volume["projected"]["sources"]
    assert (taken["secret"]["name"], taken["secret"]["items"][0]["path"]) == (name, "t")
    another = held(secret, taken["secret"]["items"][0]["key"])
    assert not (await review(source, another)).get("authenticated")
    status = await review(source, another, audience="vault.example.com")
    assert status["authenticated"]
    assert status["audiences"] == ["vault.example.com"]
    (container,) = spec["containers"]
    env = {entry["name"]: entry.get("value") for entry in container["env"]}
    assert env["KUBERNETES_SERVICE_HOST"] == address.hostname
    assert env["KUBERNETES_SERVICE_PORT"] == str(address.port)

    await source.delete(kinds.PODS, "web", shared)
    await kit.until_gone(source, kinds.PODS, shared)
    # An API server remembers for 10 s what it has found; nothing tells when it has forgotten.
    async with asyncio.timeout(30):
        while (await review(source, token)).get("authenticated"):  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.5)

    await kit.until_gone(c2, kinds.SECRETS, shared, seconds=30)
