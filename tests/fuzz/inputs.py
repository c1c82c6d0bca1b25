"""What the driver has to know of a kind of inputs."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from tests.fuzz.agents import FuzzFinding
from tests.fuzz.environment import FuzzEnvironment


class Spoiling(Protocol):
    """Counts what it spoils by `dice`, which the driver sets for each input."""

    dice: random.Random
    count: int


def nothing(_env: FuzzEnvironment) -> None:
    """Leave all as it is."""


async def settled(_env: FuzzEnvironment) -> list[FuzzFinding]:
    """Find nothing wrong."""
    return []


@dataclass(frozen=True, slots=True)
class InputKind:
    """One kind of inputs: `count` of them are fed in a round, each by its own randomness and name.

    `feed` returns an input to be shown. `settle` tells what is wrong once all of them are fed, and
    `clean` removes what they have made. If `begin` is there, its spoiler counts the inputs instead.
    """

    name: str
    count: int
    feed: Callable[[FuzzEnvironment, random.Random, str], Awaitable[object]]
    clean: Callable[[FuzzEnvironment], None] = nothing
    settle: Callable[[FuzzEnvironment], Awaitable[list[FuzzFinding]]] = settled
    begin: Callable[[FuzzEnvironment], Spoiling] | None = None
    lanes: int = 1  # how many inputs are fed at once
