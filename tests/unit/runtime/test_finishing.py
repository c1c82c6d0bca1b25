"""Who is cancelled finishes what was begun, within a time."""

from __future__ import annotations

import asyncio

import pytest

from vnode.runtime.finishing import finish

pytestmark = pytest.mark.looptime


class Work:
    """Takes two seconds, and remembers how it ended."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error
        self.ended = ""

    async def run(self) -> str:
        try:
            await asyncio.sleep(2.0)
        except asyncio.CancelledError:
            self.ended = "cancelled"
            raise

        self.ended = "done"
        if self._error is not None:
            raise self._error

        return "result"


async def cancelled(work: Work, seconds: float) -> float:
    """Cancel a task amid the work; return how long its end took."""
    task = asyncio.create_task(finish(work.run(), "work", seconds))
    await asyncio.sleep(0.5)
    began = asyncio.get_running_loop().time()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    return asyncio.get_running_loop().time() - began


async def test_what_is_not_cancelled_has_its_result_or_its_error() -> None:
    assert await finish(Work().run(), "work", 1.0) == "result"
    with pytest.raises(ValueError, match="no"):
        await finish(Work(ValueError("no")).run(), "work", 1.0)


@pytest.mark.parametrize("error", [None, ValueError("no")])
async def test_a_cancellation_waits_for_the_end(error: Exception | None) -> None:
    work = Work(error)
    assert await cancelled(work, 5.0) == pytest.approx(1.5)
    assert work.ended == "done"


async def test_a_cancellation_waits_no_longer_than_was_said() -> None:
    work = Work()
    assert await cancelled(work, 1.0) == pytest.approx(1.0)
    assert work.ended == "cancelled"
