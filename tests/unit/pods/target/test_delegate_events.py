"""What the target writes of the Events of delegates, and how often."""

from __future__ import annotations

import asyncio
import string

import pytest

from tests.unit.pods import delegate_events
from tests.unit.pods.delegate_events import PULL, UNHEALTHY
from tests.unit.pods.target_side import NAMESPACE, SETTLED, TargetCluster
from vnode.api import keys, kinds, objects
from vnode.api.errors import Denied, Gone, Unreachable
from vnode.pods import event_record
from vnode.pods.event_record import ENTRIES
from vnode.pods.target import delegate_events as collecting
from vnode.pods.target.chaperon_controller import ChaperonController

pytestmark = pytest.mark.looptime

REPORT = ("patch", "podchaperons/status")
ALLOWED = {keys.IS_ALLOWED: "true"}
BY_MESSAGE = {keys.SOURCE_DIGEST: "digest"}


@pytest.fixture
async def cluster(clock):
    return TargetCluster(clock)


def store_event(cluster, reason, message="", **options):
    delegate_events.store_event(cluster.server, cluster.pod(), reason, message, **options)


def entries(cluster):
    return event_record.read(objects.status(cluster.chaperon()))


def reasons(cluster):
    return [(entry.reason, entry.count) for entry in entries(cluster)]


async def begin(cluster, annotations=ALLOWED):
    """Send an allowed chaperon and bind its delegate to a node."""
    cluster.send(annotations=annotations)
    await cluster.until(cluster.pod)
    cluster.bind()


async def test_a_pod_that_goes_well_costs_no_request_more(cluster):
    async with cluster.running():
        await begin(cluster)
        delegate_events.start(cluster.server, cluster.pod())
        await asyncio.sleep(0.2)
        cluster.report(phase="Running", containerStatuses=[{"name": "main"}])
        await asyncio.sleep(600)
        assert cluster.asked == [("create", "pods"), REPORT]
        assert reasons(cluster) == [("Scheduled", 1), ("Pulled", 1), ("Created", 1), ("Started", 1)]
        scheduled, pulled, *_ = entries(cluster)
        assert (scheduled.component, scheduled.host) == ("admiralty-candidate", "")
        assert (pulled.component, pulled.host) == ("kubelet", "n1")


async def test_a_pod_with_events_that_is_bound_and_does_not_start_is_told_once_more(cluster):
    async with cluster.running():
        await begin(cluster)
        store_event(cluster, "Pulling", "Pulling image")
        cluster.report(containerStatuses=[{"name": "main", "ready": False}])
        await asyncio.sleep(1)
        assert reasons(cluster) == [("Pulling", 1)]
        delegate_events.schedule(cluster.server, cluster.pod())  # late, with no report after it
        await asyncio.sleep(collecting.SLOW - 1)
        assert cluster.count(*REPORT) == 1
        await asyncio.sleep(collecting.SPACING)
        assert reasons(cluster) == [("Pulling", 1), ("Scheduled", 1)]
        await asyncio.sleep(600)
        assert cluster.count(*REPORT) == 2


async def test_a_pod_that_started_before_anything_was_told_of_it_is_told_once_more(cluster):
    async with cluster.running():
        await run(cluster)
        delegate_events.schedule(cluster.server, cluster.pod())  # late, with no report after it
        await asyncio.sleep(collecting.SLOW - 1)
        assert cluster.count(*REPORT) == 1
        await asyncio.sleep(2)
        assert reasons(cluster) == [("Scheduled", 1)]
        await asyncio.sleep(600)
        assert cluster.count(*REPORT) == 2


async def test_an_ordinary_event_of_a_pod_that_runs_waits_for_the_next_report(cluster):
    async with cluster.running():
        await begin(cluster)
        delegate_events.schedule(cluster.server, cluster.pod())
        cluster.report(phase="Running", containerStatuses=[{"name": "main"}])
        await asyncio.sleep(SETTLED)
        store_event(cluster, "Killing", "Stopping container main")
        await asyncio.sleep(600)
        assert reasons(cluster) == [("Scheduled", 1)]
        cluster.report(phase="Failed")
        await asyncio.sleep(SETTLED)
        assert reasons(cluster) == [("Scheduled", 1), ("Killing", 1)]


