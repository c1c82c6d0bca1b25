"""Spoiled events of a hostile target's watches."""

from __future__ import annotations

import asyncio
import random
from typing import Final

from tests.fuzz import hostile
from tests.fuzz.environment import FuzzEnvironment
from tests.fuzz.hostile import Spoiler

_EVENTS: Final = 10  # of one input


def _begin(env: FuzzEnvironment) -> Spoiler:
    spoiler = Spoiler(env, hostile.STREAMS, random.Random(0))
    env.http_servers["hostile"].spoil_line = spoiler.line
    return spoiler


async def _feed(env: FuzzEnvironment, dice: random.Random, name: str) -> object:
    namespace = dice.choice(hostile.STREAMS)
    if dice.random() < 0.3:
        await hostile.send_pod(env, namespace, name)

    if dice.random() < 0.3:  # a watch that has failed is not begun again at once
        hostile.connect_anew(env, namespace, dice.getrandbits(32))
        await asyncio.sleep(0.1)

    for _number in range(_EVENTS):
        hostile.pretend(env, namespace, dice)
        await asyncio.sleep(0.01)

    return namespace


KIND: Final = hostile.kind_of_inputs("streams", hostile.STREAMS, _feed, _begin)
