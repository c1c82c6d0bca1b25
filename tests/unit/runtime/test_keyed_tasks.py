from __future__ import annotations

import asyncio

import pytest

from vnode.api.clock import SystemClock
from vnode.api.errors import ConfigError, Unreachable
from vnode.runtime import keyed_tasks
from vnode.runtime.supervisor import sleep_forever, supervise

pytestmark = pytest.mark.looptime


@pytest.fixture
def heard():
    return []


@pytest.fixture
async def tasks(clock, heard):
    async with supervise() as supervisor:
        yield supervisor.keyed(lambda *words: heard.append(words), clock)


class Work:
    """Something to run, which fails in its first runs; knows when they began."""

    def __init__(self, clock, *lives):
        self.clock, self.lives, self.began, self.cancelled = clock, list(lives), [], 0

    async def __call__(self):
        self.began.append(self.clock.monotonic())
        try:
            await asyncio.sleep(self.lives.pop(0) if self.lives else 1e9)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

        raise KeyError("secret")


async def test_one_that_fails_is_started_again_ever_later_and_ends_no_other(tasks, clock):
    bad, good = Work(clock, *[0.0] * 8), Work(clock)
    tasks.start("a", bad, "bad")
    tasks.start("b", good, "good")
    await clock.sleep(200)
    pauses = [after - before for before, after in zip(bad.began, bad.began[1:], strict=False)]
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]
    assert good.began == [0]


async def test_a_failure_after_a_good_while_begins_with_a_short_pause_again(tasks, clock):
    work = Work(clock, 0, 0, 0, 100, 0)
    tasks.start("a", work, "work")
    await clock.sleep(200)
    assert work.began == [0, 1, 3, 7, 108, 110]


async def test_its_failure_is_told_until_it_has_worked_for_a_while(tasks, clock, heard):
    tasks.start("a", Work(clock, 0, 30), "work")
    await clock.sleep(1)
    ((key, name, error),) = heard
    assert (key, name, str(error)) == ("a", "work", "'secret'")
    await clock.sleep(31)
    assert [error is None for _key, _name, error in heard] == [False, False]
    await clock.sleep(61)
    assert [error is None for _key, _name, error in heard] == [False, False, True]


async def test_one_that_ends_by_itself_is_done(tasks, clock, heard):
    async def brief():
        await clock.sleep(1)

    tasks.start("a", brief, "brief")
    assert tasks.is_active("a")
    await clock.sleep(2)
    assert not tasks.is_active("a")
    assert heard == [("a", "brief", None)]


async def test_all_of_a_key_are_stopped_also_while_they_wait_to_be_started_again(tasks, clock):
    failing, running, other = Work(clock, 0), Work(clock), Work(clock)
    tasks.start("a", failing, "failing")
    tasks.start("a", running, "running")
    tasks.start("b", other, "other")
    await clock.sleep(0.5)
    await tasks.end("a")
    await tasks.end("a")
    assert not tasks.is_active("a")
    await clock.sleep(100)
    assert (len(failing.began), running.cancelled, other.cancelled) == (1, 1, 0)


async def test_they_end_with_their_supervisor(clock):
    work = Work(clock)
    async with supervise() as supervisor:
        tasks: keyed_tasks.KeyedTasks[str] = supervisor.keyed(clock=clock)
        tasks.start("a", work, "work")
        await clock.sleep(1)

    assert work.cancelled == 1


async def start_late(tasks, moment):
    """Start a task of `tasks` at the moment named in the end of its supervisor's block."""
    work, closing = Work(SystemClock()), asyncio.Event()

    async def part():
        """Take its time to end, as a part that has clean-up to do."""
        try:
            await sleep_forever()
        finally:
            closing.set()
            await asyncio.sleep(1)

    async def owner():
        async with supervise() as supervisor:
            tasks.append(supervisor.keyed())
            supervisor.start(part(), "part")
            await sleep_forever()

    running = asyncio.create_task(owner())
    await asyncio.sleep(0.1)
    running.cancel()
    if moment == "while another task ends":
        await closing.wait()
    else:
        await asyncio.wait([running])

    tasks[0].start("a", work, "work")
    await asyncio.wait([running])
    return work


@pytest.mark.parametrize("moment", ["while another task ends", "after the block"])
async def test_none_is_started_once_their_supervisor_ends(moment):
    """The parts of a process that ends are cancelled one by one, and the others still tell it."""
    tasks: list[keyed_tasks.KeyedTasks[str]] = []
    work = await asyncio.wait_for(start_late(tasks, moment), 10)
    assert work.began == []
    assert not tasks[0].is_active("a")


async def test_who_cannot_be_told_ends_nothing(clock):
    def fail(*_words):
        raise ValueError

    work = Work(clock, 0)
    async with supervise() as supervisor:
        supervisor.keyed(fail, clock).start("a", work, "work")
        await clock.sleep(10)

    assert work.began == [0, 1]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (Unreachable("no answer"), "no answer"),
        (ExceptionGroup("", [ExceptionGroup("", [ConfigError("write it so")])]), "write it so"),
        (KeyError("secret"), "unexpected KeyError: see the agent's log"),
    ],
)
async def test_only_words_of_our_own_are_shown(error, text):
    assert keyed_tasks.explain(error) == text
