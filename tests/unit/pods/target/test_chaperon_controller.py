"""From a chaperon to its delegate, and what the chaperon then says of it, as an agent does it."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.pods.target_side import NAMESPACE, SETTLED, TargetCluster
from vnode.api import keys, kinds, objects, scheduled_condition
from vnode.api.errors import Invalid
from vnode.pods import annotation_merge
from vnode.pods.target import start_reports

pytestmark = pytest.mark.looptime

CREATE = ("create", "pods")
REPORT = ("patch", "podchaperons/status")
ANNOTATE = ("patch", "podchaperons")


@pytest.fixture
async def cluster(clock):
    return TargetCluster(clock)


async def test_a_chaperon_gets_a_delegate_that_it_controls(cluster):
    chaperon = cluster.send()
    async with cluster.running():
        await asyncio.sleep(SETTLED)
        assert objects.controller_uid(cluster.pod()) == objects.uid(chaperon)
        assert objects.labels(cluster.pod()) == objects.labels(chaperon)
        assert objects.spec(cluster.pod())["containers"][0]["image"] == "busybox"
        assert cluster.asked == [CREATE]


async def test_the_audit_log_says_by_which_sources_a_chaperon_may_have_been_made(clock):
    cluster = TargetCluster(clock, sources=("Source shop/c1",))
    cluster.send()
    async with cluster.informed():
        assert cluster.controller._subject(f"{NAMESPACE}/web").sources == ("Source shop/c1",)


@pytest.mark.parametrize("goes_on", [True, False])
async def test_only_a_delegate_that_may_go_on_asks_to_be_sent_on(clock, goes_on):
    cluster = TargetCluster(clock, goes_on=goes_on)
    cluster.send(annotations={keys.FORWARD: ""})
    async with cluster.running():
        await cluster.until(cluster.pod)
        assert (keys.FORWARD in objects.annotations(cluster.pod())) == goes_on


async def test_an_agent_that_finds_all_in_order_writes_nothing(cluster):
    async with cluster.running():
        await cluster.send_running()

    before = cluster.asked
    successor = TargetCluster(cluster.clock, cluster.server)
    async with successor.running():
        await asyncio.sleep(60)
        assert successor.asked == before


async def test_changes_in_a_moment_are_reported_in_one_write(cluster):
    async with cluster.running():
        await cluster.send_running()
        before = len(cluster.asked)
        for ip in ("10.0.0.1", "10.0.0.2", "10.0.0.3"):
            cluster.report(podIP=ip)
            await asyncio.sleep(0.005)

        await asyncio.sleep(60)
        assert cluster.asked[before:] == [REPORT]
        assert objects.status(cluster.chaperon())["podIP"] == "10.0.0.3"


async def test_a_delegate_that_is_bound_is_reported_with_its_containers(cluster):
    cluster.send()
    async with cluster.running():
        await cluster.until(cluster.pod)
        bind(cluster)
        await asyncio.sleep(SETTLED)
        assert REPORT not in cluster.asked
        cluster.report(containerStatuses=[{"name": "main", "ready": False}])
        await asyncio.sleep(0.05)
        assert cluster.count(*REPORT) == 1
        assert objects.status(cluster.chaperon())["containerStatuses"][0]["name"] == "main"


async def test_a_delegate_whose_containers_do_not_start_is_reported_after_a_while(cluster):
    cluster.send()
    async with cluster.running():
        await cluster.until(cluster.pod)
        bind(cluster)
        await asyncio.sleep(start_reports.BOUND + 0.05)
        assert cluster.count(*REPORT) == 1


def bind(cluster):
    binding = {"metadata": {"name": "web"}, "target": {"kind": "Node", "name": "n1"}}
    cluster.server.writer.bind(f"{NAMESPACE}/web", binding)


async def test_the_annotations_of_others_come_back(cluster):
    async with cluster.running():
        await cluster.send_running()
        cluster.annotate(kind=kinds.PODS, team="blue")
        await asyncio.sleep(SETTLED)
        assert cluster.noted("example.com/team") == "blue"
        assert cluster.count(*ANNOTATE) == 1


async def test_what_the_source_sends_meanwhile_is_not_overwritten(cluster):
    """The annotation of the delegate is reported by an agent that has yet to see it."""
    async with cluster.running():
        await cluster.send_running()
        cluster.server.silence_watches(kinds.POD_CHAPERONS)
        sent = {"annotations": {"example.com/team": "red"}}
        cluster.annotate(team="red", sent=annotation_merge.text(sent))
        cluster.annotate(kind=kinds.PODS, team="blue")
        await asyncio.sleep(SETTLED)
        assert cluster.noted("example.com/team") == "red"
        cluster.server.cut_watches(kinds.POD_CHAPERONS)
        await asyncio.sleep(60)
        assert cluster.noted("example.com/team") == "red"
        assert objects.annotations(cluster.pod())["example.com/team"] == "red"


async def test_a_rejection_withdraws_the_reservation_and_is_reported(cluster):
    cluster.send(annotations={keys.IS_RESERVED: "true"})
    async with cluster.running():
        await cluster.until(cluster.pod)
        cluster.report(conditions=[scheduled_condition.rejected("0/3 nodes are available")])
        await asyncio.sleep(SETTLED)
        assert cluster.noted(keys.IS_RESERVED) is None
        assert cluster.rejection == "0/3 nodes are available"


CHANGE = {"labels": {"app": "web"}}


async def test_a_change_is_done_to_the_delegate_once(cluster):
    async with cluster.running():
        await cluster.send_running()
        cluster.annotate(sent=annotation_merge.text(CHANGE))
        await asyncio.sleep(60)
        assert objects.labels(cluster.pod())["app"] == "web"
        assert cluster.count("patch", "pods") == 1


async def test_a_change_that_is_refused_is_told_until_it_is_taken(cluster):
    refusal = Invalid(422, "Invalid", "no such label")
    fault = cluster.server.fail(refusal, verb="patch", kind=kinds.PODS, times=None)
    async with cluster.running():
        await cluster.send_running()
        cluster.annotate(sent=annotation_merge.text(CHANGE))
        await asyncio.sleep(25)
        assert cluster.noted(keys.REFUSED) == "no such label"
        assert cluster.count("patch", "pods") == 1
        fault.clear()
        await asyncio.sleep(10)
        assert cluster.noted(keys.REFUSED) is None
        assert objects.labels(cluster.pod())["app"] == "web"


async def test_what_was_reported_is_not_reported_again_before_it_is_seen(cluster):
    async with cluster.running():
        await cluster.send_running()
        before = len(cluster.asked)
        cluster.server.silence_watches(kinds.POD_CHAPERONS)
        for ip in ("10.0.0.1", "10.0.0.2"):
            cluster.report(podIP=ip)
            await asyncio.sleep(SETTLED)

        assert cluster.asked[before:] == [REPORT]
        cluster.server.cut_watches(kinds.POD_CHAPERONS)
        await asyncio.sleep(SETTLED)
        assert objects.status(cluster.chaperon())["podIP"] == "10.0.0.2"


async def test_a_change_is_not_done_again_before_it_is_seen(cluster):
    async with cluster.running():
        await cluster.send_running()
        cluster.server.silence_watches(kinds.PODS)
        cluster.annotate(sent=annotation_merge.text(CHANGE))
        await asyncio.sleep(SETTLED)
        cluster.annotate(is_allowed="true")
        await asyncio.sleep(SETTLED)
        assert cluster.count("patch", "pods") == 1
