"""Requests to the other ports of agents: health and metrics, the kubelet API, and the extender.

The extender is called with the certificate that it asks for, as a scheduler gone wrong would.
"""

from __future__ import annotations

import random
from typing import Final

import aiohttp

from tests.fuzz.agents import FuzzFinding
from tests.fuzz.environment import CANARY, OTHER, FuzzEnvironment
from tests.fuzz.inputs import InputKind
from tests.fuzz.mutating import Mutator
from tests.fuzz.players import NODE
from vnode.api import keys, kinds, objects

_ARGUMENTS: Final = {
    "PodName": "chaperons-0-0",
    "PodNamespace": OTHER,
    "PodUID": "00000000-0000-4000-8000-000000000001",
    "Node": NODE,
}
_PATHS: Final = (
    *("/healthz", "/readyz", "/metrics", "/pods", "/stats/summary", "/metrics/resource", "/exec"),
    *("/containerLogs/tenant/a/main", "/exec/tenant/a/main", "/portForward/tenant/a", "/configz"),
    *("/logs/../x", "/run/tenant/a/main", "/attach/tenant/a/..%2f..", "/%00", "/debug/pprof"),
)
_METHODS: Final = ("GET", "GET", "GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "X")
_SERVED: Final = 500  # codes from there on are the agent's own fault
_LARGE: Final = 60 * 1024  # bytes
_TIMEOUT: Final = aiohttp.ClientTimeout(total=30)


async def _feed(env: FuzzEnvironment, dice: random.Random, name: str) -> object:
    mutator = Mutator(dice)
    is_of_scheduler = dice.random() < 0.6
    if is_of_scheduler:
        made = "POST", env.players.extender, mutator.payload(_ARGUMENTS)
    else:
        address = env.agents["source"].address
        kubelet = f"https://{address}:{_kubelet_port(env)}"
        port = dice.choice((f"http://{address}:8080", kubelet))
        path = dice.choice(_PATHS)
        made = dice.choice(_METHODS), port + path, mutator.text().encode(errors="replace")

    method, url, body = made
    headers = {"Authorization": "Bearer x"} if dice.random() < 0.8 else {}
    outcome, is_wrong = "", True
    kept, agent = (env.players.session, "honest") if is_of_scheduler else (env.calls, "source")
    async with env.agents[agent].client(certificate=is_of_scheduler) as fresh:
        for session in (kept, fresh):  # connections that were kept may have been ended just now
            try:
                async with session.request(
                    method, url, data=body, headers=headers, timeout=_TIMEOUT
                ) as answer:
                    await answer.read()
                    outcome, is_wrong = f"{answer.status}", answer.status >= _SERVED
                    break
            except (aiohttp.ClientError, TimeoutError) as error:
                outcome, is_wrong = repr(error), len(body) < _LARGE  # larger ones may be cut off

    if is_wrong and not url.endswith("/readyz"):
        text = f"{name}: {outcome} to {method} {url} {body[:1000]!r}"
        env.wrong.append(FuzzFinding("any request gets an answer", text))

    return made


def _kubelet_port(env: FuzzEnvironment) -> int:
    """Return the port of the virtual node of the honest Target."""
    key = f"admiralty-{CANARY}-honest"
    node = next(n for n in env.source.store.all(kinds.NODES) if objects.name(n).startswith(key))
    return int(objects.annotations(node).get(keys.KUBELET_PORT, "10250"))


KIND: Final = InputKind("calls", 100, _feed, lanes=4)
