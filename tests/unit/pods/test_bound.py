"""The informers of pods that others bound live as long as their leader, and no longer."""

from __future__ import annotations

import asyncio
from typing import Any

from vnode.api.errors import Unreachable
from vnode.pods.bound import BoundPods


class Away:
    """A client whose server is away."""

    name = "away"

    async def list_at(self, *_args: Any, **_selectors: Any) -> None:
        raise Unreachable("away")


def bound_pods() -> BoundPods:
    client: Any = Away()
    return BoundPods(client, lambda _key: None, lambda pod: pod)


def followed() -> set[str]:
    return {task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("on-")}


async def test_nodes_are_followed_whether_they_come_before_or_after_the_start() -> None:
    bound = bound_pods()
    bound.watch("early")
    task = asyncio.create_task(bound.run())
    await asyncio.sleep(0)
    bound.watch("late")
    assert followed() == {"on-early", "on-late"}
    bound.forget("early")
    await asyncio.sleep(0)
    assert followed() == {"on-late"}
    task.cancel()
    await asyncio.wait([task])
    assert followed() == set()


async def test_a_target_that_comes_when_the_term_is_over_does_no_harm() -> None:
    bound = bound_pods()
    task = asyncio.create_task(bound.run())
    await asyncio.sleep(0)
    bound.watch("before")
    task.cancel()
    await asyncio.wait([task])
    bound.watch("after")
    assert followed() == set()
