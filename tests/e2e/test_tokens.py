"""Tokens of the source's service accounts, in a target that is given them."""

from __future__ import annotations

import asyncio
import base64
import itertools
from typing import Any
from urllib.parse import SplitResult, urlsplit

from tests import kit
from tests.e2e import own_targets as own
from tests.e2e.own_targets import home, shared
from tests.kit import Fleet
from vnode.api import keys, kinds, names, objects
from vnode.api.objects import Object
from vnode.cli import kubeconfigs
from vnode.following.copies import TOKEN_TYPE
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


async def asks(fleet: Fleet, source: Client, namespace: str) -> SplitResult:
    """A Target that asks for tokens; where the source's API server is."""
    done = own.connect(fleet, namespace, "c2")
    assert not done.code, done.err
    await own.assert_connects(source, namespace)
    reach, _name = kubeconfigs.read(fleet.kubeconfig("c1"))
    address = urlsplit(reach.server)
    await ask(source, namespace, f"source={address.hostname}:{address.port}")
    return address


async def ask(source: Client, namespace: str, text: str | None) -> None:
    body = {"metadata": {"annotations": {keys.TOKENS: text}}}
    await source.patch(kinds.TARGETS, "bad", body, namespace)


def grant(fleet: Fleet, namespace: str) -> None:
    """Only in this namespace: a right to make tokens is a strong one."""
    words = ("create", "rolebinding", MINTER, f"--clusterrole={MINTER}")
    fleet.kubectl("c1", "-n", namespace, *words, "--serviceaccount=vnode:vnode")


async def test_a_target_is_given_a_token_of_the_source_that_lives_as_long_as_its_pod(
    fleet: Fleet, source: Client, c2: Client, shared: str
) -> None:
    address = await asks(fleet, source, shared)
    await source.create(kinds.PODS, kit.pod("web"), shared)
    await kit.until_one(
        *(source, kinds.PODS, "web", shared),
        lambda pod: f"--clusterrole={MINTER}" in str(objects.condition(pod, "PodScheduled")),
        seconds=60,
    )
    assert not await c2.list(kinds.SECRETS, shared, label_selector=keys.TOKEN)
    await source.delete(kinds.PODS, "web", shared)
    await kit.until_gone(source, kinds.PODS, shared)

    grant(fleet, shared)
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


async def test_a_target_that_no_longer_asks_keeps_what_a_pod_has_until_that_ends(
    fleet: Fleet, source: Client, c2: Client, shared: str
) -> None:
    await asks(fleet, source, shared)
    grant(fleet, shared)
    await source.create(kinds.PODS, kit.pod("early"), shared)
    early = await kit.until_one(
        *(source, kinds.PODS, "early", shared), lambda pod: kit.phase(pod) == "Running"
    )
    await ask(source, shared, None)

    # One that is sent without: the agent has heard.
    async with asyncio.timeout(30):
        for number in itertools.count():
            await source.create(kinds.PODS, kit.pod(f"late-{number}"), shared)
            late = await kit.until_one(
                *(source, kinds.PODS, f"late-{number}", shared),
                lambda pod: kit.phase(pod) == "Running",
            )
            delegate = names.chaperon(objects.name(late), objects.uid(late))
            if "SERVICE_HOST" not in str(await c2.get(kinds.PODS, delegate, shared)):
                break

    await c2.get(kinds.SECRETS, names.token_secret("early", objects.uid(early)), shared)
    await source.request("DELETE", kinds.PODS.path(shared))
    await kit.until_gone(c2, kinds.SECRETS, shared, label_selector=keys.TOKEN, seconds=30)


def mounting(name: str, secret: str) -> Object:
    """A pod with a Secret where programs look for the token of their account."""
    body = kit.pod(name, volumes=[{"name": "own", "secret": {"secretName": secret}}])
    mount = {"name": "own", "mountPath": keys.SERVICE_ACCOUNT_MOUNT}
    body["spec"]["containers"][0]["volumeMounts"] = [mount]
    return body


async def test_what_a_pod_mounts_in_place_of_its_token_is_never_exchanged_for_that(
    fleet: Fleet, source: Client, c2: Client, shared: str
) -> None:
    await asks(fleet, source, shared)
    grant(fleet, shared)
    await source.create(kinds.SECRETS, {"metadata": {"name": "mine"}, "data": {}}, shared)
    await source.create(kinds.SERVICE_ACCOUNTS, {"metadata": {"name": "executor"}}, shared)
    annotations = {"kubernetes.io/service-account.name": "executor"}
    token = {"metadata": {"name": "executor", "annotations": annotations}, "type": TOKEN_TYPE}
    await source.create(kinds.SECRETS, token, shared)

    await source.create(kinds.PODS, mounting("other", "executor"), shared)
    reason = "Secret executor is the token of service account executor"
    await kit.until_one(
        *(source, kinds.PODS, "other", shared),
        lambda pod: reason in str(objects.condition(pod, "PodScheduled")),
    )
    assert not await c2.list(kinds.PODS, shared)

    await source.create(kinds.PODS, mounting("own", "mine"), shared)
    pod = await kit.until_one(
        *(source, kinds.PODS, "own", shared), lambda pod: kit.phase(pod) == "Running"
    )
    delegate = await c2.get(kinds.PODS, names.chaperon("own", objects.uid(pod)), shared)
    (volume,) = objects.spec(delegate)["volumes"]
    assert volume["secret"]["secretName"] == "mine"
    await source.request("DELETE", kinds.PODS.path(shared))
    await kit.until_gone(source, kinds.PODS, shared)
