"""Tokens of the source's service accounts, in a target that is given them."""

from __future__ import annotations

import asyncio
import base64
import itertools
import re
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
    """Connect c2 by a Target that asks for tokens from its first connection.

    Return the address of the source's API server.
    """
    reach, _name = kubeconfigs.read(fleet.kubeconfig("c1"))
    address = urlsplit(reach.server)
    annotations = {keys.TOKENS: f"source={address.hostname}:{address.port}"}
    metadata = {"name": "bad", "namespace": namespace, "annotations": annotations}
    spec = own.named("vnode-target-bad")
    await source.create(kinds.TARGETS, {"metadata": metadata, "spec": spec})
    done = own.connect(fleet, namespace, "c2")
    assert not done.code, done.err
    await own.assert_connects(source, namespace)
    return address


async def ask(source: Client, namespace: str, text: str | None) -> None:
    body = {"metadata": {"annotations": {keys.TOKENS: text}}}
    await source.patch(kinds.TARGETS, "bad", body, namespace)


def grant(fleet: Fleet, namespace: str) -> None:
    """Let the agent make tokens, but only in this namespace: that right is a strong one."""
    words = ("create", "rolebinding", MINTER, f"--clusterrole={MINTER}")
    fleet.kubectl("c1", "-n", namespace, *words, "--serviceaccount=vnode:vnode")


def projected_by(prefix: str, spec: Object) -> list[Object]:
    """Return the sources of the one projected volume whose name begins so."""
    (volume,) = [v for v in spec["volumes"] if v["name"].startswith(prefix)]
    sources: list[Object] = volume["projected"]["sources"]
    return sources


async def test_a_target_is_given_a_token_of_the_source_that_lives_as_long_as_its_pod(
    fleet: Fleet, source: Client, c2: Client, shared: str
) -> None:
    address = await asks(fleet, source, shared)
    await source.create(kinds.PODS, kit.pod("web"), shared)
    await kit.until_one(
        *(source, kinds.PODS, "web", shared),
        lambda pod: f"--clusterrole={MINTER}" in str(objects.condition(pod, "PodScheduled")),
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
    assert extra["authentication.kubernetes.io/node-name"] == [objects.node_name(pod)]
    assert not (await review(c2, token)).get("authenticated")
    assert held(secret, "namespace") == shared
    root = await source.get(kinds.CONFIG_MAPS, "kube-root-ca.crt", shared)
    assert held(secret, "ca.crt") == root["data"]["ca.crt"]

    delegate = await c2.get(kinds.PODS, names.chaperon("web", objects.uid(pod)), shared)
    spec = objects.spec(delegate)
    (taken, authority, _namespace) = projected_by("kube-api-access", spec)
    assert taken["secret"] == {"name": name, "items": [{"key": "token", "path": "token"}]}
    assert authority["secret"]["name"] == name
    (taken,) = projected_by("own", spec)
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
    async with asyncio.timeout(kit.PATIENCE):
        while (await review(source, token)).get("authenticated"):  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.5)

    await kit.until_gone(c2, kinds.SECRETS, shared)


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
    async with asyncio.timeout(kit.PATIENCE):
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
    await kit.until_gone(c2, kinds.SECRETS, shared, label_selector=keys.TOKEN)


def mounting(name: str, secret: str) -> Object:
    """Return a pod with a Secret where programs look for the token of their account."""
    body = kit.pod(name, volumes=[{"name": "own", "secret": {"secretName": secret}}])
    mount = {"name": "own", "mountPath": keys.SERVICE_ACCOUNT_MOUNT}
    body["spec"]["containers"][0]["volumeMounts"] = [mount]
    return body


async def delegate_of(source: Client, target: Client, namespace: str, name: str) -> Object:
    """Return the delegate of a pod, once that runs."""
    pod = await kit.until_one(
        *(source, kinds.PODS, name, namespace), lambda pod: kit.phase(pod) == "Running"
    )
    return await target.get(kinds.PODS, names.chaperon(name, objects.uid(pod)), namespace)


async def has_token(source: Client, namespace: str, account: str) -> None:
    """Create an account, and a Secret of its name; wait until the token controller fills it in."""
    await source.create(kinds.SERVICE_ACCOUNTS, {"metadata": {"name": account}}, namespace)
    annotations = {"kubernetes.io/service-account.name": account}
    secret = {"metadata": {"name": account, "annotations": annotations}, "type": TOKEN_TYPE}
    await source.create(kinds.SECRETS, secret, namespace)
    await kit.until_one(
        *(source, kinds.SECRETS, account, namespace),
        lambda secret: "token" in (secret.get("data") or {}),
    )


async def clear(source: Client, namespace: str) -> None:
    await source.request("DELETE", kinds.PODS.path(namespace))
    await kit.until_gone(source, kinds.PODS, namespace)


