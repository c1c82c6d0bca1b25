"""Bodies that anybody may post to the webhook: the answer is a review, a 400 or a 413."""

from __future__ import annotations

import random
from typing import Final

import aiohttp
import msgspec

from tests.fuzz import canary
from tests.fuzz.agents import FuzzFinding
from tests.fuzz.environment import TENANT, FuzzEnvironment
from tests.fuzz.inputs import InputKind
from tests.fuzz.mutating import Mutator
from vnode.api import keys

_YAML: Final = "nodeSelector: {a: b}\ntolerations: [{key: a, operator: Exists}]\n"
_ANSWERS: Final = (200, 400, 413)


async def _feed(env: FuzzEnvironment, dice: random.Random, name: str) -> object:
    mutator = Mutator(dice)
    pod = canary.pod(name, TENANT)
    annotations = pod["metadata"]["annotations"]
    annotations[keys.PROXY_CONSTRAINTS] = dice.choice((_YAML, mutator.text(_YAML)))
    annotations[keys.NO_PREFIX_LABEL_REGEXP] = dice.choice(("a=.*", mutator.text("^a=(b|c)+$")))
    pod["spec"] |= {
        "nodeSelector": {"a": "b"},
        "tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 3}],
        "affinity": {"nodeAffinity": {}, "podAffinity": {}},
        "volumes": [{"name": "v", "projected": {"sources": [{"configMap": {"name": "c"}}]}}],
    }
    body = mutator.payload(canary.review(pod))
    try:
        async with env.calls.post(canary.url(env), data=body) as answer:
            status, text = answer.status, await answer.read()
    except aiohttp.ClientError as error:
        status, text = 0, str(error).encode()

    env.reached["reviews that are allowed"] += b'"allowed":true' in text
    if status not in _ANSWERS or (status == 200 and not _is_review(text)):
        finding = f"{name}: {status} {text[:300]!r} to {body[:2000]!r}"
        env.wrong.append(FuzzFinding("any body gets an answer", finding))

    return body


def _is_review(text: bytes) -> bool:
    try:
        return "allowed" in msgspec.json.decode(text)["response"]
    except (msgspec.DecodeError, KeyError, TypeError):
        return False


KIND: Final = InputKind("reviews", 400, _feed, lanes=8)
