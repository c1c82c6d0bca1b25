"""When a bound proxy pod has lost its delegate, and when it only seems so."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.pods.bound_pods import RUNNING, BoundPodsEnvironment
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Unreachable
from vnode.runtime import write_limits
from vnode.runtime.write_limits import WriteLimit

pytestmark = pytest.mark.looptime


@pytest.fixture
async def env(clock: Clock) -> BoundPodsEnvironment:
    return BoundPodsEnvironment(clock)


async def test_a_pod_whose_chaperon_its_target_does_not_have_is_deleted(
    env: BoundPodsEnvironment,
) -> None:
    env.add(metadata={"finalizers": ["example.com/kept"]})
    async with env.running():
        assert env.is_ending()
        condition = objects.condition(env.pod() or {}, "DisruptionTarget") or {}
        assert "target shop/c2 was deleted there" in condition["message"]
        (message,) = env.event_messages("DelegateLost")
        assert condition["message"] in message
        assert env.target.writes == []


async def test_nothing_is_concluded_from_a_target_before_its_list_is_complete(
    env: BoundPodsEnvironment,
) -> None:
    env.add()
    async with env.running(seconds=0):
        env.target.link.chaperons.synced.clear()
        await asyncio.sleep(100)
        assert not env.is_ending()
        assert env.target.server.count("list", kinds.POD_CHAPERONS) == 1


async def test_nothing_is_concluded_from_a_target_that_does_not_answer(
    env: BoundPodsEnvironment,
) -> None:
    env.add()
    env.target.set_answering(False)
    async with env.running(seconds=100):
        assert not env.is_ending()
        env.target.set_answering(True)
        await asyncio.sleep(1)
        assert env.is_ending()


async def test_the_target_itself_has_the_last_word_on_a_chaperon(env: BoundPodsEnvironment) -> None:
    async with env.running():
        env.target.server.silence_watches()
        env.target.add(env.add())
        await asyncio.sleep(30)
        assert not env.is_ending()
        env.target.remove()
        await asyncio.sleep(3)
        assert env.is_ending()


async def test_a_target_that_fails_to_say_whether_it_has_a_chaperon_is_asked_again(
    env: BoundPodsEnvironment,
) -> None:
    async with env.running():
        fault = env.target.server.fail(Unreachable("away"), verb="list", times=None)
        env.add()
        await asyncio.sleep(100)
        assert not env.is_ending()
        fault.clear()
        await asyncio.sleep(31)
        assert env.is_ending()


async def test_a_pod_ends_as_soon_as_its_delegate_begins_to(env: BoundPodsEnvironment) -> None:
    """Its last status comes first, which says why, so that we need not."""
    env.target.add(env.add(), **RUNNING)
    async with env.running():
        env.target.report(phase="Failed", reason="Evicted")
        env.target.annotate(keys.DELEGATE_DELETED)
        await asyncio.sleep(1)
        assert env.is_ending()
        assert env.status()["reason"] == "Evicted"
        assert objects.condition(env.pod() or {}, "DisruptionTarget") is None
        assert env.written()[:3] == [("patch", "status"), ("patch", "status"), ("delete", "")]
        assert len(env.event_messages("DelegateLost")) == 1


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("reason", ["PreemptionByScheduler", "EvictionByEvictionAPI"])
async def test_a_pod_that_was_preempted_is_told_so(
    env: BoundPodsEnvironment, reason: str, late: bool
) -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason}
    env.target.add(env.add(), **RUNNING)
    async with env.running():
        preempting = {**condition, "message": "preempting to accommodate a higher priority pod"}
        if late:
            env.target.annotate(keys.DELEGATE_DELETED)
            await asyncio.sleep(1)

        env.target.report(conditions=[preempting])
        env.target.annotate(keys.DELEGATE_DELETED)
        await asyncio.sleep(1)
        assert env.is_ending()
        words = ["in target shop/c2: preempting to accommodate a higher priority pod"]
        assert env.event_messages("Preempted") == (words if reason.startswith("Preemption") else [])


@pytest.mark.parametrize("note", [keys.DELEGATE_DELETED, keys.POD_MISSING_SINCE])
async def test_a_pod_is_lost_by_either_word_of_its_target(
    env: BoundPodsEnvironment, note: str
) -> None:
    env.target.add(env.add(), **RUNNING)
    async with env.running():
        assert not env.is_ending()
        env.target.annotate(note)
        await asyncio.sleep(1)
        assert env.is_ending()


async def test_a_pod_that_is_complete_outlives_its_delegate_and_its_chaperon_goes(
    env: BoundPodsEnvironment,
) -> None:
    pod = env.add(spec={"restartPolicy": "Never"}, status={"phase": "Succeeded"})
    env.target.add(pod, phase="Succeeded")
    env.target.annotate(keys.POD_MISSING_SINCE)
    async with env.running():
        assert env.target.writes == [("delete", "")]
        env.target.remove()
        await asyncio.sleep(100)
        assert not env.is_ending()
        assert env.event_messages("DelegateLost") == []


async def test_pods_of_a_target_that_is_deleted_go_when_its_link_does(
    env: BoundPodsEnvironment,
) -> None:
    env.target.add(env.add())
    async with env.running():
        env.existing.clear()
        env.links.remove(env.target.link)
        await asyncio.sleep(1)
        assert env.is_ending()
        assert "its Target was deleted" in env.event_messages("DelegateLost")[0]


async def test_pods_stay_while_their_target_exists_without_a_link(
    env: BoundPodsEnvironment,
) -> None:
    env.target.add(env.add())
    async with env.running():
        env.links.remove(env.target.link)
        await asyncio.sleep(100)
        assert not env.is_ending()


async def test_of_many_delegates_that_a_target_has_lost_the_pods_are_deleted_little_by_little(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is made anew by its owner, and may go to that target again."""
    monkeypatch.setattr(write_limits, "LOST_PODS", WriteLimit(5, 2.0))
    env = BoundPodsEnvironment(clock, 2)
    loud, calm = env.targets
    for number in range(30):
        loud.add(env.add(f"loud-{number}"))
        loud.annotate(keys.DELEGATE_DELETED, name=f"loud-{number}")

    def deleted() -> int:
        return sum(env.is_ending(f"loud-{number}") for number in range(30))

    calm.add(env.add("calm", node=calm.node))
    async with env.running(seconds=2):
        assert 5 <= deleted() <= 5 + 2 * 2 + 1
        calm.annotate(keys.DELEGATE_DELETED, name="calm")
        await asyncio.sleep(0.1)
        assert env.is_ending("calm")
        await asyncio.sleep(5)
        assert 15 <= deleted() <= 5 + 7 * 2 + 1
        await asyncio.sleep(10)
        assert deleted() == 30
