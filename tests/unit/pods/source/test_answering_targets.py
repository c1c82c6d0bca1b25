"""A target that answers again has its pods looked at, however many, and nobody waits for that."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from tests import computing
from tests.computing import WorkingClock
from tests.unit.pods.bound_pods import RUNNING, BoundPodsEnvironment
from tests.unit.pods.policies import spread
from vnode.api.clock import Clock

pytestmark = pytest.mark.looptime

PODS: Final = 2000


async def test_pods_of_a_target_that_answers_again_are_looked_at_in_steps(clock: Clock) -> None:
    env = BoundPodsEnvironment(WorkingClock(clock), policy=spread())
    for number in range(PODS):
        pod = env.add(f"p{number}", status=RUNNING)
        env.target.add(pod, **RUNNING)

    async with env.running():
        await asyncio.sleep(30)
        env.target.set_answering(False)
        with computing.steps() as steps:
            asyncio.get_running_loop().call_soon(env.target.set_answering, True)
            await asyncio.sleep(5)

    assert max(steps) < 0.02
    assert len(steps) > PODS, "they were not looked at"
