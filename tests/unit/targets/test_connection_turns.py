"""Which targets connect first, and how many at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from vnode.api.target_key import TargetKey
from vnode.targets.connection_turns import AT_ONCE, PATIENCE, ConnectionTurns

pytestmark = pytest.mark.looptime


class Connecting:
    """Targets that connect, each for some seconds, and stay connected."""

    def __init__(self) -> None:
        self.begun: list[TargetKey] = []
        self._turns = ConnectionTurns()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, key: TargetKey, seconds: float) -> None:
        self._tasks.append(asyncio.create_task(self._run(key, seconds)))

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()

        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, key: TargetKey, seconds: float) -> None:
        async with self._turns.take(key) as end_turn:
            self.begun.append(key)
            await asyncio.sleep(seconds)
            end_turn()
            await asyncio.Event().wait()


@pytest.fixture
async def connecting() -> AsyncIterator[Connecting]:
    connecting = Connecting()
    yield connecting
    await connecting.end()


async def test_the_next_begins_when_one_is_of_use(connecting: Connecting) -> None:
    for number in range(5 * AT_ONCE):
        connecting.start(TargetKey(f"team-{number}", "c2"), 0.2)

    await asyncio.sleep(0.1)
    assert len(connecting.begun) == AT_ONCE
    await asyncio.sleep(0.2)
    assert len(connecting.begun) == 2 * AT_ONCE
    await asyncio.sleep(2)
    assert len(connecting.begun) == 5 * AT_ONCE


async def test_who_does_not_answer_has_nobody_wait_for_long(connecting: Connecting) -> None:
    for number in range(AT_ONCE):
        connecting.start(TargetKey("dead", f"c{number}"), 1e6)

    connecting.start(TargetKey("other", "c2"), 0.2)
    await asyncio.sleep(PATIENCE - 0.1)
    assert TargetKey("other", "c2") not in connecting.begun
    await asyncio.sleep(0.2)
    assert TargetKey("other", "c2") in connecting.begun


async def test_namespaces_take_turns_and_cluster_targets_are_in_the_first_round(
    connecting: Connecting,
) -> None:
    for number in range(5 * AT_ONCE):
        connecting.start(TargetKey("many", f"c{number}"), 0.2)

    wanted = {TargetKey("other", "c2"), TargetKey("", "c3"), TargetKey("", "c4")}
    for key in wanted:
        connecting.start(key, 0.2)

    await asyncio.sleep(0.3)
    assert wanted <= set(connecting.begun[AT_ONCE : AT_ONCE + 5])


async def test_a_turn_ends_once(connecting: Connecting) -> None:
    """By the target's answer, by the time, and by the end of the block."""
    turns = ConnectionTurns()
    for _ in range(3):
        async with turns.take(TargetKey("a", "c2")) as end_turn:
            end_turn()
            await asyncio.sleep(2 * PATIENCE)

    for number in range(2 * AT_ONCE):
        connecting._turns = turns
        connecting.start(TargetKey(f"team-{number}", "c2"), 1e6)

    await asyncio.sleep(0.1)
    assert len(connecting.begun) == AT_ONCE


async def test_who_is_cancelled_while_it_waits_takes_no_turn(connecting: Connecting) -> None:
    for number in range(2 * AT_ONCE):
        connecting.start(TargetKey(f"team-{number}", "c2"), 1e6)

    await asyncio.sleep(0.1)
    await connecting.end()
    connecting.begun.clear()
    for number in range(2 * AT_ONCE):
        connecting.start(TargetKey(f"team-{number}", "c2"), 1e6)

    await asyncio.sleep(0.1)
    assert len(connecting.begun) == AT_ONCE


async def test_who_serves_all_is_next_although_hundreds_of_others_came_before(
    connecting: Connecting,
) -> None:
    for number in range(10 * AT_ONCE):
        connecting.start(TargetKey(f"team-{number}", "c2"), 0.2)

    await asyncio.sleep(0.1)
    connecting.start(TargetKey("", "c3"), 0.2)
    await asyncio.sleep(0.2)
    assert TargetKey("", "c3") in connecting.begun
    assert len(connecting.begun) == 2 * AT_ONCE
