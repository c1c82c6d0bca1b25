"""A hostile target: its API server spoils what it answers, and what its watches send.

Some of its Targets get spoiled answers, the others spoiled watches, so that these begin at all. It
says of each pod that it has a place for it, and that it runs, so that its words get far.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import web

from tests.apiserver.http_server import RawResponse
from tests.fuzz import agents, canary
from tests.fuzz.agents import FuzzFinding
from tests.fuzz.environment import HOSTILE, FuzzEnvironment
from tests.fuzz.inputs import InputKind
from tests.fuzz.mutating import Mutator, bomb
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object

ANSWERS: Final = HOSTILE[:2]
STREAMS: Final = HOSTILE[2:]
_CODES: Final = (100, 201, 204, 301, 304, 400, 401, 403, 404, 409, 410, 422, 429, 500, 503, 999)
_ENCODINGS: Final = ("gzip", "deflate", "br", "x")
_VICTIMS: Final = (
    '{"pods": 1, "highest": -2147483648}',
    '{"pods": 1, "highest": 1e99, "proxies": ["a"]}',
    '{"pods": 9, "highest": 9, "proxies": [' + ",".join(['"a"'] * 8_000) + "]}",
    "[" * 20_000,
)
_BOMBS: Final = tuple(bomb(size) for size in (1 << 20, 16 << 20, 200 << 20))


@dataclass(slots=True)
class Spoiler:
    """Spoils what goes to the users of some Targets; `dice` is of the input that is fed."""

    env: FuzzEnvironment
    namespaces: tuple[str, ...]
    dice: random.Random
    count: int = 0
    last: list[bytes] = field(default_factory=list)  # of the present round, the newest last

    def answer(self, request: web.Request, answer: RawResponse) -> RawResponse:
        """Spoil about one answer in four, so that connections can still be made."""
        if not self._concerns(request) or self.dice.random() < 0.75:
            return answer

        self.count += 1
        mutator = Mutator(self.dice)
        value = _value(answer.body)
        match self.dice.randrange(12):
            case 0:
                code = self.dice.choice(_CODES[1:])
                headers = {"Retry-After": mutator.text("1")[:50].encode("ascii", "ignore").decode()}
                spoiled = RawResponse(mutator.payload(_status(code)), code, _plain(headers))
            case 1:
                encoding = {"Content-Encoding": self.dice.choice(_ENCODINGS)}
                spoiled = RawResponse(self.dice.choice((*_BOMBS, b"x", answer.body)), 200, encoding)
            case 2:
                spoiled = RawResponse(b'{"kind":"List","metadata":{},"items":[' + b"{}," * 100_000)
            case _:
                spoiled = RawResponse(mutator.payload(value), answer.status)

        self._keep(spoiled.body)
        return spoiled

    def line(self, request: web.Request, line: bytes) -> bytes:
        """Spoil about every other line of a watch."""
        if not self._concerns(request) or self.dice.random() < 0.5:
            return line

        self.count += 1
        mutator = Mutator(self.dice)
        event = _value(line)
        if self.dice.random() < 0.8 and isinstance(event, dict):
            spoiled = mutator.written({**event, "object": mutator.value(event["object"])})
        else:
            spoiled = mutator.payload(event)

        self._keep(spoiled)
        return spoiled

    def _concerns(self, request: web.Request) -> bool:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return token.removesuffix("-hostile") in self.namespaces

    def _keep(self, spoiled: bytes) -> None:
        self.last = [*self.last[-200:], spoiled[:2000]]


def _plain(headers: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in headers.items() if value.isprintable()}


def _value(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode(errors="replace")


def _status(code: int) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Status",
        "metadata": {},
        "status": "Failure",
        "code": code,
        "reason": "Invalid",
        "message": "no",
        "details": {"name": "a", "causes": [{"field": "metadata.uid", "message": "b"}]},
    }


def connect_anew(env: FuzzEnvironment, namespace: str, number: int) -> None:
    """Change the kubeconfig of a Target, so that its connection begins anew."""
    config = agents.kubeconfig(env.http_servers["hostile"].url, f"{namespace}-hostile")
    config["extensions"] = [{"name": f"{number}"}]
    data = {"config": base64.b64encode(agents.written(config)).decode()}
    env.source.change(kinds.SECRETS, "hostile", namespace, lambda secret: secret.update(data=data))


async def send_pod(env: FuzzEnvironment, namespace: str, name: str) -> None:
    """Make a pod that only the hostile target may run."""
    await canary.admit(env, canary.pod(name, namespace))


def pretend(env: FuzzEnvironment, namespace: str, dice: random.Random) -> None:
    """Have all chaperons of a namespace reserved, and running."""
    for chaperon in env.hostile.store.all(kinds.POD_CHAPERONS):
        if objects.namespace(chaperon) != namespace:
            continue

        def change(obj: Object) -> None:
            annotations = obj["metadata"].setdefault("annotations", {})
            annotations[keys.IS_RESERVED] = "true"
            annotations[keys.VICTIMS] = dice.choice(_VICTIMS)
            obj["status"] = {**status(), "message": f"{dice.random()}"}

        env.hostile.change(kinds.POD_CHAPERONS, objects.name(chaperon), namespace, change)

    limit(env, namespace, dice)
    env.hostile.change(
        kinds.CLUSTER_SUMMARIES,
        keys.SUMMARY_NAME,
        "",
        lambda summary: summary["metadata"].update(labels={"a": f"{dice.random()}"}),
    )


def limit(env: FuzzEnvironment, namespace: str, dice: random.Random) -> None:
    """Change the quota and the limits of a namespace, which leave room for everything."""
    much = {name: str(10**9 + dice.randrange(9)) for name in ("pods", "requests.cpu", "count/pods")}
    expression = {"scopeName": "PriorityClass", "operator": "NotIn", "values": ["a"]}
    spec = {
        "hard": much,
        "scopes": ["NotTerminating"],
        "scopeSelector": {"matchExpressions": [expression]},
    }
    metadata = {"name": "a", "namespace": namespace}
    used = dict.fromkeys(much, str(dice.randrange(9)))
    quota = {"metadata": metadata, "spec": spec, "status": {"hard": much, "used": used}}
    item = {"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1m"}}
    limits = [item, {"type": "Pod", "max": {"cpu": much["pods"]}}]
    env.hostile.add(kinds.RESOURCE_QUOTAS, quota)
    env.hostile.add(kinds.LIMIT_RANGES, {"metadata": metadata, "spec": {"limits": limits}})


def status() -> Object:
    """Build the status of a pod that has something everywhere."""
    now = "2026-01-01T00:00:00Z"
    return {
        "phase": "Running",
        "podIP": "10.2.0.1",
        "podIPs": [{"ip": "10.2.0.1"}],
        "hostIP": "10.0.0.1",
        "qosClass": "Burstable",
        "startTime": now,
        "observedGeneration": 1,
        "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": now, "reason": "a"},
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": now},
        ],
        "containerStatuses": [
            {
                "name": "main",
                "image": "busybox",
                "imageID": "x",
                "ready": True,
                "started": True,
                "restartCount": 1,
                "state": {"running": {"startedAt": now}},
                "lastState": {"terminated": {"exitCode": 1, "finishedAt": now}},
                "resources": {"requests": {"cpu": "1m"}},
            }
        ],
    }


def kind_of_inputs(
    name: str,
    namespaces: tuple[str, ...],
    feed: Callable[[FuzzEnvironment, random.Random, str], Awaitable[object]],
    begin: Callable[[FuzzEnvironment], Spoiler],
) -> InputKind:
    """Make the kind of inputs whose pods are in these namespaces."""

    async def settle(env: FuzzEnvironment) -> list[FuzzFinding]:
        env.reached[f"pods bound to a hostile target by {name}"] += _bound(env, namespaces)
        return []

    return InputKind(name, 8, feed, lambda env: _clean(env, namespaces), settle, begin=begin)


def _bound(env: FuzzEnvironment, namespaces: tuple[str, ...]) -> int:
    """Count the pods that the source's agent has bound to the hostile target."""
    return sum(
        bool(objects.node_name(pod)) and objects.namespace(pod) in namespaces
        for pod in env.source.store.all(kinds.PODS)
    )


def _clean(env: FuzzEnvironment, namespaces: tuple[str, ...]) -> None:
    """Remove the pods, and what was made of them."""
    for server, kind in (
        (env.source, kinds.PODS),
        (env.hostile, kinds.POD_CHAPERONS),
        (env.hostile, kinds.RESOURCE_QUOTAS),
        (env.hostile, kinds.LIMIT_RANGES),
    ):
        for obj in server.store.all(kind):
            if objects.namespace(obj) in namespaces:
                server.remove(kind, objects.name(obj), objects.namespace(obj))
