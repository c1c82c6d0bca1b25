"""What is said on a stream: at once if somebody waits, and of many candidates in few messages."""

from __future__ import annotations

import asyncio
import time

import pytest

from vnode.pods import stream_messages
from vnode.pods.stream_channel import GATHERED, LATER, Attention, Outbox, receive_all, sending
from vnode.pods.stream_messages import CandidateName, ReservationNews, StreamEnded

NAMES = [CandidateName(f"ns/pod-{number}", str(number)) for number in range(100)]


class Noted:
    """A channel that notes when each message was sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[float, ReservationNews]] = []

    async def send(self, text: str) -> None:
        """Note a message."""
        news = stream_messages.decode(ReservationNews, text)
        self.sent.append((asyncio.get_running_loop().time(), news))

    async def receive(self) -> str:
        """Return nothing: nobody speaks."""
        raise StreamEnded("nobody speaks")


@pytest.fixture
async def channel():
    return Noted()


@pytest.mark.looptime
async def test_what_is_said_of_many_goes_in_few_messages(channel):
    outbox, begun = Outbox(), asyncio.get_running_loop().time()
    async with sending(channel, outbox, ReservationNews):
        for name in NAMES:
            outbox.put(name, "reserved")
            await asyncio.sleep(0.001)

        await asyncio.sleep(1)

    first, _ = channel.sent[0]
    assert first == begun
    assert len(channel.sent) <= 0.1 / GATHERED + 2
    assert [name for _, news in channel.sent for name in news.reserved] == NAMES


@pytest.mark.looptime
async def test_what_is_not_urgent_goes_with_what_is(channel):
    outbox = Outbox()
    async with sending(channel, outbox, ReservationNews):
        outbox.put(NAMES[0], "confirmed", is_urgent=False)
        await asyncio.sleep(LATER / 2)
        assert not channel.sent
        outbox.put(NAMES[1], "reserved")
        await asyncio.sleep(GATHERED / 2)
        ((_, news),) = channel.sent
        assert (news.confirmed, news.reserved) == ((NAMES[0],), (NAMES[1],))


@pytest.mark.looptime
async def test_or_alone_after_a_while_each_time(channel):
    outbox = Outbox()
    async with sending(channel, outbox, ReservationNews):
        for name in NAMES[:3]:
            outbox.put(name, "confirmed", is_urgent=False)
            await asyncio.sleep(LATER - GATHERED)
            count = len(channel.sent)
            await asyncio.sleep(2 * GATHERED)
            assert len(channel.sent) == count + 1


async def test_who_says_much_does_not_have_all_of_an_agent():
    """All messages are there already: what hears them must let others go on."""
    said, others = 200, 0

    class Full(Noted):
        async def receive(self) -> str:
            nonlocal said
            if not said:
                raise StreamEnded("no more")

            said -= 1
            return ""

    async def count() -> None:
        nonlocal others
        while True:
            await asyncio.sleep(0)
            others += 1

    def handle(_text: str) -> None:
        done = time.perf_counter() + 0.001
        while time.perf_counter() < done:
            pass

    task = asyncio.create_task(count())
    with pytest.raises(StreamEnded):
        await receive_all(Full(), handle)

    task.cancel()
    assert others > 20


@pytest.mark.looptime
async def test_all_streams_of_one_side_share_what_it_may_have(monkeypatch):
    """Work is played by a clock: each message takes as long as one may hold the loop, twice."""
    begun, worked = asyncio.get_running_loop().time(), 0.0
    loop = asyncio.get_running_loop()
    real = loop.time
    monkeypatch.setattr(loop, "time", lambda: real() + worked)

    class Busy(Noted):
        async def receive(self) -> str:
            await asyncio.sleep(0.001)
            return ""

    def handle(_text: str) -> None:
        nonlocal worked
        worked += 0.01

    attention = Attention()
    tasks = [asyncio.create_task(receive_all(Busy(), handle, attention)) for _number in range(8)]
    await asyncio.sleep(60)
    for task in tasks:
        task.cancel()

    await asyncio.wait(tasks)
    assert worked <= 1 + 0.3 * (loop.time() - begun)
