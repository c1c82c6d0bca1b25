"""No pod of a gang is allowed to run before enough of it are bound."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.pods.bound_pods import SPACE, BoundPodsEnvironment, new_pod
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.objects import Object

pytestmark = pytest.mark.looptime

_PODS = kinds.PODS


def member(name: str, node: str) -> Object:
    annotations = {keys.GANG: "g", keys.GANG_MINIMUM: "2"}
    return new_pod(name, node, metadata={"annotations": annotations})


def allowed(env: BoundPodsEnvironment, name: str) -> bool:
    return keys.IS_ALLOWED in objects.annotations(env.target.chaperon(name) or {})


async def test_those_that_are_bound_wait_for_the_others_and_then_all_run(clock: Clock) -> None:
    env = BoundPodsEnvironment(clock)
    env.proxies.subscribe(env.gangs.on_pod)
    for name in ("a", "b"):
        env.target.add(member(name, env.target.node), allowed=False)

    env.source.add(_PODS, member("a", env.target.node))
    env.source.add(_PODS, member("b", ""))
    async with env.running():
        assert not allowed(env, "a")
        binding = {"metadata": {"name": "b"}, "target": {"kind": "Node", "name": env.target.node}}
        env.source.writer.bind(objects.join_key(SPACE, "b"), binding)
        await asyncio.sleep(1)
        assert not allowed(env, "a")  # nor has the target a place for both
        for name in ("a", "b"):
            env.target.annotate(keys.IS_RESERVED, name=name)

        await asyncio.sleep(1)
        assert allowed(env, "a")
        assert allowed(env, "b")


async def test_one_that_runs_already_shows_that_the_others_may(clock: Clock) -> None:
    env = BoundPodsEnvironment(clock)
    env.proxies.subscribe(env.gangs.on_pod)
    env.target.add(member("a", env.target.node), allowed=True)
    env.source.add(_PODS, member("a", env.target.node))
    async with env.running():
        assert env.gangs.may_run("a")