async def run(cluster):
    await begin(cluster)
    cluster.report(phase="Running", containerStatuses=[{"name": "main"}])
    await asyncio.sleep(SETTLED)


async def test_a_warning_is_written_at_once_and_the_next_ones_after_a_while(cluster):
    async with cluster.running():
        await run(cluster)
        before = cluster.count(*REPORT)
        store_event(cluster, "Unhealthy", UNHEALTHY, warning=True)
        await asyncio.sleep(0.1)
        assert reasons(cluster) == [("Unhealthy", 1)]
        for reason in ("BackOff", "FailedMount", "Failed"):
            store_event(cluster, reason, warning=True)
            await asyncio.sleep(0.1)

        assert cluster.count(*REPORT) == before + 1
        await asyncio.sleep(collecting.SPACING)
        assert len(reasons(cluster)) == 4
        await asyncio.sleep(600)
        assert cluster.count(*REPORT) == before + 2


async def test_warnings_that_differ_in_numbers_are_counted_together_every_five_minutes(cluster):
    async with cluster.running():
        await run(cluster)
        before = cluster.count(*REPORT)
        for second in range(70):
            store_event(cluster, "BackOff", f"back-off {second}s restarting", warning=True)
            await asyncio.sleep(10)

        assert cluster.count(*REPORT) == before + 3
        await asyncio.sleep(600)
        assert reasons(cluster) == [("BackOff", 70)]


def count(cluster, number):
    def change(event):
        event["count"] = number

    cluster.server.change(kinds.EVENTS, "one", NAMESPACE, change)


async def test_an_event_that_is_counted_on_is_not_counted_twice(cluster):
    async with cluster.running():
        await run(cluster)
        store_event(cluster, "BackOff", PULL, warning=True, name="one")
        await asyncio.sleep(0.1)
        for number in range(2, 6):
            count(cluster, number)
            await asyncio.sleep(0.1)

        await asyncio.sleep(collecting.RECOUNT)
        assert reasons(cluster) == [("BackOff", 5)]


async def test_a_new_agent_goes_on_from_what_is_written(cluster):
    async with cluster.running():
        await run(cluster)
        store_event(cluster, "Unhealthy", UNHEALTHY, warning=True)
        store_event(cluster, "BackOff", PULL, warning=True, name="one", count=4)
        await asyncio.sleep(collecting.SPACING + 1)

    before = len(cluster.asked)
    successor = TargetCluster(cluster.clock, cluster.server)
    async with successor.running():
        await asyncio.sleep(600)
        assert len(cluster.asked) == before
        count(cluster, 5)
        await asyncio.sleep(collecting.RECOUNT)
        assert reasons(cluster) == [("Unhealthy", 1), ("BackOff", 5)]


async def test_no_more_than_twenty_are_kept_and_warnings_for_longest(cluster):
    async with cluster.running():
        await run(cluster)
        store_event(cluster, "FailedMount", warning=True)
        await asyncio.sleep(1)
        for letter in string.ascii_letters[: ENTRIES + 6]:
            store_event(cluster, "Note", letter * 5000)

        store_event(cluster, "Unhealthy", warning=True)
        await asyncio.sleep(60)
        kept = entries(cluster)
        assert len(kept) == ENTRIES
        assert [entry.reason for entry in kept if entry.is_warning] == ["FailedMount", "Unhealthy"]
        assert {len(entry.message) for entry in kept} == {0, event_record.MESSAGE_LIMIT}


