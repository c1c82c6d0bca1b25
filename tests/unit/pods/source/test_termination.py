"""A proxy pod that is deleted stays as long as something of it may run, and no longer."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.pods.bound_pods import World, new_pod
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import ServerError, Unreachable

pytestmark = pytest.mark.looptime

FOREIGN = "example.com/kept"


@pytest.fixture
async def world(clock: Clock) -> World:
    return World(clock)


async def test_a_pod_goes_when_its_chaperon_has_and_not_before(world: World) -> None:
    world.target.add(world.add(), phase="Running")
    async with world.running():
        await world.delete()
        await asyncio.sleep(100)
        assert world.target.writes == [("delete", "")]
        assert objects.finalizers(world.pod() or {})
        world.target.remove()
        await asyncio.sleep(1)
        assert world.pod() is None
        assert world.written() == [("patch", "status"), ("patch", ""), ("delete", "")]


async def test_until_its_delegate_is_gone_a_pod_shows_how_that_ends(world: World) -> None:
    world.target.add(world.add(), phase="Running")
    async with world.running():
        await world.delete()
        await asyncio.sleep(1)
        world.target.report(phase="Failed", reason="Error")
        await asyncio.sleep(1)
        assert world.status()["reason"] == "Error"


async def test_what_a_chaperon_said_at_last_is_taken_over_though_it_is_gone_at_once(
    world: World,
) -> None:
    world.target.add(world.add(metadata={"finalizers": [FOREIGN]}), phase="Running")
    async with world.running():
        await world.delete()
        await asyncio.sleep(1)
        world.target.report(phase="Succeeded")
        world.target.remove()
        await asyncio.sleep(1)
        assert world.status()["phase"] == "Succeeded"
        written = world.source.received("patch", kinds.PODS, "status")
        assert "Failed" not in [objects.status(each.body).get("phase") for each in written]


async def test_a_namesake_does_not_take_over_what_its_predecessor_said(world: World) -> None:
    world.target.add(world.add(), phase="Running")
    async with world.running():
        world.source.silence_watches(kinds.PODS)  # the controller still believes in the first
        world.target.report(phase="Failed", reason="Error")
        world.target.remove()
        await asyncio.sleep(1)
        world.source.remove(kinds.PODS, "web", "shop")
        ending = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
        world.add(metadata={"uid": "another", "finalizers": [FOREIGN], **ending})
        world.source.cut_watches(kinds.PODS)
        await asyncio.sleep(10)
        assert world.status()["reason"] == "DelegateLost"


# --- how long the delegate has


@pytest.mark.parametrize(("grace", "passed_on"), [(1, "1"), (0, "0"), (None, None), (30, None)])
async def test_the_grace_period_of_a_deletion_goes_to_the_delegate_unless_it_is_the_pods_own(
    world: World, grace: int | None, passed_on: str | None
) -> None:
    world.target.add(world.add())
    async with world.running():
        await world.delete(grace=grace)
        await asyncio.sleep(1)
        chaperon = world.target.chaperon() or {}
        assert objects.annotations(chaperon).get(keys.GRACE_PERIOD) == passed_on
        patch = [("patch", "")] if passed_on else []
        assert world.target.writes == [*patch, ("delete", "")]


async def test_a_pod_that_is_to_end_faster_after_all_has_its_delegate_end_faster(
    world: World,
) -> None:
    world.target.add(world.add())
    async with world.running():
        await world.delete()
        await asyncio.sleep(1)
        await world.delete(grace=1)
        await asyncio.sleep(1)
        chaperon = world.target.chaperon() or {}
        assert objects.annotations(chaperon).get(keys.GRACE_PERIOD) == "1"
        assert world.target.writes == [("delete", ""), ("patch", "")]


# --- targets that cannot be asked


async def test_a_pod_stays_while_its_target_does_not_answer(world: World) -> None:
    world.target.add(world.add())
    async with world.running():
        world.target.set_answering(False)
        await world.delete()
        await asyncio.sleep(100)
        assert world.target.writes == []
        assert objects.finalizers(world.pod() or {})
        world.target.set_answering(True)
        await asyncio.sleep(1)
        assert world.target.writes == [("delete", "")]


async def test_a_pod_stays_before_the_list_of_its_target_is_complete(world: World) -> None:
    world.add()
    await world.delete()
    async with world.running(seconds=0):
        world.target.link.chaperons.synced.clear()
        await asyncio.sleep(100)
        assert world.pod() is not None
        assert world.target.server.count("list", kinds.PODS) == 0


async def test_a_deletion_that_fails_is_tried_again(world: World) -> None:
    world.target.add(world.add())
    world.target.server.fail(ServerError(500, "", "no leader"), verb="delete", times=3)
    async with world.running():
        await world.delete()
        await asyncio.sleep(1)
        assert objects.is_terminating(world.target.chaperon() or {})


@pytest.mark.parametrize("exists", [True, False])
async def test_without_a_link_a_pod_stays_as_long_as_its_target_exists(
    world: World, exists: bool
) -> None:
    world.target.add(world.add())
    async with world.running():
        await world.delete()
        await asyncio.sleep(1)
        if not exists:
            world.existing.clear()

        world.links.remove(world.target.link)
        if exists:
            world.change(lambda pod: pod["metadata"].update(labels={"looked": "at"}))

        await asyncio.sleep(100)
        assert (world.pod() is not None) is exists


# --- what no event tells of


async def test_a_chaperon_that_no_watch_has_shown_is_deleted_before_its_pod_goes(
    world: World,
) -> None:
    async with world.running():
        world.target.server.silence_watches()
        world.target.add(world.add())
        await world.delete()
        await asyncio.sleep(10)
        assert world.pod() is not None
        assert objects.is_terminating(world.target.chaperon() or {})
        world.target.remove()
        await asyncio.sleep(3)
        assert world.pod() is None


async def test_a_delegate_that_outlives_its_chaperon_is_waited_for(world: World) -> None:
    """As in a target that runs Admiralty, whose chaperons have no finalizer."""
    world.target.add(world.add())
    world.target.change(lambda chaperon: chaperon["metadata"].pop("finalizers"))
    world.target.server.remove(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)
    delegate = {"name": "web", "namespace": "shop", "labels": {keys.PARENT_UID: "web"}}
    world.target.server.add(kinds.PODS, {"metadata": delegate, "status": {"phase": "Failed"}})
    async with world.running():
        await world.delete(grace=1)
        await asyncio.sleep(100)
        assert world.target.chaperon() is None
        assert world.target.writes == [("delete", "")]
        assert world.status()["phase"] == "Failed"
        world.target.server.remove(kinds.PODS, "web", "shop")
        await asyncio.sleep(3)
        assert world.pod() is None


async def test_a_delegate_is_not_looked_for_if_its_chaperon_was_held_until_it_had_ended(
    world: World,
) -> None:
    world.target.add(world.add())
    async with world.running():
        await world.delete()
        await asyncio.sleep(1)
        world.target.server.requests.clear()
        world.target.remove()
        await asyncio.sleep(10)
        assert world.pod() is None
        assert world.target.server.requests == []


async def test_a_target_that_fails_to_say_what_it_has_keeps_the_pod(world: World) -> None:
    world.add()
    await world.delete()
    fault = world.target.server.fail(Unreachable("away"), verb="list", kind=kinds.PODS, times=None)
    async with world.running(seconds=100):
        assert world.pod() is not None
        fault.clear()
        await asyncio.sleep(31)
        assert world.pod() is None


# --- pods that others hold, or that are not ours


async def test_a_pod_that_others_hold_is_made_failed_if_nobody_said_how_it_ended(
    world: World,
) -> None:
    """A Job counts it only then."""
    world.add(metadata={"finalizers": [FOREIGN, world.target.link.target.finalizer]})
    await world.delete()
    async with world.running():
        pod = world.pod() or {}
        assert objects.finalizers(pod) == [FOREIGN]
        assert objects.status(pod)["phase"] == "Failed"
        assert objects.condition(pod, "DisruptionTarget")
        assert world.written() == [("patch", "status"), ("patch", ""), ("delete", "")]


async def test_a_pod_that_has_ended_keeps_its_phase_while_others_hold_it(world: World) -> None:
    world.add(metadata={"finalizers": [FOREIGN]}, status={"phase": "Succeeded"})
    await world.delete()
    async with world.running():
        assert world.status() == {"phase": "Succeeded"}


async def test_a_last_status_that_a_leader_has_not_seen_yet_stays(world: World) -> None:
    """Its predecessor wrote it, and the watch says nothing."""
    finalizers = [FOREIGN, world.target.link.target.finalizer]
    pod = world.add(metadata={"finalizers": finalizers}, status={"phase": "Running"})
    world.target.add(pod, phase="Running")
    async with world.running():
        world.target.set_answering(False)
        await world.delete()
        await asyncio.sleep(1)
        world.source.silence_watches(kinds.PODS)
        world.change(lambda pod: pod["status"].update(phase="Succeeded"))
        world.target.remove()
        world.target.set_answering(True)
        await asyncio.sleep(1)
        assert world.status()["phase"] == "Succeeded"


async def test_a_pod_whose_deletion_was_cut_off_between_its_steps_goes(world: World) -> None:
    """An API server first writes a grace period of 0: then its client was killed."""
    since = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}
    world.add(metadata={**since, "finalizers": []}, status={"phase": "Running"})
    async with world.running():
        assert world.pod() is None
        assert world.written() == [("delete", "")]


async def test_a_pod_that_was_never_bound_goes_at_once_with_its_candidate(world: World) -> None:
    world.target.add(world.add(node=""), allowed=False)
    async with world.running():
        await world.delete()
        await asyncio.sleep(1)
        assert world.pod() is None
        assert world.target.writes == [("delete", "")]


async def test_a_pod_on_a_real_node_is_left_to_its_kubelet(world: World) -> None:
    world.add(node="real-node")
    async with world.running():
        await world.delete()
        await asyncio.sleep(100)
        pod = world.pod() or {}
        assert objects.is_terminating(pod)
        assert objects.finalizers(pod) == []
        assert world.written() == [("patch", "")]


async def test_a_pod_that_runs_on_a_real_node_is_left_alone(world: World) -> None:
    """Somebody has bound it there, who knows why."""
    world.add(node="real-node")
    async with world.running(seconds=100):
        assert not world.is_ending()
        assert world.written() == []


async def test_a_pod_of_a_daemon_set_goes_without_a_word_to_its_target(world: World) -> None:
    owner = {"kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}
    world.target.add(world.add(metadata={"ownerReferences": [owner]}))
    async with world.running():
        await world.delete()
        await asyncio.sleep(1)
        assert world.pod() is None


async def test_a_pod_that_its_node_is_not_for_goes_without_a_word_to_its_target(
    world: World,
) -> None:
    strange = new_pod("web", world.target.node)
    strange["metadata"]["namespace"] = "elsewhere"
    world.source.add(kinds.PODS, strange)
    async with world.running():
        await world.source.client("user").delete(kinds.PODS, "web", "elsewhere")
        await asyncio.sleep(1)
        assert world.source.all(kinds.PODS) == []
        assert "elsewhere" not in {each.namespace for each in world.target.server.requests}
