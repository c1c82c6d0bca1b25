"""A target is taken for one that runs vnode as long as its summary shows signs of life."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests import background
from tests.apiserver import links
from tests.apiserver.server import APIServer
from vnode.api import keys, kinds, summary_reports
from vnode.api.clock import Clock
from vnode.api.identity import Identity
from vnode.api.target_key import TargetKey
from vnode.nodes.summary import SummaryWriter
from vnode.targets.heartbeat_monitor import HeartbeatMonitor
from vnode.targets.heartbeats import TIMEOUT

pytestmark = pytest.mark.looptime

SOON = 5.0
ALMOST = TIMEOUT - 10


class Watched:
    """A target, its link, and what listeners of that were told."""

    def __init__(self, clock: Clock) -> None:
        self.server = APIServer("gpu", clock)
        self.link = links.link_to(self.server, TargetKey("ns", "gpu"), Identity("c1", "us"), clock)
        self.changes: list[bool] = []
        self._clock = clock

    def write(self, **annotations: str) -> None:
        if self.server.find(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME, "") is not None:
            self.server.change(
                kinds.CLUSTER_SUMMARIES,
                keys.SUMMARY_NAME,
                "",
                lambda obj: obj["metadata"].update(annotations=annotations),
            )
            return

        metadata = {"name": keys.SUMMARY_NAME, "annotations": annotations}
        self.server.add(kinds.CLUSTER_SUMMARIES, {"metadata": metadata, "allocatable": {}})

    def beat(self, heartbeat: str) -> None:
        """Publish that vnode runs in the target, with a heartbeat, as the agent there does."""
        self.write(**{keys.AGENT_VERSION: "1", keys.HEARTBEAT: heartbeat})

    def set_healthy(self, healthy: bool) -> None:
        links.set_healthy(self.link, healthy, self._clock)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Have its heartbeat monitored."""
        monitor = HeartbeatMonitor(self.link, self._clock)
        self.link.on_health(lambda: self.changes.append(self.link.runs_vnode))
        async with links.connected(self.link), background.running(monitor.run()):
            yield


@pytest.fixture
async def target(clock: Clock) -> Watched:
    return Watched(clock)


async def test_a_target_whose_agent_writes_no_heartbeat_any_more_is_not_taken_for_vnode(
    target: Watched,
) -> None:
    target.beat("1")
    async with target.running():
        for heartbeat in ("2", "3", "4"):
            await asyncio.sleep(ALMOST)
            target.beat(heartbeat)

        await asyncio.sleep(ALMOST)
        assert target.link.runs_vnode
        await asyncio.sleep(10 + SOON)
        assert not target.link.runs_vnode
        assert target.link.lacks_vnode
        assert target.changes == [True, False]


async def test_admiraltys_writes_to_the_summary_are_no_sign_of_life(target: Watched) -> None:
    target.beat("1")
    async with target.running():
        for number in range(4):
            await asyncio.sleep(TIMEOUT / 3)
            target.server.change(
                kinds.CLUSTER_SUMMARIES,
                keys.SUMMARY_NAME,
                "",
                lambda obj, cpu=str(number): obj.update(allocatable={"cpu": cpu}),
            )

        assert not target.link.runs_vnode


async def test_the_next_heartbeat_of_an_agent_that_was_down_counts_at_once(
    target: Watched,
) -> None:
    target.beat("1")
    async with target.running():
        await asyncio.sleep(TIMEOUT + SOON)
        target.beat("2")
        await asyncio.sleep(SOON)
        assert target.link.runs_vnode
        assert target.changes == [True, False, True]
        await asyncio.sleep(TIMEOUT)
        assert target.changes == [True, False, True, False]


async def test_time_in_which_the_target_does_not_answer_does_not_count(target: Watched) -> None:
    target.beat("1")
    async with target.running():
        await asyncio.sleep(ALMOST)
        target.set_healthy(False)
        await asyncio.sleep(10 * TIMEOUT)
        target.set_healthy(True)
        await asyncio.sleep(ALMOST)
        assert target.link.runs_vnode
        await asyncio.sleep(10 + SOON)
        assert not target.link.runs_vnode


async def test_a_target_that_turns_to_admiralty_and_back_counts_at_once(target: Watched) -> None:
    target.write()
    async with target.running():
        await asyncio.sleep(SOON)
        assert target.link.lacks_vnode
        target.beat("1")
        await asyncio.sleep(SOON)
        assert target.link.runs_vnode
        target.server.remove(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)
        target.write()
        await asyncio.sleep(SOON)
        assert target.link.lacks_vnode
        assert target.changes == [True, False]


async def test_nothing_is_known_of_a_target_without_a_summary(target: Watched) -> None:
    async with target.running():
        await asyncio.sleep(2 * TIMEOUT)
        assert not target.link.runs_vnode
        assert not target.link.lacks_vnode


async def test_a_dead_scheduler_is_believed_while_the_agent_lives_that_tells_of_it(
    target: Watched,
) -> None:
    silent = {keys.SCHEDULER_SILENT: "2026-01-01T00:00:00Z"}
    target.beat("1")
    async with target.running():
        target.link.starts.on_decision(0.0)
        said = {keys.AGENT_VERSION: "1", keys.HEARTBEAT: "2", **silent}
        target.write(**summary_reports.listed(said))
        await asyncio.sleep(SOON)
        assert target.link.scheduler_silent_since is not None
        assert not target.link.starts.is_shown  # what was decided before shows nothing
        assert len(target.changes) == 2
        await asyncio.sleep(TIMEOUT)
        assert target.link.scheduler_silent_since is None
        target.beat("3")
        await asyncio.sleep(SOON)
        assert target.link.scheduler_silent_since is None
        said |= {keys.HEARTBEAT: "4", keys.SCHEDULER_SILENT: "x"}
        target.write(**summary_reports.listed(said))
        await asyncio.sleep(SOON)
        assert target.link.scheduler_silent_since is None


async def test_a_dead_scheduler_is_not_believed_of_an_older_agent_that_only_left_the_word(
    target: Watched,
) -> None:
    said = {keys.SCHEDULER_SILENT: "2026-01-01T00:00:00Z", keys.AGENT_VERSION: "2"}
    target.write(**summary_reports.listed({**said, keys.HEARTBEAT: "1"}))
    async with target.running():
        await asyncio.sleep(SOON)
        assert target.link.scheduler_silent_since is not None
        listed = summary_reports.listed({**said, keys.HEARTBEAT: "1"})
        target.write(**{**listed, keys.AGENT_VERSION: "1", keys.HEARTBEAT: "2"})
        await asyncio.sleep(SOON)
        assert target.link.runs_vnode
        assert target.link.scheduler_silent_since is None


async def test_a_writer_of_summaries_gives_signs_of_life_for_as_long_as_it_runs(
    target: Watched, clock: Clock
) -> None:
    writer = SummaryWriter(target.server.client("agent"), "vnode", clock=clock)
    async with target.running():
        async with background.running(writer.run()):
            await asyncio.sleep(SOON)
            before = target.server.count("patch", kinds.CLUSTER_SUMMARIES)
            await asyncio.sleep(3600)
            assert target.link.runs_vnode
            assert target.changes == [True]
            assert target.server.count("patch", kinds.CLUSTER_SUMMARIES) == before + 60

        await asyncio.sleep(TIMEOUT + SOON)
        assert not target.link.runs_vnode
