from __future__ import annotations

import asyncio

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from vnode.api.durations import TICK
from vnode.runtime.queue import WorkQueue

some_key = st.sampled_from("abcde")


class QueueMachine(RuleBasedStateMachine):
    """The queue against a model: an ordered list that waits, and sets in work and dirty."""

    @initialize()
    def start(self):
        self.queue = WorkQueue()
        self.waiting, self.working, self.dirty = [], [], set()

    @rule(key=some_key)
    def add(self, key):
        self.queue.add(key)
        if key in self.working:
            self.dirty.add(key)
        elif key not in self.waiting:
            self.waiting.append(key)

    @precondition(lambda self: self.waiting)
    @rule()
    def get(self):
        with pytest.raises(StopIteration) as answer:  # it has no reason to wait
            self.queue.get().send(None)

        key = answer.value.value
        assert key == self.waiting.pop(0)
        assert key not in self.working
        self.working.append(key)

    @precondition(lambda self: self.working)
    @rule(data=st.data())
    def done(self, data):
        key = data.draw(st.sampled_from(self.working))
        self.queue.done(key)
        self.working.remove(key)
        if key in self.dirty:
            self.dirty.discard(key)
            self.waiting.append(key)

    @invariant()
    def has_the_length_of_the_model(self):
        if hasattr(self, "queue"):
            assert len(self.queue) == len(self.waiting)


TestQueue = QueueMachine.TestCase


async def test_a_worker_that_waits_is_woken_by_an_addition():
    queue = WorkQueue()
    waiter = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    assert await waiter == "a"


async def test_a_cancelled_worker_takes_no_key_with_it():
    queue = WorkQueue()
    waiter = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter

    assert await queue.get() == "a"


@pytest.mark.looptime
async def test_a_delay_that_is_almost_nothing_still_lets_time_pass():
    """Else what returns a remainder of its last delay is worked on for ever, at one moment."""
    queue = WorkQueue()
    loop = asyncio.get_running_loop()
    begin = loop.time()
    for _ in range(10):
        queue.add_after("a", 1e-12)
        queue.done(await queue.get())

    assert loop.time() >= begin + 10 * TICK


@pytest.mark.looptime
async def test_the_earliest_of_several_delays_counts(clock):
    queue = WorkQueue()
    queue.add_after("a", 5)
    queue.add_after("a", 2)
    queue.add_after("a", 9)
    assert await queue.get() == "a"
    assert clock.monotonic() == pytest.approx(2, abs=0.01)
    queue.done("a")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.get(), 60)


@pytest.mark.looptime
async def test_an_addition_now_replaces_a_delayed_one(clock):
    queue = WorkQueue()
    queue.add_after("a", 5)
    queue.add("a")
    assert await queue.get() == "a"
    queue.done("a")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.get(), 60)


@pytest.mark.looptime
async def test_a_closed_queue_adds_nothing_later():
    queue = WorkQueue()
    queue.add_after("a", 5)
    queue.close()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.get(), 60)


async def test_a_full_lane_holds_up_no_other():
    queue = WorkQueue(2, lane=lambda key: key[0])
    for key in ("a1", "a2", "a3", "a4", "b1", "b2"):
        queue.add(key)

    assert [await queue.get() for _ in range(4)] == ["a1", "b1", "a2", "b2"]
    assert len(queue) == 2
    waiter = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    queue.add("b3")
    queue.done("b1")
    assert await waiter == "b3"
    queue.done("a2")
    assert await queue.get() == "a3"
    assert len(queue) == 1


async def test_all_lanes_together_have_a_limit_and_take_turns():
    queue = WorkQueue(2, lane=lambda key: key[0], total=3)
    for key in ("a1", "a2", "a3", "b1", "c1", "d1"):
        queue.add(key)

    assert [await queue.get() for _ in range(3)] == ["a1", "b1", "c1"]
    waiter = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    queue.add("e1")
    await asyncio.sleep(0)
    assert not waiter.done()
    queue.done("b1")
    assert await waiter == "d1"
    queue.done("d1")
    assert await queue.get() == "a2"


async def test_a_key_waits_again_in_the_lane_that_it_has_by_then():
    lanes = {"k": "a", "other": "a"}
    queue = WorkQueue(1, lane=lanes.__getitem__)
    queue.add("k")
    assert await queue.get() == "k"
    queue.add("k")
    queue.add("other")
    lanes["k"] = "b"
    queue.done("k")
    assert {await queue.get(), await queue.get()} == {"k", "other"}


class LanesMachine(QueueMachine):
    """Two lanes against the model: neither exceeds its limit, nor waits while it has room."""

    @initialize()
    def start(self):
        super().start()
        self.queue = WorkQueue(2, lane=self.lane)

    @staticmethod
    def lane(key):
        return key in "ab"

    def free(self):
        """Return the first waiting key of each lane that has room."""
        firsts = {}
        for key in self.waiting:
            firsts.setdefault(self.lane(key), key)

        working = [self.lane(key) for key in self.working]
        return {key for lane, key in firsts.items() if working.count(lane) < 2}

    @precondition(lambda self: self.free())
    @rule()
    def get(self):
        with pytest.raises(StopIteration) as answer:
            self.queue.get().send(None)

        key = answer.value.value
        assert key in self.free()
        self.waiting.remove(key)
        self.working.append(key)


TestLanes = LanesMachine.TestCase


async def test_sharers_of_a_lane_take_turns_and_one_that_comes_later_waits_for_one_key_of_each():
    queue = WorkQueue(10, lane=lambda key: key[0], sharer=lambda key: key[1])
    for key in ("xa1", "xa2", "xa3", "xb1", "xb2", "ya1"):
        queue.add(key)

    assert [await queue.get() for _ in range(2)] == ["xa1", "ya1"]
    assert [queue.waiting(*each) for each in ("xa", "xb", "ya")] == [2, 2, 0]
    queue.add("xc1")
    assert [await queue.get() for _ in range(5)] == ["xb1", "xa2", "xc1", "xb2", "xa3"]
    assert len(queue) == 0


async def test_who_asks_is_told_how_long_each_key_has_waited():
    waited = []
    queue = WorkQueue(1, waited=lambda key, seconds: waited.append((key, seconds)))
    queue.add("a")
    queue.add("b")
    await queue.get()
    queue.done("a")
    await queue.get()
    assert [key for key, _seconds in waited] == ["a", "b"]
    assert all(seconds >= 0 for _key, seconds in waited)
