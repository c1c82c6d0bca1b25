"""Describes what runs in an agent as lists of parts, which are started in their order.

`replica` has the list of every replica, `term` that of the leader. They are data, so that the
simulation runs the same lists, without what needs servers, and a test names all that it leaves out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeAlias

from vnode.runtime.supervisor import Supervisor


@dataclass(frozen=True, slots=True)
class Part:
    """A task that goes on beside all others; `run` makes what it runs when its turn comes.

    `when` says whether the configuration asks for it, `needs_servers` that it serves requests from
    outside the process, or makes some to others than the client's API server.
    """

    name: str  # of the task
    run: Callable[[], Coroutine[Any, Any, None]]
    when: bool = True
    needs_servers: bool = False


@dataclass(frozen=True, slots=True)
class AwaitedStep:
    """Something that is awaited before the rest of the list is started.

    It may start tasks of its own.
    """

    name: str
    act: Callable[[Supervisor], Awaitable[object]]
    when: bool = True
    needs_servers: bool = False


Parts: TypeAlias = tuple[Part | AwaitedStep, ...]


async def start(parts: Parts, tasks: Supervisor) -> None:
    """Start the parts that the configuration asks for, in their order; await each step."""
    for part in parts:
        if not part.when:
            continue

        if isinstance(part, AwaitedStep):
            await part.act(tasks)
        else:
            tasks.start(part.run(), part.name)
