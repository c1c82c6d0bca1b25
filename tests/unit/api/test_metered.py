"""What a task computes is measured step by step, and it goes on as if nobody looked."""

from __future__ import annotations

import asyncio

import pytest

from vnode.api.metered import Metered

pytestmark = pytest.mark.looptime


async def test_steps_are_measured_and_waits_are_not() -> None:
    worked, spent = 0.0, list[float]()

    async def run() -> str:
        nonlocal worked
        worked += 1.0
        await asyncio.sleep(100)
        worked += 2.0
        assert await asyncio.wait_for(asyncio.sleep(1, "heard"), 10) == "heard"
        return "done"

    assert await Metered(run(), spent.append, lambda: worked) == "done"
    assert sum(spent) == 3.0


async def test_errors_come_out_and_cancellations_go_in() -> None:
    spent, told = list[float](), list[str]()

    async def fail() -> None:
        await asyncio.sleep(1)
        raise ValueError(1)

    with pytest.raises(ValueError, match="1"):
        await Metered(fail(), spent.append)

    async def wait() -> None:
        try:
            async with asyncio.timeout(1):
                await asyncio.Future()
        except TimeoutError:
            told.append("timed out")

        try:
            await asyncio.Future()
        finally:
            told.append("cancelled")

    async def metered() -> None:
        await Metered(wait(), spent.append)

    task = asyncio.create_task(metered())
    await asyncio.sleep(2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert told == ["timed out", "cancelled"]
