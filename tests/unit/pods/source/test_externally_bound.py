"""The informers of pods that others bound live as long as their leader, and no longer."""

from __future__ import annotations

import asyncio

import pytest

from tests import background
from tests.apiserver.server import APIServer
from vnode.api.clock import Clock
from vnode.pods.source.externally_bound import ExternallyBoundPods


@pytest.fixture
async def bound(clock: Clock) -> ExternallyBoundPods:
    server = APIServer("away", clock)
    server.stop()
    return ExternallyBoundPods(server.client(), lambda _key: None, lambda pod: pod)


def followed() -> set[str]:
    return {task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("on-")}


async def test_nodes_are_followed_whether_they_come_before_or_after_the_start(
    bound: ExternallyBoundPods,
) -> None:
    bound.watch("early")
    async with background.running(bound.run()):
        await asyncio.sleep(0)
        bound.watch("late")
        assert followed() == {"on-early", "on-late"}
        bound.forget("early")
        await asyncio.sleep(0)
        assert followed() == {"on-late"}

    assert followed() == set()


async def test_a_target_that_comes_when_the_term_is_over_does_no_harm(
    bound: ExternallyBoundPods,
) -> None:
    async with background.running(bound.run()):
        await asyncio.sleep(0)
        bound.watch("before")

    bound.watch("after")
    assert followed() == set()
