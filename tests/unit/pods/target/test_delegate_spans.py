"""Which steps of a delegate the target tells, and which one takes over where messages decide."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from tests import background
from tests.recorded_spans import RecordedSpans
from tests.unit.pods.target_side import TargetCluster
from vnode.api import keys
from vnode.pods.target.delegate_spans import DelegateSpans

pytestmark = pytest.mark.looptime

STEP = 2.0  # seconds
LABELS = {keys.PARENT_UID: "0c6f4a52-8d3e-4b7a-9f10-5a2b7c1d3e4f"}


@pytest.fixture
async def cluster(clock):
    return TargetCluster(clock)


@asynccontextmanager
async def telling(cluster):
    """Have the agent at work, and yield what keeps the spans."""
    sender = RecordedSpans()
    spans = DelegateSpans(sender, cluster.chaperons, cluster.delegates, cluster.clock)
    async with cluster.running(), background.running(spans.run()):
        yield sender


async def test_each_step_that_the_chaperon_shows_is_told(cluster):
    async with telling(cluster) as spans:
        cluster.send(labels=LABELS)
        await cluster.until(cluster.pod)
        await asyncio.sleep(STEP)
        cluster.annotate(is_reserved="true")
        await asyncio.sleep(STEP)
        cluster.annotate(is_allowed="true")
        await asyncio.sleep(STEP)
        await cluster.run()
        told = spans.by_name()
        steps = ["create delegate", "reserve", "await source", "bind delegate"]
        assert [name for name in told if name in steps] == steps
        for name in steps[1:]:
            assert told[name].end - told[name].start == pytest.approx(STEP, abs=0.1), name


async def test_what_messages_decide_is_part_of_the_binding(cluster):
    async with telling(cluster) as spans:
        cluster.send(labels=LABELS, annotations={keys.SOURCE_DIGEST: "digest"})
        await cluster.until(cluster.pod)
        await asyncio.sleep(2 * STEP)
        await cluster.run()
        await asyncio.sleep(STEP)
        told = spans.by_name()
        assert told["bind delegate"].end - told["bind delegate"].start == pytest.approx(4, abs=0.1)
        assert not told.keys() & {"reserve", "await source"}
        assert "start containers" in told
