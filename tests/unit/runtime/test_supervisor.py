from __future__ import annotations

import asyncio

import pytest

from vnode.runtime.supervisor import supervise


async def forever(stopped):
    try:
        await asyncio.Event().wait()
    finally:
        stopped.append("forever")


async def test_tasks_are_stopped_and_waited_for_at_the_end_of_the_block():
    stopped = []
    async with supervise() as tasks:
        tasks.start(forever(stopped), "one")
        tasks.start(forever(stopped), "two")
        await asyncio.sleep(0)

    assert stopped == ["forever", "forever"]


async def test_a_task_that_returns_is_a_fault_that_ends_the_others():
    async def brief():
        await asyncio.sleep(0)

    stopped = []
    with pytest.raises(ExceptionGroup) as caught:  # noqa: PT012 - the block is what is tested
        async with supervise() as tasks:
            tasks.start(forever(stopped), "one")
            tasks.start(brief(), "brief")
            await asyncio.Event().wait()

    assert stopped == ["forever"]
    assert caught.group_contains(RuntimeError, match="task brief ended, which it never should")


async def test_a_task_that_fails_ends_the_others_with_its_own_error():
    async def broken():
        raise ZeroDivisionError

    stopped = []
    with pytest.raises(ExceptionGroup) as caught:  # noqa: PT012 - the block is what is tested
        async with supervise() as tasks:
            tasks.start(forever(stopped), "one")
            await asyncio.sleep(0)
            tasks.start(broken(), "broken")
            await asyncio.Event().wait()

    assert stopped == ["forever"]
    assert caught.group_contains(ZeroDivisionError)


async def test_an_error_of_the_block_itself_stops_the_tasks():
    stopped = []
    with pytest.raises(ExceptionGroup) as caught:  # noqa: PT012 - the block is what is tested
        async with supervise() as tasks:
            tasks.start(forever(stopped), "one")
            await asyncio.sleep(0)
            raise KeyError

    assert stopped == ["forever"]
    assert caught.group_contains(KeyError)
