"""What the ClusterSummary says of the candidate scheduler, by its Lease."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests import background
from tests.apiserver.server import APIServer
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Denied, Unreachable
from vnode.api.objects import Object
from vnode.kube import leases
from vnode.nodes import candidate_scheduler
from vnode.nodes.candidate_scheduler import LEASE, PERIOD, RARELY
from vnode.nodes.summary import SummaryWriter

pytestmark = pytest.mark.looptime

SILENCE = 15 + 15 + 2 * PERIOD  # duration and slack, and the looks before and after
SOON = 2.0


class LeasedCluster:
    """A cluster whose candidate scheduler holds a Lease, and the writer of its summary."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.server = APIServer("c1", clock)

    def elect(self) -> None:
        """Have a scheduler become the leader."""
        self.server.add(kinds.LEASES, leases.build(LEASE, "vnode", "pod-1", 15, self.clock.now()))

    async def renew(self, seconds: float) -> None:
        """Have the scheduler live for so long, and renew its Lease."""
        for _ in range(int(seconds / 2)):
            self._change({"renewTime": objects.micro_timestamp(self.clock.now())})
            await asyncio.sleep(2)

    def release(self) -> None:
        """Have the scheduler give its Lease up, as it ends."""
        self._change({"holderIdentity": ""})

    def _change(self, spec: Object) -> None:
        self.server.change(kinds.LEASES, LEASE, "vnode", lambda obj: obj["spec"].update(spec))

    @property
    def silent_since(self) -> str | None:
        """What the summary says."""
        summary = self.server.find(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)
        assert summary is not None
        return objects.annotations(summary).get(keys.SCHEDULER_SILENT)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Have the summary written."""
        writer = SummaryWriter(self.server.client(), "vnode", clock=self.clock)
        async with background.running(writer.run()):
            await asyncio.sleep(SOON)
            yield


@pytest.fixture
async def cluster(clock: Clock) -> LeasedCluster:
    return LeasedCluster(clock)


async def test_a_scheduler_that_renews_its_lease_no_more_is_told_of_until_it_does(
    cluster: LeasedCluster,
) -> None:
    cluster.elect()
    async with cluster.running():
        await cluster.renew(100)
        assert cluster.silent_since is None
        died = objects.timestamp(cluster.clock.now())
        await asyncio.sleep(SILENCE)
        assert cluster.silent_since is not None
        assert cluster.silent_since <= died
        await cluster.renew(PERIOD + SOON)
        assert cluster.silent_since is None


async def test_a_released_lease_that_nobody_takes_is_told_of(cluster: LeasedCluster) -> None:
    cluster.elect()
    async with cluster.running():
        await cluster.renew(20)
        cluster.release()
        await asyncio.sleep(SILENCE)
        assert cluster.silent_since is not None


async def test_the_summary_is_written_only_if_the_answer_changes(cluster: LeasedCluster) -> None:
    def patches() -> int:
        return cluster.server.count("patch", kinds.CLUSTER_SUMMARIES)

    cluster.elect()
    async with cluster.running():
        before = patches()
        await cluster.renew(600)
        assert patches() == before + 10  # heartbeats
        await asyncio.sleep(600)
        assert patches() == before + 10 + 10 + 1


async def test_without_a_lease_nothing_is_told_and_it_is_asked_for_rarely(
    cluster: LeasedCluster,
) -> None:
    async with cluster.running():
        await asyncio.sleep(10 * RARELY)
        assert cluster.silent_since is None
        assert cluster.server.count("get", kinds.LEASES) <= 12


async def test_an_agent_that_may_not_read_the_lease_takes_back_what_was_told(
    cluster: LeasedCluster,
) -> None:
    cluster.elect()
    async with cluster.running():
        await asyncio.sleep(SILENCE)
        assert cluster.silent_since is not None

    denied = Denied(403, "Forbidden", "no")
    cluster.server.fail(denied, verb="get", kind=kinds.LEASES, times=None)
    async with cluster.running():
        assert cluster.silent_since is None


async def test_a_new_agent_keeps_what_was_told_until_it_knows_better(
    cluster: LeasedCluster,
) -> None:
    cluster.elect()
    async with cluster.running():
        await asyncio.sleep(SILENCE)
        told = cluster.silent_since
        assert told

    async with cluster.running():
        assert cluster.silent_since == told
        await asyncio.sleep(SILENCE)
        assert cluster.silent_since == told
        await cluster.renew(PERIOD + SOON)
        assert cluster.silent_since is None


async def test_a_new_agent_drops_what_an_older_one_has_left_unread(cluster: LeasedCluster) -> None:
    cluster.elect()
    async with cluster.running():
        await asyncio.sleep(SILENCE)
        assert cluster.silent_since

    def beat(summary: Object) -> None:
        """Write what version 0.1 does."""
        summary["metadata"]["annotations"][keys.HEARTBEAT] = "2026-01-01T00:00:01Z"

    cluster.server.change(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME, "", beat)
    async with cluster.running():
        assert cluster.silent_since is None


async def test_time_in_which_the_api_server_does_not_answer_does_not_count(
    cluster: LeasedCluster,
) -> None:
    cluster.elect()
    async with cluster.running():
        await cluster.renew(20)
        fault = cluster.server.fail(Unreachable("away"), verb="get", kind=kinds.LEASES, times=None)
        await asyncio.sleep(120)
        fault.clear()
        await asyncio.sleep(PERIOD + SOON)
        await cluster.renew(60)
        assert cluster.silent_since is None


def test_a_long_lease_is_waited_for() -> None:
    assert candidate_scheduler._patience({"leaseDurationSeconds": 60}) == 75.0
