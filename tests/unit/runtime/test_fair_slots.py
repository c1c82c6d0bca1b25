"""Whoever fills all slots keeps others waiting for one of them, not for all that it asks for."""

from __future__ import annotations

import asyncio

import pytest

from vnode.runtime.fair_slots import FairSlots


class Requests:
    """Requests that take as long as the test says, and the order in which they began."""

    def __init__(self, limit: int) -> None:
        self.slots: FairSlots[str] = FairSlots(limit)
        self.begun: list[str] = []
        self.under_way: dict[str, asyncio.Event] = {}

    async def send(self, key: str, name: str) -> None:
        async with self.slots.take(key):
            self.begun.append(name)
            over = self.under_way[name] = asyncio.Event()
            try:
                await over.wait()
            finally:
                del self.under_way[name]

    async def end(self, name: str) -> None:
        self.under_way[name].set()
        for _ in range(5):
            await asyncio.sleep(0)


async def begun(requests: Requests, *sent: tuple[str, str]) -> list[asyncio.Task[None]]:
    tasks = [asyncio.create_task(requests.send(key, name)) for key, name in sent]
    for _ in range(5):
        await asyncio.sleep(0)

    return tasks


async def ended(requests: Requests, tasks: list[asyncio.Task[None]]) -> None:
    while requests.under_way:
        await requests.end(next(iter(requests.under_way)))

    await asyncio.gather(*tasks, return_exceptions=True)


async def test_no_more_are_under_way_than_there_are_slots():
    requests = Requests(2)
    tasks = await begun(requests, ("a", "a1"), ("a", "a2"), ("a", "a3"))
    assert requests.begun == ["a1", "a2"]
    await requests.end("a1")
    assert requests.begun == ["a1", "a2", "a3"]
    await ended(requests, tasks)


async def test_a_key_that_comes_later_has_the_next_slot():
    requests = Requests(2)
    tasks = await begun(requests, *[("a", f"a{n}") for n in range(50)])
    tasks += await begun(requests, ("b", "b0"))
    await requests.end("a0")
    assert requests.begun == ["a0", "a1", "b0"]
    await ended(requests, tasks)
    assert len(requests.begun) == 51


async def test_keys_take_turns():
    requests = Requests(1)
    sent = [(key, f"{key}{n}") for key in "ab" for n in range(3)]
    tasks = await begun(requests, ("c", "c0"), *sent)
    await ended(requests, tasks)
    assert requests.begun == ["c0", "a0", "b0", "a1", "b1", "a2", "b2"]


async def test_who_is_cancelled_while_waiting_takes_no_slot():
    requests = Requests(1)
    (first,) = await begun(requests, ("a", "a0"))
    (gone,) = await begun(requests, ("b", "b0"))
    (last,) = await begun(requests, ("b", "b1"))
    gone.cancel()
    await requests.end("a0")
    assert requests.begun == ["a0", "b1"]
    assert requests.slots.waiting("b") == 0
    await ended(requests, [first, last])


async def test_a_slot_that_was_given_to_who_is_cancelled_goes_to_the_next():
    slots: FairSlots[str] = FairSlots(1)
    await slots.acquire("a")
    gone, last = (asyncio.create_task(slots.acquire("b")) for _ in range(2))
    await asyncio.sleep(0)
    assert slots.waiting("b") == 2
    slots.release()  # the slot is given, and nobody has run with it
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone

    async with asyncio.timeout(5):
        await last


async def test_a_request_that_fails_gives_its_slot_back():
    slots: FairSlots[str] = FairSlots(1)
    for _ in range(3):
        with pytest.raises(KeyError):
            async with slots.take("a"):
                raise KeyError
