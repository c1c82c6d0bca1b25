"""A proxy pod that is deleted stays as long as something of it may run, and no longer."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.pods.bound_pods import BoundPodsEnvironment, new_pod
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Denied, ServerError, Unreachable

pytestmark = pytest.mark.looptime

FOREIGN = "example.com/kept"


@pytest.fixture
async def env(clock: Clock) -> BoundPodsEnvironment:
    return BoundPodsEnvironment(clock)


def phases_written(env: BoundPodsEnvironment) -> list[object]:
    written = env.source.received("patch", kinds.PODS, "status")
    return [objects.status(each.body).get("phase") for each in written]


async def test_a_pod_goes_when_its_chaperon_has_and_not_before(env: BoundPodsEnvironment) -> None:
    env.target.add(env.add(), phase="Running")
    async with env.running():
        await env.delete()
        await asyncio.sleep(100)
        assert env.target.writes == [("delete", "")]
        assert objects.finalizers(env.pod() or {})
        env.target.remove()
        await asyncio.sleep(1)
        assert env.pod() is None
        assert env.written() == [("patch", "status"), ("patch", ""), ("delete", "")]


async def test_until_its_delegate_is_gone_a_pod_shows_how_that_ends(
    env: BoundPodsEnvironment,
) -> None:
    env.target.add(env.add(), phase="Running")
    async with env.running():
        await env.delete()
        await asyncio.sleep(1)
        env.target.report(phase="Failed", reason="Error")
        await asyncio.sleep(1)
        assert env.status()["reason"] == "Error"


async def test_what_a_chaperon_said_at_last_is_taken_over_though_it_is_gone_at_once(
    env: BoundPodsEnvironment,
) -> None:
    env.target.add(env.add(metadata={"finalizers": [FOREIGN]}), phase="Running")
    async with env.running():
        await env.delete()
        await asyncio.sleep(1)
        env.target.report(phase="Succeeded")
        env.target.remove()
        await asyncio.sleep(1)
        assert env.status()["phase"] == "Succeeded"
        assert "Failed" not in phases_written(env)


async def test_a_last_status_that_was_refused_is_offered_once_more(
    env: BoundPodsEnvironment,
) -> None:
    """A role was away for some seconds; a Job would count the pod as failed."""
    finalizers = [FOREIGN, env.target.link.target.finalizer]
    env.target.add(env.add(metadata={"finalizers": finalizers}), phase="Running")
    async with env.running():
        refused = env.source.fail(
            Denied(403, "Forbidden", "no"), kind=kinds.PODS, subresource="status", times=None
        )
        env.target.report(phase="Succeeded")
        await asyncio.sleep(1)
        refused.clear()
        env.target.remove()
        await asyncio.sleep(31)
        assert env.status()["phase"] == "Succeeded"
        assert not env.is_ending()
        assert "Failed" not in phases_written(env)


async def test_a_namesake_does_not_take_over_what_its_predecessor_said(
    env: BoundPodsEnvironment,
) -> None:
    env.target.add(env.add(), phase="Running")
    async with env.running():
        env.source.silence_watches(kinds.PODS)  # the controller still believes in the first
        env.target.report(phase="Failed", reason="Error")
        env.target.remove()
        await asyncio.sleep(1)
        env.source.remove(kinds.PODS, "web", "shop")
        ending = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
        env.add(metadata={"uid": "another", "finalizers": [FOREIGN], **ending})
        env.source.cut_watches(kinds.PODS)
        await asyncio.sleep(10)
        assert env.status()["reason"] == "DelegateLost"


# --- how long the delegate has


@pytest.mark.parametrize(("grace", "passed_on"), [(1, "1"), (0, "0"), (None, None), (30, None)])
async def test_the_grace_period_of_a_deletion_goes_to_the_delegate_unless_it_is_the_pods_own(
    env: BoundPodsEnvironment, grace: int | None, passed_on: str | None
) -> None:
    env.target.add(env.add())
    async with env.running():
        await env.delete(grace=grace)
        await asyncio.sleep(1)
        chaperon = env.target.chaperon() or {}
        assert objects.annotations(chaperon).get(keys.GRACE_PERIOD) == passed_on
        patch = [("patch", "")] if passed_on else []
        assert env.target.writes == [*patch, ("delete", "")]


async def test_a_pod_that_is_to_end_faster_after_all_has_its_delegate_end_faster(
    env: BoundPodsEnvironment,
) -> None:
    env.target.add(env.add())
    async with env.running():
        await env.delete()
        await asyncio.sleep(1)
        await env.delete(grace=1)
        await asyncio.sleep(1)
        chaperon = env.target.chaperon() or {}
        assert objects.annotations(chaperon).get(keys.GRACE_PERIOD) == "1"
        assert env.target.writes == [("delete", ""), ("patch", "")]


# --- targets that cannot be asked


async def test_a_pod_stays_while_its_target_does_not_answer(env: BoundPodsEnvironment) -> None:
    env.target.add(env.add())
    async with env.running():
        env.target.set_answering(False)
        await env.delete()
        await asyncio.sleep(100)
        assert env.target.writes == []
        assert objects.finalizers(env.pod() or {})
        env.target.set_answering(True)
        await asyncio.sleep(1)
        assert env.target.writes == [("delete", "")]


async def test_a_pod_stays_before_the_list_of_its_target_is_complete(
    env: BoundPodsEnvironment,
) -> None:
    env.add()
    await env.delete()
    async with env.running(seconds=0):
        env.target.link.chaperons.synced.clear()
        await asyncio.sleep(100)
        assert env.pod() is not None
        assert env.target.server.count("list", kinds.PODS) == 0


async def test_a_deletion_that_fails_is_tried_again(env: BoundPodsEnvironment) -> None:
    env.target.add(env.add())
    env.target.server.fail(ServerError(500, "", "no leader"), verb="delete", times=3)
    async with env.running():
        await env.delete()
        await asyncio.sleep(1)
        assert objects.is_terminating(env.target.chaperon() or {})


@pytest.mark.parametrize("exists", [True, False])
async def test_without_a_link_a_pod_stays_as_long_as_its_target_exists(
    env: BoundPodsEnvironment, exists: bool
) -> None:
    env.target.add(env.add())
    async with env.running():
        await env.delete()
        await asyncio.sleep(1)
        if not exists:
            env.existing.clear()

        env.links.remove(env.target.link)
        if exists:
            env.change(lambda pod: pod["metadata"].update(labels={"looked": "at"}))

        await asyncio.sleep(100)
        assert (env.pod() is not None) is exists


# --- what no event tells of


async def test_a_chaperon_that_no_watch_has_shown_is_deleted_before_its_pod_goes(
    env: BoundPodsEnvironment,
) -> None:
    async with env.running():
        env.target.server.silence_watches()
        env.target.add(env.add())
        await env.delete()
        await asyncio.sleep(10)
        assert env.pod() is not None
        assert objects.is_terminating(env.target.chaperon() or {})
        env.target.remove()
        await asyncio.sleep(3)
        assert env.pod() is None


async def test_a_delegate_that_outlives_its_chaperon_is_waited_for(
    env: BoundPodsEnvironment,
) -> None:
    """As in a target that runs Admiralty, whose chaperons have no finalizer."""
    env.target.add(env.add())
    env.target.change(lambda chaperon: chaperon["metadata"].pop("finalizers"))
    env.target.server.remove(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)
    delegate = {"name": "web", "namespace": "shop", "labels": {keys.PARENT_UID: "web"}}
    env.target.server.add(kinds.PODS, {"metadata": delegate, "status": {"phase": "Failed"}})
    async with env.running():
        await env.delete(grace=1)
        await asyncio.sleep(100)
        assert env.target.chaperon() is None
        assert env.target.writes == [("delete", "")]
        assert env.status()["phase"] == "Failed"
        env.target.server.remove(kinds.PODS, "web", "shop")
        await asyncio.sleep(3)
        assert env.pod() is None


async def test_a_delegate_is_not_looked_for_if_its_chaperon_was_held_until_it_had_ended(
    env: BoundPodsEnvironment,
) -> None:
    env.target.add(env.add())
    async with env.running():
        await env.delete()
        await asyncio.sleep(1)
        env.target.server.requests.clear()
        env.target.remove()
        await asyncio.sleep(10)
        assert env.pod() is None
        assert env.target.server.requests == []


async def test_a_target_that_fails_to_say_what_it_has_keeps_the_pod(
    env: BoundPodsEnvironment,
) -> None:
    env.add()
    await env.delete()
    fault = env.target.server.fail(Unreachable("away"), verb="list", kind=kinds.PODS, times=None)
    async with env.running(seconds=100):
        assert env.pod() is not None
        fault.clear()
        await asyncio.sleep(31)
        assert env.pod() is None


# --- pods that others hold, or that are not ours


async def test_a_pod_that_others_hold_is_made_failed_if_nobody_said_how_it_ended(
    env: BoundPodsEnvironment,
) -> None:
    """A Job counts it only then."""
    env.add(metadata={"finalizers": [FOREIGN, env.target.link.target.finalizer]})
    await env.delete()
    async with env.running():
        pod = env.pod() or {}
        assert objects.finalizers(pod) == [FOREIGN]
        assert objects.status(pod)["phase"] == "Failed"
        assert objects.condition(pod, "DisruptionTarget")
        assert env.written() == [("patch", "status"), ("patch", ""), ("delete", "")]


async def test_a_pod_that_has_ended_keeps_its_phase_while_others_hold_it(
    env: BoundPodsEnvironment,
) -> None:
    env.add(metadata={"finalizers": [FOREIGN]}, status={"phase": "Succeeded"})
    await env.delete()
    async with env.running():
        assert env.status() == {"phase": "Succeeded"}


async def test_a_last_status_that_a_leader_has_not_seen_yet_stays(
    env: BoundPodsEnvironment,
) -> None:
    """Its predecessor wrote it, and the watch says nothing."""
    finalizers = [FOREIGN, env.target.link.target.finalizer]
    pod = env.add(metadata={"finalizers": finalizers}, status={"phase": "Running"})
    env.target.add(pod, phase="Running")
    async with env.running():
        env.target.set_answering(False)
        await env.delete()
        await asyncio.sleep(1)
        env.source.silence_watches(kinds.PODS)
        env.change(lambda pod: pod["status"].update(phase="Succeeded"))
        env.target.remove()
        env.target.set_answering(True)
        await asyncio.sleep(1)
        assert env.status()["phase"] == "Succeeded"


async def test_a_pod_whose_deletion_was_cut_off_between_its_steps_goes(
    env: BoundPodsEnvironment,
) -> None:
    """An API server first writes a grace period of 0: then its client was killed."""
    since = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}
    env.add(metadata={**since, "finalizers": []}, status={"phase": "Running"})
    async with env.running():
        assert env.pod() is None
        assert env.written() == [("delete", "")]


async def test_a_pod_that_was_never_bound_goes_at_once_with_its_candidate(
    env: BoundPodsEnvironment,
) -> None:
    env.target.add(env.add(node=""), allowed=False)
    async with env.running():
        await env.delete()
        await asyncio.sleep(1)
        assert env.pod() is None
        assert env.target.writes == [("delete", "")]


async def test_a_pod_on_a_real_node_is_left_to_its_kubelet(env: BoundPodsEnvironment) -> None:
    env.add(node="real-node")
    async with env.running():
        await env.delete()
        await asyncio.sleep(100)
        pod = env.pod() or {}
        assert objects.is_terminating(pod)
        assert objects.finalizers(pod) == []
        assert env.written() == [("patch", "")]


async def test_a_pod_that_runs_on_a_real_node_is_left_alone(env: BoundPodsEnvironment) -> None:
    """Somebody has bound it there, who knows why."""
    env.add(node="real-node")
    async with env.running(seconds=100):
        assert not env.is_ending()
        assert env.written() == []


async def test_a_pod_of_a_daemon_set_goes_without_a_word_to_its_target(
    env: BoundPodsEnvironment,
) -> None:
    owner = {"kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}
    env.target.add(env.add(metadata={"ownerReferences": [owner]}))
    async with env.running():
        await env.delete()
        await asyncio.sleep(1)
        assert env.pod() is None


async def test_a_pod_that_its_node_is_not_for_goes_without_a_word_to_its_target(
    env: BoundPodsEnvironment,
) -> None:
    strange = new_pod("web", env.target.node)
    strange["metadata"]["namespace"] = "elsewhere"
    env.source.add(kinds.PODS, strange)
    async with env.running():
        await env.source.client("user").delete(kinds.PODS, "web", "elsewhere")
        await asyncio.sleep(1)
        assert env.source.all(kinds.PODS) == []
        assert "elsewhere" not in {each.namespace for each in env.target.server.requests}
