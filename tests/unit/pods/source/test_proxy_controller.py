"""What follows from a proxy pod's binding, in the source and in all targets."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.pods.bound_pods import RUNNING, BoundPodsEnvironment, is_allowed, new_pod
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Denied

pytestmark = pytest.mark.looptime

ALLOW = ("patch", "")


@pytest.fixture
async def env(clock: Clock) -> BoundPodsEnvironment:
    return BoundPodsEnvironment(clock)


@pytest.fixture
async def two(clock: Clock) -> BoundPodsEnvironment:
    return BoundPodsEnvironment(clock, 2)


# --- the winner and the losers


async def test_the_candidate_of_a_bound_pod_is_allowed_by_one_write(
    env: BoundPodsEnvironment,
) -> None:
    env.target.add(env.add(), allowed=False)
    async with env.running():
        assert is_allowed(env.target.chaperon())
        env.change(lambda pod: pod["metadata"]["annotations"].update(note="x"))
        await asyncio.sleep(1)
        allowing = [
            request
            for request in env.target.server.received("patch")
            if keys.IS_ALLOWED in objects.annotations(request.body)
        ]
        assert len(allowing) == 1
        assert objects.uid(allowing[0].body) == objects.uid(env.target.chaperon() or {})


async def test_a_candidate_of_a_former_version_gets_its_changes_before_it_may_run(
    env: BoundPodsEnvironment,
) -> None:
    """Somebody else has bound the pod where its candidate was waiting."""
    env.target.add(env.add(), allowed=False)

    def change(pod: objects.Object) -> None:
        pod["spec"]["containers"][0]["image"] = "another"

    env.source.change(kinds.PODS, "web", "shop", change)
    async with env.running():
        first, second = env.target.server.received("patch", kinds.POD_CHAPERONS)
        assert objects.spec(first.body)["containers"][0]["image"] == "another"
        assert not is_allowed(first.body)
        assert is_allowed(second.body)


async def test_a_pod_may_run_once_its_services_are_there(env: BoundPodsEnvironment) -> None:
    env.services.clear()
    env.target.add(env.add(), allowed=False)
    async with env.running():
        assert not is_allowed(env.target.chaperon())
        env.services.set()
        await asyncio.sleep(1)
        assert is_allowed(env.target.chaperon())


async def test_no_candidate_is_allowed_or_deleted_before_its_pod_is_bound(
    two: BoundPodsEnvironment,
) -> None:
    pod = two.add(node="")
    for target in two.targets:
        target.add(pod, allowed=False)
        target.annotate(keys.IS_RESERVED)

    async with two.running(seconds=100):
        assert [target.writes for target in two.targets] == [[], []]
        assert not any(is_allowed(target.chaperon()) for target in two.targets)


async def test_the_losers_of_a_pod_are_deleted_when_it_is_bound(two: BoundPodsEnvironment) -> None:
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
    two: BoundPodsEnvironment,
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


async def test_a_loser_of_a_target_that_does_not_answer_is_deleted_when_it_does(
    two: BoundPodsEnvironment,
) -> None:
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


async def test_a_chaperon_is_an_orphan_only_if_the_api_server_says_so(
    env: BoundPodsEnvironment,
) -> None:
    """A watch that is silent has not shown the pod."""
    async with env.running():
        env.source.silence_watches(kinds.PODS)
        env.target.add(env.add())
        env.target.add(new_pod("gone"))
        env.target.add(new_pod("other"))
        env.add("other", metadata={"uid": "a-namesake"})
        await asyncio.sleep(1)
        assert not objects.is_terminating(env.target.chaperon() or {})
        assert objects.is_terminating(env.target.chaperon("gone") or {})
        assert objects.is_terminating(env.target.chaperon("other") or {})


async def test_nothing_is_written_again_before_the_write_before_is_seen(
    env: BoundPodsEnvironment,
) -> None:
    env.target.add(env.add(), allowed=False)
    async with env.running(seconds=0):
        env.target.server.silence_watches()
        for number in range(5):
            env.change(lambda pod, n=number: pod["metadata"].update(labels={"n": str(n)}))
            await asyncio.sleep(1)

        assert env.target.writes == [ALLOW]


# --- what is told of the delegate


async def test_statuses_that_come_in_a_flock_are_written_once(env: BoundPodsEnvironment) -> None:
    env.target.add(env.add())
    async with env.running():
        for count in range(5):
            env.target.report(**RUNNING, message=str(count))
            await asyncio.sleep(0.001)

        await asyncio.sleep(1)
        assert env.status()["phase"] == "Running"
        assert env.status()["message"] == "4"
        assert env.written() == [("patch", "status")]


async def test_until_a_write_to_the_pod_is_seen_nothing_is_decided_about_it(
    env: BoundPodsEnvironment,
) -> None:
    env.target.add(env.add())
    async with env.running():
        env.source.silence_watches(kinds.PODS)
        env.target.report(**RUNNING)
        await asyncio.sleep(1)
        env.target.report(phase="Failed")
        env.target.annotate(keys.DELEGATE_DELETED)
        await asyncio.sleep(1)
        assert env.written() == [("patch", "status")]
        assert not env.is_ending()
        env.source.cut_watches(kinds.PODS)
        await asyncio.sleep(1)
        assert env.status()["phase"] == "Failed"
        assert env.is_ending()


async def test_what_changes_of_a_pod_is_sent(env: BoundPodsEnvironment) -> None:
    env.target.add(env.add())
    async with env.running():
        env.change(lambda pod: pod["metadata"].update(labels={"app": "db"}))
        await asyncio.sleep(1)
        chaperon = env.target.chaperon() or {}
        assert objects.labels(chaperon)[keys.PREFIX + "app"] == "db"


async def test_what_a_target_reports_is_taken_over_though_it_does_not_answer_now(
    env: BoundPodsEnvironment,
) -> None:
    env.target.add(env.add(), allowed=False)
    env.target.set_answering(False)
    env.target.report(**RUNNING)
    async with env.running():
        assert env.status()["phase"] == "Running"
        assert env.target.writes == []
        env.target.set_answering(True)
        await asyncio.sleep(1)
        assert env.target.writes == [ALLOW]