async def test_events_about_several_containers_stay_apart(cluster):
    async with cluster.running():
        await run(cluster)
        for name in ("main", "sidecar", "main"):
            about = objects.reference(cluster.pod(), "Pod", "v1")
            about["fieldPath"] = f"spec.containers{{{name}}}"
            store_event(cluster, "Unhealthy", UNHEALTHY, warning=True, involvedObject=about)

        await asyncio.sleep(600)
        assert sorted((entry.field_path, entry.count) for entry in entries(cluster)) == [
            ("spec.containers{main}", 2),
            ("spec.containers{sidecar}", 1),
        ]


@pytest.mark.parametrize("annotations", [ALLOWED, BY_MESSAGE])
async def test_what_is_told_before_the_first_report_goes_with_it(cluster, annotations):
    """Nothing on a chaperon says that a message allowed it, until its delegate is reported."""
    async with cluster.running():
        await begin(cluster, annotations)
        await asyncio.sleep(0.1)
        delegate_events.start(cluster.server, cluster.pod())
        store_event(cluster, "FailedMount", warning=True, source={"component": "attachdetach"})
        await asyncio.sleep(0.1)
        cluster.report(phase="Running", containerStatuses=[{"name": "main"}])
        await asyncio.sleep(600)
        told = ["Scheduled", "Pulled", "Created", "Started", "FailedMount"]
        assert reasons(cluster) == [(reason, 1) for reason in told]


async def test_an_event_that_is_seen_before_the_binding_it_tells_of_is_kept(cluster):
    async with cluster.running():
        cluster.send(annotations=BY_MESSAGE)
        await cluster.until(cluster.pod)
        store_event(cluster, "FailedScheduling", warning=True, source={"component": "candidate"})
        delegate_events.schedule(cluster.server, cluster.pod())
        store_event(cluster, "Failed", PULL, warning=True)
        await asyncio.sleep(60)
        assert cluster.count(*REPORT) == 0
        cluster.bind()
        await asyncio.sleep(60)
        assert reasons(cluster) == [("Scheduled", 1), ("Failed", 1)]


async def test_events_of_candidates_and_of_other_pods_are_left_out(cluster):
    async with cluster.running():
        cluster.send()
        await cluster.until(cluster.pod)
        message, source = "0/3 nodes are available", {"component": "candidate"}
        store_event(cluster, "FailedScheduling", message, warning=True, source=source)
        cluster.report(conditions=[{"type": "PodScheduled", "status": "False"}])
        await asyncio.sleep(SETTLED)
        cluster.annotate(is_allowed="true")
        other = cluster.server.add(kinds.PODS, {"metadata": {"name": "web", "namespace": "other"}})
        delegate_events.store_event(cluster.server, other, "BackOff", warning=True)
        namesake = {"metadata": {"name": "web", "namespace": NAMESPACE, "uid": "another"}}
        delegate_events.store_event(cluster.server, namesake, "BackOff", warning=True)
        await asyncio.sleep(60)
        assert cluster.asked == [("create", "pods"), REPORT]
        await cluster.run()
        assert reasons(cluster) == []


async def test_a_pod_that_skips_reservation_and_has_no_place_says_so(cluster):
    """Its chaperon is allowed from the start."""
    cluster.send(annotations=ALLOWED)
    async with cluster.running():
        await cluster.until(cluster.pod)
        cluster.report(phase="Pending", conditions=[{"type": "PodScheduled", "status": "False"}])
        store_event(cluster, "FailedScheduling", "0/3 nodes are available", warning=True)
        await asyncio.sleep(SETTLED)
        assert reasons(cluster) == [("FailedScheduling", 1)]


async def test_writes_for_warnings_alone_are_bounded_in_all(cluster):
    names = [f"web-{number}" for number in range(300)]
    async with cluster.running():
        for name in names:
            cluster.send(name, annotations=ALLOWED)

        await cluster.until(lambda: all(map(cluster.pod, names)))
        for name in names:
            cluster.report(name, phase="Running", containerStatuses=[{"name": "main"}])

        await asyncio.sleep(SETTLED)
        before = cluster.count(*REPORT)
        for name in names:
            delegate_events.store_event(cluster.server, cluster.pod(name), "BackOff", warning=True)

        await asyncio.sleep(0.9)
        assert cluster.count(*REPORT) - before < 120
        await asyncio.sleep(60)
        assert cluster.count(*REPORT) - before == 300


