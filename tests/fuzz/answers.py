"""Spoiled answers of a hostile target, to everything that is asked of it."""

from __future__ import annotations

import asyncio
import random
from typing import Final

from tests.fuzz import hostile
from tests.fuzz.environment import FuzzEnvironment
from tests.fuzz.hostile import Spoiler


def _begin(env: FuzzEnvironment) -> Spoiler:
    spoiler = Spoiler(env, hostile.ANSWERS, random.Random(0))
    env.http_servers["hostile"].spoil_answer = spoiler.answer
    return spoiler


async def _feed(env: FuzzEnvironment, dice: random.Random, name: str) -> object:
    namespace = dice.choice(hostile.ANSWERS)
    hostile.connect_anew(env, namespace, dice.getrandbits(32))
    if dice.random() < 0.3:
        await hostile.send_pod(env, namespace, name)

    await asyncio.sleep(0.1)
    hostile.pretend(env, namespace, dice)
    await asyncio.sleep(0.1)
    return namespace


KIND: Final = hostile.kind_of_inputs("answers", hostile.ANSWERS, _feed, _begin)
