"""When a bound proxy pod has lost its delegate, and when it only seems so."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.pods.bound_pods import RUNNING, World
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Unreachable
from vnode.runtime import write_limits
from vnode.runtime.write_limits import WriteLimit

pytestmark = pytest.mark.looptime


@pytest.fixture
async def world(clock: Clock) -> World:
    return World(clock)


async def test_a_pod_whose_chaperon_its_target_does_not_have_is_deleted(world: World) -> None:
    world.add(metadata={"finalizers": ["example.com/kept"]})
    async with world.running():
        assert world.is_ending()
        condition = objects.condition(world.pod() or {}, "DisruptionTarget") or {}
        assert "target shop/c2 was deleted there" in condition["message"]
        (message,) = world.event_messages("DelegateLost")
        assert condition["message"] in message
        assert world.target.writes == []


async def test_nothing_is_concluded_from_a_target_before_its_list_is_complete(world: World) -> None:
    world.add()
    async with world.running(seconds=0):
        world.target.link.chaperons.synced.clear()
        await asyncio.sleep(100)
        assert not world.is_ending()
        assert world.target.server.count("list", kinds.POD_CHAPERONS) == 1


async def test_nothing_is_concluded_from_a_target_that_does_not_answer(world: World) -> None:
    world.add()
    world.target.set_answering(False)
    async with world.running(seconds=100):
        assert not world.is_ending()
        world.target.set_answering(True)
        await asyncio.sleep(1)
        assert world.is_ending()


async def test_the_target_itself_has_the_last_word_on_a_chaperon(world: World) -> None:
    async with world.running():
        world.target.server.silence_watches()
        world.target.add(world.add())
        await asyncio.sleep(30)
        assert not world.is_ending()
        world.target.remove()
        await asyncio.sleep(3)
        assert world.is_ending()


async def test_a_target_that_fails_to_say_whether_it_has_a_chaperon_is_asked_again(
    world: World,
) -> None:
    async with world.running():
        fault = world.target.server.fail(Unreachable("away"), verb="list", times=None)
        world.add()
        await asyncio.sleep(100)
        assert not world.is_ending()
        fault.clear()
        await asyncio.sleep(31)
        assert world.is_ending()


async def test_a_pod_ends_as_soon_as_its_delegate_begins_to(world: World) -> None:
    """Its last status comes first, which says why, so that we need not."""
    world.target.add(world.add(), **RUNNING)
    async with world.running():
        world.target.report(phase="Failed", reason="Evicted")
        world.target.annotate(keys.DELEGATE_DELETED)
        await asyncio.sleep(1)
        assert world.is_ending()
        assert world.status()["reason"] == "Evicted"
        assert objects.condition(world.pod() or {}, "DisruptionTarget") is None
        assert world.written()[:3] == [("patch", "status"), ("patch", "status"), ("delete", "")]
        assert len(world.event_messages("DelegateLost")) == 1


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("reason", ["PreemptionByScheduler", "EvictionByEvictionAPI"])
async def test_a_pod_that_was_preempted_is_told_so(world: World, reason: str, late: bool) -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason}
    world.target.add(world.add(), **RUNNING)
    async with world.running():
        preempting = {**condition, "message": "preempting to accommodate a higher priority pod"}
        if late:
            world.target.annotate(keys.DELEGATE_DELETED)
            await asyncio.sleep(1)

        world.target.report(conditions=[preempting])
        world.target.annotate(keys.DELEGATE_DELETED)
        await asyncio.sleep(1)
        assert world.is_ending()
        words = ["in target shop/c2: preempting to accommodate a higher priority pod"]
        assert world.event_messages("Preempted") == (
            words if reason.startswith("Preemption") else []
        )


@pytest.mark.parametrize("note", [keys.DELEGATE_DELETED, keys.POD_MISSING_SINCE])
async def test_a_pod_is_lost_by_either_word_of_its_target(world: World, note: str) -> None:
    world.target.add(world.add(), **RUNNING)
    async with world.running():
        assert not world.is_ending()
        world.target.annotate(note)
        await asyncio.sleep(1)
        assert world.is_ending()


async def test_a_pod_that_is_complete_outlives_its_delegate_and_its_chaperon_goes(
    world: World,
) -> None:
    pod = world.add(spec={"restartPolicy": "Never"}, status={"phase": "Succeeded"})
    world.target.add(pod, phase="Succeeded")
    world.target.annotate(keys.POD_MISSING_SINCE)
    async with world.running():
        assert world.target.writes == [("delete", "")]
        world.target.remove()
        await asyncio.sleep(100)
        assert not world.is_ending()
        assert world.event_messages("DelegateLost") == []


async def test_pods_of_a_target_that_is_deleted_go_when_its_link_does(world: World) -> None:
    world.target.add(world.add())
    async with world.running():
        world.existing.clear()
        world.links.remove(world.target.link)
        await asyncio.sleep(1)
        assert world.is_ending()
        assert "its Target was deleted" in world.event_messages("DelegateLost")[0]


async def test_pods_stay_while_their_target_exists_without_a_link(world: World) -> None:
    world.target.add(world.add())
    async with world.running():
        world.links.remove(world.target.link)
        await asyncio.sleep(100)
        assert not world.is_ending()


async def test_of_many_delegates_that_a_target_has_lost_the_pods_are_deleted_little_by_little(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is made anew by its owner, and may go to that target again."""
    monkeypatch.setattr(write_limits, "LOST_PODS", WriteLimit(5, 2.0))
    world = World(clock, 2)
    loud, calm = world.targets
    for number in range(30):
        loud.add(world.add(f"loud-{number}"))
        loud.annotate(keys.DELEGATE_DELETED, name=f"loud-{number}")

    def deleted() -> int:
        return sum(world.is_ending(f"loud-{number}") for number in range(30))

    calm.add(world.add("calm", node=calm.node))
    async with world.running(seconds=2):
        assert 5 <= deleted() <= 5 + 2 * 2 + 1
        calm.annotate(keys.DELEGATE_DELETED, name="calm")
        await asyncio.sleep(0.1)
        assert world.is_ending("calm")
        await asyncio.sleep(5)
        assert 15 <= deleted() <= 5 + 7 * 2 + 1
        await asyncio.sleep(10)
        assert deleted() == 30
