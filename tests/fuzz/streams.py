"""Spoiled events of a hostile target's watches."""

from __future__ import annotations

import asyncio
import random
from typing import Final

from tests.fuzz import hostile
from tests.fuzz.hostile import Spoiler
from tests.fuzz.world import World

_EVENTS: Final = 10  # of one input


def _begin(world: World) -> Spoiler:
    spoiler = Spoiler(world, hostile.STREAMS, random.Random(0))
    world.http_servers["hostile"].spoil_line = spoiler.line
    return spoiler


async def _feed(world: World, dice: random.Random, name: str) -> object:
    namespace = dice.choice(hostile.STREAMS)
    if dice.random() < 0.3:
        await hostile.send_pod(world, namespace, name)

    if dice.random() < 0.3:  # a watch that has failed is not begun again at once
        hostile.connect_anew(world, namespace, dice.getrandbits(32))
        await asyncio.sleep(0.1)

    for _number in range(_EVENTS):
        hostile.pretend(world, namespace, dice)
        await asyncio.sleep(0.01)

    return namespace


KIND: Final = hostile.kind_of_inputs("streams", hostile.STREAMS, _feed, _begin)
