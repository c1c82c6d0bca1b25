"""A target goes back to Admiralty, or its agent is down: pods there end, and none is harmed.

Chaperons have vnode's finalizer, which nobody there takes off. As with Admiralty, the end of a
chaperon then has Kubernetes delete the delegate.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.pods.bound_pods import SPACE, BoundPodsEnvironment, BoundTarget
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Denied

pytestmark = pytest.mark.looptime


@pytest.fixture
async def env(clock: Clock) -> BoundPodsEnvironment:
    return BoundPodsEnvironment(clock)


def add_delegate(target: BoundTarget, uid: str = "web") -> None:
    labels = {keys.PARENT_UID: uid}
    metadata = {"name": "delegate", "namespace": SPACE, "labels": labels}
    target.server.add(kinds.PODS, {"metadata": metadata, "status": {"phase": "Running"}})


def go_silent(target: BoundTarget) -> None:
    """Tell the link that the agent is silent, as a heartbeat monitor does after a while."""
    target.link.set_agent_silent(False)
    target.link.set_agent_silent(True)


def sound_again(target: BoundTarget) -> None:
    target.link.set_agent_silent(False)


async def test_a_pod_that_is_deleted_ends_once_no_delegate_is_left(
    env: BoundPodsEnvironment,
) -> None:
    env.target.add(env.add(), phase="Running")
    add_delegate(env.target)
    async with env.running():
        go_silent(env.target)
        await env.delete()
        await asyncio.sleep(5)
        assert env.target.chaperon() is None  # so that its delegate is deleted
        assert env.pod() is not None
        env.target.server.remove(kinds.PODS, "delegate", SPACE)
        await asyncio.sleep(5)
        assert env.pod() is None


async def test_a_pod_that_was_ending_when_the_agent_left_ends_too(
    env: BoundPodsEnvironment,
) -> None:
    env.target.add(env.add(), phase="Running")
    add_delegate(env.target)
    async with env.running():
        await env.delete()
        await asyncio.sleep(60)
        assert env.target.chaperon() is not None
        go_silent(env.target)
        await asyncio.sleep(5)
        assert env.target.chaperon() is None
        sound_again(env.target)  # which does not bring the finalizer back
        await asyncio.sleep(5)
        assert env.pod() is not None
        env.target.server.remove(kinds.PODS, "delegate", SPACE)
        await asyncio.sleep(5)
        assert env.pod() is None


async def test_a_candidate_that_lost_goes_too(env: BoundPodsEnvironment) -> None:
    env.target.add(env.add(node="another"), allowed=False)
    async with env.running():
        go_silent(env.target)
        await asyncio.sleep(5)
        assert env.target.chaperon() is None


async def test_a_chaperon_that_somebody_deletes_there_goes_and_its_pod_with_it(
    env: BoundPodsEnvironment,
) -> None:
    chaperon = env.target.add(env.add(), phase="Running")
    async with env.running():
        go_silent(env.target)
        name = objects.name(chaperon)
        await env.target.server.client("user").delete(kinds.POD_CHAPERONS, name, SPACE)
        await asyncio.sleep(5)
        assert env.target.chaperon() is None
        assert env.is_ending()


async def test_pods_that_nobody_deletes_run_on_as_they_are(env: BoundPodsEnvironment) -> None:
    env.target.add(env.add(), phase="Running")
    async with env.running():
        before = env.target.chaperon()
        go_silent(env.target)
        await asyncio.sleep(600)
        sound_again(env.target)
        await asyncio.sleep(60)
        assert env.target.chaperon() == before
        assert not env.is_ending()
        assert env.target.writes == []


async def test_a_change_waits_for_an_agent_that_is_down_and_is_not_undone(
    env: BoundPodsEnvironment,
) -> None:
    added = env.target.add(env.add(metadata={"annotations": {"a": "1"}}), phase="Running")
    assert objects.annotations(added)["a"] == "1"
    async with env.running():
        go_silent(env.target)
        env.change(lambda pod: pod["metadata"]["annotations"].update(a="2"))
        await asyncio.sleep(60)
        assert objects.annotations(env.pod() or {})["a"] == "2"
        assert env.target.writes == []
        sound_again(env.target)
        await asyncio.sleep(5)
        assert '"a":"2"' in objects.annotations(env.target.chaperon() or {})[keys.SENT]


async def test_the_grace_period_of_a_deletion_waits_for_an_agent_that_is_down(
    env: BoundPodsEnvironment,
) -> None:
    env.target.add(env.add(), phase="Running")
    async with env.running():
        go_silent(env.target)
        fault = env.target.server.fail(
            Denied(403, "Forbidden", "no"), verb="delete", kind=kinds.POD_CHAPERONS, times=None
        )
        await env.delete(grace=7)
        await asyncio.sleep(5)
        found = objects.annotations(env.target.chaperon() or {})
        assert found[keys.GRACE_PERIOD] == "7"
        fault.clear()


async def test_a_finalizer_that_may_not_be_taken_off_is_tried_again(
    env: BoundPodsEnvironment,
) -> None:
    env.target.add(env.add(), phase="Running")
    async with env.running():
        go_silent(env.target)
        fault = env.target.server.fail(
            Denied(403, "Forbidden", "no"), verb="patch", kind=kinds.POD_CHAPERONS, times=None
        )
        await env.delete()
        await asyncio.sleep(20)
        assert env.target.chaperon() is not None
        fault.clear()
        await asyncio.sleep(60)
        assert env.target.chaperon() is None
        assert env.pod() is None


async def test_before_the_summary_of_a_target_is_known_no_finalizer_is_taken_off(
    env: BoundPodsEnvironment,
) -> None:
    env.target.add(env.add(), phase="Running")
    env.target.server.remove(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)
    async with env.running():
        await env.delete()
        await asyncio.sleep(60)
        assert env.target.chaperon() is not None


async def test_a_chaperon_that_others_let_go_of_says_nothing_about_its_delegate(
    env: BoundPodsEnvironment,
) -> None:
    env.target.add(env.add(), phase="Running")
    add_delegate(env.target)
    async with env.running():
        go_silent(env.target)
        error = Denied(403, "Forbidden", "no")
        env.target.server.fail(error, verb="patch", kind=kinds.POD_CHAPERONS, times=None)
        await env.delete()
        await asyncio.sleep(5)
        env.target.remove()
        await asyncio.sleep(5)
        assert env.pod() is not None
        env.target.server.remove(kinds.PODS, "delegate", SPACE)
        await asyncio.sleep(5)
        assert env.pod() is None
