"""Targets that a tenant makes, with kubeconfigs in Secrets: each gets a condition that says what
is wrong, or that it works.
"""

from __future__ import annotations

import base64
import random
from typing import Any, Final

from tests.fuzz import agents
from tests.fuzz.agents import FuzzFinding
from tests.fuzz.environment import TENANT, FuzzEnvironment
from tests.fuzz.inputs import InputKind
from tests.fuzz.mutating import Mutator
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object

_PATIENCE: Final = 120.0  # seconds; a server that does not answer takes a dozen
_ANNOTATIONS: Final = {
    keys.TOKENS: "source=10.0.0.1:443",
    keys.STORAGE_CLASSES: "a=b,c=",
    keys.PRIORITY_CLASSES: "a=b,=c",
    keys.LOAD_BALANCER_CLASSES: "a=b,c=",
    keys.INGRESS_CLASSES: "=b",
    keys.FOLLOW_ANYWAY: "metallb.io/*, spec.externalIPs",
    keys.LOAD_BALANCERS: "true",
    keys.NETWORK_POLICIES: "ignore",
    keys.CONFIRM_CLUSTER: "unknown",
    keys.CREATE_NAMESPACES: "true",
}
_TOKEN: Final = "e30." + base64.urlsafe_b64encode(b'{"exp":1790000000,"sub":"a"}').decode() + ".x"
_OIDC: Final = {
    "client-id": "a",
    "client-secret": "b",
    "id-token": _TOKEN,
    "refresh-token": "c",
    "idp-issuer-url": "https://127.0.0.1:1",
}
_USERS: Final[tuple[dict[str, Any], ...]] = (
    {"token": _TOKEN},
    {"username": "a", "password": "b"},
    {"tokenFile": "/etc/passwd"},
    {"client-certificate-data": "LS0tLS1CRUdJTg==", "client-key-data": "LS0tLS1CRUdJTg=="},
    {"client-certificate": "/etc/passwd", "client-key": "/etc/passwd"},
    {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "id", "args": ["-u"]}},
    {"auth-provider": {"name": "oidc", "config": _OIDC}},
    {"auth-provider": {"name": "gcp", "config": {"cmd-path": "id"}}},
)


def mutated(dice: random.Random, url: str, token: str) -> bytes:
    """Write a kubeconfig that leads to an API server, or did so before it was mutated."""
    mutator = Mutator(dice)
    config = agents.kubeconfig(url, token)
    if dice.random() < 0.5:
        config["users"][0]["user"] = dict(dice.choice(_USERS))

    cluster = config["clusters"][0]["cluster"]
    if dice.random() < 0.3:
        cluster |= {
            "server": url.replace("http:", "https:"),
            "certificate-authority-data": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t",
            "insecure-skip-tls-verify": dice.random() < 0.5,
            "tls-server-name": "c.example.com",
        }

    match dice.randrange(4):
        case 0:
            return mutator.bytes(agents.written(config))
        case 1:
            return mutator.payload(config)
        case _:
            return mutator.written(mutator.value(config, times=1))


async def _feed(env: FuzzEnvironment, dice: random.Random, name: str) -> object:
    mutator = Mutator(dice)
    config = mutated(dice, env.http_servers["hostile"].url, f"{TENANT}-hostile")
    metadata: Object = {"name": name, "namespace": TENANT}
    data = {"config": base64.b64encode(config).decode()}
    env.source.add(kinds.SECRETS, {"metadata": metadata, "type": "Opaque", "data": data})
    spec: Object = {"kubeconfigSecret": {"name": name, "key": "config", "context": "x"}}
    if dice.random() < 0.3:
        spec["kubeconfigSecret"] = mutator.value(spec["kubeconfigSecret"], wild=False, times=1)

    if dice.random() < 0.2:
        spec["excludedLabelsRegexp"] = mutator.text("^(a|b)+=.*$")

    annotations = {
        key: mutator.text(_ANNOTATIONS[key])
        for key in dice.sample(list(_ANNOTATIONS), dice.choice((0, 0, 0, 1)))
    }
    env.source.add(
        kinds.TARGETS, {"metadata": {**metadata, "annotations": annotations}, "spec": spec}
    )
    return config


def _unjudged(env: FuzzEnvironment) -> list[str]:
    return [
        objects.name(target)
        for target in env.source.store.all(kinds.TARGETS)
        if objects.name(target).startswith(KIND.name) and objects.condition(target, "Ready") is None
    ]


async def _settle(env: FuzzEnvironment) -> list[FuzzFinding]:
    if not await env.happens(lambda: not _unjudged(env), _PATIENCE):
        text = f"no condition: {_unjudged(env)}"
        return [FuzzFinding("any Target is told what is wrong with it", text)]

    env.reached["Targets connected"] += sum(
        (objects.condition(target, "Ready") or {}).get("status") == "True"
        for target in env.source.store.all(kinds.TARGETS)
        if objects.name(target).startswith(KIND.name)
    )
    return []


def _clean(env: FuzzEnvironment) -> None:
    for kind in (kinds.TARGETS, kinds.SECRETS):
        for obj in env.source.store.all(kind):
            if objects.namespace(obj) == TENANT and objects.name(obj).startswith(KIND.name):
                env.source.remove(kind, objects.name(obj), TENANT)


KIND: Final = InputKind("kubeconfigs", 15, _feed, _clean, _settle)
