from __future__ import annotations

import asyncio

import pytest

from tests import background
from tests.apiserver.server import APIServer
from vnode.api import kinds
from vnode.api.errors import Denied, Unreachable
from vnode.kube import events
from vnode.kube.events import NORMAL, WARNING, EventRecorder

pytestmark = pytest.mark.looptime

POD = {"apiVersion": "v1", "kind": "Pod", "namespace": "ns", "name": "p", "uid": "u"}
NODE = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "v"}


class Events:
    """A cluster, and the Events that were created in it, in order."""

    def __init__(self, clock):
        self.server = APIServer("test", clock, latency=lambda: 0.005)
        self.server.add(kinds.NAMESPACES, {"metadata": {"name": "ns"}})

    @property
    def created(self):
        store = self.server.store
        changes = store.since(kinds.EVENTS, store.compacted)
        return [change.new for change in changes if change.old is None]

    @property
    def patched(self):
        return self.server.received("patch")


@pytest.fixture
async def cluster(clock):
    return Events(clock)


@pytest.fixture
def recorder(cluster, clock):
    return EventRecorder(cluster.server.client(), "vnode", clock)


async def test_an_event_is_written_at_once_beside_its_object(cluster, recorder):
    async with background.running(recorder.run()):
        recorder.event(POD, NORMAL, "Bound", "to c2")
        recorder.event(NODE, WARNING, "Gone", "away")
        await asyncio.sleep(0.1)

    pod, node = cluster.created
    assert pod["metadata"]["namespace"] == "ns"
    assert pod["metadata"]["name"].startswith("p.")
    assert pod["involvedObject"] == POD
    assert (pod["type"], pod["reason"], pod["message"], pod["count"]) == (
        "Normal",
        "Bound",
        "to c2",
        1,
    )
    assert node["metadata"]["namespace"] == "default"


async def test_repetitions_are_counted_at_most_once_a_minute(cluster, recorder):
    async with background.running(recorder.run()):
        for _ in range(300):
            recorder.event(POD, NORMAL, "Again", "same")
            await asyncio.sleep(0.5)

        await asyncio.sleep(120)

    assert len(cluster.created) == 1
    assert len(cluster.patched) in (2, 3)
    last = cluster.patched[-1]
    assert (last.namespace, last.name) == ("ns", cluster.created[0]["metadata"]["name"])
    assert last.body["count"] == 300


async def test_after_ten_quiet_minutes_it_is_a_new_event(cluster, recorder):
    async with background.running(recorder.run()):
        recorder.event(POD, NORMAL, "Rare", "same")
        await asyncio.sleep(601)
        recorder.event(POD, NORMAL, "Rare", "same")
        await asyncio.sleep(1)

    first, second = cluster.created
    assert first["metadata"]["name"] != second["metadata"]["name"]
    assert second["count"] == 1


async def test_events_wait_while_the_server_is_away(cluster, recorder):
    cluster.server.fail(Unreachable("refused"), times=2)
    async with background.running(recorder.run()):
        recorder.event(POD, NORMAL, "One", "")
        recorder.event(POD, NORMAL, "Two", "")
        await asyncio.sleep(30)

    assert [event["reason"] for event in cluster.created] == ["One", "Two"]


async def test_an_event_that_is_refused_is_given_up(cluster, recorder):
    cluster.server.fail(Denied(403, "Forbidden", "no"))
    async with background.running(recorder.run()):
        recorder.event(POD, NORMAL, "One", "")
        recorder.event(POD, NORMAL, "Two", "")
        await asyncio.sleep(30)

    assert [event["reason"] for event in cluster.created] == ["Two"]


async def test_a_create_whose_answer_was_lost_is_not_repeated_as_another(cluster, recorder):
    cluster.server.fail(Unreachable("cut"), after=True)
    async with background.running(recorder.run()):
        recorder.event(POD, NORMAL, "One", "")
        await asyncio.sleep(30)
        recorder.event(POD, NORMAL, "One", "")
        await asyncio.sleep(70)

    assert len(cluster.created) == 1
    assert cluster.patched[0].body["count"] == 2


async def test_an_event_that_expired_in_the_cluster_is_made_again(cluster, recorder):
    async with background.running(recorder.run()):
        recorder.event(POD, NORMAL, "One", "")
        await asyncio.sleep(70)
        (event,) = cluster.created
        cluster.server.remove(kinds.EVENTS, event["metadata"]["name"], "ns")
        recorder.event(POD, NORMAL, "One", "")
        await asyncio.sleep(70)

    assert [event["count"] for event in cluster.created] == [1, 2]