async def test_the_delegate_of_an_own_secret_at_the_usual_path_mounts_it_and_no_token(
    fleet: Fleet, source: Client, c2: Client, shared: str
) -> None:
    """Whether the Target asks for tokens or not; a container beside it has one of the target's."""
    await asks(fleet, source, shared)
    grant(fleet, shared)
    await source.create(kinds.SECRETS, {"metadata": {"name": "mine"}, "data": {}}, shared)
    beside = mounting("beside", "mine")
    beside["spec"]["containers"].append({"name": "other", "image": "busybox"})
    for body in (mounting("followed", "mine"), mounting("own", "mine"), beside):
        await source.create(kinds.PODS, body, shared)
        delegate = await delegate_of(source, c2, shared, objects.name(body))
        spec = objects.spec(delegate)
        (first, *others) = spec["containers"]
        assert [each["name"] for each in first["volumeMounts"]] == ["own"]
        assert spec["volumes"][0]["secret"]["secretName"] == "mine"
        assert len(spec["volumes"]) == 1 + len(others)
        for each in others:
            (mount,) = each["volumeMounts"]
            assert mount["mountPath"] == keys.SERVICE_ACCOUNT_MOUNT

        if body["metadata"]["name"] == "followed":
            await ask(source, shared, "target")
            await without_tokens(source, c2, shared)

    await clear(source, shared)


async def without_tokens(source: Client, target: Client, namespace: str) -> None:
    """Wait until the agent has heard that a Target no longer asks."""
    async with asyncio.timeout(kit.PATIENCE):
        for number in itertools.count():
            name = f"probe-{number}"
            await source.create(kinds.PODS, kit.pod(name), namespace)
            if "SERVICE_HOST" not in str(await delegate_of(source, target, namespace, name)):
                return


async def test_the_secret_of_an_account_is_a_token_of_that_account_or_the_pod_does_not_go(
    fleet: Fleet, source: Client, c2: Client, shared: str
) -> None:
    await asks(fleet, source, shared)
    grant(fleet, shared)
    await has_token(source, shared, "executor")
    pod = mounting("step", "executor")
    (main,) = pod["spec"]["containers"]
    wait = {**main, "name": "wait"}
    del main["volumeMounts"]
    pod["spec"] |= {"containers": [main, wait], "automountServiceAccountToken": False}
    await source.create(kinds.PODS, pod, shared)
    spec = objects.spec(await delegate_of(source, c2, shared, "step"))
    (volume,) = spec["volumes"]
    secret = await c2.get(kinds.SECRETS, volume["secret"]["secretName"], shared)
    (key,) = [item["key"] for item in volume["secret"]["items"] if item["path"] == "token"]
    status = await review(source, held(secret, key))
    assert status["user"]["username"] == f"system:serviceaccount:{shared}:executor"
    assert not spec["containers"][0].get("volumeMounts")

    variable = {"secretKeyRef": {"name": "executor", "key": "token"}}
    fixed = kit.pod("fixed")
    fixed["spec"]["containers"][0]["env"] = [{"name": "TOKEN", "valueFrom": variable}]
    await source.create(kinds.PODS, fixed, shared)
    await refused(source, shared, "fixed", "which would end in a variable")

    await ask(source, shared, "target")
    await without_tokens(source, c2, shared)
    await source.create(kinds.PODS, mounting("other", "executor"), shared)
    reason = f"Secret executor is the token of service account executor, .* {keys.TOKENS}"
    await refused(source, shared, "other", reason)
    await clear(source, shared)


async def refused(source: Client, namespace: str, name: str, reason: str) -> None:
    """Wait until a pod says, for that reason, that it goes nowhere; by an Event, too."""
    await kit.until_one(
        *(source, kinds.PODS, name, namespace),
        lambda pod: re.search(reason, str(objects.condition(pod, "PodScheduled"))) is not None,
    )
    about = f"involvedObject.name={name},reason=NotFollowed"
    event = await kit.until_event(source, namespace, about)
    assert re.search(reason, event["message"])


async def test_a_pod_whose_account_gives_no_token_has_none_of_the_targets_either(
    fleet: Fleet, source: Client, c2: Client, shared: str
) -> None:
    done = own.connect(fleet, shared, "c2")
    assert not done.code, done.err
    await own.assert_connects(source, shared)
    for cluster in (source, c2):
        account: Object = {"metadata": {"name": "quiet"}}
        if cluster is source:
            account["automountServiceAccountToken"] = False

        await cluster.create(kinds.SERVICE_ACCOUNTS, account, shared)

    await source.create(kinds.PODS, kit.pod("quiet", serviceAccountName="quiet"), shared)
    spec = objects.spec(await delegate_of(source, c2, shared, "quiet"))
    assert not spec.get("volumes")
    assert spec["serviceAccountName"] == "quiet"

    absent = kit.pod("absent", serviceAccountName="absent")
    await source.create(kinds.SERVICE_ACCOUNTS, {"metadata": {"name": "absent"}}, shared)
    await source.create(kinds.PODS, absent, shared)
    await kit.until_one(
        *(source, kinds.PODS, "absent", shared),
        lambda pod: (
            'serviceaccount "absent" not found' in str(objects.condition(pod, "PodScheduled"))
        ),
    )
    await clear(source, shared)
