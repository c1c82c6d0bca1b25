"""A list of parts is started in its order, and as far as the configuration asks for it."""

from __future__ import annotations

import asyncio

from vnode.agent import parts
from vnode.agent.parts import AwaitedStep, Part
from vnode.runtime.supervisor import Supervisor, sleep_forever, supervise


async def test_a_part_starts_after_the_steps_before_it_and_only_where_it_is_wanted() -> None:
    begun: list[str] = []
    known = asyncio.Event()

    def part(name: str, *, when: bool = True) -> Part:
        async def run() -> None:
            begun.append(name)
            await sleep_forever()

        return Part(name, run, when=when)

    async def refuse(_tasks: Supervisor) -> None:
        raise AssertionError("nobody asked for it")

    listed = (
        part("first"),
        part("unwanted", when=False),
        AwaitedStep("unwanted-step", refuse, when=False),
        AwaitedStep("known", lambda _tasks: known.wait()),
        part("last"),
    )
    async with supervise() as tasks:
        starting = asyncio.create_task(parts.start(listed, tasks), name="starting")
        await asyncio.sleep(0.01)
        assert begun == ["first"]
        known.set()
        await starting
        await asyncio.sleep(0)
        assert begun == ["first", "last"]
        assert {"first", "last"} <= {task.get_name() for task in asyncio.all_tasks()}
        tasks.stop()


async def test_a_step_may_start_tasks_of_its_own() -> None:
    async def serve(tasks: Supervisor) -> None:
        tasks.start(sleep_forever(), "served")

    async with supervise() as tasks:
        await parts.start((AwaitedStep("servers", serve),), tasks)
        await asyncio.sleep(0)
        assert "served" in {task.get_name() for task in asyncio.all_tasks()}
        tasks.stop()
