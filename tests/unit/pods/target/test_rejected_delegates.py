"""Delegates that a kubelet rejects: those that have started nothing are made anew."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.pods.target_side import NAMESPACE, SETTLED, TargetCluster
from vnode.api import keys, kinds, objects
from vnode.pods import delegate, rejections
from vnode.pods.rejections import Rejections

pytestmark = pytest.mark.looptime

ALLOWED = {keys.IS_ALLOWED: "true"}
REASONS = [
    *("OutOfcpu", "OutOfmemory", "OutOfpods", "OutOfexample.com/gpu", "NodeAffinity"),
    *("UnexpectedAdmissionError", "TopologyAffinityError", "Evicted", "NodeShutdown"),
]


class RejectingCluster(TargetCluster):
    """A target whose kubelet rejects pods."""

    def reject(self, reason="OutOfcpu", *, ran_before=timedelta(), manager="kubelet"):
        """Fail the delegate as a kubelet does that looks at it, perhaps not for the first time."""
        now = self.clock.now()
        fields = {"manager": manager, "subresource": "status", "time": objects.timestamp(now)}

        def change(pod):
            pod["metadata"]["managedFields"] = [fields]
            pod["status"] = {
                "phase": "Failed",
                "reason": reason,
                "message": f"Pod was rejected: {reason} it is.",
                "startTime": objects.timestamp(now - ran_before),
                "conditions": pod.get("status", {}).get("conditions", []),
            }

        self.server.change(kinds.PODS, "web", NAMESPACE, change)

    async def send_bound(self, **spec):
        self.send(annotations=ALLOWED, spec=spec)
        await self.until(self.pod)
        self.bind()
        await asyncio.sleep(0.01)
        return objects.uid(self.pod())

    @property
    def phases(self):
        """All phases that the source could read."""
        return {
            objects.status(each.body).get("phase")
            for each in self.server.received("patch", kinds.POD_CHAPERONS)
            if each.subresource == "status"
        }


@pytest.fixture
async def cluster(clock):
    return RejectingCluster(clock)


@pytest.mark.parametrize("policy", ["Always", "Never"])
@pytest.mark.parametrize("reason", REASONS)
async def test_a_delegate_that_is_rejected_is_made_anew_and_its_source_sees_no_end(
    cluster, reason, policy
):
    async with cluster.running():
        first = await cluster.send_bound(restartPolicy=policy)
        cluster.reject(reason)
        await asyncio.sleep(SETTLED / 2)
        assert not cluster.pod()
        assert reason in cluster.rejection
        await cluster.until(cluster.pod)
        await asyncio.sleep(SETTLED)
        assert objects.uid(cluster.pod()) != first
        await cluster.run()
        assert objects.status(cluster.chaperon())["phase"] == "Running"
        assert "Failed" not in cluster.phases
        for mark in (keys.POD_MISSING_SINCE, keys.DELEGATE_DELETED):
            assert cluster.noted(mark) is None


async def test_one_that_waited_long_for_its_place_is_made_anew(cluster):
    async with cluster.running():
        cluster.send(annotations=ALLOWED)
        await cluster.until(cluster.pod)
        waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        cluster.report(phase="Pending", conditions=[waits])
        await asyncio.sleep(SETTLED)
        cluster.bind()
        cluster.reject()
        await asyncio.sleep(2 * SETTLED)
        assert objects.status(cluster.pod()).get("phase") != "Failed"
        assert cluster.pod()


async def test_one_that_ran_before_its_kubelet_restarted_fails(cluster):
    async with cluster.running():
        await cluster.send_running(annotations=ALLOWED, spec={"restartPolicy": "Never"})
        cluster.reject(ran_before=timedelta(minutes=5))
        await asyncio.sleep(600)
        assert objects.status(cluster.chaperon())["phase"] == "Failed"
        assert cluster.count("create", "pods") == 1


async def test_one_that_ran_while_the_agent_was_away_fails(cluster):
    async with cluster.running():
        await cluster.send_bound(restartPolicy="Never")

    cluster.report(phase="Running", containerStatuses=[{"name": "main"}])
    cluster.reject(ran_before=timedelta(minutes=5))
    async with cluster.running():
        await asyncio.sleep(600)
        assert objects.status(cluster.chaperon())["phase"] == "Failed"
        assert cluster.count("create", "pods") == 1


async def test_one_that_was_rejected_while_the_agent_was_away_is_made_anew(cluster):
    async with cluster.running():
        first = await cluster.send_bound(restartPolicy="Never")

    cluster.reject()
    async with cluster.running():
        await asyncio.sleep(5)
        assert objects.uid(cluster.pod()) not in ("", first)


async def test_an_agent_that_ends_between_deleting_and_making_goes_on(cluster):
    async with cluster.running():
        first = await cluster.send_bound(restartPolicy="Never")
        cluster.reject()
        await cluster.until(lambda: not cluster.pod())

    async with cluster.running():
        await asyncio.sleep(5)
        assert objects.uid(cluster.pod()) not in ("", first)
        assert cluster.noted(keys.POD_MISSING_SINCE) is None


async def test_the_next_one_that_is_lost_is_for_the_source_to_judge(cluster):
    async with cluster.running():
        await cluster.send_bound(restartPolicy="Never")
        cluster.reject()
        await cluster.until(lambda: cluster.count("create", "pods") == 2)
        await asyncio.sleep(SETTLED)
        await cluster.run()
        cluster.stop()
        await asyncio.sleep(600)
        assert cluster.noted(keys.POD_MISSING_SINCE)
        assert cluster.count("create", "pods") == 2


async def test_one_that_something_else_has_failed_is_not_made_anew(cluster):
    async with cluster.running():
        await cluster.send_bound(restartPolicy="Never")
        cluster.reject(manager="vnode")
        await asyncio.sleep(600)
        assert objects.status(cluster.chaperon())["phase"] == "Failed"


async def test_one_that_asks_for_what_its_node_forbids_fails_at_once(cluster):
    async with cluster.running():
        await cluster.send_bound()
        cluster.reject("SysctlForbidden")
        await asyncio.sleep(SETTLED)
        status = objects.status(cluster.chaperon())
        assert (status["phase"], status["reason"]) == ("Failed", "SysctlForbidden")


@pytest.mark.parametrize(("reason", "fails"), [("OutOfcpu", False), ("NodeAffinity", True)])
async def test_what_no_node_takes_fails_in_the_end_but_room_may_come(cluster, reason, fails):
    async with cluster.running():
        await cluster.send_bound(restartPolicy="Never")
        for _ in range(rejections.MOST + 1):
            cluster.reject(reason)
            await asyncio.sleep(rejections.LONGEST.total_seconds() + SETTLED)
            if not objects.node_name(cluster.pod()):
                cluster.bind()

        assert cluster.count("create", "pods") == rejections.MOST + (1 if fails else 2)
        assert (objects.status(cluster.chaperon()).get("phase") == "Failed") == fails


async def test_the_end_of_the_chaperon_ends_one_that_was_rejected(cluster):
    async with cluster.running():
        await cluster.send_bound()
        cluster.reject()
        await cluster.until(lambda: not cluster.pod())
        await cluster.end()
        await cluster.until(lambda: cluster.ends, 5)
        await asyncio.sleep(60)
        assert not cluster.pod()


async def test_a_delegate_has_no_notes_of_earlier_ones(clock):
    cluster = TargetCluster(clock)
    notes = {keys.REJECTED: "{}", keys.PREEMPTED: "{}"}
    assert not notes.keys() & objects.annotations(delegate.build(cluster.send(annotations=notes)))


@given(st.text() | st.sampled_from(["{", "[]", '{"count":-1}', '{"uid":1}', '{"at":1e99}']))
def test_a_note_that_cannot_be_read_counts_as_none(text):
    assert rejections.of({"metadata": {"annotations": {keys.REJECTED: text}}}) == Rejections()
