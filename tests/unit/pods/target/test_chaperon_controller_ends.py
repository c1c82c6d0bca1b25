"""How a chaperon ends: with its delegate, and not before."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.pods.target_side import NAMESPACE, SETTLED, TargetCluster
from vnode.api import keys, kinds, objects
from vnode.api.errors import ServerError

pytestmark = pytest.mark.looptime

DELETE = ("delete", "pods")
REPORT = ("patch", "podchaperons/status")
ANNOTATE = ("patch", "podchaperons")
FOREIGN = "example.com/hold"


@pytest.fixture
async def cluster(clock):
    return TargetCluster(clock)


async def test_a_chaperon_stays_until_its_delegate_is_gone_and_tells_its_last_status(cluster):
    async with cluster.running():
        await cluster.send_running()
        await cluster.end()
        await cluster.until(lambda: objects.is_terminating(cluster.pod()), 1)
        cluster.report(phase="Failed", reason="Error")
        await asyncio.sleep(SETTLED)
        assert objects.status(cluster.chaperon())["phase"] == "Failed"
        assert cluster.chaperon()
        cluster.stop()
        await cluster.until(lambda: cluster.ends, 1)
        assert cluster.asked[-4:] == [DELETE, ANNOTATE, REPORT, ANNOTATE]
        assert cluster.server.count("get", kinds.PODS) == 1  # that it is gone, and no more


async def test_what_a_delegate_says_as_it_goes_is_reported(cluster):
    async with cluster.running():
        await cluster.send_running()
        await cluster.end()
        await asyncio.sleep(SETTLED)
        cluster.report(phase="Succeeded")
        cluster.stop()
        await cluster.until(lambda: cluster.ends, 1)
        assert objects.status(cluster.ends[0])["phase"] == "Succeeded"


async def test_only_our_finalizer_is_taken_off(cluster):
    async with cluster.running():
        await cluster.send_running(finalizers=[FOREIGN, keys.DELEGATE_FINALIZER])
        await cluster.end()
        await asyncio.sleep(SETTLED)
        cluster.stop()
        await asyncio.sleep(60)
        assert objects.finalizers(cluster.chaperon()) == [FOREIGN]
        before = len(cluster.asked)
        await asyncio.sleep(600)
        assert len(cluster.asked) == before


async def test_the_delegate_of_a_chaperon_that_others_hold_ends_too(cluster):
    async with cluster.running():
        await cluster.send_running(finalizers=[FOREIGN])
        await cluster.end()
        await cluster.until(lambda: objects.is_terminating(cluster.pod()), 1)
        await asyncio.sleep(SETTLED)
        before = len(cluster.asked)
        cluster.stop()
        await asyncio.sleep(SETTLED)
        assert objects.finalizers(cluster.chaperon()) == [FOREIGN]
        assert len(cluster.asked) == before


@pytest.mark.parametrize(("asked", "grace"), [(None, 30), ("5", 5), ("0", None), ("600", 600)])
async def test_a_delegate_ends_in_the_time_that_the_source_asks_for(cluster, asked, grace):
    """0 is at once, whatever the kubelet says."""
    async with cluster.running():
        await cluster.send_running()
        cluster.annotate(grace_period=asked)
        await cluster.end()
        await asyncio.sleep(SETTLED)
        pod = cluster.pod()
        assert (objects.metadata(pod)["deletionGracePeriodSeconds"] if pod else None) == grace
        assert cluster.count(*DELETE) == 1


async def test_the_end_of_a_delegate_can_be_brought_forward(cluster):
    async with cluster.running():
        await cluster.send_running()
        await cluster.end()
        await asyncio.sleep(SETTLED)
        cluster.annotate(grace_period="60")
        await asyncio.sleep(SETTLED)
        assert objects.metadata(cluster.pod())["deletionGracePeriodSeconds"] == 30
        cluster.annotate(grace_period="3")
        await asyncio.sleep(SETTLED)
        assert objects.metadata(cluster.pod())["deletionGracePeriodSeconds"] == 3
        assert cluster.count(*DELETE) == 2


async def test_a_chaperon_that_never_had_a_delegate_is_let_go(cluster):
    cluster.server.fail(ServerError(500, "", "no"), verb="create", kind=kinds.PODS, times=None)
    cluster.send()
    async with cluster.running():
        await cluster.until(lambda: cluster.rejection)
        await cluster.end()
        await cluster.until(lambda: cluster.ends, 1)
        assert DELETE not in cluster.asked


async def test_a_candidate_that_was_not_chosen_ends_by_two_requests(cluster):
    """Its pod was never bound: there is nothing to tell of its end."""
    cluster.send()
    async with cluster.running():
        await cluster.until(cluster.pod, 1)
        cluster.report(conditions=[{"type": "PodScheduled", "status": "False"}])
        await asyncio.sleep(SETTLED)
        before, looked = len(cluster.asked), cluster.server.count("get", kinds.PODS)
        await cluster.end()
        await cluster.until(lambda: cluster.ends, 1)
        assert cluster.asked[before:] == [DELETE, ANNOTATE]
        assert cluster.server.count("get", kinds.PODS) == looked
        assert not cluster.pod()


async def test_a_delegate_that_no_event_has_shown_is_looked_for(cluster):
    """Of the one before, which is gone, an event has come."""
    cluster.send()
    async with cluster.running():
        await cluster.until(cluster.pod, 1)
        first = objects.uid(cluster.pod())
        cluster.server.fail(None, verb="create", kind=kinds.PODS, delay=1)
        cluster.stop()
        await asyncio.sleep(0.5)
        cluster.server.silence_watches(kinds.PODS)
        await cluster.until(cluster.pod, 5)
        assert objects.uid(cluster.pod()) != first
        await cluster.end()
        await cluster.until(lambda: cluster.ends, 5)
        assert not cluster.pod()


@pytest.mark.parametrize("labels", [{}, {keys.PARENT_UID: "parent-of-web"}])
async def test_the_namesake_of_a_delegate_does_not_hold_its_chaperon(cluster, labels):
    add_namesake(cluster, labels=labels)
    cluster.send()
    async with cluster.running():
        await cluster.until(lambda: cluster.rejection)
        await cluster.end()
        await cluster.until(lambda: cluster.ends, 1)
        assert objects.uid(cluster.pod()) == "theirs"


async def test_the_end_of_a_namesake_says_nothing_of_the_delegate(cluster):
    async with cluster.running():
        await cluster.send_running()
        cluster.stop()
        add_namesake(cluster, labels={keys.PARENT_UID: "parent-of-web"})
        cluster.report(phase="Failed")
        await asyncio.sleep(SETTLED)
        cluster.stop()
        await asyncio.sleep(SETTLED)
        await cluster.end()
        await cluster.until(lambda: cluster.ends, 1)
        assert objects.status(cluster.ends[0])["phase"] == "Running"


def add_namesake(cluster, **metadata):
    metadata |= {"name": "web", "namespace": NAMESPACE, "uid": "theirs"}
    cluster.server.add(kinds.PODS, {"metadata": metadata, "spec": {"containers": []}})


async def test_a_delegate_that_was_not_seen_yet_holds_its_chaperon_and_ends(cluster):
    async with cluster.running():
        await asyncio.sleep(SETTLED)
        cluster.server.silence_watches(kinds.PODS)
        cluster.send()
        await cluster.until(cluster.pod)
        await cluster.run()
        await cluster.end()
        await asyncio.sleep(5)
        assert objects.is_terminating(cluster.pod())
        assert not cluster.ends
        cluster.stop()
        await cluster.until(lambda: cluster.ends, 1)
        assert cluster.count(*DELETE) == 1


async def test_an_agent_that_was_away_makes_up_for_what_it_missed(cluster):
    async with cluster.running():
        await cluster.send_running()

    cluster.stop()
    await cluster.end()
    async with TargetCluster(cluster.clock, cluster.server).running():
        await cluster.until(lambda: cluster.ends, 1)