@pytest.mark.parametrize("mode", ["None", "Warnings"])
async def test_what_the_setting_leaves_out_is_not_collected(cluster, clock, mode):
    cluster.controller = ChaperonController(
        cluster.server.client("agent"),
        cluster.chaperons,
        cluster.delegates,
        goes_on=lambda _chaperon: False,
        clock=clock,
        delegate_events=mode,
    )
    async with cluster.running():
        await run(cluster)
        delegate_events.start(cluster.server, cluster.pod())
        store_event(cluster, "BackOff", PULL, warning=True)
        await asyncio.sleep(60)
        assert reasons(cluster) == ([("BackOff", 1)] if mode == "Warnings" else [])
        assert bool(cluster.server.count("watch", kinds.EVENTS)) == (mode != "None")


async def test_a_cluster_that_gets_no_pods_reads_no_events(cluster):
    async with cluster.running():
        await asyncio.sleep(600)
        assert not cluster.server.count(kind=kinds.EVENTS)


async def test_events_are_watched_and_never_listed_whole(cluster):
    async with cluster.running():
        await run(cluster)
        cluster.server.cut_watches(kinds.EVENTS)
        await asyncio.sleep(1)
        store_event(cluster, "BackOff", PULL, warning=True)
        await asyncio.sleep(1)
        assert reasons(cluster) == [("BackOff", 1)]
        (listed,) = cluster.server.received("list", kinds.EVENTS)
        assert listed.query["limit"] == "1"


@pytest.mark.parametrize(
    "error", [Denied(403, "Forbidden", "no"), Gone(410, "Expired", "old"), Unreachable("away")]
)
async def test_a_watch_that_is_refused_is_tried_less_and_less_often(cluster, error):
    fault = cluster.server.fail(error, verb="watch", kind=kinds.EVENTS, times=None)
    async with cluster.running():
        await run(cluster)
        await asyncio.sleep(600)
        assert 20 < cluster.server.count("watch", kinds.EVENTS) < 40
        fault.clear()
        await asyncio.sleep(40)
        store_event(cluster, "BackOff", PULL, warning=True)
        await asyncio.sleep(1)
        assert reasons(cluster) == [("BackOff", 1)]


async def test_an_event_of_odd_form_ends_nothing(cluster):
    async with cluster.running():
        await run(cluster)
        store_event(cluster, "Odd", warning=True, source="text")
        store_event(
            cluster, "Odder", warning=True, metadata={"name": "odd", "namespace": NAMESPACE}
        )
        store_event(cluster, "BackOff", PULL, warning=True)
        await asyncio.sleep(collecting.SPACING + 1)
        assert [reason for reason, _count in reasons(cluster)] == ["Odder", "BackOff"]


async def test_a_write_that_failed_is_made_up_for(cluster):
    async with cluster.running():
        await run(cluster)
        cluster.server.fail(
            Unreachable("away"), verb="patch", kind=kinds.POD_CHAPERONS, subresource="status"
        )
        store_event(cluster, "BackOff", PULL, warning=True)
        await asyncio.sleep(SETTLED)
        assert reasons(cluster) == [("BackOff", 1)]


async def test_a_uid_that_no_pod_has_is_not_kept(cluster):
    """Whoever writes Events could fill the memory of the agent by UIDs of a mebibyte."""
    async with cluster.running():
        await begin(cluster)
        store_event(cluster, "Pulled", "an image")
        await asyncio.sleep(0.1)
        about = {**objects.reference(cluster.pod(), "Pod", "v1"), "uid": "u" * 1024**2}
        store_event(cluster, "Forged", "x", involvedObject=about)
        await asyncio.sleep(0.1)
        cluster.report(phase="Running", containerStatuses=[{"name": "main"}])
        await asyncio.sleep(60)
        assert reasons(cluster) == [("Pulled", 1)]