async def test_too_many_events_are_dropped_and_what_is_kept_is_bounded(cluster, recorder):
    for number in range(events.WAITING_LIMIT + 500):
        recorder.event({**POD, "name": f"p{number}"}, NORMAL, "Many", "")

    async with background.running(recorder.run()):
        await asyncio.sleep(60)
        assert len(cluster.created) == events.WAITING_LIMIT
        for number in range(2 * events.SERIES_LIMIT):
            recorder.event({**POD, "name": f"p{number}"}, NORMAL, "More", "")

        kept = sum(map(len, recorder._series.values()))
        assert kept == recorder._counts.total() <= events.SERIES_LIMIT
        assert len(recorder._buckets) <= events.SERIES_LIMIT
        assert len(recorder._queue) <= kept
        await asyncio.sleep(3 * events.WINDOW)
        assert not recorder._series
        assert not len(recorder._queue)


async def test_pods_that_wait_in_one_namespace_cost_no_other_its_events(cluster, recorder, clock):
    """A thousand pods that are tried again each 20 s, and thousands of other Events."""
    cluster.server.add(kinds.NAMESPACES, {"metadata": {"name": "other"}})
    async with background.running(recorder.run()):
        for _ in range(3):
            for number in range(events.WAITING_LIMIT):
                recorder.event({**POD, "name": f"p{number}"}, WARNING, "FailedScheduling", "no")

            await asyncio.sleep(20)

        for number in range(2 * events.SERIES_LIMIT):
            recorder.event({**POD, "name": f"q{number}"}, WARNING, "FailedScheduling", "no")

        before = len(cluster.created)
        for number in range(50):
            pod = {**POD, "name": f"web{number}", "namespace": "other"}
            recorder.event(pod, WARNING, "FailedScheduling", "no")

        await asyncio.sleep(10)
        spaces = [event["metadata"]["namespace"] for event in cluster.created[before:]]
        assert spaces.count("other") == 50
        assert spaces[:110].count("other") == 50  # by turns


async def test_what_a_flood_of_events_forgets_is_its_own(cluster, recorder):
    other = {**POD, "namespace": "default"}
    async with background.running(recorder.run()):
        recorder.event(other, NORMAL, "Again", "same")
        await asyncio.sleep(1)
        for number in range(2 * events.SERIES_LIMIT):
            recorder.event({**POD, "name": f"p{number}"}, NORMAL, "Many", "")

        recorder.event(other, NORMAL, "Again", "same")
        await asyncio.sleep(70)

    assert [event["reason"] for event in cluster.created].count("Again") == 1
    assert [each.body["count"] for each in cluster.patched if each.namespace == "default"] == [2]


async def test_of_many_different_events_about_one_object_a_few_are_written(cluster, recorder):
    """A target refuses a change with other words each time."""
    async with background.running(recorder.run()):
        for number in range(1000):
            recorder.event(POD, WARNING, "ChangeRefused", f"because of {number}")
            recorder.event(POD, WARNING, "FailedScheduling", "the same each time")
            await asyncio.sleep(0.6)

        recorder.event(NODE, NORMAL, "Well", "all is well")
        await asyncio.sleep(60)

    names = [event["involvedObject"]["name"] for event in cluster.created]
    assert events.OBJECT_BURST <= names.count("p") <= events.OBJECT_BURST + 2
    assert names.count("n") == 1
    assert max(patch.body["count"] for patch in cluster.patched) == 1000


async def test_long_messages_and_names_are_cut_to_what_the_server_takes(cluster, recorder):
    async with background.running(recorder.run()):
        recorder.event({**POD, "name": "x" * 253}, NORMAL, "Long", "m" * 5000)
        await asyncio.sleep(1)

    (event,) = cluster.created
    assert len(event["message"]) == 1024
    assert len(event["metadata"]["name"]) == 253


async def test_an_event_that_cannot_be_written_down_keeps_no_other_back(cluster, recorder):
    async with background.running(recorder.run()):
        recorder.event({**POD, "uid": object()}, WARNING, "Odd", "JSON has no such value")
        recorder.event(NODE, NORMAL, "Well", "all is well")
        await asyncio.sleep(1)

    assert [event["reason"] for event in cluster.created] == ["Well"]
