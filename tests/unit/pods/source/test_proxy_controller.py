"""What follows from a proxy pod's binding, in the source and in all targets."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.pods.bound_pods import RUNNING, World, is_allowed, new_pod
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Denied

pytestmark = pytest.mark.looptime

ALLOW = ("patch", "")


@pytest.fixture
async def world(clock: Clock) -> World:
    return World(clock)


@pytest.fixture
async def two(clock: Clock) -> World:
    return World(clock, 2)


# --- the winner and the losers


async def test_the_candidate_of_a_bound_pod_is_allowed_by_one_write(world: World) -> None:
    world.target.add(world.add(), allowed=False)
    async with world.running():
        assert is_allowed(world.target.chaperon())
        world.change(lambda pod: pod["metadata"]["annotations"].update(note="x"))
        await asyncio.sleep(1)
        allowing = [
            request
            for request in world.target.server.received("patch")
            if keys.IS_ALLOWED in objects.annotations(request.body)
        ]
        assert len(allowing) == 1
        assert objects.uid(allowing[0].body) == objects.uid(world.target.chaperon() or {})


async def test_a_pod_may_run_once_its_services_are_there(world: World) -> None:
    world.services.clear()
    world.target.add(world.add(), allowed=False)
    async with world.running():
        assert not is_allowed(world.target.chaperon())
        world.services.set()
        await asyncio.sleep(1)
        assert is_allowed(world.target.chaperon())


async def test_no_candidate_is_allowed_or_deleted_before_its_pod_is_bound(two: World) -> None:
    pod = two.add(node="")
    for target in two.targets:
        target.add(pod, allowed=False)
        target.annotate(keys.IS_RESERVED)

    async with two.running(seconds=100):
        assert [target.writes for target in two.targets] == [[], []]
        assert not any(is_allowed(target.chaperon()) for target in two.targets)


async def test_the_losers_of_a_pod_are_deleted_when_it_is_bound(two: World) -> None:
    pod = two.add(node="")
    winner, loser = two.targets
    for target in two.targets:
        target.add(pod, allowed=False)

    async with two.running():
        binding = {"metadata": {"name": "web"}, "target": {"name": winner.node}}
        await two.source.client("scheduler").create(
            kinds.PODS, binding, "shop", name="web", subresource="binding"
        )
        await asyncio.sleep(1)
        assert is_allowed(winner.chaperon())
        assert not is_allowed(loser.chaperon())
        assert objects.is_terminating(loser.chaperon() or {})
        assert (winner.writes, loser.writes) == ([ALLOW], [("delete", "")])


async def test_a_loser_whose_target_refuses_is_deleted_later_and_holds_up_nobody(
    two: World,
) -> None:
    winner, loser = two.targets
    for target in two.targets:
        target.add(two.add() if target is winner else new_pod(node=winner.node), allowed=False)

    loser.server.fail(Denied(403, "", "no way"), verb="delete")
    async with two.running():
        assert is_allowed(winner.chaperon())
        assert not objects.is_terminating(loser.chaperon() or {})
        await asyncio.sleep(30)
        assert objects.is_terminating(loser.chaperon() or {})


async def test_a_loser_of_a_target_that_does_not_answer_is_deleted_when_it_does(two: World) -> None:
    winner, loser = two.targets
    two.add()
    loser.add(new_pod(node=winner.node), allowed=False)
    loser.set_answering(False)
    winner.add(new_pod(node=winner.node))
    async with two.running(seconds=100):
        assert loser.writes == []
        loser.set_answering(True)
        await asyncio.sleep(1)
        assert loser.writes == [("delete", "")]


async def test_a_chaperon_is_an_orphan_only_if_the_api_server_says_so(world: World) -> None:
    """A watch that is silent has not shown the pod."""
    async with world.running():
        world.source.silence_watches(kinds.PODS)
        world.target.add(world.add())
        world.target.add(new_pod("gone"))
        world.target.add(new_pod("other"))
        world.add("other", metadata={"uid": "a-namesake"})
        await asyncio.sleep(1)
        assert not objects.is_terminating(world.target.chaperon() or {})
        assert objects.is_terminating(world.target.chaperon("gone") or {})
        assert objects.is_terminating(world.target.chaperon("other") or {})


async def test_nothing_is_written_again_before_the_write_before_is_seen(world: World) -> None:
    world.target.add(world.add(), allowed=False)
    async with world.running(seconds=0):
        world.target.server.silence_watches()
        for number in range(5):
            world.change(lambda pod, n=number: pod["metadata"].update(labels={"n": str(n)}))
            await asyncio.sleep(1)

        assert world.target.writes == [ALLOW]


# --- what is told of the delegate


async def test_statuses_that_come_in_a_flock_are_written_once(world: World) -> None:
    world.target.add(world.add())
    async with world.running():
        for count in range(5):
            world.target.report(**RUNNING, message=str(count))
            await asyncio.sleep(0.001)

        await asyncio.sleep(1)
        assert world.status()["phase"] == "Running"
        assert world.status()["message"] == "4"
        assert world.written() == [("patch", "status")]


async def test_until_a_write_to_the_pod_is_seen_nothing_is_decided_about_it(world: World) -> None:
    world.target.add(world.add())
    async with world.running():
        world.source.silence_watches(kinds.PODS)
        world.target.report(**RUNNING)
        await asyncio.sleep(1)
        world.target.report(phase="Failed")
        world.target.annotate(keys.DELEGATE_DELETED)
        await asyncio.sleep(1)
        assert world.written() == [("patch", "status")]
        assert not world.is_ending()
        world.source.cut_watches(kinds.PODS)
        await asyncio.sleep(1)
        assert world.status()["phase"] == "Failed"
        assert world.is_ending()


async def test_what_changes_of_a_pod_is_sent(world: World) -> None:
    world.target.add(world.add())
    async with world.running():
        world.change(lambda pod: pod["metadata"].update(labels={"app": "db"}))
        await asyncio.sleep(1)
        chaperon = world.target.chaperon() or {}
        assert objects.labels(chaperon)[keys.PREFIX + "app"] == "db"


async def test_what_a_target_reports_is_taken_over_though_it_does_not_answer_now(
    world: World,
) -> None:
    world.target.add(world.add(), allowed=False)
    world.target.set_answering(False)
    world.target.report(**RUNNING)
    async with world.running():
        assert world.status()["phase"] == "Running"
        assert world.target.writes == []
        world.target.set_answering(True)
        await asyncio.sleep(1)
        assert world.target.writes == [ALLOW]
