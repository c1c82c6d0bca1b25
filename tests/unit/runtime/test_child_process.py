"""A child is started again when it ends, and never outlives the agent."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress

import pytest

from tests import background
from vnode.api.clock import SystemClock
from vnode.runtime.child_process import ChildProcess

ECHO = """
import os, sys, time
print("told", sys.stdin.readline().strip(), flush=True)
for line in sys.stdin:
    pass
"""
ENDS = 'print("hello", flush=True); raise SystemExit(7)'
SILENT = 'import sys; print("hello", flush=True); sys.stdin.read()'
STUBBORN = """
import signal, time
print("hello", flush=True)
while True:
    time.sleep(1)
"""


class NoWait(SystemClock):
    """A clock of which no sleep takes time, but leads to others' turns."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


class Children:
    """Children that run a script, and what they wrote."""

    def __init__(self, script: str, **options: float) -> None:
        self.clock = NoWait()
        self.lines: asyncio.Queue[bytes] = asyncio.Queue()
        command = (sys.executable, "-S", "-c", script)
        self.child = ChildProcess(
            "test", command, b"instructions", self.lines.put_nowait, self.clock, **options
        )

    async def line(self) -> bytes:
        async with asyncio.timeout(20):
            return await self.lines.get()


def lives(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True

    return False


async def test_it_gets_its_instructions_and_is_ready_once_it_has_written() -> None:
    children = Children(ECHO)
    assert not children.child.ready.is_set()
    async with background.running(children.child.run()):
        assert await children.line() == b"told instructions\n"
        assert children.child.ready.is_set()
        pid = children.child.pid
        assert lives(pid)

    assert not children.child.ready.is_set()
    assert not lives(pid)


async def test_one_that_ends_is_started_again_later_and_later() -> None:
    children = Children(ENDS)
    async with background.running(children.child.run()):
        for _ in range(4):
            assert await children.line() == b"hello\n"

    assert children.clock.slept[:3] == [1.0, 2.0, 4.0]


async def test_one_that_says_nothing_for_long_is_started_again() -> None:
    children = Children(SILENT, silence=0.2)
    async with background.running(children.child.run()):
        await children.line()
        first = children.child.pid
        await children.line()
        assert children.child.pid != first
        assert not lives(first)


async def test_a_stall_of_our_own_is_not_taken_for_its_silence() -> None:
    script = 'import time\nwhile True:\n    print("x", flush=True); time.sleep(0.1)'
    children = Children(script, silence=0.4)
    async with background.running(children.child.run()):
        await children.line()
        first = children.child.pid
        end = asyncio.get_running_loop().time() + 1.0
        while asyncio.get_running_loop().time() < end:
            pass

        for _ in range(5):
            await children.line()

        assert children.child.pid == first


async def test_one_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vnode.runtime.child_process._ENDING", 0.2)
    children = Children(STUBBORN)
    async with background.running(children.child.run()):
        await children.line()
        pid = children.child.pid

    assert not lives(pid)


async def test_one_that_cannot_be_started_is_tried_again() -> None:
    children = Children(ECHO)
    children.child._command = ("/nowhere/python",)
    async with background.running(children.child.run()):
        while len(children.clock.slept) < 3:  # noqa: ASYNC110 - a list has no event
            await asyncio.sleep(0)

        assert not children.child.ready.is_set()
